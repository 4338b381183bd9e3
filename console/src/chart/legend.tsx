/** The choice of a variable by which a chart or a map is coloured, and the colours of its values. */

import { prefixesOf, roundedTerm } from "../display/format";
import { variables } from "../solutions/lanes";
import type { Row } from "../state/solution_store";
import { change, tab } from "../state/tabs";
import type { Group } from "./groups";

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
          {roundedTerm(term, prefixes) || "(unbound)"}
        </li>
      ))}
      {left > 0 && <li class="quiet">{left} more are not shown</li>}
    </ul>
  );
}
