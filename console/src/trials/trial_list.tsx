/** The trials that the server keeps, and the form that starts one. */

import { useState } from "preact/hooks";
import { client, optionsOf, type Trial } from "../api/client";
import { timeOf } from "../chart/period";
import { count, day, moment } from "../display/format";
import { Link } from "../display/link";
import { blank } from "../examples/gallery";
import { hashOf } from "../state/places";
import { checked } from "../state/query_checks";
import { admin, asked, attempt, queries, refresh, streams, trials, view } from "../state/server_state";
import { millis } from "../state/solution_store";
import { differences, open, tab, tabs } from "../state/tabs";
import { streamsOf } from "../state/watermark";
import { shareOf } from "./trial_page";
import { ALL_SIDES, hasEnded, labelOf, nameOf, rangeOf } from "./trial_results";

const HOUR_MS = 3_600_000;
/** Ranges that end with the last event. */
const LASTS: Record<string, number> = { "the last hour": HOUR_MS, "the last day": 24 * HOUR_MS, "the last 7 days": 7 * 24 * HOUR_MS };
const STATES: Record<Trial["state"], string> = { waiting: "paused", running: "running", completed: "completed", failed: "failed" };

/** In the list at the left: how many are at work, else how many there are. */
export function trialsInShort(): string {
  const working = trials.value.filter((each) => !hasEnded(each)).length;
  return working ? `${count(working)} running` : trials.value.length ? count(trials.value.length) : "";
}

export function Trials() {
  return (
    <article class="page" aria-label="Trials">
      <header>
        <h1>Trials</h1>
        <p class="quiet">
          A trial reads past events beside the live work, and shows which solutions a text would add or lose. It registers nothing. The server keeps trials until they are discarded or it stops.
        </p>
      </header>
      {admin.value ? <NewTrial key={tab.value?.key} /> : <p class="quiet">Trials are started with tokens that have the scope admin.</p>}
      <section class="browse" aria-label="Trials that the server keeps">
        <h2>Trials so far</h2>
        {trials.value.length > 0 ? <List /> : asked.value && <p class="quiet">{admin.value ? "None yet." : "None yet that this token may read."}</p>}
      </section>
    </article>
  );
}

