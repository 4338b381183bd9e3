/** Queries over the background alone, answered once. */

import { useState } from "preact/hooks";
import { ApiError } from "epsparql";
import { client, type Term } from "../api/client";
import { count, fullTerm, isNumber, prefixesOf, roundedTerm } from "../display/format";
import { Cell } from "../display/table_cell";
import { admin, asked, ontologies } from "../state/server_state";

const SHOWN = 1000;
const EXAMPLES: [title: string, query: string][] = [
  ["How many triples of each predicate", "SELECT ?predicate (COUNT(*) AS ?triples) WHERE { ?s ?predicate ?o } GROUP BY ?predicate ORDER BY DESC(?triples)"],
  ["How many things of each class", "SELECT ?class (COUNT(?thing) AS ?things) WHERE { ?thing a ?class } GROUP BY ?class ORDER BY DESC(?things)"],
  ["How many triples in each graph", "SELECT ?graph (COUNT(*) AS ?triples) WHERE { GRAPH ?graph { ?s ?p ?o } } GROUP BY ?graph"],
  ["Some triples, as Turtle", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 20"],
];
const ACCEPT = "application/sparql-results+json, text/turtle;q=0.9";

type Answer = { kind: "table"; names: string[]; rows: Record<string, Term>[] } | { kind: "verdict"; holds: boolean } | { kind: "graph"; text: string };

async function answer(query: string): Promise<Answer> {
  const response = await client.http.request("post", "/sparql", { body: query, headers: { "Content-Type": "application/sparql-query", Accept: ACCEPT } });
  if (!(response.headers.get("content-type") ?? "").includes("json")) return { kind: "graph", text: await response.text() };
  const found = (await response.json()) as { head: { vars?: string[] }; results?: { bindings: Record<string, Term>[] }; boolean?: boolean };
  return found.results ? { kind: "table", names: found.head.vars ?? [], rows: found.results.bindings } : { kind: "verdict", holds: found.boolean === true };
}

export function Sparql() {
  const [query, write] = useState(EXAMPLES[0]![1]);
  const [told, tell] = useState<{ answer?: Answer; fault?: string; query: string; ms: number } | null>(null);
  const [busy, work] = useState(false);
  if (asked.value && !admin.value) return <p class="empty">The background is queried with tokens that have the scope admin. Enter one under Token.</p>;
  const run = async () => {
    if (busy || !query.trim()) return;
    work(true);
    const began = performance.now();
    const done = (rest: { answer?: Answer; fault?: string }) => tell({ ...rest, query, ms: performance.now() - began });
    try {
      done({ answer: await answer(query) });
    } catch (error) {
      done({ fault: error instanceof ApiError ? error.message : String(error) });
    }
    work(false);
  };
  return (
    <article class="page" aria-label="SPARQL">
      <header>
        <h1>SPARQL</h1>
        <p class="quiet">This page queries the present background, with the triples that its schema entails, and answers once. To query streams, register a query in a tab.</p>
      </header>
      {asked.value && !ontologies.value.length && <p class="quiet">The background is empty, so nothing is found. Load triples on the page Background.</p>}
      <form class="send" aria-label="Query of the background" onSubmit={(event) => event.preventDefault()}>
        <textarea
          aria-label="Query"
          class="mono"
          spellcheck={false}
          rows={Math.min(16, query.split("\n").length + 3)}
          value={query}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            void run();
          }}
        />
        <div class="bar">
          <button type="button" class="primary" disabled={busy || !query.trim()} onClick={run} title="Ctrl Enter">
            {busy ? "Asking …" : "Ask"}
          </button>
          <select
            aria-label="Example queries"
            onChange={({ currentTarget }) => {
              const example = EXAMPLES[Number(currentTarget.value)];
              if (currentTarget.value && example) write(example[1]);
              currentTarget.value = "";
            }}
          >
            <option value="">Begin with an example …</option>
            {EXAMPLES.map(([title], k) => (
              <option key={title} value={k}>
                {title}
              </option>
            ))}
          </select>
        </div>
      </form>
      {told?.fault && (
        <p class="fault" role="alert">
          {told.fault}
        </p>
      )}
      {told?.answer && <Told answer={told.answer} query={told.query} ms={told.ms} />}
    </article>
  );
}

function Told({ answer, query, ms }: { answer: Answer; query: string; ms: number }) {
  const took = `${count(Math.round(ms))} ms`;
  if (answer.kind === "verdict") return <p role="status">{answer.holds ? "Yes, it holds." : "No, it does not hold."} <span class="quiet figures">{took}</span></p>;
  if (answer.kind === "graph")
    return (
      <section class="browse" aria-label="Answer">
        <p class="quiet" role="status">{answer.text.trim() ? "The triples as Turtle" : "No triples"} · {took}</p>
        {answer.text.trim() && <pre tabIndex={0}>{answer.text}</pre>}
      </section>
    );
  const prefixes = prefixesOf(query);
  const { names, rows } = answer;
  return (
    <section class="browse" aria-label="Answer">
      <p class="quiet figures" role="status">
        {count(rows.length)} {rows.length === 1 ? "row" : "rows"} · {took}
        {rows.length > SHOWN && ` · the first ${count(SHOWN)} are shown`}
      </p>
      {rows.length > 0 && (
        <div class="table flat" tabIndex={0} role="region" aria-label="Rows">
          <table>
            <thead>
              <tr>
                {names.map((name) => (
                  <th key={name} scope="col">
                    ?{name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, SHOWN).map((row, k) => (
                <tr key={k}>
                  {names.map((name) => {
                    const term = row[name];
                    return <Cell key={name} class={term && isNumber(term) ? "right figures" : ""} title={term && fullTerm(term)} text={roundedTerm(term, prefixes)} />;
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
