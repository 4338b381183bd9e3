/** Where intervals go: groups by the value of a variable, and in each group as few lanes as keep them apart. */

import type { Term } from "../api/client";
import { isNumber } from "../display/format";
import type { Row } from "../state/solution_store";

/** The facet of a trial's solutions that says which side found them, and its values, in the order of their lanes and colours. */
export const FOUND_BY = "found by";
export const SIDES = ["only new", "only old", "both"];

const MOST_GROUPS = 24;
const THIN = 3;
const NAMED = 14;

export interface Placed {
  row: Row;
  group: number;
  lane: number;
}

export interface Lanes {
  groups: { key: string; term: Term | undefined; lanes: number; colour: number }[];
  placed: Placed[];
}

/** Packed into `height` pixels: where lanes would be too thin to see, the fullest groups share their last one. */
export function fitted(rows: readonly Row[], by: string | null, apart: number, height: number): Lanes {
  const mostGroups = Math.max(1, Math.min(MOST_GROUPS, Math.floor(height / NAMED) - 1));
  const found = pack(rows, by, apart, Infinity, mostGroups);
  const lanes = found.groups.reduce((sum, group) => sum + group.lanes, 0);
  return lanes * THIN <= height ? found : pack(rows, by, apart, Math.max(1, Math.floor(height / THIN / found.groups.length)), mostGroups);
}

/** `apart`: the least gap, in milliseconds, between two intervals of one lane. More groups than can be told apart are one, named "others". */
function pack(rows: readonly Row[], by: string | null, apart: number, mostLanes: number, mostGroups: number): Lanes {
  const groups: { key: string; term: Term | undefined; lanes: number; colour: number; ends: number[] }[] = [];
  const numbers = new Map<string, number>();
  const placed: Placed[] = [];
  for (const row of [...rows].sort((a, b) => a.start - b.start)) {
    if (Number.isNaN(row.end)) continue;
    const term = by === null ? undefined : valueOf(row, by);
    const key = by === null ? "" : (term?.value ?? "");
    let number = numbers.get(key);
    if (number === undefined) {
      const full = groups.length >= mostGroups;
      number = full ? mostGroups : groups.length;
      numbers.set(key, number);
      if (!groups[number]) groups[number] = { key: full ? "others" : key, term: full ? undefined : term, lanes: 0, colour: 0, ends: [] };
    }
    const group = groups[number]!;
    const free = group.ends.findIndex((end) => end + apart < row.start);
    const lane = free >= 0 ? free : Math.min(group.ends.length, mostLanes - 1);
    group.ends[lane] = Math.max(group.ends[lane] ?? -Infinity, row.end);
    group.lanes = group.ends.length;
    placed.push({ row, group: number, lane });
  }
  return sorted(groups, placed, by);
}

/** Groups in order of their names, so that they keep their places and colours from one drawing to the next. */
function sorted(groups: Lanes["groups"], placed: Placed[], by: string | null): Lanes {
  const side = (number: number) => SIDES.indexOf(groups[number]!.key);
  const compare = (a: number, b: number) => (by === FOUND_BY ? side(a) - side(b) : groups[a]!.key.localeCompare(groups[b]!.key, "en", { numeric: true }));
  const order = groups.map((_, k) => k).sort(compare);
  const place = new Map(order.map((was, now) => [was, now]));
  return {
    groups: order.map((was, now) => ({ ...groups[was]!, colour: by === FOUND_BY ? side(was) : now })),
    placed: placed.map((each) => ({ ...each, group: place.get(each.group)! })),
  };
}

/** The facets that the rows have: all of them have the same. */
export const facetsOf = (rows: readonly Row[]): string[] => Object.keys(rows[0]?.facets ?? {});

/** The value of a variable or of a facet. The name of a facet has a space, and that of a variable has none. */
export function valueOf(row: Row, by: string): Term | undefined {
  const facet = row.facets?.[by];
  return facet === undefined ? row.binding[by] : { type: "literal", value: facet };
}

/** The variables of the rows in order of appearance. */
export function variables(rows: readonly Row[]): string[] {
  const found = new Set<string>();
  for (const row of rows.length > 400 ? [...rows.slice(0, 200), ...rows.slice(-200)] : rows) for (const name of Object.keys(row.binding)) found.add(name);
  return [...found];
}

/** The variable that parts the rows best: few values but more than one, names rather than numbers. */
export function natural(rows: readonly Row[]): string | null {
  const sample = rows.slice(-500);
  let best: { name: string; score: number } | null = null;
  for (const name of variables(sample)) {
    const values = new Set(sample.map((row) => row.binding[name]?.value ?? ""));
    if (values.size > MOST_GROUPS) continue;
    const terms = sample.flatMap((row) => row.binding[name] ?? []);
    const named = terms.some((term) => term.type === "uri") ? 2 : terms.some(isNumber) ? -1 : 0;
    const score = named + (values.size > 1 ? 1 : 0);
    if (!best || score > best.score) best = { name, score };
  }
  return best && best.score > 0 ? best.name : null;
}
