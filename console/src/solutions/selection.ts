/** The solution that is looked at, the same in table and timeline. */

import { signal } from "@preact/signals";
import type { Row } from "../state/solution_store";
import type { Lanes } from "./lanes";

export const selected = signal<Row | null>(null);
export const hovered = signal<string | null>(null);

/** By which variable the timeline has parted its lanes, and the colour of each value. */
export const legend = signal<{ by: string | null; colours: ReadonlyMap<string, number> }>({ by: null, colours: new Map() });

export function showLegend(by: string | null, lanes: Lanes): void {
  const colours = new Map(lanes.groups.map((group) => [group.key, group.colour]));
  if (by !== legend.value.by || String([...colours]) !== String([...legend.value.colours])) legend.value = { by, colours };
}

/** The colours of the style sheet that groups take in turn. */
export const COLOURS = 8;