function List() {
  return (
    <div class="table flat" tabIndex={0} role="region" aria-label="Trials, the newest first">
      <table>
        <thead>
          <tr>
            {["trial of", "over", "state", ...ALL_SIDES.map(labelOf), "started, UTC"].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
            {admin.value && (
              <th scope="col">
                <span class="unseen">what can be done</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {trials.value.map((trial) => (
            <Line key={trial.id} trial={trial} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line({ trial }: { trial: Trial }) {
  const started = moment(millis(trial.created)).slice(0, 19);
  const ends = hasEnded(trial) ? "Discard" : "Cancel";
  return (
    <tr>
      <td>
        <Link class="plain link" href={hashOf(["trials", trial.id])} title={trial.query} act={() => (view.value = { kind: "trials", id: trial.id })}>
          {nameOf(trial)}
        </Link>
      </td>
      <td>{rangeOf(trial)}</td>
      <td class={`state ${STATES[trial.state]}`} title={trial.reason ?? ""}>
        {trial.state}
        {trial.state === "running" && ` ${Math.floor(100 * shareOf(trial))} %`}
      </td>
      {ALL_SIDES.map((side) => (
        <td key={side} class="figures right">
          {trial.compare_with === null && side !== "new" ? "–" : count(trial.counts[side])}
        </td>
      ))}
      <td class="figures">{started}</td>
      {admin.value && (
        <td>
          <button type="button" class="bad" aria-label={`${ends} the trial of ${nameOf(trial)}, ${started}`} onClick={() => attempt(() => client.dropTrial(trial.id))}>
            {ends}
          </button>
        </td>
      )}
    </tr>
  );
}

// ---------------------------------------------------------------- a new one
function NewTrial() {
  const now = tab.value;
  const [against, compare] = useState<string | null>(null);
  const [over, range] = useState("all of the log");
  const [{ from, to }, set] = useState({ from: "", to: "" });
  const [fault, tell] = useState("");
  if (!now?.query.trim())
    return (
      <section class="browse">
        <h2>New trial</h2>
        <p>
          A text from the editor is tried. Open a query, or{" "}
          <button type="button" class="plain link" onClick={blank}>
            write a new one
          </button>
          .
        </p>
      </section>
    );
  const query = queries.value.find((each) => each.name === (against ?? now.name));
  const last = latest(now.query);
  const bounds = () => {
    if (over in LASTS) return { start: new Date(last - LASTS[over]!).toISOString(), until: "now" };
    const [first, end] = over === "times" ? [timeOf(from), timeOf(to)] : over === "offsets" ? [from, to] : ["", ""];
    return { start: first || "beginning", until: end || "now" };
  };
  const start = async (event: Event) => {
    event.preventDefault();
    tell("");
    try {
      const { id } = await client.startTrial(now.query, { ...optionsOf(now), ...(query && { compare_with: query.name }), ...bounds() });
      view.value = { kind: "trials", id };
      await refresh();
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error));
    }
  };
  const choose = (kind: string) => {
    range(kind);
    set({ from: "", to: "" });
  };
  const type = over === "times" ? "datetime-local" : "number";
  const doubt = checked.value?.text === now.query && checked.value.errors.length > 0;
  return (
    <form class="send" aria-label="New trial" onSubmit={start}>
      <h2>New trial</h2>
      <div class="bar settings-bar">
        <label class="pick">
          try the text of
          <select value={now.key} onChange={(event) => (open.value = Number(event.currentTarget.value))}>
            {tabs.value.map((each) => (
              <option key={each.key} value={each.key}>
                {each.name}
              </option>
            ))}
          </select>
        </label>
        <label class="pick">
          compare with
          <select value={query?.name ?? ""} onChange={(event) => compare(event.currentTarget.value)}>
            <option value="">nothing</option>
            {queries.value.map((each) => (
              <option key={each.registered} value={each.name}>
                {each.name === now.name ? `${each.name} as it runs` : each.name}
              </option>
            ))}
          </select>
        </label>
        <label class="pick">
          over
          <select value={over} onChange={(event) => choose(event.currentTarget.value)}>
            {["all of the log", ...Object.keys(LASTS)].map((each) => (
              <option key={each}>{each}</option>
            ))}
            <option value="times">a range of event time</option>
            <option value="offsets">a range of offsets</option>
          </select>
        </label>
        {(over === "times" || over === "offsets") && (
          <span class="period">
            <input type={type} step={1} min={0} aria-label={over === "times" ? "From, UTC" : "From offset"} title="Empty: from the beginning" value={from} onInput={(event) => set({ from: event.currentTarget.value, to })} />
            <span class="quiet">to</span>
            <input type={type} step={1} min={0} aria-label={over === "times" ? "To, UTC" : "To offset"} title="Empty: up to now" value={to} onInput={(event) => set({ from, to: event.currentTarget.value })} />
          </span>
        )}
      </div>
      <div class="bar settings-bar">
        <button type="submit" class="primary">
          Start the trial
        </button>
        {over in LASTS && (
          <span class="quiet figures">
            from {day(last - LASTS[over]!)} {moment(last - LASTS[over]!).slice(11, 19)} UTC on, before the last event
          </span>
        )}
        {query && !differences(now, query).length && <span class="quiet">The text is the one that {query.name} has, so no difference is to be expected.</span>}
      </div>
      {(fault || doubt) && (
        <p class="fault" role={fault ? "alert" : undefined}>
          {fault || "The text has a fault. "}{" "}
          <button type="button" class="plain link" onClick={() => (view.value = { kind: "query" })}>
            Go to the text
          </button>
        </p>
      )}
    </form>
  );
}

/** The end of the last event of the streams that the text reads, else of all streams, else now. */
function latest(text: string): number {
  const names = streamsOf(text);
  const fed = streams.value.filter((stream) => stream.latest);
  const read = fed.filter((stream) => names.includes(stream.name));
  const times = (read.length ? read : fed).map((stream) => millis(stream.latest));
  return times.length ? Math.max(...times) : Date.now();
}
