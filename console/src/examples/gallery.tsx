/** Examples over real data, and the way to an own query. */

import { client } from "../api/client";
import { admin, attempt, queries, refresh, view } from "../state/server_state";
import { add, show, tabs, unused } from "../state/tabs";
import { type Example, EXAMPLES } from "./example_queries";
import { start } from "./player";

export async function run(example: Example): Promise<void> {
  const ok = await attempt(async () => {
    for (const [name, text] of example.queries) await client.register(name, text, { start: "now" });
    await start(example);
  });
  if (ok) look(example);
}

function look(example: Example): void {
  for (const [name, text] of example.queries) show(name, { query: text });
  view.value = { kind: "query" };
  void refresh();
}

export function blank(): void {
  add(unused("query", queries.value.map((query) => query.name)));
  view.value = { kind: "query" };
}

export function Gallery() {
  return (
    <article class="page gallery" aria-label="Examples">
      <header>
        <h1>Examples on real data</h1>
        <p class="quiet">
          {admin.value
            ? "Run registers the queries and plays recorded measurements into a stream. You can edit the queries."
            : "This token may read the solutions of the listed queries. Running a query needs a token with the scope admin."}
        </p>
        <div class="buttons">
          {admin.value && (
            <button type="button" onClick={blank}>
              New query
            </button>
          )}
          {tabs.value.length > 0 && (
            <button type="button" onClick={() => (view.value = { kind: "query" })}>
              Back to the queries
            </button>
          )}
        </div>
      </header>
      <ul class="cards">
        {EXAMPLES.map((example) => (
          <li key={example.id} class="card">
            <Motif id={example.id} />
            <h2>{example.title}</h2>
            <p>{example.tells}</p>
            <p class="quiet small">{example.source}</p>
            <div class="buttons">
              <button type="button" class="primary" disabled={!admin.value} aria-label={`Run ${example.title}`} onClick={() => run(example)}>
                Run
              </button>
              <button type="button" aria-label={`Read ${example.title}`} onClick={() => look(example)}>
                Read
              </button>
            </div>
          </li>
        ))}
      </ul>
    </article>
  );
}

/** What the example looks for, as intervals: colour, start, length, lane. */
const MOTIFS: Record<string, [number, number, number, number][]> = {
  wind: [[0, 4, 20, 0], [0, 16, 30, 1], [0, 40, 18, 0], [0, 70, 34, 1], [0, 64, 22, 2], [0, 108, 24, 0]],
  blizzard: [[1, 10, 26, 0], [1, 10, 44, 1], [1, 10, 66, 2], [1, 92, 22, 0], [1, 92, 40, 1]],
  tsunami: [[2, 2, 52, 0], [2, 22, 52, 1], [2, 42, 52, 2], [2, 62, 52, 0], [2, 82, 52, 1]],
  heat: [[3, 12, 4, 0], [3, 26, 4, 1], [3, 40, 4, 0], [3, 44, 4, 2], [3, 74, 4, 1], [3, 96, 4, 0], [3, 100, 4, 2], [3, 124, 4, 1]],
};

function Motif({ id }: { id: string }) {
  return (
    <svg class="motif" viewBox="0 0 140 36" aria-hidden="true">
      {(MOTIFS[id] ?? []).map(([colour, x, w, lane], k) => (
        <rect key={k} class={`g${colour}`} x={x} y={4 + lane * 11} width={w} height="7" rx="2" />
      ))}
    </svg>
  );
}
