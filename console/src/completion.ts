/** Completion of keywords, functions, prefixes, streams, and of what the text itself names. */

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { FUNCTIONS, PREFIXES, SPARQL, TEMPORAL, TIMES } from "./words";

const options = (words: Iterable<string>, type: string): Completion[] => [...words].map((label) => ({ label, type }));
const told = (words: Record<string, string>, type: string): Completion[] => Object.entries(words).map(([label, detail]) => ({ label, detail, type, boost: 1 }));

const calls: Completion[] = [...FUNCTIONS.map((label) => ({ label, apply: `${label}(`, type: "function" }))];
const times: Completion[] = Object.entries(TIMES).map(([label, detail]) => ({ label, detail, apply: `${label}()`, type: "function", boost: 1 }));
const words: Completion[] = [...told(TEMPORAL, "keyword"), ...options(SPARQL, "keyword"), ...calls, ...times];

/** `streams` are the names that the server knows. */
export function completions(streams: () => readonly string[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const text = context.state.doc.toString();
    const stream = context.matchBefore(/STREAM\s+<[^>\s]*/i);
    if (stream) {
      const from = stream.from + stream.text.lastIndexOf("<");
      return { from, options: streams().map((name) => ({ label: `<${name}>`, type: "stream" })), validFor: /^<[^>\s]*>?$/ };
    }
    const variable = context.matchBefore(/[?$]\w*/);
    if (variable) return of(variable.from, distinct(text, /[?$]\w+/g, variable.text), "variable", /^[?$]\w*$/);
    const prefix = context.matchBefore(/PREFIX\s+[\w.-]*$/i);
    if (prefix) {
      const known = Object.entries(PREFIXES).map(([name, iri]) => ({ label: `${name}:`, detail: iri, apply: `${name}: <${iri}>`, type: "prefix" }));
      return { from: prefix.from + /[\w.-]*$/.exec(prefix.text)!.index, options: known };
    }
    const name = context.matchBefore(/[\w.-]*:[\w.-]*/);
    if (name) return of(name.from, distinct(text, /(?<![\w<])[\w.-]*:[\w-]+/g, name.text), "property", /^[\w.-]*:[\w.-]*$/);
    const word = context.matchBefore(/[A-Za-z_]\w*/);
    if (!word && !context.explicit) return null;
    const declared = [...text.matchAll(/\bPREFIX\s+([\w.-]*):/gi)].map((match) => ({ label: `${match[1]}:`, type: "prefix" }));
    return { from: word?.from ?? context.pos, options: [...words, ...declared], validFor: /^\w*$/ };
  };
}

const of = (from: number, labels: readonly string[], type: string, validFor: RegExp): CompletionResult => ({ from, options: options(labels, type), validFor });

/** What the pattern finds in the text, but for the one that is being written. */
function distinct(text: string, pattern: RegExp, own: string): string[] {
  const counts = new Map<string, number>();
  for (const [found] of text.matchAll(pattern)) counts.set(found, (counts.get(found) ?? 0) + 1);
  return [...counts].filter(([label, n]) => label !== own || n > 1).map(([label]) => label);
}
