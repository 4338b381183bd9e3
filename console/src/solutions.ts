/** The solutions of the query on screen: a window of the newest, fed live, and found again after a reload. */

import { computed, signal } from "@preact/signals";
import { api, type QuerySummary, type Term } from "./api";
import { read, write } from "./kept";
import { type Event, follow, type Standing } from "./feed";
import { fullTerm } from "./format";

export const WINDOW = 10_000;
export const HIDDEN_MS = 60_000;

export interface Row {
  id: string;
  /** Milliseconds since 1970, with fractions; NaN for a timeless one. */
  start: number;
  end: number;
  binding: Record<string, Term>;
  triples: string | null;
  /** Of a trial's solution, which is not stored: what else it is told apart by, and the table's columns for it. */
  facets?: Readonly<Record<string, string>>;
  /** Of a revised query: the solution's own id, by which a later change may withdraw it. */
  solution?: string;
  withdrawn?: boolean;
}

/** Where the reading of a registration began, so that a reload reads the same again and goes on: id, or "" for the beginning. */
const anchors = {
  key: (name: string, registered: number) => `epsparql.anchor ${registered} ${name}`,
  get: (name: string, registered: number) => read<string | null>(sessionStorage, anchors.key(name, registered), null),
  set: (name: string, registered: number, id: string) => write(sessionStorage, anchors.key(name, registered), id),
};

export const rows = signal<readonly Row[]>([]);
/** Those that stand: all but the withdrawn ones of a revised query. */
export const standingRows = computed(() => (rows.value.some((row) => row.withdrawn) ? rows.value.filter((row) => !row.withdrawn) : rows.value));
export const standing = signal<{ state: Standing; why: string }>({ state: "ended", why: "" });
/** Whether solutions before the first row exist, and are not shown. */
export const truncated = signal(false);

/** How many the registration on screen has: what it is told once a second may be behind what is shown. */
export const amount = (query: QuerySummary) => Math.max(query.solutions, rows.value.length);

let current: { name: string; registered: number } | null = null;
let abort = new AbortController();

/** Follow this registration; null: none. Following the same one again changes nothing. */
export function watch(query: QuerySummary | null): void {
  if (query?.name === current?.name && query?.registered === current?.registered) return;
  current = query && { name: query.name, registered: query.registered };
  abort.abort();
  abort = new AbortController();
  rows.value = [];
  truncated.value = false;
  if (query) void begin(query, abort);
}

/** Read from the very first solution, however many there are; the window still keeps the newest. */
export function fromBeginning(query: QuerySummary): void {
  anchors.set(query.name, query.registered, "");
  current = null;
  watch(query);
}

async function begin(query: QuerySummary, control: AbortController): Promise<void> {
  const known = anchors.get(query.name, query.registered);
  const anchor = known ?? (await newest(query).catch(() => ""));
  if (control.signal.aborted) return;
  if (known === null) anchors.set(query.name, query.registered, anchor);
  truncated.value = anchor !== "";
  await run(query, anchor || null, control.signal);
}

function run(query: QuerySummary, after: string | null, signal: AbortSignal): Promise<void> {
  return follow(
    (last, signal) => api.events(query.name, last, signal),
    after,
    (events) => take(query, events),
    (state, why = "") => (standing.value = { state, why }),
    signal,
  );
}

/** An id behind which about a window of solutions lies, if they are spread evenly over time; "" if they all fit. */
async function newest(query: QuerySummary): Promise<string> {
  if (query.solutions <= WINDOW || !query.last) return "";
  const first = JSON.parse((await api.first(query.name)).trim()) as { id: string };
  const [from, to] = [endOf(first.id), endOf(query.last)];
  const at = to - ((to - from) * BigInt(WINDOW)) / BigInt(query.solutions);
  return `${at.toString(16).padStart(16, "0")}-00000000`;
}

const endOf = (id: string) => BigInt(`0x${id.slice(0, 16)}`);

function take(query: QuerySummary, events: Event[]): void {
  const grown = revised(events) ? changed(rows.value, events) : rows.value.concat(events.map((event) => row(event.data)));
  const surplus = grown.length - WINDOW;
  if (surplus > 0) {
    anchors.set(query.name, query.registered, grown[surplus - 1]!.id);
    truncated.value = true;
  }
  rows.value = surplus > 0 ? grown.slice(surplus) : grown;
}

const revised = (events: Event[]) => events[0]?.data.includes('"withdrawn":') === true && "seq" in (JSON.parse(events[0].data) as object);

/** The rows after changes of a revised query: what is withdrawn stays, struck through. */
export function changed(known: readonly Row[], events: Event[]): Row[] {
  const added: Row[] = [];
  const withdrawn = new Set<string>();
  for (const event of events) {
    const change = JSON.parse(event.data) as { seq: string; added: { id: string }[]; withdrawn: { id: string }[] };
    for (const solution of change.withdrawn) {
      withdrawn.add(solution.id);
      const at = added.findIndex((each) => each.solution === solution.id && !each.withdrawn);
      if (at >= 0) added[at] = { ...added[at]!, withdrawn: true };
    }
    for (const solution of change.added) added.push({ ...row(JSON.stringify(solution)), id: change.seq, solution: solution.id });
  }
  return known.map((each) => (each.solution && withdrawn.has(each.solution) && !each.withdrawn ? { ...each, withdrawn: true } : each)).concat(added);
}

/** A term as the server sends it. */
type Sent = Omit<Term, "value" | "parts"> & { value: string | { subject: Sent; predicate: Sent; object: Sent } };

function received({ value, ...rest }: Sent): Term {
  if (typeof value === "string") return { ...rest, value };
  const parts: [Term, Term, Term] = [received(value.subject), received(value.predicate), received(value.object)];
  return { ...rest, value: `<<( ${parts.map(fullTerm).join(" ")} )>>`, parts };
}

/** A solution as the server sends it, apart from its id. */
export interface Solution {
  query?: string;
  start: string | null;
  end: string | null;
  binding?: Record<string, Sent>;
  triples?: string;
  boolean?: boolean;
}

/** A line of ndjson. */
export function row(line: string): Row {
  const found = JSON.parse(line) as Solution & { id: string };
  return rowOf(found.id, found);
}

export function rowOf(id: string, found: Solution): Row {
  const asked = found.boolean === undefined ? {} : { answer: { type: "literal" as const, value: String(found.boolean) } };
  return { id, start: millis(found.start), end: millis(found.end), binding: found.binding ? Object.fromEntries(Object.entries(found.binding).map(([name, term]) => [name, received(term)])) : asked, triples: found.triples ?? null };
}

/** Date.parse drops what is finer than a millisecond. */
export function millis(text: string | null): number {
  if (!text) return Number.NaN;
  const fraction = /\.(\d{3})(\d{1,3})/.exec(text);
  return Date.parse(text) + (fraction ? Number(fraction[2]!.padEnd(3, "0")) / 1000 : 0);
}

/** A page that nobody looks at for a while lets go of its connection (browsers have few per server); nothing is lost by it. */
let hidden = 0;
let letGo: QuerySummary | null = null;
export function minimise(query: () => QuerySummary | null): void {
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) {
      hidden = window.setTimeout(() => {
        letGo = query();
        abort.abort();
      }, HIDDEN_MS);
    } else if (letGo && current && letGo.registered === current.registered) {
      abort = new AbortController();
      const last = rows.value[rows.value.length - 1]?.id ?? anchors.get(current.name, current.registered);
      void run(letGo, last || null, abort.signal);
      letGo = null;
    }
  });
}
