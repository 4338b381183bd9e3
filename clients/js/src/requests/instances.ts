/** Requests about the instances of a query with PARAMETERS. */

import type { Http } from "../http.js";
import { type EventTerm, writePart } from "../terms/event_lines.js";
import { NDJSON, type Schemas } from "./documents.js";

export type InstanceDocument = Schemas["InstanceDocument"];
/** A value for each parameter, by its name. */
export type InstanceValues = Readonly<Record<string, EventTerm>>;

export interface InstancePageOptions {
  /** The page begins after this id. */
  after?: string;
  /** Only instances whose ids begin so are listed. */
  prefix?: string;
  limit?: number;
}

export function instances(http: Http) {
  return {
    /** Adds an instance, or changes its values. Throws: ApiError with the fault. */
    setInstance: (query: string, instance: string, values: InstanceValues): Promise<InstanceDocument> =>
      http.json("put", "/queries/{name}/instances/{instance}", { path: { name: query, instance }, body: writeValues(values) }),
    /** Adds, changes or removes (null) many instances by id, all of them or none. */
    setInstances: (query: string, found: Readonly<Record<string, InstanceValues | null>>): Promise<Schemas["InstancesChanged"]> => {
      const lines = Object.entries(found).map(([id, values]) => `${JSON.stringify({ id, values: values && writeValues(values) })}\n`);
      return http.json("post", "/queries/{name}/instances", { path: { name: query }, body: lines.join(""), headers: { "Content-Type": NDJSON } });
    },
    /** Returns a page of instances, in order of their ids. */
    instances: async (query: string, options: InstancePageOptions = {}): Promise<InstanceDocument[]> =>
      (await http.json("get", "/queries/{name}/instances", { path: { name: query }, query: { ...options } })).instances,
    /** Removes an instance, which has no solutions from then on. Throws: ApiError 404. */
    removeInstance: async (query: string, instance: string): Promise<void> =>
      void (await http.request("delete", "/queries/{name}/instances/{instance}", { path: { name: query, instance } })),
  };
}

const writeValues = (values: InstanceValues) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, writePart(value)]));
