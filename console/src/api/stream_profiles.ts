/** What streams carry, asked for when somebody writes a query on them. */

import { client, type Profile } from "./client";

const FRESH_MS = 30_000;

const known = new Map<string, { at: number; profile: Promise<Profile | null> }>();

/** The profile of a stream; null where there is none to see, as for a token that may not look. */
export function profileOf(stream: string): Promise<Profile | null> {
  const found = known.get(stream);
  if (found && Date.now() - found.at < FRESH_MS) return found.profile;
  const profile = client.profile(stream).catch(() => null);
  known.set(stream, { at: Date.now(), profile });
  return profile;
}
