/** The left side: the server's queries and streams with what goes on in them. */

import type { QuerySummary, StreamDocument } from "./api";
import { bytes, clock, count, day, rate, shortIri } from "./format";
import { millis } from "./solutions";
import { asked, overlay, queries, rateOf, rates, runner, streams, trouble, view } from "./state";
import { Spark } from "./spark";
import { showQuery, tab } from "./tabs";

const NONE: ReadonlyMap<string, string> = new Map();

export function Rail() {
  return (
    <nav class={`rail ${overlay.value === "rail" ? "shown" : ""}`} aria-label="Server">
      <Standing />
      <div class="scroll">
        <Queries />
        <Streams />
        <section>
          <h2>
            <button type="button" class="plain heading" aria-current={view.value.kind === "ontologies"} onClick={() => go({ kind: "ontologies" })}>
              Ontologies
            </button>
          </h2>
        </section>
      </div>
      <footer class="links">
        <button type="button" class="plain" aria-current={view.value.kind === "examples"} onClick={() => go({ kind: "examples" })}>
          Examples
        </button>
        <button type="button" class="plain" onClick={() => (overlay.value = "keys")}>
          Keys <kbd>?</kbd>
        </button>
        <button type="button" class="plain" onClick={() => (overlay.value = "token")}>
          Token
        </button>
      </footer>
    </nav>
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
      <b>epsparql</b>
      <span class="grow" />
      <span class={`server ${state}`} role="status">
        {now ? (now.code === "unreachable" ? "no answer" : now.code === "not-ready" ? "starting" : now.code) : runner.value || "…"}
      </span>
    </header>
  );
}

// ---------------------------------------------------------------- queries
function Queries() {
  const all = queries.value;
  return (
    <section aria-label="Queries">
      <h2>
        Queries <span class="quiet figures">{all.length || ""}</span>
      </h2>
      {asked.value && !all.length && <p class="hint">None yet. Write one, or take an example.</p>}
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
  return (
    <button type="button" class="item" aria-current={open} onClick={choose} title={query.reason ?? `${query.state}, ${query.policy}`}>
      <span class={`dot ${query.state}`} />
      <span class="name">{query.name}</span>
      <Spark rates={rates.value.get(key)?.rates ?? []} />
      <span class="figures count">{count(query.solutions)}</span>
      <span class="detail figures">
        {query.state === "running" ? rate(rateOf(key)) : query.state}
        {query.memory !== null && query.memory.goals > 0 && ` · ${count(query.memory.goals)} partial · ${bytes(query.memory.state_bytes)}`}
        {query.lag > 0 && ` · ${count(query.lag)} behind`}
      </span>
    </button>
  );
}

// ---------------------------------------------------------------- streams
function Streams() {
  const all = streams.value;
  return (
    <section aria-label="Streams">
      <h2>
        Streams <span class="quiet figures">{all.length || ""}</span>
      </h2>
      {asked.value && !all.length && <p class="hint">A stream begins with its first event.</p>}
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
    <button type="button" class="item" aria-current={open} title={stream.name} onClick={() => go({ kind: "stream", name: stream.name })}>
      <span class={`dot ${stream.finished ? "completed" : "stream"}`} />
      <span class="name">{shortIri(stream.name, NONE)}</span>
      <Spark rates={rates.value.get(key)?.rates ?? []} />
      <span class="figures count">{count(stream.accepted)}</span>
      <span class="detail figures">
        {stream.finished ? "finished" : rate(rateOf(key))}
        {!Number.isNaN(up) && ` · up to ${day(up)} ${clock(up).slice(0, 5)}`}
        {stream.late > 0 && <span class="late"> · {count(stream.late)} late</span>}
      </span>
    </button>
  );
}
