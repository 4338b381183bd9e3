/** One trial: how it goes, what only the new text finds, only the old one, and both, and the way to promote or discard it. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError } from "epsparql";
import { client, type Side, type Trial } from "../api/client";
import { repeat } from "../api/polling";
import { Plots } from "../chart/chart";
import { count, duration, moment, some } from "../display/format";
import { Link } from "../display/link";
import { Split } from "../display/split";
import { Promote } from "../query/promotion";
import { Filter } from "../solutions/column_heading";
import { Why } from "../solutions/explanation";
import { selected, useSought } from "../solutions/selection";
import { showAll } from "../solutions/sort_order";
import { Table } from "../solutions/table";
import { hashOf } from "../state/places";
import { Source } from "../state/query_source";
import { admin, attempt, queries, view } from "../state/server_state";
import { millis } from "../state/solution_store";
import { add, choose, differences, open, show, tabs, unused } from "../state/tabs";
import { Timeline } from "../timeline/timeline";
import { ALL_SIDES, type Cursor, DASHES, FIRST, hasEnded, labelOf, linesOf, nameOf, type Page, rangeOf, readPage, readRow, slotsOf } from "./trial_results";

const EVERY_MS = 500;
const UNBOUNDED = { from: Number.NaN, to: Number.NaN };

export const showTrials = () => void (view.value = { kind: "trials", id: null });

export function TrialPage({ id }: { id: string }) {
  const [trial, setTrial] = useState<Trial | null>(null);
  const [fault, tell] = useState("");
  useEffect(() => {
    const stop = repeat(async () => {
      try {
        const found = await client.trial(id);
        setTrial(found);
        tell("");
        if (hasEnded(found)) stop();
      } catch (error) {
        const gone = error instanceof ApiError && error.problem.status === 404;
        tell(gone ? "There is no such trial: it was discarded, or the server has started again since." : error instanceof Error ? error.message : String(error));
        throw error;
      }
    }, EVERY_MS);
    return stop;
  }, [id]);
  return (
    <article class="page trial" aria-label="Trial">
      <header>
        <p>
          <Link class="plain link" href={hashOf(["trials"])} act={showTrials}>
            All trials
          </Link>
        </p>
        <h1>{trial ? `Trial of ${trial.compare_with === null ? "a new text" : nameOf(trial)}` : "Trial"}</h1>
        {fault && (
          <p class="fault" role="alert">
            {fault}
          </p>
        )}
        {trial && <Standing trial={trial} />}
      </header>
      {trial && <Found trial={trial} />}
      {trial && <Texts trial={trial} />}
    </article>
  );
}

function Standing({ trial }: { trial: Trial }) {
  const { progress } = trial;
  return (
    <>
      <p class="quiet">
        {trial.compare_with === null ? "A text by itself" : `A new text beside that of ${trial.compare_with}`}, over {rangeOf(trial)}. Started on <span class="figures">{moment(millis(trial.created)).slice(0, 19)} UTC</span>.
      </p>
      {trial.state === "failed" ? (
        <p class="fault" role="alert">
          It failed: {trial.reason}
        </p>
      ) : (
        <p class="result" role="status">
          {trial.state === "completed" ? verdict(trial) : trial.state === "waiting" ? "It waits until another trial has ended." : progress ? "It reads the log." : "It starts."}
        </p>
      )}
      {!hasEnded(trial) && (
        <p class="figures">
          <progress aria-label="How much of the log is read" max={1} value={shareOf(trial)} /> {progress && `up to offset ${count(progress.position)} of ${count(progress.to)}, ${some(progress.rows, "event")}`}
        </p>
      )}
      {trial.ended.map(({ query, side, state, reason }) => (
        <p key={`${query} ${side}`} class="fault">
          {query}, on the {side} side, {state}: {reason}
        </p>
      ))}
      {Object.entries(trial.unbounded).map(([name, reason]) => (
        <p key={name} class="quiet">
          {trial.compare_with === null ? "The text" : name} looks back without a bound ({reason}), so the trial works on one core.
        </p>
      ))}
      <Actions trial={trial} />
    </>
  );
}

/** How much is read, from 0 to 1. */
export const shareOf = ({ progress }: Trial) => (progress && progress.to > progress.from ? (progress.position - progress.from) / (progress.to - progress.from) : 0);

