/** What the open query has found, and how it works. */

import { useEffect } from "preact/hooks";
import { token } from "./api/client";
import { Chart } from "./chart/chart";
import { bytes, count, partialMatches, rate } from "./display/format";
import { Split } from "./display/split";
import { PointMap } from "./map/map";
import { Partial } from "./query/partial_matches";
import { Plan } from "./query/plan";
import { Versions } from "./query/versions";
import { Webhooks } from "./query/webhooks";
import { Filter } from "./solutions/column_heading";
import { WhyNothing } from "./solutions/diagnosis";
import { Download } from "./solutions/download";
import { Why } from "./solutions/explanation";
import { selected } from "./solutions/selection";
import { showAll } from "./solutions/sort_order";
import { Table } from "./solutions/table";
import { checked } from "./state/query_checks";
import { different, queries, rateOf, registered, trouble } from "./state/server_state";
import { amount, fromBeginning, rows, standing, standingRows, truncated, watch } from "./state/solution_store";
import { change, choose, type Pane, pane, showQuery, tab, unused } from "./state/tabs";
import { certainUpTo, LONG_AGO, streamsOf } from "./state/watermark";
import { Timeline } from "./timeline/timeline";

const PANES: [Pane, string][] = [
  ["solutions", "Solutions"],
  ["chart", "Chart"],
  ["map", "Map"],
  ["plan", "Plan"],
  ["partial", "Partial matches"],
  ["versions", "Versions"],
  ["webhooks", "Webhooks"],
];

/** They show no single solutions. */
const WHOLE: Pane[] = ["plan", "partial", "versions", "webhooks"];

export function Results() {
  const query = registered.value;
  useEffect(() => {
    selected.value = null;
    showAll();
    watch(query);
  }, [query?.registered, query?.name]);
  return (
    <section class="results" aria-label="Results">
      <div class="bar top">
        <div class="switch" role="tablist" aria-label="Results">
          {PANES.map(([name, title]) => (
            <button key={name} type="button" role="tab" aria-selected={pane.value === name} onClick={() => choose(name)}>
              {title}
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
      <span class="quiet">{rate(rateOf(`query ${query.registered}`))}</span>
      {query.memory !== null && query.memory.goals > 0 && (
        <span class="quiet" title="Partial matches that wait to be completed, and the memory of the query's state">
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

/** Why there is nothing yet, and what to do. */
function Nothing() {
  const query = registered.value;
  const text = tab.value?.query ?? "";
  if (!query)
    return (
      <p class="empty">
        {checked.value?.text === text && checked.value.errors.length ? (
          <>Correct the fault above to run the query.</>
        ) : text.trim() ? (
          <>
            Press Run, or <kbd>Ctrl</kbd> <kbd>Enter</kbd>, to run the query; what it finds appears here with its intervals.
          </>
        ) : (
          <>Solutions appear here once a query runs.</>
        )}
      </p>
    );
  if (trouble.value?.code === "not-ready") return <p class="empty">{query.name} goes on as soon as the server has started.</p>;
  if (query.unfed.length)
    return (
      <div class="empty">
        <p>
          {query.name} waits for the first event on {query.unfed.map((name) => `<${name}>`).join(", ")}. Send one, or play an example:
        </p>
        <pre>{sending(query.unfed[0]!)}</pre>
      </div>
    );
  const rules = queries.value.some((each) => /\bCONSTRUCT\b/i.test(each.query) && each.name !== query.name);
  return (
    <div class="empty">
      <p>
        {query.state === "paused" ? `${query.name} is paused.` : `${query.name} reads ${streamsOf(query.query).map((name) => `<${name}>`).join(", ")} and has found nothing yet.`}{" "}
        {rules ? "" : "A query reads events that come after its registration, unless it reads from the beginning. "}The plan shows how far its rows come.
      </p>
      <WhyNothing key={query.registered} name={query.name} />
    </div>
  );
}

/** A command that sends an event to the stream, as a shell takes it. */
function sending(stream: string): string {
  const event = { s: "<http://example.org/s>", p: "<http://example.org/p>", o: '"1"', at: LONG_AGO };
  const secret = token.get() ? " -H 'Authorization: Bearer TOKEN'" : "";
  const path = `streams/${encodeURIComponent(stream).replaceAll("'", "%27")}/events`;
  return `curl -X POST '${location.origin}/${path}'${secret} -H 'Content-Type: application/x-ndjson' -d '${JSON.stringify(event)}'`;
}
