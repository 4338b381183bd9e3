/** The tabs, and what can be done with the query of the open one. */

import { useEffect, useState } from "preact/hooks";
import { api, type From } from "./api";
import { checked, range } from "./checks";
import type { EditorHost } from "./editor";
import { blank } from "./gallery";
import { attempt, queries, registered, say, view } from "./state";
import { change, close, link, open, tab, tabs } from "./tabs";

/** Register the open tab's query; a different one of its name is replaced only when that was asked for. */
export async function run(replace = false): Promise<void> {
  const now = tab.peek();
  if (!now?.query.trim()) return;
  const found = checked.peek();
  if (found?.text === now.query && found.errors.length) return say("fault", "Mend the fault first: it is underlined.");
  await attempt(() => api.register(now.name, { query: now.query, policy: now.policy, default_graph: now.default_graph, from: now.from ?? "now" }, replace));
}

export function Tabs() {
  const names = new Map(queries.value.map((query) => [query.name, query]));
  return (
    <div class="tabs">
      <div role="tablist" aria-label="Queries being worked on">
        {tabs.value.map((each) => {
          const chosen = view.value.kind === "query" && each.key === tab.value?.key;
          const state = names.get(each.name)?.state;
          return (
            <span key={each.key} class={`tab ${chosen ? "chosen" : ""}`}>
              <button
                type="button"
                role="tab"
                aria-selected={chosen}
                onClick={() => {
                  open.value = each.key;
                  view.value = { kind: "query" };
                }}
              >
                <span class={`dot ${state ?? "draft"}`} />
                {each.name}
              </button>
              <button type="button" class="plain close" aria-label={`Close ${each.name}`} title="Close the tab; the query stays as it is" onClick={() => close(each.key)}>
                ×
              </button>
            </span>
          );
        })}
      </div>
      <button type="button" class="plain new" aria-label="New query" title="New query (Alt N)" onClick={blank}>
        +
      </button>
    </div>
  );
}

export function Toolbar() {
  const now = tab.value!;
  const query = registered.value;
  const differs = query !== null && (query.query !== now.query || query.policy !== now.policy || query.default_graph !== now.default_graph);
  const [sure, setSure] = useState<"" | "drop" | "replace">("");
  useEffect(() => setSure(""), [now.key, query?.registered]);
  const share = async () => {
    const address = link(now);
    if (!address) return say("fault", "This query is too long for a link.");
    await navigator.clipboard.writeText(address).then(
      () => say("done", "The link is copied; it holds the whole query."),
      () => (location.hash = address.slice(address.indexOf("#"))),
    );
  };
  const drop = async () => {
    if (sure !== "drop") return setSure("drop");
    setSure("");
    await attempt(() => api.drop(now.name), `${now.name} is dropped; its text stays here`);
  };
  const register = async () => {
    if (differs && sure !== "replace") return setSure("replace");
    setSure("");
    await run(differs);
  };
  return (
    <div class="toolbar" role="toolbar" aria-label="Query">
      <input
        class="query-name"
        type="text"
        aria-label="Name"
        title="The name that the query is registered under"
        value={now.name}
        onChange={(event) => change({ name: event.currentTarget.value.trim() || now.name })}
      />
      <select aria-label="Policy" title="Which partial matches a new event may complete" value={now.policy} onChange={(event) => change({ policy: event.currentTarget.value })}>
        {["unrestricted", "recent", "chronological"].map((each) => (
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
      {(query === null || differs) && (
        <select
          aria-label="Reads from"
          title="Whether it also reads what came before"
          value={now.from ?? "now"}
          onChange={(event) => change({ from: event.currentTarget.value as From })}
        >
          <option value="now">from now on</option>
          <option value="beginning">from the beginning</option>
        </select>
      )}
      <span class="grow" />
      <button type="button" onClick={share} title="Copy a link that holds the query">
        Share
      </button>
      {query && (query.state === "running" || query.state === "paused") && <Pause name={now.name} paused={query.state === "paused"} />}
      {query && (
        <button type="button" class="bad" onClick={drop} title="Drop the query with its state and solutions">
          {sure === "drop" ? "Really drop?" : "Drop"}
        </button>
      )}
      <button
        type="button"
        class="primary run"
        disabled={query !== null && !differs}
        onClick={register}
        title={differs ? "Drop the one that runs, and start this text with no solutions" : "Register the query (Ctrl Enter)"}
      >
        {query === null ? "Run" : !differs ? "Running" : sure === "replace" ? "Replace, and start anew?" : "Replace"} <kbd>⌃↵</kbd>
      </button>
    </div>
  );
}

function Pause({ name, paused }: { name: string; paused: boolean }) {
  return (
    <button
      type="button"
      title={paused ? "Read on from where it paused; nothing is lost" : "Read nothing more for now"}
      onClick={() => attempt(() => (paused ? api.resume(name) : api.pause(name)), paused ? `${name} reads on` : `${name} is paused`)}
    >
      {paused ? "Resume" : "Pause"}
    </button>
  );
}

/** The server's word on the text, in a line. */
export function Verdict() {
  const now = tab.value!;
  const found = checked.value;
  const query = registered.value;
  const [fault] = found?.errors ?? [];
  const [doubt] = found?.warnings ?? [];
  if (query?.state === "failed" || (query?.state === "completed" && query.reason))
    return (
      <p class={`verdict ${query.state === "failed" ? "bad" : ""}`} role="status">
        <b>{query.state}</b> {query.reason}
      </p>
    );
  const mark = fault ?? doubt;
  if (!found || !mark)
    return (
      <p class="verdict" role="status">
        {found && found.text === now.query ? <span class="good">✓ no faults</span> : <span class="quiet">{now.query.trim() ? "checking …" : "Write a query, or take an example."}</span>}
      </p>
    );
  const show = () => {
    const editor = document.querySelector<EditorHost>(".editor")?.editor;
    editor?.dispatch({ selection: { anchor: range(mark, found.text)[0] }, scrollIntoView: true });
    editor?.focus();
  };
  return (
    <p class={`verdict ${fault ? "bad" : "doubt"}`} role="status">
      {mark.line !== null && (
        <button type="button" class="plain figures" title="Go there" onClick={show}>
          {mark.line}:{mark.column}
        </button>
      )}{" "}
      {mark.message}
      {mark.expected && <span class="quiet">; expected {mark.expected}</span>}
      {!fault && found.warnings.length > 1 && <span class="quiet"> · and {found.warnings.length - 1} more</span>}
    </p>
  );
}
