/** The plan as a graph; beside each operator what it keeps now. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, type GoalsDocument, type PlanDocument, type PlanStep, Refused } from "./api";
import { checked } from "./checks";
import { bytes, count, partialMatches, prefixesOf, some } from "./format";
import { arranged, type Graph, type Node, WIDTH } from "./layout";
import { amount } from "./solutions";
import { different, registered } from "./state";
import { tab } from "./tabs";

const EVERY_MS = 1000;
const STEP = 1.2;
/** Smaller than this, it is hard to read: a plan opens no smaller, and Fit shows all of it. */
const READABLE = 0.7;
const LEAST = 0.35;
/** What the graph's padding takes, and a little, lest scroll bars come and go. */
const MARGIN = { width: 30, height: 32 };

export function Plan() {
  const query = registered.value;
  const running = query !== null && !different.value.length;
  const [known, setKnown] = useState<{ registered: number; plan: PlanDocument } | null>(null);
  const goals = useGoals(running ? query.name : null);
  useEffect(() => {
    if (running) void api.plan(query.name).then((plan) => setKnown({ registered: query.registered, plan }), () => setKnown(null));
  }, [running, query?.registered]);

  const [sheet, setSheet] = useState<HTMLDivElement | null>(null);
  const [chosen, zoom] = useState<number | "fit" | null>(null);
  const size = useSize(sheet);
  const plan = running && known?.registered === query.registered ? known.plan : (checked.value?.plan ?? null);
  const graph = useMemo(() => (plan ? arranged(plan, prefixesOf(tab.peek()?.query ?? "")) : null), [plan]);
  if (!plan || !graph) return <p class="empty">A plan appears here as soon as the text above has no fault.</p>;
  const across = Math.max(0, size.width - MARGIN.width) / graph.width;
  const fit = Math.min(1, across, Math.max(0, size.height - MARGIN.height) / graph.height);
  const scale = chosen === "fit" ? fit : (chosen ?? Math.min(1, Math.max(READABLE, across)));
  const kept = running && goals ? matched(plan.plan, goals) : new Map<number, Kept>();
  return (
    <section class="plan" aria-label="Plan of the query">
      <div class="bar">
        <span>{running ? "As it runs" : "As it would run"}</span>
        <span class="quiet">
          {plan.partition.key ? `can be partitioned by ?${plan.partition.key.replace(/^\?/, "")}` : `runs in one partition: ${plan.partition.reason}`}
        </span>
        <span class="grow" />
        <span class="buttons" role="group" aria-label="Size of the plan">
          <button type="button" aria-label="Smaller" title="Smaller" onClick={() => zoom(Math.max(Math.min(LEAST, fit), scale / STEP))}>
            −
          </button>
          <button type="button" aria-label="Larger" title="Larger" onClick={() => zoom(Math.min(2, scale * STEP))}>
            +
          </button>
          <button type="button" title="All of the plan" aria-pressed={chosen === "fit"} onClick={() => zoom("fit")}>
            Fit
          </button>
        </span>
      </div>
      {plan.unbounded.length > 0 && <p class="doubt">Nothing bounds the state of this query: {plan.unbounded.join("; ")}</p>}
      <div class="graph" ref={setSheet} tabIndex={0} role="region" aria-label="Operators, from the streams at the left to the solutions at the right">
        <div class="sheet" style={{ width: `${graph.width}px`, height: `${graph.height}px`, zoom: scale }}>
          <Edges graph={graph} />
          {graph.nodes.map((node, k) => (
            <Step key={k} node={node} kept={kept.get(k)} found={k === 0 && running ? amount(query) : null} />
          ))}
        </div>
      </div>
    </section>
  );
}

interface Kept {
  sides: { side: string; goals: number; oldest: string | null }[];
  bytes: number;
}

/** The operators that keep something come in the plan's order, so each belongs to the next step of its kind with its keys. */
function matched(steps: readonly PlanStep[], goals: GoalsDocument): Map<number, Kept> {
  const found = new Map<number, Kept>();
  for (const each of goals.operators) {
    const on = [...each.on].sort().join(" ").replaceAll("?", "");
    const fits = (step: PlanStep) => step.operator === each.operator && [...step.on].sort().join(" ").replaceAll("?", "") === on;
    const place = steps.findIndex((step, k) => !found.has(k) && fits(step));
    if (place >= 0) found.set(place, { sides: each.sides, bytes: each.state_bytes });
  }
  return found;
}

function useSize(box: HTMLElement | null): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    if (!box) return;
    const observer = new ResizeObserver(() => setSize({ width: box.clientWidth, height: box.clientHeight }));
    observer.observe(box);
    return () => observer.disconnect();
  }, [box]);
  return size;
}

function useGoals(name: string | null): GoalsDocument | null {
  const [goals, setGoals] = useState<GoalsDocument | null>(null);
  useEffect(() => {
    setGoals(null);
    if (name === null) return;
    let over = false;
    const ask = async () => {
      if (over) return;
      try {
        const found = await api.goals(name);
        if (!over) setGoals(found);
      } catch (error) {
        if (error instanceof Refused && error.problem.status === 404) return;
      }
      if (!over) setTimeout(ask, EVERY_MS);
    };
    void ask();
    return () => void (over = true);
  }, [name]);
  return goals;
}

function Edges({ graph }: { graph: Graph }) {
  return (
    <svg width={graph.width} height={graph.height} aria-hidden="true">
      {graph.edges.map(({ from, to, back }) => {
        const [a, b] = [graph.nodes[from]!, graph.nodes[to]!];
        const [x1, y1, x2, y2] = [a.x + WIDTH, a.y + a.h / 2, b.x, b.y + b.h / 2];
        const bend = Math.max(22, Math.abs(x2 - x1) / 2);
        return <path key={`${from} ${to}`} class={back ? "back" : ""} d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />;
      })}
    </svg>
  );
}

/** `found`: how many solutions have come out, of the last step. */
function Step({ node, kept, found }: { node: Node; kept: Kept | undefined; found: number | null }) {
  const { step } = node;
  const forEver = step.keeps.some((each) => each.time === "kept for ever");
  const kind = step.operator === "scan" || step.operator === "rows" ? "source" : "";
  const title = [step.detail, ...step.filters.map((filter) => filter.condition)].filter(Boolean).join("\n");
  return (
    <div
      class={`step ${kind} ${forEver ? "for-ever" : ""}`}
      style={{ left: `${node.x}px`, top: `${node.y}px`, width: `${WIDTH}px`, height: `${node.h}px` }}
      title={title}
    >
      <div class="head">
        <b>{step.operator}</b>
        {found !== null && <span class="live out figures">{some(found, "solution")}</span>}
        {kept && (
          <span class="live figures" title={kept.sides.map((side) => `${side.side} side: ${partialMatches(side.goals)}${side.oldest ? `, the oldest of ${side.oldest}` : ""}`).join("\n")}>
            {kept.sides.map((side) => `${side.side} ${count(side.goals)}`).join(" · ")}
            {kept.bytes > 0 && ` ${bytes(kept.bytes)}`}
          </span>
        )}
      </div>
      {node.lines.map((line, k) => (
        <div key={k} class="line">
          {line}
        </div>
      ))}
    </div>
  );
}
