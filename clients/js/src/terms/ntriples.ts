/** N-Triples, as the server writes the triples of CONSTRUCT and DESCRIBE queries, into quads of RDF/JS. Source: RDF 1.2 N-Triples. */

import { BlankNode, type Direction, literal, NamedNode, namedNode, Quad } from "./terms.js";
import type { SolutionTerm } from "./solution_terms.js";

const TOKEN = /\s*(?:<(?!<)([^>]*)>|_:([^\s<>"]*[^\s<>".])|"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@([A-Za-z0-9-]+?)(?:--(ltr|rtl))?(?![A-Za-z0-9-]))?|(<<\(|\)>>|\.))/sy;
const SPACE = /\s*/y;
const ESCAPE = /\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/gs;
const MEANT: Readonly<Record<string, string>> = { t: "\t", b: "\b", n: "\n", r: "\r", f: "\f" };

/** Returns the triples of a text. Throws: SyntaxError. */
export function parseNTriples(text: string): Quad[] {
  const reader = new Reader(text);
  const found: Quad[] = [];
  while (!reader.isAtEnd()) {
    found.push(reader.readTriple());
    reader.expect(".");
  }
  return found;
}

class Reader {
  #at = 0;

  constructor(private readonly text: string) {}

  isAtEnd(): boolean {
    SPACE.lastIndex = this.#at;
    SPACE.exec(this.text);
    return SPACE.lastIndex === this.text.length;
  }

  readTriple(): Quad {
    return new Quad(this.#readTerm() as NamedNode, this.#readTerm() as NamedNode, this.#readTerm());
  }

  expect(mark: string): void {
    if (this.#take()[7] !== mark) throw this.#fault(`expected ${mark}`);
  }

  #readTerm(): SolutionTerm {
    const [, iri, label, value, datatype, language, direction, mark] = this.#take();
    if (iri !== undefined) return new NamedNode(unescape(iri));
    if (label !== undefined) return new BlankNode(label);
    if (value !== undefined) {
      if (language) return literal(unescape(value), { language, direction: (direction ?? "") as Direction });
      return literal(unescape(value), datatype === undefined ? "" : namedNode(unescape(datatype)));
    }
    if (mark !== "<<(") throw this.#fault("expected a term");
    const triple = this.readTriple();
    this.expect(")>>");
    return triple;
  }

  #take(): RegExpExecArray {
    TOKEN.lastIndex = this.#at;
    const found = TOKEN.exec(this.text);
    if (!found) throw this.#fault("expected a term or a dot");
    this.#at = TOKEN.lastIndex;
    return found;
  }

  #fault(reason: string): SyntaxError {
    const before = this.text.slice(0, this.#at).split("\n");
    return new SyntaxError(`line ${before.length}, column ${before.at(-1)!.length + 1}: ${reason}`);
  }
}

function unescape(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(ESCAPE, (_, four: string | undefined, eight: string | undefined, letter: string) => {
    const digits = four ?? eight;
    return digits === undefined ? (MEANT[letter] ?? letter) : String.fromCodePoint(Number.parseInt(digits, 16));
  });
}
