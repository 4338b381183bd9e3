/** Terms, their values, and what is sent and read as text. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type * as RDF from "@rdfjs/types";
import { blankNode, Client, dataFactory, defaultGraph, literal, NamedNode, namedNode, parseNTriples, quad, variable, writeTerm } from "../dist/index.js";

const XSD = "http://www.w3.org/2001/XMLSchema#";
const typed = (text: string, kind: string) => literal(text, namedNode(XSD + kind));

const VALUES: [string, string, unknown][] = [
  ["42", "integer", 42],
  ["+042", "integer", 42],
  ["9007199254740993", "long", 9007199254740993n],
  ["four", "integer", "four"],
  ["21.50", "decimal", 21.5],
  ["0.1", "decimal", 0.1],
  ["-0.25", "decimal", -0.25],
  ["1.00000000000000000001", "decimal", "1.00000000000000000001"],
  [".", "decimal", "."],
  ["1e3", "double", 1000],
  ["INF", "double", Infinity],
  ["-INF", "float", -Infinity],
  ["1,5", "double", "1,5"],
  ["true", "boolean", true],
  ["0", "boolean", false],
  ["yes", "boolean", "yes"],
  ["2026-01-01T10:00:00.250Z", "dateTime", new Date(Date.UTC(2026, 0, 1, 10, 0, 0, 250))],
  ["2026-01-01T10:00:00.2500+01:00", "dateTime", new Date(Date.UTC(2026, 0, 1, 9, 0, 0, 250))],
  ["2026-01-01T10:00:00.000001Z", "dateTime", "2026-01-01T10:00:00.000001Z"],
  ["2026-01-01T10:00:00", "dateTime", "2026-01-01T10:00:00"],
  ["2026-01-01", "date", "2026-01-01"],
  ["PT40M", "duration", 2_400_000],
  ["-P1DT0.5S", "dayTimeDuration", -86_400_500],
  ["PT0.0001S", "duration", "PT0.0001S"],
  ["P1M", "duration", "P1M"],
  ["P", "duration", "P"],
  ["text", "string", "text"],
];

for (const [text, kind, value] of VALUES) test(`the value of "${text}"^^xsd:${kind}`, () => assert.deepEqual(typed(text, kind).toValue(), value));

test("NaN is a number", () => assert.ok(Number.isNaN(typed("NaN", "double").toValue())));

const WRITTEN: [RDF.Term, string][] = [
  [namedNode("http://example.org/é"), "<http://example.org/é>"],
  [blankNode("b1"), "_:b1"],
  [literal('a "quoted"\n\\text\t'), '"a \\"quoted\\"\\n\\\\text\\t"'],
  [literal("Haus", "de"), '"Haus"@de'],
  [literal("בית", { language: "he", direction: "rtl" }), '"בית"@he--rtl'],
  [literal(7), `"7"^^<${XSD}integer>`],
  [literal(1e21), `"1000000000000000000000"^^<${XSD}integer>`],
  [literal(7.5), `"7.5"^^<${XSD}double>`],
  [literal(-Infinity), `"-INF"^^<${XSD}double>`],
  [literal(12n), `"12"^^<${XSD}integer>`],
  [literal(true), `"true"^^<${XSD}boolean>`],
  [literal(new Date(0)), `"1970-01-01T00:00:00.000Z"^^<${XSD}dateTime>`],
  [quad(namedNode("a:s"), namedNode("a:p"), literal("o")), '<<( <a:s> <a:p> "o" )>>'],
];

for (const [term, text] of WRITTEN) {
  test(`${text} is written and read`, () => {
    assert.equal(writeTerm(term), text);
    const [triple] = parseNTriples(`<a:s> <a:p> ${text} .`);
    assert.ok(triple!.object.equals(term as never));
  });
}

test("terms are those of RDF/JS", () => {
  const factory: Pick<RDF.DataFactory, "namedNode" | "blankNode" | "literal" | "variable" | "defaultGraph"> = dataFactory;
  const triple: RDF.Quad = quad(namedNode("a:s"), namedNode("a:p"), factory.literal("o") as ReturnType<typeof literal>);
  assert.equal(triple.graph.termType, "DefaultGraph");
  assert.ok(triple.equals(quad(namedNode("a:s"), namedNode("a:p"), literal("o"), defaultGraph())));
  assert.ok(!triple.equals(quad(namedNode("a:s"), namedNode("a:p"), literal("o"), namedNode("a:g"))));
  assert.ok(!literal("o").equals(literal("o", "en")));
  assert.ok(!literal("o").equals(null));
  assert.ok(!namedNode("o").equals(variable("o")));
  assert.notEqual(blankNode().value, blankNode().value);
});

test("triples are read with escapes, blank nodes and triple terms", () => {
  const found = parseNTriples('_:a.b <a:p\\u00e9> "x\\"y\\U0001F600\\n"^^<a:t>.\n_:c <a:q> <<( <a:s> <a:p> "l"@en )>> .\n');
  assert.equal(found.length, 2);
  assert.ok(found[0]!.equals(quad(blankNode("a.b"), namedNode("a:pé"), literal('x"y😀\n', new NamedNode("a:t")))));
  assert.ok(found[1]!.object.equals(quad(namedNode("a:s"), namedNode("a:p"), literal("l", "en"))));
});

test("a malformed text is refused with its place", () => {
  assert.throws(() => parseNTriples('<a:s> <a:p> "o" .\n<a:s> <a:p> oops .'), /line 2, column 12: expected a term/);
  assert.throws(() => parseNTriples("<a:s> <a:p> . ."), /expected a term/);
});

test("a variable cannot be sent", () => assert.throws(() => writeTerm(variable("x")), /a Variable cannot stand in a triple/));

test("an event with another member is refused before it is sent", async () => {
  const feed = new Client("http://127.0.0.1:1").feed("s");
  await assert.rejects(feed.send({ s: "<a:s>", p: "<a:p>", o: 1, time: new Date() } as never), /an event has no member time; expected s, p, o/);
});
