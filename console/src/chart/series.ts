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

/** Of the points that share a pixel's column: the first and last, the least and greatest. The line looks the same, however many there are. */
export function thinned(points: readonly Point[], x: (at: number) => number): readonly Point[] {
  const columns: Point[][] = [];
  let before = Number.NaN;
  for (const point of points) {
    const column = Math.round(x(point.at));
    if (column !== before) columns.push([]);
    columns[columns.length - 1]!.push(point);
    before = column;
  }
  return columns.flatMap((column) => (column.length <= 4 ? column : ends(column)));
}

function ends(column: Point[]): Point[] {
  let [least, greatest] = [column[0]!, column[0]!];
  for (const point of column) {
    if (point.value < least.value) least = point;
    if (point.value > greatest.value) greatest = point;
  }
  return [column[0]!, least, greatest, column[column.length - 1]!];
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
