/** Requests about the background: triples without time that always hold. */

import type { Http } from "../http.js";
import { JSON_RESULTS, type OntologyDocument, TURTLE } from "./documents.js";

export interface LoadOptions {
  mediaType?: string;
  /** The triples are added to the graph, and do not replace it. */
  add?: boolean;
}

export function background(http: Http) {
  return {
    /** Returns the graphs of the background. */
    background: async (): Promise<OntologyDocument[]> => (await http.json("get", "/ontologies")).ontologies,
    /** Replaces a graph of the background, or adds triples to it; the name `default` stands for triples in no graph. */
    loadBackground: (name: string, body: BodyInit, { mediaType = TURTLE, add = false }: LoadOptions = {}): Promise<OntologyDocument> =>
      http.json(add ? "post" : "put", "/ontologies/{name}", { path: { name }, body, headers: { "Content-Type": mediaType } }),
    /** Returns a graph of the background as a text; with `derived`, also what static rules derive in it. */
    readBackground: (name: string, { mediaType = TURTLE, derived = false } = {}): Promise<string> =>
      http.text("get", "/ontologies/{name}", { path: { name }, query: { derived: derived || null }, headers: { Accept: mediaType } }),
    /** Drops a graph of the background; solutions found with it stay. */
    dropBackground: async (name: string): Promise<void> => void (await http.request("delete", "/ontologies/{name}", { path: { name } })),
    /** Returns the answer of a SPARQL query over the background alone, as a text of a media type. */
    queryBackground: (query: string, mediaType: string = JSON_RESULTS): Promise<string> =>
      http.text("post", "/sparql", { body: query, headers: { "Content-Type": "application/sparql-query", Accept: mediaType } }),
  };
}
