/** What the open query has found, and how it works. */

import { useEffect } from "preact/hooks";
import { Chart } from "./chart/chart";
import { bytes, count, partialMatches, rate } from "./display/format";
import { Split } from "./display/split";
import { PointMap } from "./map/map";
import { Nothing } from "./query/no_solutions";
import { Partial } from "./query/partial_matches";
import { Plan } from "./query/plan";
import { Versions } from "./query/versions";
import { Webhooks } from "./query/webhooks";
import { Filter } from "./solutions/column_heading";
import { Download } from "./solutions/download";
import { Why } from "./solutions/explanation";
import { selected, useSought } from "./solutions/selection";
import { showAll } from "./solutions/sort_order";
import { Table } from "./solutions/table";
import { different, queries, rateOf, registered } from "./state/server_state";
import { amount, fromBeginning, readRow, rows, standing, standingRows, truncated, watch } from "./state/solution_store";
import { change, choose, type Pane, PANES, pane, showQuery, tab, unused } from "./state/tabs";
import { certainUpTo } from "./state/watermark";
import { Timeline } from "./timeline/timeline";

const TITLES: Record<Pane, string> = {
  solutions: "Solutions",
  chart: "Chart",
  map: "Map",
  plan: "Plan",
  partial: "Partial matches",
  versions: "Versions",
  webhooks: "Webhooks",
};

/** They show no single solutions. */
const WHOLE: Pane[] = ["plan", "partial", "versions", "webhooks"];

export function Results() {
  const query = registered.value;
  useEffect(() => {
    selected.value = null;
    showAll();
    watch(query);
  }, [query?.registered, query?.name]);
  useSought(rows.value, query && ((id) => readRow(query, id)));
  return (
    <section class="results" aria-label="Results">
      <div class="bar top">
        <div class="switch" role="tablist" aria-label="Results">
          {PANES.map((name) => (
            <button key={name} type="button" role="tab" aria-selected={pane.value === name} onClick={() => choose(name)}>
              {TITLES[name]}
            </button>
          ))}
        </div>
        <span class="grow" />
        {query && pane.value === "solutions" && rows.value.length > 0 && <Filter rows={rows.value} />}
        {query && <Counts />}
      </div>
      {different.value.length > 0 && <Another />}
      <div class="pane">
        {pane.value === "plan" ? <Plan /> : pane.value === "partial" && query ? <Partial key={query.registered} query={query} /> : pane.value === "versions" && query ? <Versions key={query.registered} query={query} /> : pane.value === "webhooks" && query ? <Webhooks key={query.registered} query={query} /> : query && rows.value.length ? <Shown /> : <Nothing />}
        {selected.value && !WHOLE.includes(pane.value) && <Why rows={rows.value} />}
      </div>
    </section>
  );
}

/** The solutions, as the tab shows them. */
const Shown = () => (pane.value === "chart" ? <Chart /> : pane.value === "map" ? <PointMap /> : <Found />);

/** The name is that of a registered query, which is not the one written above. */
function Another() {
  const query = registered.value!;
  const apart = unused(query.name, queries.value.map((each) => each.name));
  const look = () => {
    change({ name: apart });
    showQuery(query);
  };
  return (
    <p class="doubt" role="status">
      <b>{query.name}</b> is {query.state} with another {different.value.join(" and ")}, and what is counted and found is of that one.{" "}
      <button type="button" class="plain link" title={`Opens the registered text of ${query.name}; this text stays, as ${apart}`} onClick={look}>
        Look at it
      </button>
    </p>
  );
}

function Counts() {
  const query = registered.value!;
  const { state, why } = standing.value;
  const found = amount(query);
  return (
    <span class="counts figures">
      <span class={`state ${query.state}`}>{query.state}</span>
      <span>
        <b>{count(found)}</b> {found === 1 ? "solution" : "solutions"}
      </span>
      <span class="quiet spare">{rate(rateOf(`query ${query.registered}`))}</span>
      {query.memory !== null && query.memory.goals > 0 && (
        <span class="quiet spare" title="Partial matches that wait to be completed, and the memory of the query's state">
          {partialMatches(query.memory.goals)} · {bytes(query.memory.state_bytes)}
        </span>
      )}
      {query.lag > 0 && <span class="quiet">{count(query.lag)} behind</span>}
      <span class={`wire ${state}`} title={why} role="status">
        {state === "live" ? "live" : state}
      </span>
      {found > 0 && <Download graphs={rows.value.some((row) => row.triples !== null)} />}
    </span>
  );
}

function Found() {
  const query = registered.value!;
  return (
    <Split>
      <Timeline rows={standingRows.value} of={tab.value!.name} live={{ certain: certainUpTo.value, readAll: truncated.value ? () => fromBeginning(query) : null }} />
      <Table rows={rows.value} first="the newest" />
    </Split>
  );
}
