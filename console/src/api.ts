/** The server's HTTP interface, as openapi.yaml describes it; only what the console calls. */

import type { Reasons } from "./reasons";
import type { Solution } from "./solutions";

export interface Problem {
  status: number;
  code: string;
  detail: string;
  line?: number;
  column?: number;
  expected?: string;
}

/** What the server refused, or `code` "unreachable" where it did not answer. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super((problem.line ? `line ${problem.line}, column ${problem.column ?? 1}: ` : "") + problem.detail + (problem.expected ? `; expected ${problem.expected}` : ""));
  }
}

export interface Memory {
  goals: number;
  state_bytes: number;
}

export interface QuerySummary {
  name: string;
  query: string;
  policy: string;
  default_graph: string;
  state: "running" | "paused" | "completed" | "failed";
  reason: string | null;
  registered: number;
  /** The streams for whose first event it waits, by way of rules too. */
  unfed: string[];
  solutions: number;
  last: string | null;
  lag: number;
  memory: Memory | null;
}

export interface StreamDocument {
  name: string;
  description: string;
  max_delay: string;
  idle_timeout: string | null;
  max_ahead: string | null;
  sources: string[];
  latest: string | null;
  watermark: string | null;
  finished: boolean;
  accepted: number;
  late: number;
  /** Rows that did not map. */
  rejected: number;
  /** Events that wait for declared sources, and those sources. */
  waiting: number;
  waits_for: string[];
  base: string;
  mapping: object | null;
  on_error: string;
  /** The predicate of the message key, and those that link the nodes of a message. */
  key: string;
  parts: string[];
}

export interface SeenName {
  /** In N-Triples syntax. */
  name: string;
  count: number;
  example: string;
}

export interface Profile {
  events: number;
  predicates: { names: SeenName[] };
  classes: { names: SeenName[] };
}

export interface Ontology {
  name: string;
  triples: number;
  size: number;
}

export interface Connector {
  name: string;
  direction: "in" | "out";
  options: Record<string, unknown>;
  /** It stands in the file that the server's settings name, so that it cannot be changed here. */
  fixed: boolean;
  state: "starting" | "running" | "waiting" | "failed" | "completed" | "stopped";
  position: string | null;
  lag: number | null;
  messages: number;
  late: number;
  skipped: number;
  missed: number;
  faults: number;
  fault: string | null;
  fault_at: string | null;
  restarts: number;
}

export interface Mark {
  code: string;
  message: string;
  line: number | null;
  column: number | null;
  end_line: number | null;
  end_column: number | null;
  expected: string | null;
}

export interface PlanStep {
  operator: string;
  detail: string;
  on: string[];
  checks: string[];
  within: { duration: string; pushed_down: boolean } | null;
  filters: { condition: string; by: "kernel" | "host"; pushed_down: boolean }[];
  keeps: { side: string; time: string }[];
  inputs: number[];
  /** The rows that came in and went out, of a query that runs; null where they are not known. */
  live?: PlanLive | null;
}

export interface PlanLive {
  sides: { side: string; rows: number; goals: number }[];
  out: number | null;
  refused: number;
  state_bytes: number;
}

export interface PlanDocument {
  query: string;
  plan: PlanStep[];
  partition: { key: string | null; reason: string };
  unbounded: string[];
}

/** A partial match; its terms are in N-Triples. */
export interface PartialMatch {
  reached: number;
  of: number;
  operands: string[];
  waits_for: string[];
  start: string;
  end: string;
  binding: Record<string, string>;
}

export interface Goals {
  goals: number;
  operands: string[];
  partial_matches: PartialMatch[];
}

export interface CheckDocument {
  errors: Mark[];
  warnings: Mark[];
  plan: PlanDocument | null;
}

export interface Term {
  type: "uri" | "literal" | "bnode" | "triple";
  /** The text; that of a triple term is as N-Triples has it, and `parts` has its terms. */
  value: string;
  parts?: [Term, Term, Term];
  datatype?: string;
  "xml:lang"?: string;
  "its:dir"?: string;
}

export interface Wish {
  query: string;
  policy: string;
  default_graph: string;
}

