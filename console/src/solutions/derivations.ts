/** Why a solution is one, as the server tells it: asked for once each. */

import { ApiError } from "epsparql";
import { client, type Schemas } from "../api/client";
import { shortIri } from "../display/format";

const KEPT = 200;

export type Step = Schemas["StepDocument"];
export type Derived = Schemas["SolutionDocument"];
export type Reasons = Schemas["WhyDocument"];

const known = new Map<string, Promise<Reasons>>();
let served = true;

/** Rejects with Refused. */
export function reasons(name: string, id: string): Promise<Reasons> {
  const key = `${name}\n${id}`;
  let found = known.get(key);
  if (!found) {
    found = client.why(name, id);
    known.set(key, found);
    found.catch((error: unknown) => {
      known.delete(key);
      if (notServed(error)) served = false;
    });
    if (known.size > KEPT) known.delete(known.keys().next().value!);
  }
  return found;
}

/** Of a server that has no such route at all. */
export const notServed = (error: unknown) => error instanceof ApiError && error.problem.code === "not-found";

/** Whether asking may help: a pointer that only passes by asks no second time where there is nothing. */
export const asksInPassing = () => served;

/** A statement in N-Triples, for the eye. */
export const readable = (triple: string, prefixes: ReadonlyMap<string, string>): string =>
  triple
    .replace(/\s*\.$/, "")
    .replace(/"((?:[^"\\]|\\.)*)"(\^\^<[^>]*>)?/g, (_, text: string, type?: string) => (type && /^[-+.\deE]+$/.test(text) ? text : `"${text}"`))
    .replace(/<([^>]*)>/g, (_, iri: string) => shortIri(iri, prefixes));

/** Each statement of several. */
export const readables = (triples: string, prefixes: ReadonlyMap<string, string>): string[] =>
  triples
    .trim()
    .split("\n")
    .map((each) => readable(each, prefixes));
