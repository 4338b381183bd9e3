/**
 * Cuts a file of rows into bodies that the server can read one by one.
 *
 * 1. The bytes are read block by block, and a scanner says after which of them a row ends.
 * 2. Parts are slices of the file between such places, so that no part is held in memory.
 * 3. What each body needs stands before and after its slice: the header of CSV, or the brackets of an array.
 */

export type Kind = "csv" | "json" | "json-lines" | "lines";

/** How rows of CSV or lines are written, as a mapping says it. */
export interface Dialect {
  /** The characters that may stand between cells. */
  delimiters: string;
  /** So many lines stand before the header, or before the first row of lines. */
  skip: number;
  headerRows: number;
}

export interface Part {
  body: Blob;
  /** Where its rows are in the file, in bytes. */
  from: number;
  to: number;
  /** The number in the file of what the server counts as row 1 of the body. */
  first: number;
}

const BLOCK = 1 << 20;
const [NEWLINE, RETURN, QUOTE, BACKSLASH, COMMA, SPACE] = [10, 13, 34, 92, 44, 32];
const [OPEN, CLOSE] = [new Set([91, 123]), new Set([93, 125])];
const ARRAY = 91;
const SEPARATOR = /^sep=.?\r?\n/i;
const MARK = [0xef, 0xbb, 0xbf];

/** Tells of each byte in turn whether a row ends with it. */
type Scanner = (byte: number) => boolean;

/** Rows of RFC 4180: a quote at the beginning of a cell opens it, and line ends within it are text. */
export function scanCsv(delimiters: string): Scanner {
  const between = new Set([...delimiters].map((each) => each.charCodeAt(0)));
  let [begins, quoted, closed] = [true, false, false];
  return (byte) => {
    if (quoted) {
      if (byte === QUOTE) [quoted, closed] = [false, true];
      return false;
    }
    if (byte === QUOTE && (begins || closed)) {
      [begins, quoted, closed] = [false, true, false];
      return false;
    }
    closed = false;
    begins = byte === NEWLINE || between.has(byte);
    return byte === NEWLINE;
  };
}

const scanLines = (): Scanner => (byte) => byte === NEWLINE;

/** Elements of an array, which end with a comma; or documents, which end with a line outside of all brackets. */
export function scanJson(inArray: boolean): Scanner {
  let [depth, quoted, escaped] = [inArray ? -1 : 0, false, false];
  return (byte) => {
    if (quoted) {
      if (escaped) escaped = false;
      else if (byte === BACKSLASH) escaped = true;
      else quoted = byte !== QUOTE;
      return false;
    }
    if (byte === QUOTE) quoted = true;
    else if (OPEN.has(byte)) depth++;
    else if (CLOSE.has(byte)) depth--;
    return byte === (inArray ? COMMA : NEWLINE) && depth <= 0;
  };
}

interface Frame {
  scan: Scanner;
  /** The bytes at which rows begin, and what precedes the rows of each later body. */
  start: number;
  before: Blob;
  /** What follows the rows of each body but the last one. */
  after: string;
  /** Whether the byte that ends a row is no part of a body. */
  cutsEnd: boolean;
  /** Whether empty rows count, and how many of the rows that count stand in `before`. */
  countsEmpty: boolean;
  counted: number;
}

/** Yield the parts of a file, each of about `size` bytes and of one row at least. A file without rows is one part. */
export async function* cutFile(file: Blob, kind: Kind, dialect: Dialect, size: number): AsyncGenerator<Part> {
  const frame = await frameOf(file, kind, dialect);
  let [from, rows, first] = [frame.start, 0, 1];
  let filled = false;
  const part = (to: number, isLast: boolean): Part => {
    const isFirst = from === frame.start;
    const slice = file.slice(isFirst ? 0 : from, isLast ? file.size : to - (frame.cutsEnd ? 1 : 0));
    return { body: new Blob([isFirst ? "" : frame.before, slice, isLast ? "" : frame.after]), from: isFirst ? 0 : from, to: isLast ? file.size : to, first };
  };
  for (let block = frame.start; block < file.size; block += BLOCK) {
    const bytes = new Uint8Array(await file.slice(block, block + BLOCK).arrayBuffer());
    for (let k = 0; k < bytes.length; k++) {
      const [byte, end] = [bytes[k]!, block + k + 1];
      filled ||= byte !== NEWLINE && byte !== RETURN;
      if (!frame.scan(byte)) continue;
      if (filled || frame.countsEmpty) rows++;
      filled = false;
      if (end - from < size) continue;
      yield part(end, end === file.size);
      [from, first] = [end, rows + 1 - frame.counted];
    }
  }
  if (from < file.size || from === frame.start) yield part(file.size, true);
}

