/** Terms of RDF as RDF/JS has them (https://rdf.js.org/data-model-spec/), with `toValue` for JavaScript's own values. */

import { RDF, readValue, type Value, XSD } from "./values.js";

export type Term = NamedNode | BlankNode | Literal | Variable | DefaultGraph | Quad;
/** A term of any library that follows RDF/JS. */
export interface AnyTerm {
  termType: string;
  value: string;
}

const isSame = (one: AnyTerm, other: AnyTerm | null | undefined) => other?.termType === one.termType && other.value === one.value;

export class NamedNode<Iri extends string = string> {
  readonly termType = "NamedNode";
  constructor(readonly value: Iri) {}
  equals(other: AnyTerm | null | undefined): boolean {
    return isSame(this, other);
  }
  toValue(): string {
    return this.value;
  }
  toString(): string {
    return writeTerm(this);
  }
}

export class BlankNode {
  readonly termType = "BlankNode";
  constructor(readonly value: string) {}
  equals(other: AnyTerm | null | undefined): boolean {
    return isSame(this, other);
  }
  toValue(): string {
    return `_:${this.value}`;
  }
  toString(): string {
    return writeTerm(this);
  }
}

export type Direction = "ltr" | "rtl" | "";

export class Literal {
  readonly termType = "Literal";
  constructor(
    readonly value: string,
    readonly datatype: NamedNode,
    readonly language: string = "",
    readonly direction: Direction = "",
  ) {}
  equals(other: AnyTerm | null | undefined): boolean {
    if (!isSame(this, other)) return false;
    const { datatype, language, direction } = other as Literal;
    return datatype.value === this.datatype.value && language === this.language && (direction || "") === this.direction;
  }
  /** Returns a number, boolean, bigint or Date where that is exactly the literal's value; else the text. A duration is a number of milliseconds. */
  toValue(): Value {
    return readValue(this.value, this.datatype.value);
  }
  toString(): string {
    return writeTerm(this);
  }
}

export class Variable {
  readonly termType = "Variable";
  constructor(readonly value: string) {}
  equals(other: AnyTerm | null | undefined): boolean {
    return isSame(this, other);
  }
}

export class DefaultGraph {
  readonly termType = "DefaultGraph";
  readonly value = "";
  equals(other: AnyTerm | null | undefined): boolean {
    return isSame(this, other);
  }
}

/** A triple in a graph, or a triple term. */
export class Quad {
  readonly termType = "Quad";
  readonly value = "";
  constructor(
    readonly subject: NamedNode | BlankNode | Quad | Variable,
    readonly predicate: NamedNode | Variable,
    readonly object: NamedNode | BlankNode | Literal | Quad | Variable,
    readonly graph: NamedNode | BlankNode | DefaultGraph | Variable = DEFAULT_GRAPH,
  ) {}
  equals(other: AnyTerm | null | undefined): boolean {
    if (other?.termType !== "Quad") return false;
    const { subject, predicate, object, graph } = other as Quad;
    return this.subject.equals(subject) && this.predicate.equals(predicate) && this.object.equals(object) && this.graph.equals(graph);
  }
  toValue(): string {
    return writeTerm(this);
  }
  toString(): string {
    return writeTerm(this);
  }
}

const DEFAULT_GRAPH = new DefaultGraph();
const STRING = new NamedNode(`${XSD}string`);
const LANG_STRING = new NamedNode(`${RDF}langString`);
const DIR_LANG_STRING = new NamedNode(`${RDF}dirLangString`);
const [BOOLEAN, INTEGER, DOUBLE, DATE_TIME] = [new NamedNode(`${XSD}boolean`), new NamedNode(`${XSD}integer`), new NamedNode(`${XSD}double`), new NamedNode(`${XSD}dateTime`)];

export const namedNode = <Iri extends string>(iri: Iri) => new NamedNode(iri);
let blankNodes = 0;
export const blankNode = (label = `js${++blankNodes}`) => new BlankNode(label);
export const variable = (name: string) => new Variable(name);
export const defaultGraph = () => DEFAULT_GRAPH;
export const quad = (...parts: ConstructorParameters<typeof Quad>) => new Quad(...parts);

/** Returns a literal: a text with a language or a datatype, or a value of JavaScript with the datatype that fits it. */
export function literal(value: string | number | bigint | boolean | Date, kind: string | NamedNode | { language: string; direction?: Direction | null } = ""): Literal {
  if (typeof value !== "string") return new Literal(textOf(value), datatypeOf(value));
  if (kind instanceof NamedNode) return new Literal(value, kind);
  const { language, direction } = typeof kind === "string" ? { language: kind, direction: "" as const } : kind;
  if (direction) return new Literal(value, DIR_LANG_STRING, language, direction);
  return language ? new Literal(value, LANG_STRING, language) : new Literal(value, STRING);
}

/** The factory of RDF/JS, for libraries that take one. */
export const dataFactory = { namedNode, blankNode, literal, variable, defaultGraph, quad };

function datatypeOf(value: number | bigint | boolean | Date): NamedNode {
  if (typeof value === "boolean") return BOOLEAN;
  if (typeof value === "bigint" || Number.isInteger(value)) return INTEGER;
  return typeof value === "number" ? DOUBLE : DATE_TIME;
}

function textOf(value: number | bigint | boolean | Date): string {
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return BigInt(value).toString(); // else it would have an exponent from 1e21 on
  return String(value).replace(/^(-?)Infinity$/, "$1INF");
}

const ESCAPED: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Returns a term, of any library that follows RDF/JS, in N-Triples. */
export function writeTerm(term: AnyTerm): string {
  switch (term.termType) {
    case "NamedNode":
      return `<${term.value}>`;
    case "BlankNode":
      return `_:${term.value}`;
    case "Quad": {
      const { subject, predicate, object } = term as Quad;
      return `<<( ${writeTerm(subject)} ${writeTerm(predicate)} ${writeTerm(object)} )>>`;
    }
    case "Literal":
      return writeLiteral(term as Literal);
  }
  throw new TypeError(`a ${term.termType} cannot stand in a triple`);
}

function writeLiteral({ value, language, direction, datatype }: Literal): string {
  const text = `"${value.replace(/[\\"\n\r\t]/g, (found) => ESCAPED[found]!)}"`;
  if (language) return `${text}@${language}${direction ? `--${direction}` : ""}`;
  return datatype.value === STRING.value ? text : `${text}^^<${datatype.value}>`;
}
