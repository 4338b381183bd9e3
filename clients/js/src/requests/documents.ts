/** Names for the documents of openapi.yaml. */

import type { components } from "../openapi.js";

export type Schemas = components["schemas"];
export type QueryDocument = Schemas["QueryDocument"];
export type QuerySummary = Schemas["QuerySummary"];
export type VersionDocument = Schemas["VersionDocument"];
export type StreamDocument = Schemas["StreamDocument"];
export type OntologyDocument = Schemas["OntologyDocument"];
export type TrialDocument = Schemas["TrialDocument"];
export type Accepted = Schemas["Accepted"];

export const NDJSON = "application/x-ndjson";
export const JSON_RESULTS = "application/sparql-results+json";
export const TURTLE = "text/turtle";

/** Returns the lines of ndjson as objects. */
export function parseLines<Line>(text: string): Line[] {
  return text.split("\n").flatMap((line) => (line.trim() ? [JSON.parse(line) as Line] : []));
}