/** A text that a query has had, or that is to take its place. */
export interface Version {
  version: number | null;
  state: "promoted" | "waiting" | "failed" | "withdrawn";
  reason: string | null;
  query: string;
  policy: string;
  position: number | null;
  asked: number;
  reads: number | null;
  at: string | null;
  by: string | null;
}

/** The sides of a trial: what only the new text finds, only the old one, and both. */
export type Side = "new" | "old" | "both";
type SideCounts = Record<Side, number>;

export interface TrialRequest extends Wish {
  compare_with?: string;
  from: string;
  to: string;
}

export interface Trial extends Wish {
  id: string;
  state: "waiting" | "running" | "completed" | "failed";
  reason: string | null;
  created: string;
  compare_with: string | null;
  /** The text of the query that it is compared with, when it was started. */
  old_query: string | null;
  from: string;
  to: string;
  progress: { from: number; position: number; to: number; rows: number } | null;
  counts: SideCounts;
  kept: SideCounts;
  queries: (SideCounts & { query: string })[];
  timeline: { width: string; slots: (SideCounts & { at: string })[] };
  ended: { query: string; side: "new" | "old"; state: string; reason: string }[];
  unbounded: Record<string, string>;
}

/** From where in the log a query reads when it is registered. */
export type From = "now" | "beginning";

const TOKEN = "epsparql.token";

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (text: string) => (text ? sessionStorage.setItem(TOKEN, text) : sessionStorage.removeItem(TOKEN)),
};

