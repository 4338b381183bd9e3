/** Requests about trials: what would a query have found in the log's past, and how does that differ from a registered one? */

import type { Http } from "../http.js";
import type { Schemas, TrialDocument } from "./documents.js";

export interface TrialOptions extends Omit<Schemas["TrialRequest"], "query" | "from" | "to"> {
  /** Offsets of the log, or xsd:dateTimes or dates: from the beginning until now. */
  start?: string | number;
  until?: string | number;
}

/** What only the new text found, what only the old one did, and what both did. */
export type TrialSide = "new" | "old" | "both";

export function trials(http: Http) {
  return {
    /** Starts a trial. `trial` tells how it goes on by its `id`. */
    startTrial: (query: string, { start = "beginning", until = "now", ...wish }: TrialOptions = {}): Promise<TrialDocument> =>
      http.json("post", "/trials", { body: { query, from: start, to: until, ...wish } }),
    /** Returns a trial: its state, its progress, its counts and its timeline. */
    trial: (id: string): Promise<TrialDocument> => http.json("get", "/trials/{id}", { path: { id } }),
    /** Returns the trials that the token may read, the newest first. */
    trials: async ({ timeline = true } = {}): Promise<TrialDocument[]> => (await http.json("get", "/trials", { query: { timeline } })).trials,
    /** Returns a page of the solutions that a trial kept of a side, after the first `after` ones. */
    trialSolutions: async (id: string, of: TrialSide = "new", { after = 0, limit = 1000 } = {}): Promise<Schemas["TrialPage"]["solutions"]> =>
      (await http.json("get", "/trials/{id}/solutions", { path: { id }, query: { of, after, limit } })).solutions,
    /** Cancels a trial, if it is at work, and deletes what it found. */
    dropTrial: async (id: string): Promise<void> => void (await http.request("delete", "/trials/{id}", { path: { id } })),
  };
}
