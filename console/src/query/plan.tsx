/** The plan as a graph; beside each operator what it keeps now. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { client, type PlanDocument, type PlanLive, type QuerySummary } from "../api/client";
import { repeat } from "../api/polling";
import { useSize } from "../display/element_size";
import { count, prefixesOf } from "../display/format";
import { checked } from "../state/query_checks";
import { different, registered } from "../state/server_state";
import { tab } from "../state/tabs";
import { arranged, type Graph, type Node, WIDTH } from "./plan_layout";

const EVERY_MS = 2000;
const STEP = 1.2;
/** Smaller than this, it is hard to read: a plan opens no smaller, and Fit shows all of it. */
const READABLE = 0.7;
const LEAST = 0.35;
/** What the graph's padding takes, and a little, lest scroll bars come and go. */
const MARGIN = { width: 30, height: 32 };

export function Plan() {
  const query = registered.value;
  const running = query !== null && !different.value.length;
  const live = useLive(running ? query : null);

  const [sheet, setSheet] = useState<HTMLDivElement | null>(null);
  const [chosen, zoom] = useState<number | "fit" | null>(null);
  const size = useSize(sheet);
  const plan = live ?? checked.value?.plan ?? null;
  const graph = useMemo(() => (plan ? arranged(plan, prefixesOf(tab.peek()?.query ?? "")) : null), [plan]);
  if (!plan || !graph) return <p class="empty">A plan appears here as soon as the text above has no fault.</p>;
  const across = Math.max(0, size.width - MARGIN.width) / graph.width;
  const fit = Math.min(1, across, Math.max(0, size.height - MARGIN.height) / graph.height);
  const scale = chosen === "fit" ? fit : (chosen ?? Math.min(1, Math.max(READABLE, across)));
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
            <Step key={k} node={node} live={node.step.live ?? null} />
          ))}
        </div>
      </div>
    </section>
  );
}

/** The plan of a running query, asked for again and again: with it come the rows that its steps have had. */
export function useLive(query: QuerySummary | null): PlanDocument | null {
  const [found, setFound] = useState<{ registered: number; plan: PlanDocument } | null>(null);
  const registered = query?.registered;
  useEffect(() => {
    if (!query) return;
    const { name, registered } = query;
    let over = false;
    const stop = repeat(async () => {
      const plan = await client.plan(name);
      if (!over) setFound({ registered, plan });
    }, EVERY_MS);
    return () => {
      over = true;
      stop();
    };
  }, [query?.name, registered]);
  return found && found.registered === registered ? found.plan : null;
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

/** All counts are of one moment: the server's report, which comes with the plan. */
function Step({ node, live }: { node: Node; live: PlanLive | null }) {
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
        {live && live.out !== null && <span class={`live out figures ${live.out ? "" : "none"}`}>{count(live.out)} out</span>}
      </div>
      {node.lines.map((line, k) => (
        <div key={k} class="line">
          {line}
        </div>
      ))}
      {node.rows.map((line, k) => (
        <div key={k} class="line rows">
          {line}
        </div>
      ))}
    </div>
  );
}
