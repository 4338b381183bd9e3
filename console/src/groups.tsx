/** By which variable a chart or a map is coloured, and which colour each of its values has. */

import type { Term } from "./server";
import { isNumber, prefixesOf, shortTerm } from "./format";
import { natural, variables } from "./lanes";
import { COLOURS } from "./selection";
import type { Row } from "./solutions";
import { change, tab } from "./tabs";

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

/** `what`: what the groups are in the picture, such as "lines by". */
export function ChooseGroups({ what, by, rows }: { what: string; by: string | null; rows: readonly Row[] }) {
  return (
    <label class="pick">
      {what}
      <select value={by ?? ""} onChange={(event) => change({ by: event.currentTarget.value || null })}>
        <option value="">nothing</option>
        {variables(rows).map((name) => (
          <option key={name} value={name}>
            ?{name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Legend({ by, groups, left }: { by: string | null; groups: ReadonlyMap<string, Group>; left: number }) {
  if (by === null) return null;
  const prefixes = prefixesOf(tab.value?.query ?? "");
  return (
    <ul class="legend" aria-label={`Colours of ?${by}`}>
      {[...groups.values()].map(({ key, term, colour }) => (
        <li key={key} title={key}>
          <i class="swatch" style={{ background: colour }} />
          {shortTerm(term, prefixes) || "(unbound)"}
        </li>
      ))}
      {left > 0 && <li class="quiet">{left} more are not shown</li>}
    </ul>
  );
}