/** Paths are relative, so the console also works below a proxy's prefix. Throws: Refused. */
export async function request(method: string, path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  if (token.get()) headers.set("Authorization", `Bearer ${token.get()}`);
  let response: Response;
  try {
    response = await fetch(path, { ...options, method, headers, cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused({ status: 0, code: "unreachable", detail: "the server does not answer" });
  }
  if (!response.ok) throw new Refused(await problemOf(response));
  return response;
}

async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  if (body !== null && typeof body === "object" && "detail" in body) return body as Problem;
  return { status: response.status, code: "http", detail: `the server answered ${response.status} ${response.statusText}` };
}

async function json<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const options: RequestInit = signal ? { signal } : {};
  if (body !== undefined) Object.assign(options, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  return (await request(method, path, options)).json() as Promise<T>;
}

const query = (name: string) => `queries/${encodeURIComponent(name)}`;
const stream = (name: string) => `streams/${encodeURIComponent(name)}`;
const connector = (name: string) => `connectors/${encodeURIComponent(name)}`;
const trial = (id: string) => `trials/${encodeURIComponent(id)}`;
const ontology = (name: string) => `ontologies/${encodeURIComponent(name)}`;

export const api = {
  ready: () => json<{ runner: string; lag: number; version: string }>("GET", "readyz"),
  queries: () => json<{ queries: QuerySummary[] }>("GET", "queries"),
  query: (name: string) => json<QuerySummary & { warnings: Mark[]; version: number; promotion: Version | null; companions: string[] }>("GET", query(name)),
  goals: (name: string) => json<Goals>("GET", `${query(name)}/goals`),
  notifyAt: ({ name, query: text, policy, default_graph }: QuerySummary, k: number) => json<QuerySummary>("PUT", query(name), { query: text, policy, default_graph, notify_at: k }),
  /** `columns`: whether the new text may have others. */
  promote: (name: string, wish: Wish, columns: "keep" | "change") => json<QuerySummary>("PUT", `${query(name)}?replace=promote&columns=${columns}`, wish),
  withdraw: (name: string) => request("DELETE", `${query(name)}/promotion`),
  versions: async (name: string) => (await json<{ versions: Version[] }>("GET", `${query(name)}/versions`)).versions,
  promoteVersion: (name: string, version: number) => json<QuerySummary>("POST", `${query(name)}/versions/${version}/promote`),
  register: (name: string, wish: Wish & { from: From }, replace: boolean) => json<QuerySummary>("PUT", query(name) + (replace ? "?replace=true" : ""), wish),
  drop: (name: string) => request("DELETE", query(name)),
  pause: (name: string) => request("POST", `${query(name)}/pause`),
  resume: (name: string) => request("POST", `${query(name)}/resume`),
  check: (wish: Wish & { name: string }, signal: AbortSignal) => json<CheckDocument>("POST", "check", wish, signal),
  plan: (name: string) => json<PlanDocument>("GET", `${query(name)}/plan`),
  first: async (name: string) => (await request("GET", `${query(name)}/solutions?limit=1`, { headers: { Accept: "application/x-ndjson" } })).text(),
  events: (name: string, after: string | null, signal: AbortSignal) =>
    request("GET", `${query(name)}/events${after ? `?after=${encodeURIComponent(after)}` : ""}`, { signal, headers: { Accept: "text/event-stream" } }),
  solutions: async (name: string, type: string, limit: number) => (await request("GET", `${query(name)}/solutions?limit=${limit}`, { headers: { Accept: type } })).blob(),
  /** The newest that end between these times, and whether there are more. */
  between: async (name: string, from: string, to: string, limit: number) => {
    const parameters = new URLSearchParams({ order: "newest", limit: String(limit), ...(from && { from }), ...(to && { to }) });
    const response = await request("GET", `${query(name)}/solutions?${parameters}`, { headers: { Accept: "application/x-ndjson" } });
    return { text: await response.text(), more: response.headers.has("Link") };
  },
  why: (name: string, id: string) => json<Reasons>("GET", `${query(name)}/solutions/${encodeURIComponent(id)}/why`),
  streams: () => json<{ streams: StreamDocument[] }>("GET", "streams"),
  putStream: (name: string, settings: object) => json<StreamDocument>("PUT", stream(name), settings),
  finish: (name: string) => request("POST", `${stream(name)}/finish`),
  dropStream: (name: string) => request("DELETE", stream(name)),
  late: async (name: string) => (await request("GET", `${stream(name)}/late?limit=200`)).text(),
  profile: (name: string) => json<Profile>("GET", `${stream(name)}/profile`),
  tail: (name: string, last: number, after: string | null, signal: AbortSignal) =>
    request("GET", `${stream(name)}/events?last=${last}${after ? `&after=${encodeURIComponent(after)}` : ""}`, { signal, headers: { Accept: "text/event-stream" } }),
  rejected: async (name: string) => (await request("GET", `${stream(name)}/rejected?limit=200`)).text(),
  proposeMapping: async (name: string, rows: string, mediaType: string) =>
    (await request("POST", `${stream(name)}/mapping`, { body: rows, headers: { "Content-Type": mediaType } })).json() as Promise<{ mapping: object; comments: string[] }>,
  send: async (name: string, body: string | Blob, mediaType: string, key?: string) => {
    const headers = { "Content-Type": mediaType, ...(key ? { "Idempotency-Key": key } : {}) };
    return (await request("POST", `${stream(name)}/events`, { body, headers })).json() as Promise<{ accepted: number; late: number; rejected?: number }>;
  },
  trials: async () => (await json<{ trials: Trial[] }>("GET", "trials?timeline=false")).trials,
  trial: (id: string) => json<Trial>("GET", trial(id)),
  startTrial: (wish: TrialRequest) => json<Trial>("POST", "trials", wish),
  dropTrial: (id: string) => request("DELETE", trial(id)),
  trialSolutions: async (id: string, of: Side, after: number, limit: number) =>
    (await json<{ solutions: Solution[] }>("GET", `${trial(id)}/solutions?of=${of}&after=${after}&limit=${limit}`)).solutions,
  ontologies: () => json<{ ontologies: Ontology[] }>("GET", "ontologies"),
  readOntology: async (name: string) => (await request("GET", ontology(name), { headers: { Accept: "application/n-triples" } })).text(),
  loadOntology: (name: string, body: Blob | string, mediaType: string, add: boolean) =>
    request(add ? "POST" : "PUT", ontology(name), { body, headers: { "Content-Type": mediaType } }),
  dropOntology: (name: string) => request("DELETE", ontology(name)),
  connectors: () => json<{ connectors: Connector[] }>("GET", "connectors"),
  putConnector: (name: string, options: object) => json<Connector>("PUT", connector(name), options),
  dropConnector: (name: string) => request("DELETE", connector(name)),
};
