/** Values of solutions over time, as lines of a chart. */

import type { Term } from "../api/client";
import { isNumber } from "../display/format";
import { variables } from "../solutions/lanes";
import type { Row } from "../state/solution_store";
import { type Group, keyOf } from "./groups";

export interface Point {
  row: Row;
  /** The interval's end, in milliseconds. */
  at: number;
  value: number;
}

export interface Series {
  group: Group;
  points: Point[];
}

/** The number that a term is; NaN for none, and for INF, which no axis holds. */
export function numberOf(term: Term | undefined): number {
  const found = term && isNumber(term) ? Number(term.value) : Number.NaN;
  return Number.isFinite(found) ? found : Number.NaN;
}

/** The variables that are numbers in some row. */
export const numericVariables = (rows: readonly Row[]) => variables(rows).filter((name) => rows.some((row) => !Number.isNaN(numberOf(row.binding[name]))));

/** The values of a variable, a line for each group; timeless solutions have no place on the axis. */
export function seriesOf(rows: readonly Row[], variable: string, by: string | null, groups: ReadonlyMap<string, Group>): Series[] {
  const found = new Map<string, Series>();
  for (const row of rows) {
    const value = numberOf(row.binding[variable]);
    const key = keyOf(row, by);
    const group = groups.get(key);
    if (Number.isNaN(value) || Number.isNaN(row.end) || !group) continue;
    const series = found.get(key) ?? { group, points: [] };
    series.points.push({ row, at: row.end, value });
    found.set(key, series);
  }
  return [...found.values()].sort((a, b) => a.group.key.localeCompare(b.group.key, "en", { numeric: true }));
}

/** What a line shows of an instant: the mean of the solutions that end there, and their least and greatest value. */
export interface Instant {
  at: number;
  value: number;
  least: number;
  greatest: number;
}

/** The instants of a line in order of time. Several solutions of one instant are one of its points, lest the line go up and down there. */
export function instantsOf(points: readonly Point[]): Instant[] {
  const found = new Map<number, { at: number; sum: number; n: number; least: number; greatest: number }>();
  for (const { at, value } of points) {
    const known = found.get(at);
    if (!known) found.set(at, { at, sum: value, n: 1, least: value, greatest: value });
    else found.set(at, { at, sum: known.sum + value, n: known.n + 1, least: Math.min(known.least, value), greatest: Math.max(known.greatest, value) });
  }
  return [...found.values()].sort((a, b) => a.at - b.at).map(({ at, sum, n, least, greatest }) => ({ at, value: sum / n, least, greatest }));
}

function inColumns(instants: readonly Instant[], x: (at: number) => number): Instant[][] {
  const columns: Instant[][] = [];
  let before = Number.NaN;
  for (const instant of instants) {
    const column = Math.round(x(instant.at));
    if (column !== before) columns.push([]);
    columns[columns.length - 1]!.push(instant);
    before = column;
  }
  return columns;
}

/** Of the instants that share a pixel's column: the first and last, the least and greatest. The line looks the same, however many there are. */
export function thinned(instants: readonly Instant[], x: (at: number) => number): readonly Instant[] {
  return inColumns(instants, x).flatMap((column) => (column.length <= 4 ? column : ends(column)));
}

function ends(column: Instant[]): Instant[] {
  let [least, greatest] = [column[0]!, column[0]!];
  for (const instant of column) {
    if (instant.value < least.value) least = instant;
    if (instant.value > greatest.value) greatest = instant;
  }
  return [column[0]!, least, greatest, column[column.length - 1]!];
}

/** The bars from the least to the greatest value of instants that have several, one for each column of pixels. */
export function barsOf(instants: readonly Instant[], x: (at: number) => number): { at: number; least: number; greatest: number }[] {
  const several = instants.filter(({ least, greatest }) => least < greatest);
  return inColumns(several, x).map((column) => ({ at: column[0]!.at, least: Math.min(...column.map(({ least }) => least)), greatest: Math.max(...column.map(({ greatest }) => greatest)) }));
}

/** Round numbers from the axis's least to its greatest, about `most` of them. */
export function marks(from: number, to: number, most: number): number[] {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((each) => each * power >= rough) ?? 10);
  const found: number[] = [];
  for (let k = Math.ceil(from / step); k * step <= to && found.length < 100; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** A number with as many digits as tell it from its neighbours. */
export const figure = (value: number) => (Math.abs(value) >= 1e7 || (value !== 0 && Math.abs(value) < 1e-4) ? value.toExponential() : value.toLocaleString("en", { maximumFractionDigits: 10 }).replaceAll(",", "\u202f"));