function verdict({ counts, compare_with: old }: Trial): string {
  const { new: added, old: lost, both } = counts;
  const nothing = "in this range. Try a longer range, or one with more events.";
  if (old === null) return added ? `The text finds ${some(added, "solution")}.` : `The text finds nothing ${nothing}`;
  if (!added && !lost) return both ? `No difference: both texts find the same ${some(both, "solution")}.` : `Neither text finds anything ${nothing}`;
  return `The new text finds ${some(added, "solution")} that ${old} does not, and misses ${count(lost)} that ${old} finds. ${count(both)} ${both === 1 ? "is" : "are"} the same.`;
}

// ---------------------------------------------------------------- what can be done
function Actions({ trial }: { trial: Trial }) {
  const { id, compare_with: name, query: text, policy, default_graph } = trial;
  if (!admin.value) return null;
  const query = queries.value.find((each) => each.name === name);
  const differs = query !== undefined && differences(trial, query).length > 0;
  const wish = { query: text, policy, default_graph };
  const end = (done: string) => attempt(() => client.dropTrial(id), done).then((ended) => ended && showTrials());
  const openText = () => {
    const known = tabs.value.find((each) => each.query === text);
    if (known) open.value = known.key;
    else add(unused(name ?? "query", queries.value.map((each) => each.name)), wish);
    view.value = { kind: "query" };
  };
  const promoted = () => {
    show(name!, wish);
    choose("versions");
    view.value = { kind: "query" };
  };
  return (
    <>
      {hasEnded(trial) && name !== null && <p class="quiet">{since(trial, query)}</p>}
      <div class="buttons">
        {!hasEnded(trial) ? (
          <button type="button" class="bad" title="Ends the trial, and forgets what it has found" onClick={() => end("the trial is cancelled")}>
            Cancel
          </button>
        ) : (
          <>
            {differs && query.state === "running" && <Promote name={query.name} wish={trial} done={promoted} />}
            <button type="button" class="bad" title="Forgets the trial and what it found; no query changes" onClick={() => end("the trial is discarded")}>
              Discard
            </button>
          </>
        )}
        <button type="button" title="Opens the tried text in the editor" onClick={openText}>
          Open the text
        </button>
      </div>
    </>
  );
}

/** What has become of the query that the text was compared with. */
function since(trial: Trial, query: { name: string; state: string; query: string } | undefined): string {
  if (!query) return `${trial.compare_with} is no longer registered.`;
  if (query.query.trim() === trial.query.trim()) return `${query.name} has this text now.`;
  if (query.query !== trial.old_query) return `${query.name} has had another text since the trial was started.`;
  return query.state === "running" ? "" : `${query.name} is ${query.state}; only a query that is running can be replaced without a gap.`;
}