async function frameOf(file: Blob, kind: Kind, dialect: Dialect): Promise<Frame> {
  const head = new Uint8Array(await file.slice(0, BLOCK).arrayBuffer());
  const mark = MARK.every((byte, k) => head[k] === byte) ? MARK.length : 0;
  const plain = { start: mark, before: file.slice(0, mark), after: "", cutsEnd: false, countsEmpty: false, counted: 0 };
  if (kind === "lines") {
    // the lines that are skipped are repeated, so that each body has some to skip
    const skipped = new Blob([plain.before, "\n".repeat(dialect.skip)]);
    return { ...plain, scan: scanLines(), before: skipped, countsEmpty: true, counted: dialect.skip };
  }
  if (kind === "csv") {
    const start = endOfHeader(head, mark, dialect);
    return { ...plain, scan: scanCsv(dialect.delimiters), start, before: file.slice(0, start) };
  }
  const inArray = head.find((byte, k) => k >= mark && byte > SPACE) === ARRAY;
  if (inArray) return { ...plain, scan: scanJson(true), before: new Blob(["["]), after: "]", cutsEnd: true };
  return { ...plain, scan: kind === "json-lines" ? scanLines() : scanJson(false) };
}

/** Where the rows of CSV begin: after Excel's line of the separator, the lines that are skipped, the header and the rows of units below it. */
function endOfHeader(head: Uint8Array, mark: number, { delimiters, skip, headerRows }: Dialect): number {
  let at = mark + (SEPARATOR.exec(new TextDecoder().decode(head.slice(mark, mark + 8)))?.[0].length ?? 0);
  for (let k = 0; k < skip; k++) at = lineEnd(head, at);
  const scan = scanCsv(delimiters);
  let filled = false;
  for (let rows = 0; at < head.length && rows < headerRows; at++) {
    const byte = head[at]!;
    filled ||= byte !== NEWLINE && byte !== RETURN;
    if (scan(byte) && filled) [rows, filled] = [rows + 1, false];
  }
  return at;
}

function lineEnd(bytes: Uint8Array, at: number): number {
  const end = bytes.indexOf(NEWLINE, at);
  return end < 0 ? bytes.length : end + 1;
}

/** The rows with which a file begins, as much as a proposal looks at. */
export async function beginningOf(file: Blob, kind: Kind, size: number): Promise<Blob> {
  const dialect = { delimiters: ",;\t|", skip: 0, headerRows: 1 };
  const { value } = await cutFile(file, kind, dialect, size).next();
  return value!.body;
}

const MARKS_OF_UTF16: [encoding: string, first: number, second: number][] = [
  ["utf-16le", 0xff, 0xfe],
  ["utf-16be", 0xfe, 0xff],
];
const LONGEST_UTF16 = 256 << 20;

/** The file in UTF-8, if it is written in UTF-16: a part of it would lack the mark that says so. */
export async function toUtf8(file: File): Promise<Blob> {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const found = MARKS_OF_UTF16.find((each) => each[1] === first && each[2] === second);
  if (!found) return file;
  if (file.size > LONGEST_UTF16) throw new Error(`${file.name} is UTF-16 and has more than ${LONGEST_UTF16 >> 20} MiB; save it as UTF-8`);
  return new Blob([new Uint8Array(MARK), new TextDecoder(found[0]).decode(await file.arrayBuffer())]);
}
