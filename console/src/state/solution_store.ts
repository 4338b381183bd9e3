/** The solutions of the query on screen: a window of the newest, fed live, and found again after a reload. */

import { computed, signal } from "@preact/signals";
import type { Change, EventArgument, SentSolution, SentTerm, Solution, Subscription } from "epsparql";
import { client, type QuerySummary, type Standing, type Term } from "../api/client";
import { read, write } from "../api/storage";
import { show } from "../api/subscription";
import { fullTerm } from "../display/format";

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
let subscription: Subscription | null = null;

/** Follow this registration; null: none. Following the same one again changes nothing. */
export function watch(query: QuerySummary | null): void {
  if (query?.name === current?.name && query?.registered === current?.registered) return;
  current = query && { name: query.name, registered: query.registered };
  subscription?.close();
  subscription = null;
  rows.value = [];
  truncated.value = false;
  if (query) void begin(query, current!);
}

/** Read from the very first solution, however many there are; the window still keeps the newest. */
export function fromBeginning(query: QuerySummary): void {
  anchors.set(query.name, query.registered, "");
  current = null;
  watch(query);
}

async function begin(query: QuerySummary, mine: typeof current): Promise<void> {
  const known = anchors.get(query.name, query.registered);
  const anchor = known ?? (await newest(query).catch(() => ""));
  if (current !== mine) return;
  if (known === null) anchors.set(query.name, query.registered, anchor);
  truncated.value = anchor !== "";
  run(query, anchor || null);
}

function run(query: QuerySummary, after: string | null): void {
  const mine = client.follow(query.name, { after });
  subscription = mine;
  const tell = (state: Standing, why = "") => subscription === mine && (standing.value = { state, why });
  void show(mine, (words) => subscription === mine && take(query, words), tell);
}

/** An id behind which about a window of solutions lies, if they are spread evenly over time; "" if they all fit. */
async function newest(query: QuerySummary): Promise<string> {
  if (query.solutions <= WINDOW || !query.last) return "";
  const [first] = await client.solutions(query.name, { limit: 1 });
  const [from, to] = [endOf(first!.id), endOf(query.last)];
  const at = to - ((to - from) * BigInt(WINDOW)) / BigInt(query.solutions);
  return `${at.toString(16).padStart(16, "0")}-00000000`;
}

const endOf = (id: string) => BigInt(`0x${id.slice(0, 16)}`);

/** A solution by the id of its row, from the server's store; null if it is not kept. */
export async function readRow(query: QuerySummary, id: string): Promise<Row | null> {
  const key = BigInt(`0x${id.replace("-", "")}`);
  const before = (key - 1n).toString(16).padStart(24, "0");
  const page = { limit: 1, ...(key > 0n && { after: `${before.slice(0, 16)}-${before.slice(16)}` }) };
  const words = await (query.emit === "revised" ? client.changes(query.name, page) : client.solutions(query.name, page));
  return changed([], words).find((row) => row.id === id) ?? null;
}

function take(query: QuerySummary, words: readonly (Solution | Change)[]): void {
  const grown = changed(rows.value, words);
  const surplus = grown.length - WINDOW;
  if (surplus > 0) {
    anchors.set(query.name, query.registered, grown[surplus - 1]!.id);
    truncated.value = true;
  }
  rows.value = surplus > 0 ? grown.slice(surplus) : grown;
}

/** The rows after solutions, or after changes of a revised query: what is withdrawn stays, struck through. */
export function changed(known: readonly Row[], words: readonly (Solution | Change)[]): readonly Row[] {
  const added: Row[] = [];
  const withdrawn = new Set<string>();
  for (const word of words) {
    if (word.kind === "solution") {
      added.push(rowOf(word.id, word.document));
      continue;
    }
    for (const solution of word.withdrawn) {
      withdrawn.add(solution.id);
      const at = added.findIndex((each) => each.solution === solution.id && !each.withdrawn);
      if (at >= 0) added[at] = { ...added[at]!, withdrawn: true };
    }
    for (const solution of word.added) added.push({ ...rowOf(word.seq, solution.document), solution: solution.id });
  }
  const kept = withdrawn.size ? known.map((each) => (each.solution && withdrawn.has(each.solution) && !each.withdrawn ? { ...each, withdrawn: true } : each)) : known;
  return kept.concat(added);
}

function received({ value, ...rest }: SentTerm): Term {
  if (typeof value === "string") return { ...rest, value };
  const parts: [Term, Term, Term] = [received(value.subject), received(value.predicate), received(value.object)];
  return { ...rest, value: `<<( ${parts.map(fullTerm).join(" ")} )>>`, parts };
}

/** What a trial found has no id. */
export type Found = Omit<SentSolution, "id" | "query"> & { query?: string };

/** A line of ndjson. */
export function row(line: string): Row {
  const found = JSON.parse(line) as SentSolution;
  return rowOf(found.id, found);
}

/** The instance of a query with PARAMETERS stands before its variables. */
export function rowOf(id: string, found: Found): Row {
  const bound = found.binding ? Object.fromEntries(Object.entries(found.binding).map(([name, term]) => [name, received(term)])) : answered(found);
  const binding = found.instance === undefined ? bound : { instance: { type: "literal" as const, value: found.instance }, ...bound };
  return { id, start: millis(found.start), end: millis(found.end), binding, triples: found.triples ?? null };
}

/** The answer of an ASK, or an event of a program with its arguments, as columns of a table. */
function answered({ boolean, event, args = [] }: Found): Record<string, Term> {
  const texts = event === undefined ? (boolean === undefined ? {} : { answer: String(boolean) }) : { event, ...Object.fromEntries(args.map((arg, k) => [`arg${k + 1}`, argumentText(arg)])) };
  return Object.fromEntries(Object.entries(texts).map(([name, value]) => [name, { type: "literal", value }]));
}

function argumentText(argument: EventArgument): string {
  if (typeof argument !== "object") return String(argument);
  if (Array.isArray(argument)) return `[${argument.map(argumentText).join(", ")}]`;
  if ("functor" in argument) return `${argument.functor}(${argument.args.map(argumentText).join(", ")})`;
  return "string" in argument ? argument.string : argument.datime;
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
        subscription?.close();
      }, HIDDEN_MS);
    } else if (letGo && current && letGo.registered === current.registered) {
      const last = rows.value[rows.value.length - 1]?.id ?? anchors.get(current.name, current.registered);
      run(letGo, last || null);
      letGo = null;
    }
  });
}
