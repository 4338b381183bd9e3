/** The order of the table's rows, and which of them are shown: by a column, and by a text that they contain. */

import { signal } from "@preact/signals";
import { fullTerm, isNumber } from "../display/format";
import type { Row } from "../state/solution_store";
import { valueOf } from "./lanes";

/** A column: a variable with its `?`, a facet, or one of the interval's. Null: the order in which the solutions came. */
export const order = signal<{ by: string; falls: boolean } | null>(null);
export const wanted = signal("");

/** The rows that contain what is wanted. */
export function matching(rows: readonly Row[]): readonly Row[] {
  const words = wanted.value.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? rows.filter((row) => contains(row, words)) : rows;
}

/** The rows that are wanted, in order; the table shows the last of them first. */
export function arranged(rows: readonly Row[]): readonly Row[] {
  const found = matching(rows);
  const chosen = order.value;
  if (!chosen) return found;
  const keyed = found.map((row) => ({ row, key: keyOf(row, chosen.by) }));
  const sign = chosen.falls ? 1 : -1;
  return keyed.sort((a, b) => compare(a.key, b.key, sign)).map(({ row }) => row);
}

function contains(row: Row, words: readonly string[]): boolean {
  const text = `${Object.values(row.binding).map(fullTerm).join(" ")} ${row.triples ?? ""} ${Object.values(row.facets ?? {}).join(" ")}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

type Key = number | string | null;

function keyOf(row: Row, by: string): Key {
  if (by === "start") return row.start;
  if (by === "end") return row.end;
  if (by === "lasts") return row.end - row.start;
  const term = valueOf(row, by.replace("?", ""));
  return term === undefined ? null : isNumber(term) ? Number(term.value) : term.value;
}

/** What is unbound comes last on the screen, whichever the order; numbers come before texts. */
function compare(a: Key, b: Key, sign: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  if (typeof a === "string" && typeof b === "string") return sign * a.localeCompare(b, "en", { numeric: true });
  return typeof a === "number" ? -sign : sign;
}

/** All rows, as they came: another query is looked at. */
export function showAll(): void {
  order.value = null;
  wanted.value = "";
}

/** A heading was pressed: rising, falling, and then again as they came. */
export function turn(by: string): void {
  const now = order.value;
  order.value = now?.by !== by ? { by, falls: false } : now.falls ? null : { by, falls: true };
}
