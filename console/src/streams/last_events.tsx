/** The last events of a stream, and those that arrive while somebody looks. */

import { useEffect, useState } from "preact/hooks";
import type { StreamEvent, Tail } from "epsparql";
import { client, type Standing } from "../api/client";
import { showEvents } from "../api/subscription";
import { clock, moment } from "../display/format";
import { Cell } from "../display/table_cell";
import { readable } from "../solutions/derivations";
import { HIDDEN_MS, millis } from "../state/solution_store";

const SHOWN = 50;
const NONE: ReadonlyMap<string, string> = new Map();

/** `known`: whether anything was sent to the stream. One that was deleted, and is there again, is followed anew. */
export function LastEvents({ name, known }: { name: string; known: boolean }) {
  const [events, setEvents] = useState<readonly StreamEvent[]>([]);
  const [standing, setStanding] = useState<{ state: Standing; why: string }>({ state: "connecting", why: "" });
  const [held, hold] = useState(false);
  useEffect(() => {
    setEvents([]);
    if (!known) return;
    return tail(name, (found) => setEvents((known) => [...found.reverse(), ...known].slice(0, SHOWN)), (state, why = "") => setStanding({ state, why }));
  }, [name, known]);
  const [kept, keep] = useState(events);
  useEffect(() => {
    if (!held) keep(events);
  }, [held, events]);
  if (!kept.length) return null;
  return (
    <section>
      <div class="bar heads">
        <h2>Last events</h2>
        <span class={`wire ${held ? "" : standing.state}`} title={standing.why} role="status">
          {held ? "held" : standing.state}
        </span>
        <span class="grow" />
        {standing.state !== "ended" && (
          <button type="button" aria-pressed={held} title="Keeps these events on screen; no event is lost" onClick={() => hold(!held)}>
            Hold
          </button>
        )}
      </div>
      <div class="table" tabIndex={0} role="region" aria-label="Last events, the newest first">
        <table>
          <thead>
            <tr>
              {["arrived", "time", "subject", "predicate", "object"].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {kept.map((event) => (
              <tr key={event.id} data-id={event.id}>
                <td class="figures">{clock(Math.floor(millis(event.arrived)))}</td>
                <td class="figures">
                  {moment(millis(event.start))}
                  {event.end !== event.start && ` → ${moment(millis(event.end))}`}
                  {event.late && <b class="late"> late</b>}
                </td>
                {[event.s, event.p, event.o].map((term, column) => (
                  <Cell key={column} class="mono" title={term} text={readable(term, NONE)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Follows until the returned function is called; a page that is hidden for a while lets go of its connection, and reads on when it is seen again. */
function tail(name: string, take: (events: StreamEvent[]) => void, tell: (standing: Standing, why?: string) => void): () => void {
  let current: Tail | null = null;
  let hidden = 0;
  const begin = (after: string | null) => {
    const onNotice = ({ kind, reason }: { kind: "open" | "lost"; reason: string }) => tell(kind === "open" ? "live" : "waiting", reason);
    const mine = client.tail(name, { last: SHOWN, after, onNotice });
    current = mine;
    void showEvents(mine, (found) => current === mine && take(found.slice(-SHOWN)), tell);
  };
  const turned = () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = window.setTimeout(() => current?.close(), HIDDEN_MS);
    else if (current?.isClosed) begin(current.last);
  };
  document.addEventListener("visibilitychange", turned);
  begin(null);
  return () => {
    clearTimeout(hidden);
    document.removeEventListener("visibilitychange", turned);
    current?.close();
    current = null;
  };
}
