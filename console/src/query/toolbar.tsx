/** What can be done with the query of the open tab. */

import { effect, signal } from "@preact/signals";
import { client, type From, optionsOf, type QuerySummary } from "../api/client";
import { Sure } from "../display/confirmation";
import { Menu } from "../display/menu";
import { checked } from "../state/query_checks";
import { admin, attempt, different, notice, queries, registered, say, view } from "../state/server_state";
import { change, link, type Tab, tab, tabs, unused } from "../state/tabs";
import { Promote, promote } from "./promotion";

/** The tab and the text by which, as the button asks, the registered query is to be replaced. */
const asking = signal("");
const asked = (now: Tab) => `${now.key} ${now.query}`;

/** The policies that a text may have; one names a variable of it. */
const policiesOf = ({ query, policy }: Tab) => {
  const variables = [...query.matchAll(/[?$]([\p{L}\d_]+)/gu)].map(([, name]) => `recent-by ?${name}`);
  return [...new Set(["unrestricted", "recent", "recent-longest", ...variables, "chronological", policy])];
};

const MEND = "Correct the fault first: it is underlined.";
effect(() => {
  if (!checked.value?.errors.length && notice.peek()?.text === MEND) notice.value = null; // it is mended
});

const isOver = (query: QuerySummary) => query.state === "completed" || query.state === "failed";
/** Whether the tab's text can take the place of the running query without a gap. */
const isPromotable = () => registered.value?.state === "running" && different.value.length > 0;

/** Register the text again, without the solutions and the state of the query that has its name. */
const replace = (now: Tab) => client.replace(now.name, now.query, { ...optionsOf(now), start: now.from ?? "now" });

/** Register the open tab's query, or promote its text. It takes the place of one that does not run only when asked for twice. */
export async function run(): Promise<void> {
  const field = document.activeElement;
  if (field instanceof HTMLInputElement) field.blur(); // a name is taken when its field is left
  const now = tab.peek();
  if (!now?.query.trim() || !admin.peek()) return;
  const found = checked.peek();
  if (found?.text === now.query && found.errors.length) return say("fault", MEND);
  const query = registered.peek();
  const differs = different.peek().length > 0;
  if (query && !differs && !isOver(query)) return;
  if (isPromotable()) return void (await promote(now.name, now));
  if (query && asking.peek() !== asked(now)) return void (asking.value = asked(now));
  asking.value = "";
  await attempt(async () => {
    if (query && !differs) await client.drop(now.name); // to register the same once more changes nothing
    await (query ? replace(now) : client.register(now.name, now.query, { ...optionsOf(now), start: now.from ?? "now" }));
  });
}

/** Each tab has a name of its own: one that another has already is counted on. */
function rename(now: Tab, wanted: string): void {
  const taken = tabs.value.some((each) => each.name === wanted && each.key !== now.key);
  const name = taken ? unused(wanted, queries.value.map((query) => query.name)) : wanted;
  change({ name });
  if (taken) say("done", `There is a tab ${wanted} already, so this one is ${name}.`);
}

export function Toolbar() {
  const now = tab.value!;
  const query = registered.value;
  const anew = query !== null && (different.value.length > 0 || isOver(query));
  const share = async () => {
    const address = link(now);
    if (!address) return say("fault", "This query is too long for a link.");
    try {
      await navigator.clipboard.writeText(address);
      say("done", "The link is copied; it holds the whole query.");
    } catch {
      prompt("Copy this link; it holds the whole query.", address); // no clipboard, as on a page that is not secure
    }
  };
  return (
    <div class="toolbar" role="toolbar" aria-label="Query">
      <input
        class="query-name"
        type="text"
        aria-label="Name"
        title="The name that the query is registered under"
        value={now.name}
        onChange={(event) => rename(now, event.currentTarget.value.trim() || now.name)}
      />
      <Options now={now} />
      {admin.value && (query === null || anew) && !isPromotable() && <ReadsFrom now={now} />}
      <span class="grow" />
      {admin.value && (
        <button type="button" disabled={!now.query.trim()} title="Shows what this text would have found in past events; nothing is registered" onClick={() => (view.value = { kind: "trials", id: null })}>
          Try on the past
        </button>
      )}
      <button type="button" onClick={share} title="Copy a link that holds the query">
        Share
      </button>
      {admin.value && query && (query.state === "running" || query.state === "paused") && <Pause name={now.name} paused={query.state === "paused"} />}
      {admin.value && query && (
        <Sure
          label="Drop"
          question="Really drop?"
          title="Drop the query with its state and solutions"
          act={() => attempt(() => client.drop(now.name), `${now.name} is dropped; its text stays here`)}
        />
      )}
      {admin.value && isPromotable() ? <PromoteOrReplace now={now} /> : <Run now={now} query={query} anew={anew} />}
    </div>
  );
}

