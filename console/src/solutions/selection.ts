/** The solution that is looked at, the same in table and timeline. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { say } from "../state/server_state";
import type { Row } from "../state/solution_store";
import type { Lanes } from "./lanes";

export const selected = signal<Row | null>(null);
/** The id of the solution that an address names, until it is selected. */
export const sought = signal<string | null>(null);

function select(row: Row): void {
  selected.value = row;
  sought.value = null;
}

/** Select the sought solution: one of the rows, else the one that `ask` reads. */
export function useSought(rows: readonly Row[], ask: ((id: string) => Promise<Row | null>) | null): void {
  const id = sought.value;
  useEffect(() => {
    const found = id !== null && rows.find((row) => row.id === id);
    if (found) select(found);
  }, [id, rows]);
  useEffect(() => {
    if (id === null || !ask) return;
    const give = (found: Row | null) => {
      if (sought.peek() !== id) return;
      if (found) return select(found);
      sought.value = null;
      say("fault", "The solution of this address is not kept any more.");
    };
    ask(id).then(give, () => give(null));
  }, [id, ask !== null]);
}

export const hovered = signal<string | null>(null);

/** By which variable the timeline has parted its lanes, and the colour of each value. */
export const legend = signal<{ by: string | null; colours: ReadonlyMap<string, number> }>({ by: null, colours: new Map() });

export function showLegend(by: string | null, lanes: Lanes): void {
  const colours = new Map(lanes.groups.map((group) => [group.key, group.colour]));
  if (by !== legend.value.by || String([...colours]) !== String([...legend.value.colours])) legend.value = { by, colours };
}

/** The colours of the style sheet that groups take in turn. */
export const COLOURS = 8;
