/** What a stream is set to, as a request sets it. */

import type { StreamDocument } from "./client";

/** What a stream is set to; a PUT replaces all of it. */
export const settingsOf = (stream: StreamDocument) => ({
  max_delay: stream.max_delay,
  idle_timeout: stream.idle_timeout,
  max_ahead: stream.max_ahead,
  description: stream.description,
  sources: stream.sources,
  base: stream.base,
  mapping: stream.mapping,
  on_error: stream.on_error,
  key: stream.key,
  parts: stream.parts,
  revisable: stream.revisable,
  round: stream.round,
  prefixes: stream.prefixes,
  instants: stream.instants,
  local: stream.local,
});

/** The object that a person wrote as JSON; a fault names it by `subject`. */
export function parseObject(text: string, subject: string): Record<string, unknown> {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error(`${subject} is no JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error(`${subject} is no object of JSON`);
  return found as Record<string, unknown>;
}
