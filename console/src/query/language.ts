/** EP-SPARQL for the editor: tokens, their colours, indentation by brackets. */

import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { EVENT_DIRECTIVES, EVENT_OPERATORS, FUNCTIONS, SPARQL, TEMPORAL, TIMES } from "./keywords";

const upper = (words: Iterable<string>) => new Set([...words].map((word) => word.toUpperCase()));
const temporal = upper(Object.keys(TEMPORAL));
const sparql = upper(SPARQL);
const functions = upper([...FUNCTIONS, ...Object.keys(TIMES)]);

interface State {
  /** The three quotes that a long string began with, while it is open. */
  quotes: string;
  /** Brackets that are open. */
  open: number;
}

export const epsparql = StreamLanguage.define<State>({
  name: "epsparql",
  startState: () => ({ quotes: "", open: 0 }),
  token(stream, state) {
    if (state.quotes) return rest(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match(/^#.*/)) return "comment";
    if (stream.match(/^<[^<>"{}|^`\\\s]*>/)) return "link";
    if (stream.match(/^("""|''')/)) {
      state.quotes = stream.current();
      return rest(stream, state);
    }
    if (stream.match(/^"([^"\\]|\\.)*"|^'([^'\\]|\\.)*'/)) return "string";
    if (stream.match(/^[?$]\w+/u)) return "variableName";
    if (stream.match(/^@[a-zA-Z]+(-[a-zA-Z0-9]+)*/)) return "meta";
    if (stream.match(/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/)) return "number";
    if (stream.match(/^_:[\w.-]*\w/u)) return "atom";
    if (stream.match(/^([\p{L}_][\p{L}\p{N}_.-]*)?:([\p{L}\p{N}_:%](([\p{L}\p{N}_.:%-]|\\.)*[\p{L}\p{N}_:%-])?)?/u)) return "propertyName";
    if (stream.match(/^[a-zA-Z_]\w*/)) return named(stream.current());
    if (stream.match(/^[{}()[\]]/)) {
      state.open += /[{([]/.test(stream.current()) ? 1 : -1;
      return "bracket";
    }
    stream.next();
    return "operator";
  },
  languageData: {
    commentTokens: { line: "#" },
    closeBrackets: { brackets: ["(", "[", "{", '"'] },
    indentOnInput: /^\s*[}\])]$/,
  },
  indent: (state, textAfter, { unit }) => Math.max(0, state.open - (/^\s*[})\]]/.test(textAfter) ? 1 : 0)) * unit,
});

function named(word: string): string | null {
  const found = word.toUpperCase();
  if (temporal.has(found)) return "controlKeyword";
  if (sparql.has(found)) return "keyword";
  if (functions.has(found)) return "variableName.function";
  if (found === "TRUE" || found === "FALSE") return "bool";
  return word === "a" ? "keyword" : null;
}

const ETALIS = "#!etalis";

/** Whether a text is a program of the ETALIS Language for Events: its first line says so. */
export const isProgram = (text: string) => text.startsWith(ETALIS);

const operators = new Set(EVENT_OPERATORS.split(" "));
const directives = new Set(EVENT_DIRECTIVES.split(" "));

/** The ETALIS Language for Events: Prolog's tokens, with the operators over time. */
export const etalis = StreamLanguage.define<{ comment: boolean }>({
  name: "etalis",
  startState: () => ({ comment: false }),
  token(stream, state) {
    if (state.comment || stream.match("/*")) {
      state.comment = !stream.match(/^.*?\*\//);
      if (state.comment) stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(/^%.*/) || (stream.sol() && stream.match(/^#!.*/))) return "comment";
    if (stream.match(/^"([^"\\]|\\.)*"/)) return "string";
    if (stream.match(/^'([^'\\]|\\.|'')*'/)) return operators.has(stream.current().slice(1, -1).toLowerCase()) ? "controlKeyword" : "string";
    if (stream.match(/^[A-Z_]\w*/) && !operators.has(stream.current().toLowerCase())) return "variableName";
    if (operators.has(stream.current().toLowerCase()) || stream.match(/^(<-|←|:-)/)) return "controlKeyword";
    if (stream.match(/^\d+(\.\d+)?([eE][+-]?\d+)?[a-z]*/)) return "number";
    if (stream.match(/^[a-z]\w*:\w+/)) return "propertyName";
    if (stream.match(/^[a-z]\w*/)) return operators.has(stream.current()) ? "controlKeyword" : directives.has(stream.current()) ? "keyword" : "propertyName";
    if (stream.match(/^[()[\]{}]/)) return "bracket";
    stream.next();
    return "operator";
  },
  languageData: { commentTokens: { line: "%" }, closeBrackets: { brackets: ["(", "[", '"', "'"] } },
});

function rest(stream: { match(pattern: RegExp): unknown; skipToEnd(): void }, state: State): string {
  if (stream.match(state.quotes === '"""' ? /^([^"\\]|\\.|"(?!""))*"""/ : /^([^'\\]|\\.|'(?!''))*'''/)) state.quotes = "";
  else stream.skipToEnd();
  return "string";
}

export const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.controlKeyword, color: "var(--time)", fontWeight: "600" },
    { tag: tags.keyword, color: "var(--keyword)", fontWeight: "500" },
    { tag: tags.function(tags.variableName), color: "var(--function)" },
    { tag: tags.variableName, color: "var(--variable)" },
    { tag: [tags.string, tags.meta], color: "var(--string)" },
    { tag: [tags.number, tags.bool, tags.atom], color: "var(--number)" },
    { tag: tags.link, color: "var(--iri)" },
    { tag: tags.propertyName, color: "var(--name)" },
    { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
    { tag: [tags.bracket, tags.operator], color: "var(--soft)" },
  ]),
);
