/** Why there is nothing yet, and what to do: by the patterns of the query, and the events that have matched them. */

import { type QuerySummary, token } from "../api/client";
import { count, prefixesOf, some } from "../display/format";
import { WhyNothing } from "../solutions/diagnosis";
import { checked } from "../state/query_checks";
import { queries, registered, trouble } from "../state/server_state";
import { tab } from "../state/tabs";
import { streamsOf } from "../state/watermark";
import { useLive } from "./plan";
import { eventOf, type Pattern, patternsOf, written } from "./scans";

export function Nothing() {
  const query = registered.value;
  if (!query) return <Unregistered />;
  if (trouble.value?.code === "not-ready") return <p class="empty">{query.name} goes on as soon as the server has started.</p>;
  if (query.solutions > 0) return <p class="empty">The solutions are being read. Those that the server no longer keeps are not shown.</p>;
  return query.unfed.length ? <Unfed query={query} stream={query.unfed[0]!} /> : <Unmatched query={query} />;
}

function Unregistered() {
  const text = tab.value?.query ?? "";
  return (
    <p class="empty">
      {checked.value?.text === text && checked.value.errors.length ? (
        <>Correct the fault above to run the query.</>
      ) : text.trim() ? (
        <>
          Press Run, or <kbd>Ctrl</kbd> <kbd>Enter</kbd>, to run the query; what it finds appears here with its intervals.
        </>
      ) : (
        <>Solutions appear here once a query runs.</>
      )}
    </p>
  );
}

/** The stream is read by the query, or by a rule that feeds it: the event is one that the reader looks for. */
function Unfed({ query, stream }: { query: QuerySummary; stream: string }) {
  const reader = [query, ...queries.value].find((each) => streamsOf(each.query).includes(stream)) ?? query;
  const plan = useLive(reader);
  const prefixes = prefixesOf(reader.query);
  const patterns = plan ? patternsOf(plan).filter((each) => each.stream === stream) : [];
  return (
    <div class="empty">
      <p>
        {query.name} waits for the first event on {query.unfed.map((name) => `<${name}>`).join(", ")}.
        {patterns.length > 0 && (
          <>
            {" "}
            {reader.name === query.name ? "It" : `The rule ${reader.name}`} looks for <Patterns of={patterns} prefixes={prefixes} />.
          </>
        )}{" "}
        Send such an event, or play an example:
      </p>
      <pre>{sending(stream, eventOf(patterns[0], prefixes))}</pre>
    </div>
  );
}

const Patterns = ({ of, prefixes }: { of: readonly Pattern[]; prefixes: ReadonlyMap<string, string> }) =>
  of.map((each, k) => (
    <>
      {k > 0 && (k === of.length - 1 ? " and " : ", ")}
      <code>{written(each, prefixes)}</code>
    </>
  ));

function Unmatched({ query }: { query: QuerySummary }) {
  const plan = useLive(query);
  const prefixes = prefixesOf(query.query);
  const patterns = (plan ? patternsOf(plan) : []).filter(({ events }) => events !== null);
  const silent = patterns.filter(({ events }) => events === 0);
  const rules = queries.value.some((each) => /\bCONSTRUCT\b/i.test(each.query) && each.name !== query.name);
  return (
    <div class="empty">
      <p>
        {query.state === "paused" ? `${query.name} is paused.` : `${query.name} reads ${streamsOf(query.query).map((name) => `<${name}>`).join(", ")} and has found nothing yet.`}{" "}
        {rules ? "" : "A query reads events that come after its registration, unless it reads from the beginning."}
      </p>
      {patterns.length > 0 && (
        <table class="matched">
          <thead>
            <tr>
              <th scope="col">it looks for</th>
              <th scope="col" class="right">
                events so far
              </th>
            </tr>
          </thead>
          <tbody>
            {patterns.map((each) => (
              <tr key={written(each, prefixes)} class={each.events === 0 ? "silent" : ""}>
                <td>
                  <code>{written(each, prefixes)}</code>
                </td>
                <td class="figures right">{count(each.events!)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {patterns.length > 0 && (
        <p>
          {silent.length > 0 ? (
            <>
              No event has matched <Patterns of={silent} prefixes={prefixes} />.
            </>
          ) : (
            `Events match ${patterns.length === 1 ? "the pattern" : `each of the ${some(patterns.length, "pattern")}`}, so what is missing is a join or a filter: the plan shows how far the rows come.`
          )}
        </p>
      )}
      <WhyNothing key={query.registered} name={query.name} />
    </div>
  );
}

/** A command that sends an event to the stream, as a shell takes it. */
function sending(stream: string, event: string): string {
  const secret = token.get() ? " -H 'Authorization: Bearer TOKEN'" : "";
  const path = `streams/${encodeURIComponent(stream).replaceAll("'", "%27")}/events`;
  return `curl -X POST '${location.origin}/${path}'${secret} -H 'Content-Type: application/x-ndjson' -d '${event.replaceAll("'", "'\\''")}'`;
}
