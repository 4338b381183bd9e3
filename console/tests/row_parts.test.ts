/** How files are cut: each body can be read alone, and together they are the file. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { beginningOf, cutFile, type Dialect, type Kind, type Part, toUtf8 } from "../src/files/row_parts.ts";

const COMMAS: Dialect = { delimiters: ",", skip: 0, headerRows: 1 };

async function cut(text: string | Blob, kind: Kind, dialect: Partial<Dialect> = {}, size = 1): Promise<[body: string, first: number][]> {
  const parts: Part[] = [];
  const file = new Blob([text]);
  for await (const part of cutFile(file, kind, { ...COMMAS, ...dialect }, size)) parts.push(part);
  assert.equal(parts[0]!.from, 0);
  assert.equal(parts.at(-1)!.to, file.size);
  parts.slice(1).forEach((part, k) => assert.equal(part.from, parts[k]!.to));
  return Promise.all(parts.map(async ({ body, first }): Promise<[string, number]> => [new TextDecoder("utf-8", { ignoreBOM: true }).decode(await body.arrayBuffer()), first]));
}

const ROWS: [name: string, text: string, kind: Kind, dialect: Partial<Dialect>, parts: [body: string, first: number][]][] = [
  ["rows of CSV", "a,b\n1,2\n3,4\n", "csv", {}, [["a,b\n1,2\n", 1], ["a,b\n3,4\n", 2]]],
  ["a last row without an end", "a\n1\n2", "csv", {}, [["a\n1\n", 1], ["a\n2", 2]]],
  ["line ends and commas within quotes", 'a,b\n"1\n,""\n",2\n3,"4"\n', "csv", {}, [['a,b\n"1\n,""\n",2\n', 1], ['a,b\n3,"4"\n', 2]]],
  ["a quote within a cell", 'a,b\n5" pipe,1\n6" pipe,2\n', "csv", {}, [['a,b\n5" pipe,1\n', 1], ['a,b\n6" pipe,2\n', 2]]],
  ["empty lines are no rows", "a\r\n\r\n1\r\n\r\n2\r\n", "csv", {}, [["a\r\n\r\n", 1], ["a\r\n1\r\n", 1], ["a\r\n\r\n", 2], ["a\r\n2\r\n", 2]]],
  ["lines before the header, and units below it", "x\ny\n\na;b\nm;s\n1;2\n3;4\n", "csv", { delimiters: ";", skip: 2, headerRows: 2 },
    [["x\ny\n\na;b\nm;s\n1;2\n", 1], ["x\ny\n\na;b\nm;s\n3;4\n", 2]]],
  ["Excel's separator and a byte order mark", '\ufeffsep=;\r\n"a\n";b\r\n1;2\r\n3;4\r\n', "csv", { delimiters: ";" },
    [['\ufeffsep=;\r\n"a\n";b\r\n1;2\r\n', 1], ['\ufeffsep=;\r\n"a\n";b\r\n3;4\r\n', 2]]],
  ["a header alone", "a,b\n", "csv", {}, [["a,b\n", 1]]],
  ["nothing", "", "csv", {}, [["", 1]]],
  ["lines", "a\n\nb\n", "lines", {}, [["a\n", 1], ["\n", 2], ["b\n", 3]]],
  ["lines that are skipped", "h\na\nb\n", "lines", { skip: 1 }, [["h\n", 1], ["\na\n", 1], ["\nb\n", 2]]],
  ["lines of JSON", '{"a":1}\n{"a":"\\n"\n5\n', "json-lines", {}, [['{"a":1}\n', 1], ['{"a":"\\n"\n', 2], ["5\n", 3]]],
  ["an array", ' [{"a":[1,2]},\n{"b":"],\\",["} , 3]\n', "json", {}, [[' [{"a":[1,2]}]', 1], ['[\n{"b":"],\\",["} ]', 2], ["[ 3]\n", 3]]],
  ["an array in a file of lines", "[1,2]", "json-lines", {}, [["[1]", 1], ["[2]", 2]]],
  ["an array that does not end", "[1,2", "json", {}, [["[1]", 1], ["[2", 2]]],
  ["one document of many lines", '{"a": [\n1,\n2]}\n', "json", {}, [['{"a": [\n1,\n2]}\n', 1]]],
  ["documents one after the other", '{"a":\n1}\n{"a":2}', "json", {}, [['{"a":\n1}\n', 1], ['{"a":2}', 2]]],
]; // prettier-ignore

for (const [name, text, kind, dialect, parts] of ROWS) {
  test(name, async () => assert.deepEqual(await cut(text, kind, dialect), parts));
}

test("a part has many rows, and a row may be longer than a block", async () => {
  const rows = Array.from({ length: 40_000 }, (_, k) => `${k},"${"x\n".repeat(k % 40)}"\n`);
  rows[7] = `7,"${"y\n".repeat(800_000)}"\n`;
  const parts = await cut(`n,t\n${rows.join("")}`, "csv", {}, 100_000);
  assert.ok(parts.length > 10);
  assert.equal(parts.map(([body]) => body.replace("n,t\n", "")).join(""), rows.join(""));
  for (const [body, first] of parts) assert.ok(body.startsWith(`n,t\n${first - 1},`));
});

test("a file of UTF-16 becomes one of UTF-8", async () => {
  const text = "a;ä\n1;€\n";
  const little = new Uint8Array([0xff, 0xfe, ...[...text].flatMap((each) => [each.charCodeAt(0) & 255, each.charCodeAt(0) >> 8])]);
  assert.deepEqual(await cut(await toUtf8(new File([little], "a.csv")), "csv", { delimiters: ";" }), [[`\ufeff${text}`, 1]]);
});

test("a proposal looks at whole rows", async () => {
  assert.equal(await (await beginningOf(new Blob(["a\tb\n1\t\"2\n\"\n3\t4\n"]), "csv", 3)).text(), 'a\tb\n1\t"2\n"\n');
});
