/** The plan as a graph; beside each operator what it keeps now. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, type GoalsDocument, type PlanDocument, type PlanStep, Refused } from "./api";
import { checked } from "./checks";
import { bytes, count, prefixesOf } from "./format";
import { arranged, type Graph, type Node, WIDTH } from "./layout";
import { registered } from "./state";
import { tab } from "./tabs";

const EVERY_MS = 1000;

export function Plan() {
  const query = registered.value;
  const running = query !== null && query.query === tab.value?.query;
  const [known, setKnown] = useState<{ registered: number; plan: PlanDocument } | null>(null);
  const goals = useGoals(running ? query.name : null);
  useEffect(() => {
    if (running) void api.plan(query.name).then((plan) => setKnown({ registered: query.registered, plan }), () => setKnown(null));
  }, [running, query?.registered]);

  const plan = running && known?.registered === query.registered ? known.plan : (checked.value?.plan ?? null);
  const graph = useMemo(() => (plan ? arranged(plan, prefixesOf(tab.peek()?.query ?? "")) : null), [plan]);
  if (!plan || !graph) return <p class="empty">A plan appears here as soon as the text above has no fault.</p>;
  const kept = running && goals ? matched(plan.plan, goals) : new Map<number, Kept>();
  return (
    <section class="plan" aria-label="Plan of the query">
      <div class="bar">
        <span>{running ? "As it runs" : "As it would run"}</span>
        <span class="quiet">
          {plan.partition.key ? `can be spread by ?${plan.partition.key.replace(/^\?/, "")}` : `runs in one place: ${plan.partition.reason}`}
        </span>
      </div>
      {plan.unbounded.length > 0 && <p class="doubt">Nothing bounds the state of this query: {plan.unbounded.join("; ")}</p>}
      <div class="graph" tabIndex={0} role="region" aria-label="Operators, from the streams at the left to the solutions at the right">
        <div class="sheet" style={{ width: `${graph.width}px`, height: `${graph.height}px` }}>
          <Edges graph={graph} />
          {graph.nodes.map((node, k) => (
            <Step key={k} node={node} kept={kept.get(k)} />
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

function Step({ node, kept }: { node: Node; kept: Kept | undefined }) {
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
        {kept && (
          <span class="live figures" title={kept.sides.map((side) => `${side.side}: ${side.goals}${side.oldest ? `, the oldest of ${side.oldest}` : ""}`).join("\n")}>
            {kept.sides.map((side) => `${count(side.goals)} ${side.side}`).join(" · ")}
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
