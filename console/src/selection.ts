/** The solution that is looked at, the same in table and timeline. */

import { signal } from "@preact/signals";
import type { Lanes } from "./lanes";
import type { Row } from "./solutions";

export const selected = signal<Row | null>(null);
export const hovered = signal<string | null>(null);

/** By which variable the timeline has parted its lanes, and the value of each colour. */
export const legend = signal<{ by: string | null; keys: readonly string[] }>({ by: null, keys: [] });

export function showLegend(by: string | null, lanes: Lanes): void {
  const keys = lanes.groups.map((group) => group.key);
  if (by !== legend.value.by || keys.join("\n") !== legend.value.keys.join("\n")) legend.value = { by, keys };
}

/** The colours of the style sheet that groups take in turn. */
export const COLOURS = 8;