// ---------------------------------------------------------------- what was found
function Found({ trial }: { trial: Trial }) {
  const { id, counts, kept, compare_with: old } = trial;
  const [chosen, choose] = useState<readonly Side[] | null>(null);
  const [cursors, go] = useState<readonly Cursor[]>([FIRST]);
  const [page, setPage] = useState<Page>({ rows: [], next: FIRST });
  const different: readonly Side[] = counts.new || counts.old ? ["new", "old"] : ALL_SIDES;
  const sides = old === null ? (["new"] as const) : (chosen ?? different);
  const at = cursors[cursors.length - 1]!;
  const ended = hasEnded(trial);
  const pick = (wanted: readonly Side[]) => {
    choose(wanted);
    go([FIRST]);
  };
  useEffect(() => {
    let over = false;
    selected.value = null;
    if (ended) void attempt(async () => {
      const found = await readPage(trial, sides, at);
      if (!over) setPage(found);
    });
    return () => void (over = true);
  }, [ended, sides.join(" "), at]);
  useSought(page.rows, ended ? (wanted) => readRow(trial, wanted) : null);
  useEffect(showAll, []);
  const plots = useMemo(() => {
    const slots = slotsOf(trial);
    return [{ name: `solutions per ${duration(slots.width)}`, series: linesOf(slots, trial, sides) }];
  }, [trial, sides.join(" ")]);
  const before = total(at, sides);
  const all = total(kept, sides);
  const left = ALL_SIDES.filter((side) => kept[side] < counts[side]);
  return (
    <Source.Provider value={trial.query}>
      {old !== null && (
        <div class="bar sides" role="group" aria-label="Show the solutions of">
          {ALL_SIDES.map((side) => (
            <label key={side} class="check">
              <input type="checkbox" checked={sides.includes(side)} onChange={() => pick(ALL_SIDES.filter((each) => (each === side ? !sides.includes(side) : sides.includes(each))))} />
              <Sample side={side} /> {labelOf(side)} <b class="figures">{count(counts[side])}</b>
            </label>
          ))}
        </div>
      )}
      {trial.queries.length > 1 && <Readers trial={trial} />}
      {trial.timeline.slots.length > 0 && sides.length > 0 && (
        <div class="counted">
          <Plots
            plots={plots}
            within={UNBOUNDED}
            hint="Enter shows only the solutions of this line. The boxes above have the totals."
            choose={(row) => old !== null && pick([row.id.split(" ")[0] as Side])}
          />
        </div>
      )}
      {ended && all > 0 && (
        <>
          <div class="bar paging">
            <span class="figures" role="status">
              {count(before + 1)} to {count(before + page.rows.length)} of {some(all, "solution")}
            </span>
            {all > page.rows.length && (
              <span class="buttons">
                <button type="button" disabled={cursors.length === 1} onClick={() => go(cursors.slice(0, -1))}>
                  Earlier
                </button>
                <button type="button" disabled={total(page.next, sides) >= all} onClick={() => go([...cursors, page.next])}>
                  Later
                </button>
              </span>
            )}
            <span class="grow" />
            <Filter rows={page.rows} />
          </div>
          {left.length > 0 && (
            <p class="quiet">Only the first {left.map((side) => `${count(kept[side])} ${old === null ? "" : labelOf(side)}`).join(" and ")} are kept to be shown (the server's setting max_trial_solutions). All are counted.</p>
          )}
          <div class="pane">
            <Split>
              <Timeline rows={page.rows} of={`${id} ${sides.join(" ")} ${before}`} />
              <Table rows={page.rows.toReversed()} first="the earliest" />
            </Split>
            {selected.value && <Why rows={page.rows} />}
          </div>
        </>
      )}
      {ended && old !== null && all === 0 && counts.new + counts.old + counts.both > 0 && <p class="quiet">{sides.length ? "There are no such solutions." : "Choose which solutions to show."}</p>}
    </Source.Provider>
  );
}

const total = (of: Cursor, sides: readonly Side[]) => sides.reduce((sum, side) => sum + of[side], 0);

/** How a side is drawn: its line in the chart, and its bar in the timeline. */
function Sample({ side }: { side: Side }) {
  const bar = { new: <rect class="full" x="20" y="2" width="14" height="8" rx="2" />, old: <rect x="20.75" y="2.75" width="12.5" height="6.5" />, both: <rect class="full" x="20" y="5" width="14" height="2.5" /> };
  return (
    <svg class="sample" width="36" height="12" style={{ color: `var(--g${ALL_SIDES.indexOf(side)})` }} aria-hidden="true">
      <line x1="0" x2="17" y1="6" y2="6" stroke-dasharray={DASHES[side]} />
      {bar[side]}
    </svg>
  );
}

/** The counts of each query, where readers of a rule are compared too. */
function Readers({ trial }: { trial: Trial }) {
  return (
    <div class="table flat" tabIndex={0} role="region" aria-label="Solutions of each query">
      <table>
        <thead>
          <tr>
            <th scope="col">query</th>
            {ALL_SIDES.map((side) => (
              <th key={side} scope="col" class="right">
                {labelOf(side)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {trial.queries.map((each) => (
            <tr key={each.query}>
              <td>{each.query}</td>
              {ALL_SIDES.map((side) => (
                <td key={side} class="figures right">
                  {count(each[side])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Texts({ trial }: { trial: Trial }) {
  return (
    <details class="texts">
      <summary>{trial.old_query === null ? "The text" : "Both texts"}</summary>
      {trial.old_query !== null && <h2>{trial.compare_with}, when the trial was started</h2>}
      {trial.old_query !== null && <pre tabIndex={0}>{trial.old_query}</pre>}
      <h2>The new text</h2>
      <pre tabIndex={0}>{trial.query}</pre>
    </details>
  );
}
