/** The partial matches of the open query, and the queries that tell of its first operands. */

import { useEffect, useState } from "preact/hooks";
import { client, type Goals, optionsOf, type PartialMatch, type QuerySummary } from "../api/client";
import { repeat } from "../api/polling";
import { count, interval, partialMatches, prefixesOf, rounded } from "../display/format";
import { Cell } from "../display/table_cell";
import { readable } from "../solutions/derivations";
import { admin, attempt, queries } from "../state/server_state";
import { millis } from "../state/solution_store";
import { showQuery } from "../state/tabs";

const EVERY_MS = 2000;

/** Lets a companion report the partial matches that have reached `k` operands. */
const report = (query: QuerySummary, k: number) => client.register(query.name, query.query, { ...optionsOf(query), notify_at: k });

export function Partial({ query }: { query: QuerySummary }) {
  const [goals, setGoals] = useState<Goals | null>(null);
  const [companions, setCompanions] = useState<readonly string[]>([]);
  const { name } = query;
  const ask = async () => {
    setGoals(await client.goals(name));
    setCompanions((await client.query(name)).companions);
  };
  useEffect(() => repeat(ask, EVERY_MS), [name]);
  if (!goals) return <p class="empty">Asking the server…</p>;
  const prefixes = prefixesOf(query.query);
  return (
    <section class="table partial" aria-label="Partial matches">
      <Companions query={query} goals={goals} companions={companions} ask={ask} />
      {goals.partial_matches.length === 0 ? (
        <p class="empty">{goals.operands.length > 1 ? "No partial match waits to be completed." : "The query has no chain of operands, so it has no partial matches to show."}</p>
      ) : (
        <table>
          <caption>
            {partialMatches(goals.goals)}
            {goals.partial_matches.length < goals.goals && `; the ${count(goals.partial_matches.length)} that end first are shown`}
          </caption>
          <thead>
            <tr>
              <th scope="col">Reached</th>
              <th scope="col">With</th>
              <th scope="col" title="All times are UTC">
                Time
              </th>
              <th scope="col">Operands</th>
              <th scope="col">Waits for</th>
            </tr>
          </thead>
          <tbody>
            {goals.partial_matches.map((match, k) => (
              <tr key={k}>
                <td class="figures">{reached(match)}</td>
                <Cell class="mono" title={written(match, (text) => text)} text={written(match, (text) => rounded(readable(text, prefixes)))} />
                <td class="figures">{interval(millis(match.start), millis(match.end))}</td>
                <Cell class="mono" text={match.operands.join(" · ")} />
                <Cell class="mono" text={match.waits_for.join(" · ") || "time"} />
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const written = ({ binding }: PartialMatch, write: (term: string) => string) =>
  Object.entries(binding)
    .map(([variable, term]) => `?${variable} ${write(term)}`)
    .join(" · ");

const reached = (match: PartialMatch) => `${match.reached} of ${match.of} reached`;

/** Queries of the first operands that are registered, and buttons that register them. */
function Companions({ query, goals, companions, ask }: { query: QuerySummary; goals: Goals; companions: readonly string[]; ask: () => Promise<void> }) {
  const of = goals.operands.length;
  const known = queries.value.filter((each) => companions.includes(each.name));
  const free = Array.from({ length: Math.max(0, of - 1) }, (_, k) => k + 1).filter((k) => !companions.includes(`${query.name}~${k}`));
  if (of < 2) return null;
  return (
    <p class="companions">
      {known.map((each) => (
        <button key={each.name} type="button" class="plain link" title="Shows the query of these operands" onClick={() => showQuery(each)}>
          {each.name}
        </button>
      ))}
      {admin.value &&
        free.map((k) => (
          <button
            key={k}
            type="button"
            title={`Registers the first ${k} of ${of} operands as the query ${query.name}~${k}`}
            onClick={() => void attempt(() => report(query, k), `${query.name}~${k} reports the first ${k} of ${of} operands`).then(() => ask())}
          >
            Notify at {k} of {of}
          </button>
        ))}
    </p>
  );
}
