/** Terms as the server writes them in solutions (SPARQL 1.1 Query Results JSON, with triple terms), into terms of RDF/JS. */

import { BlankNode, type Direction, Literal, literal, NamedNode, namedNode, Quad } from "./terms.js";

export interface SentTerm {
  type: "uri" | "literal" | "bnode" | "triple";
  value: string | { subject: SentTerm; predicate: SentTerm; object: SentTerm };
  datatype?: string;
  "xml:lang"?: string;
  "its:dir"?: Direction;
}

export type SolutionTerm = NamedNode | BlankNode | Literal | Quad;

/** Returns the term of RDF/JS. */
export function readTerm(sent: SentTerm): SolutionTerm {
  if (typeof sent.value !== "string") {
    const { subject, predicate, object } = sent.value;
    return new Quad(readTerm(subject) as NamedNode, readTerm(predicate) as NamedNode, readTerm(object));
  }
  if (sent.type === "uri") return new NamedNode(sent.value);
  if (sent.type === "bnode") return new BlankNode(sent.value);
  const language = sent["xml:lang"];
  if (language) return literal(sent.value, { language, direction: sent["its:dir"] ?? "" });
  return sent.datatype ? literal(sent.value, namedNode(sent.datatype)) : literal(sent.value);
}
