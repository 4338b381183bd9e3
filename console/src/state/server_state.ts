/** What the server tells of itself, asked for once a second while somebody looks. */

import { computed, signal } from "@preact/signals";
import { ApiError } from "epsparql";
import { client, type Connector, type Ontology, type QuerySummary, type StreamDocument, token, type Trial } from "../api/client";
import { end, forget } from "../api/sign_in";
import { repeat } from "../api/polling";
import { differences, type Pane, tab } from "./tabs";

const EVERY_MS = 1000;
const SAMPLES = 60;
const LISTS = 5;

export const queries = signal<readonly QuerySummary[]>([]);
export const streams = signal<readonly StreamDocument[]>([]);
export const ontologies = signal<readonly Ontology[]>([]);
export const connectors = signal<readonly Connector[]>([]);
/** Without their timelines. */
export const trials = signal<readonly Trial[]>([]);
/** What stands in the way, if anything: shown until it is gone. */
export const trouble = signal<{ code: string; detail: string } | null>(null);
export const asked = signal(false);
/** The lists that the token may not ask for: they are not asked for again. */
const refused = new Set<string>();
/** Whether the token may change queries; else the page shows what it may read. */
export const admin = signal(true);
/** Whether it may feed streams. */
export const feeds = signal(true);
export const runner = signal("");
export const version = signal("");
export const notice = signal<{ kind: "done" | "fault"; text: string } | null>(null);
/**
 * What the middle of the page shows: the open tab, the gallery, a stream, a graph of the background or all of them, a trial or all of them, or one of the other pages.
 * A query is sought when an address names it, and neither the tabs nor the lists have it.
 */
export type View =
  | { kind: "query" | "examples" | "file" | "connectors" | "sparql" | "health" }
  | { kind: "sought"; name: string; pane: Pane }
  | { kind: "stream"; name: string }
  | { kind: "ontologies"; name: string | null }
  | { kind: "trials"; id: string | null };
export const view = signal<View>({ kind: "query" });
export const overlay = signal<"" | "token" | "keys" | "rail">("");

/** The registration behind the open tab. */
export const registered = computed(() => queries.value.find((query) => query.name === tab.value?.name) ?? null);
/** In what it is another query than the one written there. */
export const different = computed(() => (registered.value && tab.value ? differences(tab.value, registered.value) : []));

// ---------------------------------------------------------------- rates
interface Counter {
  at: number;
  count: number;
  rates: readonly number[];
}
export const rates = signal<ReadonlyMap<string, Counter>>(new Map());

function counted(counts: Iterable<[string, number]>, now: number): Map<string, Counter> {
  const found = new Map<string, Counter>();
  for (const [key, count] of counts) {
    const before = rates.value.get(key);
    const perSecond = before ? (Math.max(0, count - before.count) * 1000) / Math.max(1, now - before.at) : 0;
    found.set(key, { at: now, count, rates: [...(before?.rates ?? []), perSecond].slice(-SAMPLES) });
  }
  return found;
}

/** Of the last three seconds, so that bodies which come once a second do not flicker. */
export function rateOf(key: string): number {
  const latest = rates.value.get(key)?.rates.slice(-3) ?? [];
  return latest.reduce((sum, each) => sum + each, 0) / Math.max(1, latest.length);
}

// ---------------------------------------------------------------- asking
let asking: Promise<void> | null = null;

/** Ask now; shared by all who ask meanwhile. */
export function refresh(): Promise<void> {
  asking ??= ask().finally(() => (asking = null));
  return asking;
}

async function ask(): Promise<void> {
  const asker = token.get();
  try {
    const [ready, found, fed, known, connected, tried] = await Promise.all([
      client.http.json("get", "/readyz").catch(notReady),
      allowed("queries", client.queries, []),
      allowed("streams", client.streams, []),
      allowed("ontologies", client.background, []),
      allowed("connectors", () => client.http.json("get", "/connectors"), { connectors: [] }),
      allowed("trials", () => client.trials({ timeline: false }), []),
    ]);
    if (token.get() !== asker) return await ask(); // another was entered while the server answered
    admin.value = !refused.has("ontologies");
    feeds.value = !refused.has("streams");
    queries.value = found;
    streams.value = fed;
    ontologies.value = known;
    connectors.value = connected.connectors;
    trials.value = tried;
    runner.value = ready?.runner ?? "";
    if (ready) version.value = ready.version;
    const now = performance.now();
    rates.value = counted(
      [
        ...found.map((query): [string, number] => [`query ${query.registered}`, query.solutions]),
        ...fed.map((stream): [string, number] => [`stream ${stream.name}`, stream.accepted]),
      ],
      now,
    );
    if (ready) trouble.value = null;
  } catch (error) {
    if (token.get() !== asker) return await ask();
    const problem = error instanceof ApiError ? error.problem : { code: "console", detail: String(error), status: 0 };
    trouble.value = problem;
    if (problem.code === "unreachable") refused.clear(); // it may come back with other scopes
    if (problem.status === 401 && !asked.value) overlay.value = "token";
  }
  asked.value = true;
}

/** What is listed, or `nothing` where the token lacks the scope. Rejects when it lacks the scope for every list. */
async function allowed<T>(list: string, call: () => Promise<T>, nothing: T): Promise<T> {
  const asker = token.get();
  if (refused.has(list) && refused.size < LISTS) return nothing;
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiError) || error.problem.code !== "not-allowed" || token.get() !== asker) throw error;
    refused.add(list);
    if (refused.size === LISTS) throw error;
    return nothing;
  }
}

function notReady(error: unknown): null {
  if (!(error instanceof ApiError) || error.problem.status !== 503) throw error;
  trouble.value = error.problem;
  return null;
}

/** The banner says that a server which does not answer is asked again each second: `ask` tells its troubles, and never rejects. */
export const poll = () => repeat(refresh, EVERY_MS);

/** Take the token with which the issuer led back to this page, if it did. */
export async function endSignIn(): Promise<void> {
  try {
    const found = await end();
    if (found) token.set(found);
  } catch (error) {
    say("fault", error instanceof Error ? error.message : String(error));
  }
}

/** Whether the server answers nothing, because it has no token, or refuses this one. */
export const isTokenRefused = () => trouble.value?.code === "no-token" || trouble.value?.code === "invalid-token";

/** Resolves once the server has answered with this token; then `trouble` tells a refusal. */
export function useToken(text: string): Promise<void> {
  forget();
  token.set(text.trim());
  asked.value = false;
  refused.clear();
  return refresh();
}

// ---------------------------------------------------------------- doing
let fading = 0;
export function say(kind: "done" | "fault", text: string): void {
  notice.value = { kind, text };
  clearTimeout(fading);
  if (kind === "done") fading = window.setTimeout(() => (notice.value = null), 4000);
}

/** Run what a button does; a refusal is told. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
    if (done) say("done", done);
    else if (notice.value?.kind === "fault") notice.value = null; // what was refused before is done now
    await refresh();
    return true;
  } catch (error) {
    say("fault", error instanceof Error ? error.message : String(error));
    return false;
  }
}
