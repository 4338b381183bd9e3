/** The left side: the server's queries and streams with what goes on in them. */

import { signal } from "@preact/signals";
import type { QuerySummary, StreamDocument } from "./api/client";
import { bytes, clock, count, day, partialMatches, rate, shortIri } from "./display/format";
import { Link } from "./display/link";
import { Spark } from "./display/sparkline";
import { connectorsInShort } from "./pages/connectors";
import { troublesInShort } from "./pages/health";
import { hashOf, pathOf } from "./state/places";
import { admin, asked, feeds, ontologies, overlay, queries, rateOf, rates, runner, streams, trouble, version, type View, view } from "./state/server_state";
import { millis } from "./state/solution_store";
import { showQuery, tab } from "./state/tabs";
import { trialsInShort } from "./trials/trial_list";

const TROUBLES: Record<string, string> = { unreachable: "no answer", "not-ready": "starting", "no-token": "token needed", "invalid-token": "token refused", "not-allowed": "not allowed" };
const NONE: ReadonlyMap<string, string> = new Map();
/** More entries than these are found by their names, and take a line each. */
const AT_A_GLANCE = 16;
const wanted = signal("");

export function Rail() {
  const many = queries.value.length + streams.value.length > AT_A_GLANCE;
  return (
    <nav class={`rail ${overlay.value === "rail" ? "shown" : ""}`} aria-label="Server">
      <Standing />
      {many && (
        <input
          type="search"
          class="find"
          aria-label="Find a query or stream"
          placeholder="Find a query or stream"
          value={wanted.value}
          onInput={(event) => (wanted.value = event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && (wanted.value = "")}
        />
      )}
      <div class={`scroll ${many ? "many" : ""}`}>
        <Queries only={many ? wanted.value : ""} />
        {feeds.value && <Streams only={many ? wanted.value : ""} />}
      </div>
      <div class="ways">
        {admin.value && <Page to={{ kind: "file" }} title="Send a file" tells="" />}
        {admin.value && <Page to={{ kind: "ontologies", name: null }} title="Background" tells={String(ontologies.value.length || "")} />}
        {admin.value && <Page to={{ kind: "sparql" }} title="SPARQL" tells="" />}
        {admin.value && <Page to={{ kind: "connectors" }} title="Connectors" tells={connectorsInShort()} />}
        <Page to={{ kind: "trials", id: null }} title="Trials" tells={trialsInShort()} />
        <Page to={{ kind: "health" }} title="Lag and errors" tells={troublesInShort()} />
      </div>
      <footer class="links">
        <Link class="plain" href={hashOf(["examples"])} current={view.value.kind === "examples"} act={() => go({ kind: "examples" })}>
          Examples
        </Link>
        <button type="button" class="plain" onClick={() => (overlay.value = "keys")}>
          Keys <kbd>?</kbd>
        </button>
        <button type="button" class="plain" onClick={() => (overlay.value = "token")}>
          Token
        </button>
        <a href="docs/" target="_blank" rel="noopener" title="The documentation of this version, in a tab of its own">
          Docs
        </a>
      </footer>
    </nav>
  );
}

/** The way to a page of its own. */
function Page({ to, title, tells }: { to: View; title: string; tells: string }) {
  return (
    <section class="way">
      <h2>
        <Link class="plain heading" href={hashOf(pathOf(to))} current={view.value.kind === to.kind} act={() => go(to)}>
          {title} <span class="quiet figures">{tells}</span>
        </Link>
      </h2>
    </section>
  );
}

function go(to: typeof view.value): void {
  view.value = to;
  if (overlay.value === "rail") overlay.value = "";
}

function Standing() {
  const now = trouble.value;
  const state = now ? (now.code === "not-ready" ? "starting" : "trouble") : asked.value ? "fine" : "";
  return (
    <header class="brand">
      <svg width="18" height="16" viewBox="0 0 18 16" aria-hidden="true">
        <rect x="1" y="1.5" width="8" height="3" rx="1.5" class="a" />
        <rect x="5" y="6.5" width="12" height="3" rx="1.5" class="b" />
        <rect x="3" y="11.5" width="7" height="3" rx="1.5" class="c" />
      </svg>
      <b>epsparql</b> <span class="quiet small figures">{version.value}</span>
      <span class="grow" />
      <span class={`server ${state}`} role="status" title={now ? now.detail : "The server is ready; this is the runner that evaluates its queries"}>
        {now ? (TROUBLES[now.code] ?? now.code) : runner.value || "…"}
      </span>
    </header>
  );
}

const named = <T extends { name: string }>(all: readonly T[], only: string) => all.filter((each) => each.name.toLowerCase().includes(only.trim().toLowerCase()));

/** How many there are, and of how many when some are hidden. */
const Amount = ({ shown, of }: { shown: number; of: number }) => <span class="quiet figures">{shown < of ? `${count(shown)} of ${count(of)}` : of ? count(of) : ""}</span>;

// ---------------------------------------------------------------- queries
function Queries({ only }: { only: string }) {
  const all = named(queries.value, only);
  return (
    <section aria-label="Queries">
      <h2>
        Queries <Amount shown={all.length} of={queries.value.length} />
      </h2>
      {asked.value && !queries.value.length && <p class="hint">{admin.value ? "None yet. Write one, or take an example." : "None yet that this token may read."}</p>}
      <ul>
        {all.map((query) => (
          <li key={query.registered}>
            <Query query={query} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Query({ query }: { query: QuerySummary }) {
  const key = `query ${query.registered}`;
  const open = view.value.kind === "query" && tab.value?.name === query.name;
  const choose = () => {
    showQuery(query);
    go({ kind: "query" });
  };
  const memory = query.memory !== null && query.memory.goals > 0 ? ` · ${partialMatches(query.memory.goals)} · ${bytes(query.memory.state_bytes)}` : "";
  const work = `${query.state === "running" ? rate(rateOf(key)) : query.state}${memory}${query.lag > 0 ? ` · ${count(query.lag)} behind` : ""}`;
  const tells = query.state !== "running" || query.lag > 0;
  return (
    <Link class="item" href={hashOf(["query", query.name])} current={open} act={choose} title={[query.name, work, query.reason].filter(Boolean).join("\n")}>
      <span class={`dot ${query.state}`} />
      <span class="name">{query.name}</span>
      <Spark rates={rates.value.get(key)?.rates ?? []} />
      <span class="figures count">{count(query.solutions)}</span>
      <span class={`detail figures ${tells ? "tells" : ""}`}>{work}</span>
    </Link>
  );
}

// ---------------------------------------------------------------- streams
function Streams({ only }: { only: string }) {
  const all = named(streams.value, only);
  return (
    <section aria-label="Streams">
      <h2>
        Streams <Amount shown={all.length} of={streams.value.length} />
      </h2>
      {asked.value && !streams.value.length && <p class="hint">A stream begins with its first event, or with a query that reads it.</p>}
      <ul>
        {all.map((stream) => (
          <li key={stream.name}>
            <Stream stream={stream} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Stream({ stream }: { stream: StreamDocument }) {
  const key = `stream ${stream.name}`;
  const open = view.value.kind === "stream" && view.value.name === stream.name;
  const up = millis(stream.watermark);
  return (
    <Link class="item" href={hashOf(["stream", stream.name])} current={open} title={stream.name} act={() => go({ kind: "stream", name: stream.name })}>
      <span class={`dot ${stream.finished ? "completed" : "stream"}`} />
      <span class="name">{shortIri(stream.name, NONE)}</span>
      <Spark rates={rates.value.get(key)?.rates ?? []} />
      <span class="figures count">{count(stream.accepted)}</span>
      <span class={`detail figures ${stream.late ? "tells" : ""}`}>
        {stream.finished ? "finished" : rate(rateOf(key))}
        {!Number.isNaN(up) && ` · up to ${day(up)} ${clock(up).slice(0, 5)}`}
        {stream.late > 0 && <span class="late"> · {count(stream.late)} late</span>}
      </span>
    </Link>
  );
}
