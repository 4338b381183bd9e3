/** The kinds of files that can be sent: how they are cut into parts, and as what the server reads them. */

import type { Dialect, Kind } from "./row_parts";

export interface FileKind {
  kind: Kind;
  mediaType: string;
}

const JSON_TYPE = "application/json";
const KINDS: Readonly<Record<string, FileKind>> = {
  csv: { kind: "csv", mediaType: "text/csv" },
  tsv: { kind: "csv", mediaType: "text/csv" },
  json: { kind: "json", mediaType: JSON_TYPE },
  ndjson: { kind: "json-lines", mediaType: JSON_TYPE },
  jsonl: { kind: "json-lines", mediaType: JSON_TYPE },
  log: { kind: "lines", mediaType: "text/plain" },
  txt: { kind: "lines", mediaType: "text/plain" },
};
export const SUFFIXES = Object.keys(KINDS).map((each) => `.${each}`);
export const EVENTS = "application/x-ndjson";
const HEAD = 64 << 10;

/** The kind of a file by the end of its name. Throws: Error. */
export function kindOf(name: string): FileKind {
  const found = KINDS[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ""];
  if (!found) throw new Error(`${name} cannot be sent: choose a file whose name ends in ${SUFFIXES.slice(0, -1).join(", ")} or ${SUFFIXES.at(-1)}`);
  return found;
}

/** Whether the lines of a file are events with terms of their own, which need no mapping. */
export async function holdsEvents(file: Blob): Promise<boolean> {
  const line = (await file.slice(0, HEAD).text()).split("\n").find((each) => each.trim());
  try {
    const found: unknown = JSON.parse(line ?? "");
    const has = (name: string) => typeof found === "object" && found !== null && name in found;
    return has("triples") || (has("s") && has("p") && has("o"));
  } catch {
    return false;
  }
}

/** How a mapping says that rows of CSV or lines are written. */
export function dialectOf({ delimiter, skip, header_rows }: Record<string, unknown>): Dialect {
  return {
    delimiters: typeof delimiter === "string" ? delimiter : ",",
    skip: typeof skip === "number" ? skip : 0,
    headerRows: typeof header_rows === "number" ? header_rows : 1,
  };
}

/** A name for a new stream, after the file. */
export const nameAfter = (file: string) => file.replace(/\.\w+$/, "").replace(/[^\w.-]+/g, "-") || "file";
