/** How terms, times and amounts are written, and where the marks of axes and maps stand. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, clock, duration, durationFromWords, durationInWords, fullTerm, interval, prefixesOf, rate, rounded, shortIri, shortTerm } from "../src/display/format.ts";
import { classes, statements } from "../src/api/ntriples.ts";
import { figure, marks } from "../src/chart/series.ts";
import { degreesOf, fitted, framed, graticule, projection, scaleBar } from "../src/map/projection.ts";
import { pointOf } from "../src/map/places.ts";
import { ticks } from "../src/timeline/axis.ts";

const XSD = "http://www.w3.org/2001/XMLSchema#";
const DAY = 86_400_000;

test("terms are shortened by the query's prefixes, then by well-known ones, then to their last part", () => {
  const prefixes = prefixesOf("PREFIX : <http://a.example/> prefix e:<http://b.example/#>");
  for (const [iri, short] of [
    ["http://a.example/x", ":x"],
    ["http://b.example/#y", "e:y"],
    [`${XSD}decimal`, "xsd:decimal"],
    ["http://c.example/z", "z"],
    ["http://c.example/", "http://c.example/"],
  ] as const) assert.equal(shortIri(iri, prefixes), short);
  assert.equal(shortTerm({ type: "literal", value: "ja", "xml:lang": "de", "its:dir": "ltr" }, prefixes), "ja@de--ltr");
  assert.equal(fullTerm({ type: "literal", value: "1", datatype: `${XSD}integer` }), '"1"^^xsd:integer');
  assert.equal(fullTerm({ type: "bnode", value: "b" }), "_:b");
});

test("times are as fine as they have to be", () => {
  const noon = Date.UTC(2026, 2, 1, 12);
  assert.equal(clock(noon), "12:00:00");
  assert.equal(clock(noon + 0.25), "12:00:00.000250");
  assert.equal(interval(noon, noon + 1000), "2026-03-01 12:00:00 → 12:00:01");
  assert.equal(interval(noon, noon + DAY), "2026-03-01 12:00:00 → 2026-03-02 12:00:00");
  assert.equal(interval(Number.NaN, Number.NaN), "always");
  assert.deepEqual([0, 0.5, 90_000, 7_200_000, DAY * 1.5].map(duration), ["instant", "500 µs", "1 min 30 s", "2 h", "1 d 12 h"]);
});

test("numbers with a fraction are rounded to six digits, and others are not", () => {
  for (const [exact, shown] of [
    ["0.123456789012345", "0.123457"],
    ["-41.0850000001", "-41.085"],
    ["21.50", "21.50"],
    ["1234567.891", "1234568"],
    ["12345678901234567890", "12345678901234567890"],
    ["0.0000000123456789", "1.23457e-8"],
    ["1.23456789E3", "1.23457e3"],
    ["1.0E-7", "1.0E-7"],
    ["99.9999999", "100"],
    ["0.0", "0.0"],
    ["INF", "INF"],
  ] as const) assert.equal(rounded(exact), shown, exact);
});

test("durations are written and read in words", () => {
  for (const [text, words] of [["PT60S", "1 min"], ["PT0.5S", "0.5 s"], ["P1DT2H3M4S", "1 d 2 h 3 min 4 s"], ["PT0S", "0 s"], ["P1M", "P1M"]] as const) assert.equal(durationInWords(text), words);
  for (const [words, text] of [["1 min 30 s", "PT90S"], ["500ms", "PT0.5S"], ["1.5 h", "PT5400S"], ["2 d", "PT172800S"], [" PT5S ", "PT5S"], ["soon", "soon"], ["5", "5"], ["", ""]] as const) assert.equal(durationFromWords(words), text);
});

test("amounts have units", () => {
  assert.deepEqual([0, 1023, 1024, 150 * 1024, 5 * 2 ** 40].map(bytes), ["0 B", "1023 B", "1.0 KiB", "150 KiB", "5120 GiB"]);
  assert.deepEqual([0, 1.25, 1234.5, 20_000].map(rate), ["0/s", "1.3/s", "1\u202f235/s", "20k/s"]);
  assert.deepEqual([0.1 + 0.2, 1e7, 0.00001, 1234.5].map(figure), ["0.3", "1e+7", "1e-5", "1\u202f234.5"]);
});

test("axes have round marks, as many as fit", () => {
  assert.deepEqual(marks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(marks(-7, 12, 4), [-5, 0, 5, 10]);
  const march = Date.UTC(2026, 2, 1);
  assert.deepEqual(ticks(march, march + 2 * 3_600_000, 4).map(({ label }) => label), ["Sun 1 Mar", "00:30", "01:00", "01:30", "02:00"]);
  assert.deepEqual(ticks(march, march + 3, 3).map(({ label }) => label), ["Sun 1 Mar", "00:00.001", "00:00.002", "00:00.003"]);
  assert.deepEqual(ticks(march, Date.UTC(2027, 2, 1), 6).map(({ label, major }) => [label, major]), [["2026-04", false], ["2026-07", false], ["2026-10", false], ["2027", true]]);
});

test("a map shows all places, also around the date line", () => {
  const places = [{ lon: 179, lat: -10 }, { lon: -179, lat: 10 }];
  const [frame, room] = [framed(places), { width: 800, height: 600 }];
  assert.equal(frame.beyond, true);
  const view = fitted(places, frame, room);
  const { x, y, invert } = projection(view, frame, room);
  for (const { lon, lat } of places) {
    assert.ok(x(lon) >= 0 && x(lon) <= room.width && y(lat) >= 0 && y(lat) <= room.height);
    assert.ok(Math.abs(invert(x(lon), y(lat)).lat - lat) < 1e-9);
  }
  assert.ok(x(-179) > x(179));
  assert.ok(graticule(view, frame, room).parallels.some(({ label }) => label === "0°"));
  assert.deepEqual([degreesOf(-12.34, 0.1, "N", "S"), degreesOf(180, 1, "E", "W")], ["12.3°S", "180°"]);
  assert.equal(scaleBar({ centre: places[0]!, scale: 111.195 }, 110).label, "100 km");
});

test("coordinates are read from points of WKT", () => {
  assert.deepEqual(pointOf("POINT(13.4 52.5)"), { lon: 13.4, lat: 52.5 });
  for (const none of ["POINT(13.4)", "POLYGON((0 0))", "POINT(0 95)", "13.4 52.5"]) assert.equal(pointOf(none), null, none);
});

test("statements and classes of N-Triples", () => {
  const sub = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>";
  const text = `<a> ${sub} <b> .\n# a comment\n<c> ${sub} <b> .\n<d> <p> "x . y" .\n<b> ${sub} <b> .\n`;
  const { rows, of } = statements(text, 10);
  assert.deepEqual([of, rows[2]], [4, { s: "<d>", p: "<p>", o: '"x . y"' }]);
  assert.equal(statements(text, 1).rows.length, 1);
  assert.deepEqual(classes(rows), { tops: ["<b>"], below: new Map([["<b>", ["<a>", "<c>"]]]) });
});
