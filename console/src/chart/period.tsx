/** Which solutions a chart or a map shows: those on screen, as they come, or those of a past range. */

import { computed, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { client, type QuerySummary } from "../api/client";
import { count, some } from "../display/format";
import { attempt, registered } from "../state/server_state";
import { row, type Row, rows, standingRows, WINDOW } from "../state/solution_store";

/** Bounds as fields of date and time have them: UTC, without a zone; "" for an open one. */
interface Range {
  from: string;
  to: string;
}

interface Past extends Range {
  /** The registration whose solutions they are. */
  registered: number;
  rows: readonly Row[];
  /** Whether the range has more than are shown. */
  more: boolean;
}

const past = signal<Past | null>(null);
/** The range that an address names, until its solutions are read. */
const sought = signal<Range | null>(null);
const current = computed(() => (past.value && past.value.registered === registered.value?.registered ? past.value : null));

/** The range that is looked at; null while solutions are shown as they come. */
export const range = computed<Range | null>(() => sought.value ?? (current.value && { from: current.value.from, to: current.value.to }));

/** Show the range that an address names; null: solutions as they come. */
export function seekRange(named: Range | null): void {
  past.value = null;
  sought.value = named;
}

/** The solutions to show, in order of their ends. */
export const pictured = computed(() => current.value?.rows ?? standingRows.value);

/** The bounds of a chosen range in milliseconds; each is NaN where there is none. */
export const bounds = computed(() => ({ from: moment(current.value?.from), to: moment(current.value?.to) }));
const moment = (field: string | undefined) => (field ? Date.parse(`${field}Z`) : Number.NaN);

/** As a field of date and time takes it: UTC, without a zone. */
const fieldOf = (ms: number) => new Date(ms).toISOString().slice(0, 19);

/** The field's time as an xsd:dateTime; "" for an open bound. Browsers leave out seconds that are zero. */
export const timeOf = (field: string) => (field ? `${field.length === 16 ? `${field}:00` : field}Z` : "");

async function look(query: QuerySummary, from: string, to: string): Promise<void> {
  const bounds = { from: timeOf(from) || null, to: timeOf(to) || null };
  const options = { path: { name: query.name }, query: { order: "newest", limit: WINDOW, ...bounds }, headers: { Accept: "application/x-ndjson" } };
  const response = await client.http.request("get", "/queries/{name}/solutions", options);
  const more = response.headers.has("Link");
  const found = (await response.text()).split("\n").filter(Boolean).map(row).reverse();
  past.value = { registered: query.registered, from, to, rows: found, more };
}

export function Period() {
  const query = registered.value;
  const shown = current.value;
  const [open, setOpen] = useState(shown !== null);
  const [{ from, to }, set] = useState({ from: shown?.from ?? "", to: shown?.to ?? "" });
  const wanted = sought.value;
  useEffect(() => {
    setOpen(range.peek() !== null);
    if (!query || !wanted) return;
    set(wanted);
    void attempt(() => look(query, wanted.from, wanted.to)).then(() => (sought.value = null));
  }, [query?.registered, wanted, shown === null]);
  if (!query) return null; // it was dropped just now
  const choose = (kind: string) => {
    setOpen(kind === "past");
    if (kind === "live") past.value = null;
    else if (!from && !to) set(whole());
  };
  const show = (event: Event) => {
    event.preventDefault();
    void attempt(() => look(query, from, to));
  };
  return (
    <form class="period" aria-label="Time" onSubmit={show}>
      <label class="pick">
        time
        <select value={open ? "past" : "live"} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="live">as solutions come</option>
          <option value="past">a past range</option>
        </select>
      </label>
      {open && (
        <>
          <input type="datetime-local" step={1} aria-label="From, UTC" title="From, UTC" value={from} onInput={(event) => set({ from: event.currentTarget.value, to })} />
          <span class="quiet">to</span>
          <input type="datetime-local" step={1} aria-label="To, UTC" title="To, UTC" value={to} onInput={(event) => set({ from, to: event.currentTarget.value })} />
          <button type="submit">Show</button>
        </>
      )}
      {open && shown && (
        <span class="quiet figures" role="status">
          {shown.more ? `the newest ${count(shown.rows.length)} of this range` : some(shown.rows.length, "solution")}
        </span>
      )}
    </form>
  );
}

/** From the first end on screen to the last. */
function whole(): { from: string; to: string } {
  const ends = rows.peek().map((each) => each.end).filter((end) => !Number.isNaN(end));
  return ends.length ? { from: fieldOf(ends[0]!), to: fieldOf(Math.ceil(ends[ends.length - 1]! / 1000) * 1000) } : { from: "", to: "" };
}
