/** By which variable a chart or a map is coloured, and which colour each of its values has. */

import type { Term } from "../api/client";
import { isNumber } from "../display/format";
import { natural, variables } from "../solutions/lanes";
import { COLOURS } from "../solutions/selection";
import type { Row } from "../state/solution_store";
import { tab } from "../state/tabs";

/** More groups than these are not told apart. */
export const MOST_GROUPS = 24;

export interface Group {
  key: string;
  term: Term | undefined;
  colour: string;
  /** The pattern of its line, as SVG has it; a whole line has none. */
  dash?: string;
}

/** The variable that was chosen in the tab, while the rows have it; else the one that parts them best by names. */
export function grouping(rows: readonly Row[]): string | null {
  const chosen = tab.value?.by;
  if (chosen === null) return null;
  if (chosen !== undefined && variables(rows).includes(chosen)) return chosen;
  const found = natural(rows);
  const term = found === null ? undefined : rows[rows.length - 1]?.binding[found];
  return term && !isNumber(term) ? found : null;
}

/** The groups in order of their names, so that their colours stay; and how many more there are. */
export function groupsOf(rows: readonly Row[], by: string | null): { groups: ReadonlyMap<string, Group>; left: number } {
  const terms = new Map<string, Term | undefined>();
  let left = 0;
  const passed = new Set<string>();
  for (const row of rows) {
    const key = keyOf(row, by);
    if (terms.has(key)) continue;
    if (terms.size < MOST_GROUPS) terms.set(key, by === null ? undefined : row.binding[by]);
    else passed.add(key);
  }
  left = passed.size;
  const keys = [...terms.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return { groups: new Map(keys.map((key, k) => [key, { key, term: terms.get(key), colour: `var(--g${k % COLOURS})` }])), left };
}

export const keyOf = (row: Row, by: string | null) => (by === null ? "" : (row.binding[by]?.value ?? ""));
