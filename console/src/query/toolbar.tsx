/** What can be done with the query of the open tab. */

import { effect, signal } from "@preact/signals";
import { client, type From, optionsOf, type QuerySummary } from "../api/client";
import { Sure } from "../display/confirmation";
import { checked } from "../state/query_checks";
import { admin, attempt, different, notice, queries, registered, say, view } from "../state/server_state";
import { change, link, type Tab, tab, tabs, unused } from "../state/tabs";
import { Promote } from "./promotion";

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

/** Register the open tab's query; in place of one that has its name only when asked for twice. */
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
  if (query && asking.peek() !== asked(now)) return void (asking.value = asked(now));
  asking.value = "";
  const options = { ...optionsOf(now), start: now.from ?? ("now" as const) };
  await attempt(async () => {
    if (query && !differs) await client.drop(now.name); // to register the same once more changes nothing
    await (query ? client.replace : client.register)(now.name, now.query, options);
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
      location.hash = address.slice(address.indexOf("#")); // no clipboard, as on a page that is not secure
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
      <select aria-label="Policy" title="Which partial matches a new event may complete" value={now.policy} onChange={(event) => change({ policy: event.currentTarget.value })}>
        {policiesOf(now).map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <select
        aria-label="Default graph"
        title="What patterns outside GRAPH match"
        value={now.default_graph}
        onChange={(event) => change({ default_graph: event.currentTarget.value })}
      >
        <option value="all">all graphs</option>
        <option value="unnamed">unnamed graph</option>
      </select>
      {admin.value && (query === null || anew) && (
        <select
          aria-label="Reads from"
          title="Whether the query also reads earlier events"
          value={now.from ?? "now"}
          onChange={(event) => change({ from: event.currentTarget.value as From })}
        >
          <option value="now">from now on</option>
          <option value="beginning">from the beginning</option>
        </select>
      )}
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
      {admin.value && query?.state === "running" && different.value.length > 0 && (
        <Promote name={now.name} wish={now} />
      )}
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
    </div>
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