/** What a text is registered with, beside its name. The button tells what was chosen. */
function Options({ now }: { now: Tab }) {
  const chosen = [now.policy !== "unrestricted" && now.policy, now.default_graph !== "all" && "unnamed graph"].filter(Boolean);
  return (
    <Menu class="options" summary={chosen.length ? `Options: ${chosen.join(", ")}` : "Options"} title="The policy and the default graph of the query">
      {() => (
        <>
          <label>
            Policy
            <select value={now.policy} onChange={(event) => change({ policy: event.currentTarget.value })}>
              {policiesOf(now).map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
            <span class="quiet small">which partial matches a new event may complete</span>
          </label>
          <label>
            Default graph
            <select value={now.default_graph} onChange={(event) => change({ default_graph: event.currentTarget.value })}>
              <option value="all">all graphs</option>
              <option value="unnamed">unnamed graph</option>
            </select>
            <span class="quiet small">what patterns outside GRAPH match</span>
          </label>
        </>
      )}
    </Menu>
  );
}

function ReadsFrom({ now }: { now: Tab }) {
  return (
    <select aria-label="Reads from" title="Whether the query also reads earlier events" value={now.from ?? "now"} onChange={(event) => change({ from: event.currentTarget.value as From })}>
      <option value="now">from now on</option>
      <option value="beginning">from the beginning</option>
    </select>
  );
}

/** Replacing drops what promoting keeps, so it is the second choice. */
function PromoteOrReplace({ now }: { now: Tab }) {
  return (
    <span class="buttons">
      <Promote name={now.name} wish={now} />
      <Menu summary="▾" label="Other ways to run this text" title="Other ways to run this text">
        {(close) => (
          <>
            <p class="quiet small">Replacing drops the query with its state and solutions, and starts this text without them.</p>
            <ReadsFrom now={now} />
            <Sure label="Replace" question="Replace, and start again?" title="Solutions that were found so far are deleted" act={() => (close(), attempt(() => replace(now)))} />
          </>
        )}
      </Menu>
    </span>
  );
}

function Run({ now, query, anew }: { now: Tab; query: QuerySummary | null; anew: boolean }) {
  return (
    <button
      type="button"
      class="primary run"
      disabled={!admin.value || (query !== null && !anew)}
      onClick={run}
      onBlur={() => (asking.value = "")}
      title={!admin.value ? "This token may read queries, but not register them" : anew ? "Drop the registered query, and start this text without solutions" : "Register the query (Ctrl Enter)"}
    >
      {told(query, anew, asking.value === asked(now))} {(query === null || anew) && <kbd>⌃↵</kbd>}
    </button>
  );
}

function told(query: QuerySummary | null, anew: boolean, sure: boolean): string {
  if (query === null) return "Run";
  if (!anew) return query.state === "paused" ? "Paused" : "Running";
  if (sure) return "Replace, and start again?";
  return isOver(query) ? "Run again" : "Replace";
}

function Pause({ name, paused }: { name: string; paused: boolean }) {
  return (
    <button
      type="button"
      title={paused ? "Continue from where it paused; nothing is lost" : "Stop reading for now"}
      onClick={() => attempt(() => (paused ? client.resume(name) : client.pause(name)), paused ? `${name} continues` : `${name} is paused`)}
    >
      {paused ? "Resume" : "Pause"}
    </button>
  );
}
