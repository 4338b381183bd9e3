/** Requests about streams and their events. */

import type { Http } from "../http.js";
import type { SourcePosition } from "../sockets/channel.js";
import type { StreamEvent } from "../sockets/tail.js";
import { type Accepted, NDJSON, parseLines, type Schemas, type StreamDocument } from "./documents.js";

export interface PostOptions {
  mediaType?: string;
  /** The server accepts bodies of one key once, for a day. */
  key?: string;
  source?: SourcePosition;
  /** The time of events that have none. */
  at?: string | Date;
  /** Gives up the request; whether the server accepted its body is then not known. */
  signal?: AbortSignal;
}

/** What a user decides about a proposed mapping. */
export interface ProposalOptions {
  mediaType?: string;
  /** The order of day and month in dates such as 04/01/2026; needed where 422 `ambiguous-date` says that no row tells it. */
  order?: "day-first" | "month-first" | undefined;
  /** The zone of times that name none, such as Europe/Vienna. */
  timeZone?: string | undefined;
  /** Other values for settings that the proposal lists as `choices`, such as `{ subject: "sensor" }`. */
  choices?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

export function streams(http: Http) {
  return {
    /** Sets a stream's settings, such as `{ max_delay: "PT1S" }`; returns the stream. */
    createStream: (name: string, settings: Schemas["StreamSettings"] = {}): Promise<StreamDocument> => http.json("put", "/streams/{name}", { path: { name }, body: settings }),
    /** Returns a stream: its settings, watermark and counts. Throws: ApiError 404. */
    stream: (name: string): Promise<StreamDocument> => http.json("get", "/streams/{name}", { path: { name } }),
    streams: async (): Promise<StreamDocument[]> => (await http.json("get", "/streams")).streams,
    dropStream: async (name: string): Promise<void> => void (await http.request("delete", "/streams/{name}", { path: { name } })),
    /** Ends a stream: no further event is taken, and what waits for time is decided. */
    finish: (name: string): Promise<StreamDocument> => http.json("post", "/streams/{name}/finish", { path: { name } }),
    /** Returns the position of each source of a stream, from which to read on; null for a declared one without a position. */
    sources: async (name: string): Promise<Record<string, string | null>> => {
      const { sources } = await http.json("get", "/streams/{name}/sources", { path: { name } });
      return Object.fromEntries(sources.map(({ id, position }) => [id, position]));
    },
    /** Returns the last events of a stream, the newest first. */
    events: async (name: string, last = 20): Promise<StreamEvent[]> =>
      parseLines(await http.text("get", "/streams/{name}/events", { path: { name }, query: { last }, headers: { Accept: NDJSON } })),
    /** Returns the predicates, classes and datatypes that the last events of a stream carry. */
    profile: (name: string) => http.json("get", "/streams/{name}/profile", { path: { name } }),
    /** Returns the events that came too late for solutions, and the rows that did not map, as lines of ndjson. */
    late: (name: string, limit = 1000): Promise<string> => http.text("get", "/streams/{name}/late", { path: { name }, query: { limit } }),
    rejected: (name: string, limit = 1000): Promise<string> => http.text("get", "/streams/{name}/rejected", { path: { name }, query: { limit } }),
    /** Returns a mapping that fits some rows, to be looked over and set with `createStream`. */
    proposeMapping: (name: string, rows: BodyInit, { mediaType = "text/csv", order, timeZone, choices, signal }: ProposalOptions = {}) => {
      const query = { order, time_zone: timeZone, choices: choices && JSON.stringify(choices) };
      return http.json("post", "/streams/{name}/mapping", { path: { name }, body: rows, headers: { "Content-Type": mediaType }, query, ...(signal && { signal }) });
    },
    /** Sends one body of events by POST; resolves when it is durable. `feed` sends many. */
    send: (name: string, body: BodyInit, { mediaType = NDJSON, key, source, at, signal }: PostOptions = {}): Promise<Accepted> => {
      const headers = { "Content-Type": mediaType, "Idempotency-Key": key, "Epsparql-Source": source && JSON.stringify(source) };
      const query = { at: at instanceof Date ? at.toISOString() : at };
      return http.json("post", "/streams/{name}/events", { path: { name }, body, headers, query, ...(signal && { signal }) });
    },
  };
}
