/** Where the steps of a plan stand: scans at the left, the query at the right, each step beside the middle of what feeds it. */

import type { PlanDocument, PlanStep } from "../api/client";
import { bytes, count, shortIri } from "../display/format";

export const WIDTH = 194;
const [ACROSS, DOWN] = [32, 14];
const LINE = 16;
/** Letters of a line, and lines of a text. */
const LONG = 26;
const MOST = 6;

export interface Node {
  step: PlanStep;
  lines: string[];
  /** What it has had of rows, where the query runs. */
  rows: string[];
  x: number;
  y: number;
  h: number;
}

export interface Graph {
  nodes: Node[];
  /** Pairs of places in `nodes`: what feeds, what is fed, and whether it goes round. */
  edges: { from: number; to: number; back: boolean }[];
  width: number;
  height: number;
}

/** What a box tells, in lines of the box's width, with IRIs as the query abbreviates them. */
function lines(step: PlanStep, prefixes: ReadonlyMap<string, string>): string[] {
  const found = [
    step.detail,
    step.on.length ? `on ${step.on.join(" ")}` : "",
    step.checks.length ? `compatible in ${step.checks.join(" ")}` : "",
    step.within ? `within ${step.within.duration}` : "",
    ...step.filters.map((filter) => `${filter.by === "host" ? "exactly " : ""}${filter.condition}`),
    ...step.keeps.map((kept) => `${kept.side}: ${kept.time}`),
  ].filter(Boolean);
  const short = (line: string) => line.replace(/<([^>\s]*)>/g, (_, iri: string) => shortIri(iri, prefixes)).replace(/"([^"]*)"\^\^xsd:\w+/g, "$1");
  return found.map(short).flatMap(folded);
}

/** What came in, what the filters let not pass, and what waits. */
function rows({ live, inputs, filters }: PlanStep): string[] {
  if (!live || !inputs.length) return [];
  const sided = inputs.length > 1;
  const taken = live.sides.map((side) => (sided ? `${side.side} ${count(side.rows)}` : count(side.rows)));
  const kept = live.sides.filter((side) => side.goals > 0).map((side) => (sided ? `${side.side} ${count(side.goals)}` : count(side.goals)));
  return [
    `in ${taken.join(", ") || "0"}`,
    filters.length > 0 ? `refused ${count(live.refused)}` : "",
    live.type_errors > 0 ? `type errors ${count(live.type_errors)}` : "",
    kept.length || live.state_bytes ? `keeps ${[...kept, live.state_bytes ? bytes(live.state_bytes) : ""].filter(Boolean).join(", ")}` : "",
  ].filter(Boolean);
}

/** As many lines as fit a box, broken at spaces where there are some. */
function folded(line: string): string[] {
  const found = [];
  let rest = line;
  while (rest.length > LONG && found.length < MOST - 1) {
    const at = rest.lastIndexOf(" ", LONG);
    const end = at > LONG / 2 ? at : LONG;
    found.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...found, rest.length > LONG ? `${rest.slice(0, LONG - 1)}…` : rest];
}

export function arranged(plan: PlanDocument, prefixes: ReadonlyMap<string, string>): Graph {
  const steps = plan.plan;
  const depth = depths(steps);
  const deepest = Math.max(0, ...depth);
  const nodes: Node[] = steps.map((step, k) => {
    const [told, had] = [lines(step, prefixes), rows(step).flatMap(folded)];
    const height = told.length + had.length;
    return { step, lines: told, rows: had, x: (deepest - depth[k]!) * (WIDTH + ACROSS), y: 0, h: 34 + height * LINE + (height ? 6 : 0) };
  });
  const edges = steps.flatMap((step, to) => step.inputs.map((from) => ({ from, to, back: depth[from]! <= depth[to]! })));
  const bottoms = new Array<number>(deepest + 1).fill(-DOWN);
  const done = new Set<number>();
  place(0);
  return { nodes, edges, width: (deepest + 1) * (WIDTH + ACROSS) - ACROSS, height: Math.max(0, ...nodes.map((node) => node.y + node.h)) };

  /** Below all that stands in its column; what feeds a step is placed before it, without recursion, for plans are deep. */
  function place(root: number): void {
    const pending = [root];
    while (pending.length) {
      const at = pending[pending.length - 1]!;
      const below = steps[at]!.inputs.filter((input) => depth[input]! > depth[at]!);
      const missing = below.filter((input) => !done.has(input));
      if (missing.length) {
        pending.push(...missing.reverse());
        continue;
      }
      pending.pop();
      if (done.has(at)) continue;
      done.add(at);
      const node = nodes[at]!;
      const column = depth[at]!;
      const ends = below.map((input) => nodes[input]!);
      const middle = ends.length ? (Math.min(...ends.map((n) => n.y)) + Math.max(...ends.map((n) => n.y + n.h))) / 2 : Math.max(...bottoms.slice(column)) + DOWN;
      node.y = Math.max(ends.length ? middle - node.h / 2 : middle, bottoms[column]! + DOWN);
      bottoms[column] = node.y + node.h;
    }
  }
}

/** The longest way from the query's own step to each; steps are listed before what feeds them, unless a plan goes round. */
function depths(steps: readonly PlanStep[]): number[] {
  const found = new Array<number>(steps.length).fill(0);
  steps.forEach((step, k) => {
    for (const input of step.inputs) if (input > k) found[input] = Math.max(found[input]!, found[k]! + 1);
  });
  return found;
}
