/** Up to which time the open query's streams are certain: no solution with an earlier end will come. */

import { computed } from "@preact/signals";
import { streams } from "./server_state";
import { millis } from "./solution_store";
import { tab } from "./tabs";

/** The time of an example for a stream without events: long ago, so that it makes no other event late. */
export const LONG_AGO = "2000-01-01T00:00:00Z";

/** The streams that stand behind a word of EP-SPARQL, or in the clause of an ETALIS program that begins with it. */
const namedAfter = (word: string, text: string): string[] =>
  [...text.matchAll(new RegExp(`\\b${word}(?:\\s+STREAM\\s+<([^>\\s]*)>|_stream\\(\\s*'?([^')\\s]*)'?\\s*\\))`, "gi"))].map((match) => (match[1] ?? match[2])!);

/** The names of the streams that a text reads. */
export function streamsOf(text: string): string[] {
  const named = namedAfter("FROM", text);
  return named.length ? [...new Set(named)] : ["default"];
}

/** The names of the streams that a text writes. */
export const writtenBy = (text: string): string[] => namedAfter("INTO", text);

export const certainUpTo = computed(() => {
  const read = streamsOf(tab.value?.query ?? "");
  const known = streams.value.filter((stream) => read.includes(stream.name) && !stream.finished);
  return known.length ? Math.min(...known.map((stream) => millis(stream.watermark))) : Number.NaN;
});
