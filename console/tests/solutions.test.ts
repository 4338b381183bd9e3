/** The order of solutions, their lanes, and what the texts of queries say of their streams. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { barsOf, instantsOf, seriesOf, thinned } from "../src/chart/series.ts";
import { dialectOf, holdsEvents, kindOf, nameAfter } from "../src/files/file_kinds.ts";
import { arranged as arrangedPlan } from "../src/query/plan_layout.ts";
import { fitted } from "../src/solutions/lanes.ts";
import { arranged, showAll, turn, wanted } from "../src/solutions/sort_order.ts";
import { millis, rowOf } from "../src/state/solution_store.ts";
import { differences, unused } from "../src/state/tabs.ts";
import { streamsOf, writtenBy } from "../src/state/watermark.ts";

const integer = (value: number | string) => ({ type: "literal" as const, value: String(value), datatype: "http://www.w3.org/2001/XMLSchema#integer" });
const row = (id: string, second: number, binding: Record<string, unknown>, length = 0) =>
  rowOf(id, { start: new Date(second * 1000).toISOString(), end: new Date((second + length) * 1000).toISOString(), binding } as Parameters<typeof rowOf>[1]);
const ROWS = [row("1", 0, { v: integer(10), s: { type: "literal", value: "b" } }), row("2", 1, { v: integer(9) }), row("3", 2, { s: { type: "literal", value: "a" } }, 5)];

test("an event of a program has a column for each argument", () => {
  const at = "2026-01-01T00:00:00Z";
  const { binding } = rowOf("1", { start: at, end: at, event: "rise", args: ["acme", 10, { functor: "at", args: [[1, { string: "x" }], { datime: at }] }] });
  assert.deepEqual(Object.entries(binding).map(([name, term]) => [name, term.value]), [["event", "rise"], ["arg1", "acme"], ["arg2", "10"], ["arg3", `at([1, x], ${at})`]]);
});

test("rows are in the order of a column, and unbound ones come last", () => {
  const ids = () => arranged(ROWS).map(({ id }) => id);
  showAll();
  assert.deepEqual(ids(), ["1", "2", "3"]);
  turn("?v");
  assert.deepEqual(ids(), ["3", "1", "2"]); // the table shows the last of them first
  turn("?v");
  assert.deepEqual(ids(), ["3", "2", "1"]);
  turn("?v");
  assert.deepEqual(ids(), ["1", "2", "3"]);
  wanted.value = "B 10";
  assert.deepEqual(ids(), ["1"]);
  showAll();
});

test("intervals that touch are in lanes of their own", () => {
  const rows = [row("1", 0, {}, 2), row("2", 1, {}, 2), row("3", 4, {}, 1)];
  assert.deepEqual(fitted(rows, null, 0, 400).placed.map(({ lane }) => lane), [0, 1, 0]);
  const grouped = fitted([row("1", 0, { v: integer(10) }), row("2", 0, { v: integer(9) })], "v", 0, 400);
  assert.deepEqual(grouped.groups.map(({ key }) => key), ["9", "10"]);
});

const ALONE = new Map([["", { key: "", term: undefined, colour: "red" }]]) as unknown as Parameters<typeof seriesOf>[3];

test("a line of many points keeps its ends and extremes in each column of pixels", () => {
  const rows = Array.from({ length: 100 }, (_, k) => row(String(k), k, { v: integer(k === 50 ? 1000 : k) }));
  const [line] = seriesOf(rows, "v", null, ALONE);
  assert.equal(line!.points.length, 100);
  assert.deepEqual(thinned(instantsOf(line!.points), () => 0).map(({ value }) => value), [0, 0, 1000, 99]);
});

test("solutions that end together are one point of their line, with a bar over their values", () => {
  const rows = [[2, 9], [1, 2], [1, 6], [1, 4]].map(([second, value], k) => row(String(k), second!, { v: integer(value!) }));
  const instants = instantsOf(seriesOf(rows, "v", null, ALONE)[0]!.points);
  assert.deepEqual(instants.map(({ at, value }) => [at, value]), [[1000, 4], [2000, 9]]);
  assert.deepEqual(barsOf(instants, (at) => at), [{ at: 1000, least: 2, greatest: 6 }]);
});

test("times have microseconds", () => {
  assert.equal(millis("2026-01-01T00:00:00.000001Z") - millis("2026-01-01T00:00:00Z") > 0, true);
  assert.ok(Number.isNaN(millis(null)));
});

test("streams are found in the texts of queries and programs", () => {
  assert.deepEqual(streamsOf("SELECT * FROM STREAM <a> FROM STREAM <b> { }"), ["a", "b"]);
  assert.deepEqual(streamsOf("SELECT * { }"), ["default"]);
  assert.deepEqual(streamsOf("from_stream('x')."), ["x"]);
  assert.deepEqual(writtenBy("CONSTRUCT INTO STREAM <c> { } WHERE { }"), ["c"]);
});

test("tabs have unused names, and tell how their text differs from the registered one", () => {
  assert.equal(unused("query", []), "query");
  assert.notEqual(unused("query", ["query"]), "query");
  const wish = { query: "SELECT * { }", policy: "recent", default_graph: "all" };
  assert.deepEqual(differences(wish, { ...wish } as Parameters<typeof differences>[1]), []);
  assert.equal(differences(wish, { ...wish, policy: "unrestricted" } as Parameters<typeof differences>[1]).length, 1);
});

test("a plan's steps stand before what they feed", () => {
  const step = (inputs: number[]) => ({ detail: "", on: [], checks: [], within: null, filters: [], keeps: [], live: null, inputs });
  const plan = { plan: [step([1, 2]), step([]), step([])] } as unknown as Parameters<typeof arrangedPlan>[0];
  const { nodes, edges } = arrangedPlan(plan, new Map());
  assert.ok(nodes[1]!.x < nodes[0]!.x && nodes[1]!.y + nodes[1]!.h <= nodes[2]!.y);
  assert.deepEqual(edges.map(({ from, to, back }) => [from, to, back]), [[1, 0, false], [2, 0, false]]);
});

test("the kinds of files", async () => {
  assert.deepEqual(kindOf("A.TSV"), { kind: "csv", mediaType: "text/csv" });
  assert.throws(() => kindOf("a.xlsx"), /a name|ends in \.csv/);
  assert.equal(nameAfter("my file (1).csv"), "my-file-1-");
  assert.deepEqual(dialectOf({ delimiter: ";", skip: 2 }), { delimiters: ";", skip: 2, headerRows: 1 });
  for (const [text, are] of [['\n{"triples": "", "at": ""}\n', true], ['{"s":1,"p":2,"o":3}', true], ['{"s":1}', false], ["[", false], ["", false]] as const)
    assert.equal(await holdsEvents(new Blob([text])), are, text);
});
