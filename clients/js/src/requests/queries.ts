/** Requests about queries and their solutions. */

import type { Http } from "../http.js";
import { type Change, readChange, type SentSolution, Solution } from "../sockets/messages.js";
import { NDJSON, parseLines, type QueryDocument, type Schemas, type VersionDocument } from "./documents.js";

type Wish = Omit<Schemas["QueryWish"], "query" | "from" | "name">;

export interface RegisterOptions extends Wish {
  /** From where in the log the query reads: now, beginning, or an offset. */
  start?: "now" | "beginning" | number;
}

export interface PromoteOptions extends RegisterOptions {
  /** The text may have other columns. */
  changeColumns?: boolean;
}

export interface PageOptions {
  /** The page begins after this id. */
  after?: string | null;
  limit?: number;
  /** The server waits up to so many milliseconds for a first one. */
  waitMs?: number;
  /** Only solutions of this instance are read, of a query with PARAMETERS. */
  instance?: string;
}

export function queries(http: Http) {
  const put = (name: string, query: string, { start, ...wish }: RegisterOptions, parameters: Record<string, string | undefined>): Promise<QueryDocument> =>
    http.json("put", "/queries/{name}", { path: { name }, query: parameters, body: { query, ...(start !== undefined && { from: start }), ...wish } });
  const page = (name: string, { after = null, limit = 1000, waitMs = 0, instance }: PageOptions) => {
    const options = { query: { after, limit, wait: waitMs / 1000 }, headers: { Accept: NDJSON } };
    if (instance !== undefined) return http.text("get", "/queries/{name}/instances/{instance}/solutions", { ...options, path: { name, instance } });
    return http.text("get", "/queries/{name}/solutions", { ...options, path: { name } });
  };
  return {
    /** Registers a query. With `emit: "revised"` it gives changes. Throws: ApiError with the place of a fault. */
    register: (name: string, query: string, options: RegisterOptions = {}) => put(name, query, options, {}),
    /** Registers a query in place of the one of this name, which is dropped with its solutions. `promote` keeps these. */
    replace: (name: string, query: string, options: RegisterOptions = {}) => put(name, query, options, { replace: "true" }),
    /** Lets a text take a query's place at one position of the log; followers stay connected, and ids go on. */
    promote: (name: string, query: string, { changeColumns, ...options }: PromoteOptions = {}) =>
      put(name, query, options, { replace: "promote", columns: changeColumns ? "change" : undefined }),
    /** Returns the last promotion of a query. Throws: ApiError 404. */
    promotion: (name: string): Promise<VersionDocument> => http.json("get", "/queries/{name}/promotion", { path: { name } }),
    /** Ends a promotion that has not taken over. Throws: ApiError 409 where it has. */
    withdrawPromotion: async (name: string): Promise<void> => void (await http.request("delete", "/queries/{name}/promotion", { path: { name } })),
    /** Returns the texts that a query has had, the present one last. */
    versions: async (name: string) => (await http.json("get", "/queries/{name}/versions", { path: { name } })).versions,
    /** Lets an earlier text of a query take its place again. */
    promoteVersion: (name: string, version: number, { changeColumns = false } = {}): Promise<QueryDocument> =>
      http.json("post", "/queries/{name}/versions/{version}/promote", { path: { name, version }, query: { columns: changeColumns ? "change" : undefined } }),
    /** Returns a query: its text, state and counts. Throws: ApiError 404. */
    query: (name: string) => http.json("get", "/queries/{name}", { path: { name } }),
    /** Returns all queries that the token may read. */
    queries: async () => (await http.json("get", "/queries")).queries,
    /** Pauses a query; `resume` has it read what came meanwhile. */
    pause: (name: string): Promise<QueryDocument> => http.json("post", "/queries/{name}/pause", { path: { name } }),
    resume: (name: string): Promise<QueryDocument> => http.json("post", "/queries/{name}/resume", { path: { name } }),
    /** Drops a query, and its solutions. */
    drop: async (name: string): Promise<void> => void (await http.request("delete", "/queries/{name}", { path: { name } })),
    /** Returns the faults and warnings of a text, and its plan, without registering it. */
    check: (wish: Schemas["CheckWish"], signal?: AbortSignal) => http.json("post", "/check", { body: wish, ...(signal && { signal }) }),
    plan: (name: string): Promise<Schemas["PlanDocument"]> => http.json("get", "/queries/{name}/plan", { path: { name }, headers: { Accept: "application/json" } }),
    /** Returns the partial matches of a query. */
    goals: (name: string) => http.json("get", "/queries/{name}/goals", { path: { name } }),
    /** Returns a page of solutions. */
    solutions: async (name: string, options: PageOptions = {}): Promise<Solution[]> =>
      parseLines<SentSolution>(await page(name, options)).map((each) => new Solution(each)),
    /** Returns a page of a revised query's changes, after a `seq`. */
    changes: async (name: string, options: PageOptions = {}): Promise<Change[]> => parseLines<Parameters<typeof readChange>[0]>(await page(name, options)).map(readChange),
    /** Returns what a solution rests on: occurrences, background, rules and inferences. */
    why: (name: string, solution: string): Promise<Schemas["WhyDocument"]> =>
      http.json("get", "/queries/{name}/solutions/{id}/why", { path: { name, id: solution }, headers: { Accept: "application/json" } }),
    /** Returns why a query finds nothing: its steps with their counts, and the reason. */
    diagnose: (name: string): Promise<Schemas["DiagnosisDocument"]> => http.json("get", "/queries/{name}/diagnosis", { path: { name } }),
  };
}
