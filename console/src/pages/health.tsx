/** What is behind, late or wrong, of all that the token may read. */

import type { ComponentChildren } from "preact";
import type { QuerySummary, StreamDocument } from "../api/client";
import { count } from "../display/format";
import { Link } from "../display/link";
import { hashOf } from "../state/places";
import { admin, asked, connectors, feeds, queries, streams, view } from "../state/server_state";
import { showQuery } from "../state/tabs";
import { isFailing } from "./connectors";

/** The headings of columns of numbers. */
const NUMBERS = new Set(["behind", "late", "refused rows", "faults"]);

const isTroubled = (query: QuerySummary) => query.state === "failed" || query.lag > 0 || query.unfed.length > 0;
const loses = (stream: StreamDocument) => stream.late > 0 || stream.rejected > 0 || stream.waiting > 0;

/** In the list at the left: how many things need attention. */
export function troublesInShort(): string {
  const failed = [...queries.value, ...connectors.value].filter(({ state }) => state === "failed").length;
  const retrying = connectors.value.filter((connector) => isFailing(connector) && connector.state !== "failed").length;
  return [failed && `${count(failed)} failed`, retrying && `${count(retrying)} retrying`].filter(Boolean).join(", ");
}

export function Health() {
  const troubled = queries.value.filter(isTroubled);
  const losing = streams.value.filter(loses);
  const failing = connectors.value.filter((connector) => isFailing(connector) || connector.fault !== null);
  return (
    <article class="page" aria-label="Lag and errors">
      <header>
        <h1>Lag and errors</h1>
        <p class="quiet">What is behind, late or wrong now{admin.value ? "" : ", of what this token may read"}. Deliveries to webhooks are shown with their query, under Webhooks.</p>
      </header>
      <Part title="Queries" none={queries.value.length ? "All queries have read everything that came." : "No query is registered."} heads={["query", "state", "behind", "why"]} rows={troubled}>
        {(query) => (
          <tr key={query.registered}>
            <td>
              <Link class="plain link" href={hashOf(["query", query.name])} act={() => look(query)}>
                {query.name}
              </Link>
            </td>
            <td class={`state ${query.state}`}>{query.state}</td>
            <td class="figures right">{count(query.lag)}</td>
            <td class="reason">{query.reason ?? (query.unfed.length ? `waits for the first event on ${query.unfed.map((name) => `<${name}>`).join(", ")}` : "")}</td>
          </tr>
        )}
      </Part>
      {feeds.value && (
        <Part title="Streams" none={streams.value.length ? "No event was late or refused, and none waits." : "There is no stream."} heads={["stream", "late", "refused rows", "waiting"]} rows={losing}>
          {(stream) => (
            <tr key={stream.name}>
              <td>
                <Link class="plain link" href={hashOf(["stream", stream.name])} act={() => (view.value = { kind: "stream", name: stream.name })}>
                  {stream.name}
                </Link>
              </td>
              <td class="figures right">{count(stream.late)}</td>
              <td class="figures right">{count(stream.rejected)}</td>
              <td class="reason">{stream.waiting ? `${count(stream.waiting)} for ${stream.waits_for.join(", ")}` : ""}</td>
            </tr>
          )}
        </Part>
      )}
      {admin.value && (
        <Part title="Connectors" none={connectors.value.length ? "No connector has had a fault." : "There is no connector."} heads={["connector", "state", "faults", "last fault"]} rows={failing}>
          {(connector) => (
            <tr key={connector.name}>
              <td>
                <Link class="plain link" href={hashOf(["connectors"])} act={() => (view.value = { kind: "connectors" })}>
                  {connector.name}
                </Link>
              </td>
              <td class={`state ${connector.state === "failed" ? "failed" : isFailing(connector) ? "paused" : "running"}`}>{connector.state}</td>
              <td class="figures right">{count(connector.faults)}</td>
              <td class="reason">{connector.fault}</td>
            </tr>
          )}
        </Part>
      )}
    </article>
  );
}

function look(query: QuerySummary): void {
  showQuery(query);
  view.value = { kind: "query" };
}

interface PartProps<T> {
  title: string;
  none: string;
  heads: string[];
  rows: readonly T[];
  children: (row: T) => ComponentChildren;
}

function Part<T>({ title, none, heads, rows, children }: PartProps<T>) {
  return (
    <section class="browse">
      <h2>{title}</h2>
      {!rows.length ? (
        asked.value && <p class="quiet">{none}</p>
      ) : (
        <div class="table flat" tabIndex={0} role="region" aria-label={`${title} that need attention`}>
          <table>
            <thead>
              <tr>
                {heads.map((head) => (
                  <th key={head} scope="col" class={NUMBERS.has(head) ? "right" : ""}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>{rows.map(children)}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}
