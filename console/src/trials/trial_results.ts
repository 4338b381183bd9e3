/** What trials are called, and what they have found: pages of solutions in order of time, and their counts as lines of a chart. */

import { client, type Side, type Trial } from "../api/client";
import type { Series } from "../chart/series";
import { count, some } from "../display/format";
import { FOUND_BY, SIDES } from "../solutions/lanes";
import { type Found, millis, type Row, rowOf } from "../state/solution_store";

export const ALL_SIDES: readonly Side[] = ["new", "old", "both"];
/** Lines differ by more than colour, as the bars of the timeline do. */
export const DASHES: Record<Side, string | undefined> = { new: undefined, old: "7 4", both: "1.5 3" };
const PAGE = 1000;
/** More slots than these are hard to see. */
const MOST_SLOTS = 100;

export const labelOf = (side: Side) => SIDES[ALL_SIDES.indexOf(side)]!;
export const hasEnded = ({ state }: Trial) => state === "completed" || state === "failed";

const NAMED = 60;
/** What was tried, in a few words. */
export function nameOf({ compare_with, query }: Trial): string {
  if (compare_with !== null) return compare_with;
  const text = query.replace(/\b(PREFIX|BASE)\b[^>]*>/gi, "").replace(/\s+/g, " ").trim();
  return text.length > NAMED ? `${text.slice(0, NAMED)}…` : text;
}

const placed = (place: string) => (/^\d+$/.test(place) ? `offset ${count(Number(place))}` : place);

export function rangeOf({ from, to }: Trial): string {
  if (from === "beginning") return to === "now" ? "all of the log" : `up to ${placed(to)}`;
  return to === "now" ? `from ${placed(from)} on` : `from ${placed(from)} to ${placed(to)}`;
}

// ---------------------------------------------------------------- pages
/** How many solutions of each side come before a page. */
export type Cursor = Readonly<Record<Side, number>>;
export const FIRST: Cursor = { new: 0, old: 0, both: 0 };

export interface Page {
  /** In order of their ends. */
  rows: readonly Row[];
  next: Cursor;
}

/** Each side's solutions come in order of time; of all of them, the earliest make the page. Rejects with what the server refused. */
export async function readPage(trial: Trial, sides: readonly Side[], after: Cursor): Promise<Page> {
  const found = await Promise.all(sides.map(async (side) => rowsOf(trial, side, after[side], await client.trialSolutions(trial.id, side, { after: after[side], limit: PAGE }))));
  const taken = found.map(() => 0);
  const rows: Row[] = [];
  while (rows.length < PAGE) {
    let least = -1;
    found.forEach((side, k) => {
      const head = side[taken[k]!];
      if (head && (least < 0 || !(head.end >= found[least]![taken[least]!]!.end))) least = k;
    });
    if (least < 0) break;
    rows.push(found[least]![taken[least]!++]!);
  }
  return { rows, next: { ...after, ...Object.fromEntries(sides.map((side, k) => [side, after[side] + taken[k]!])) } };
}

/** A solution by the id of its row: its side and its number there; null if it is not kept. */
export async function readRow(trial: Trial, id: string): Promise<Row | null> {
  const [name, number] = id.split(" ");
  const side = ALL_SIDES.find((each) => each === name);
  const after = Number(number);
  return side ? (rowsOf(trial, side, after, await client.trialSolutions(trial.id, side, { after, limit: 1 }))[0] ?? null) : null;
}

function rowsOf(trial: Trial, side: Side, after: number, found: Awaited<ReturnType<typeof client.trialSolutions>>): Row[] {
  const apart = trial.compare_with === null ? {} : { [FOUND_BY]: labelOf(side) };
  return found.map((each, k) => ({
    ...rowOf(`${side} ${after + k}`, each as Found),
    facets: trial.queries.length > 1 ? { ...apart, "of query": (each as Found).query ?? "" } : apart,
  }));
}

// ---------------------------------------------------------------- counts
/** Counts by the beginning of a slot, in slots of `width` milliseconds. */
export interface Slots {
  width: number;
  counts: ReadonlyMap<number, Cursor>;
}

/** The server leaves out empty slots, and gives the width in seconds; here slots are joined until few cover all the time. */
export function slotsOf({ timeline }: Trial): Slots {
  const ends = timeline.slots.map((slot) => millis(slot.at));
  const span = ends.length ? ends[ends.length - 1]! - ends[0]! : 0;
  let width = Number(/^PT([\d.]+)S$/.exec(timeline.width)?.[1] ?? 1) * 1000;
  while (span / width > MOST_SLOTS) width *= 2;
  const counts = new Map<number, Cursor>();
  timeline.slots.forEach((slot, k) => {
    const at = Math.floor(ends[k]! / width) * width;
    const before = counts.get(at) ?? FIRST;
    counts.set(at, { new: before.new + slot.new, old: before.old + slot.old, both: before.both + slot.both });
  });
  return { width, counts };
}

/** A line for each side. A line falls to zero where there is no slot; its points lie in the middles of the slots. */
export function linesOf({ width, counts }: Slots, trial: Trial, sides: readonly Side[]): Series[] {
  const times = [...new Set([...counts.keys()].flatMap((at) => [at - width, at, at + width]))].sort((a, b) => a - b);
  return sides.map((side) => {
    const label = trial.compare_with === null ? "found" : labelOf(side);
    const dash = DASHES[side];
    const points = times.map((at) => {
      const value = counts.get(at)?.[side] ?? 0;
      return { at: at + width / 2, value, row: { id: `${side} ${at}`, start: at, end: at + width, binding: {}, triples: null, facets: { [label]: some(value, "solution") } } };
    });
    return { group: { key: side, term: undefined, colour: `var(--g${ALL_SIDES.indexOf(side)})`, ...(dash && { dash }) }, points };
  });
}
