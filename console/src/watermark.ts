/** Up to which time the open query's streams are certain: no solution with an earlier end will come. */

import { computed } from "@preact/signals";
import { millis } from "./solutions";
import { streams } from "./state";
import { tab } from "./tabs";

/** The names of the streams that a text reads. */
export function streamsOf(text: string): string[] {
  const named = [...text.matchAll(/\bFROM\s+STREAM\s+<([^>\s]*)>/gi)].map((match) => match[1]!);
  return named.length ? [...new Set(named)] : ["default"];
}

/** The names of the streams that a text writes. */
export const writtenBy = (text: string): string[] => [...text.matchAll(/\bINTO\s+STREAM\s+<([^>\s]*)>/gi)].map((match) => match[1]!);

export const certainUpTo = computed(() => {
  const read = streamsOf(tab.value?.query ?? "");
  const known = streams.value.filter((stream) => read.includes(stream.name) && !stream.finished);
  return known.length ? Math.min(...known.map((stream) => millis(stream.watermark))) : Number.NaN;
});
