/** Completion of keywords, functions, prefixes, streams, of what the text itself names, and of the names that its streams carry. */

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { SeenName } from "../api/client";
import { profileOf } from "../api/stream_profiles";
import { prefixesOf, some } from "../display/format";
import { streamsOf } from "../state/watermark";
import { FUNCTIONS, PREFIXES, SPARQL, TEMPORAL, TIMES } from "./keywords";

const options = (words: Iterable<string>, type: string): Completion[] => [...words].map((label) => ({ label, type }));
const told = (words: Record<string, string>, type: string): Completion[] => Object.entries(words).map(([label, detail]) => ({ label, detail, type, boost: 1 }));

const calls: Completion[] = [...FUNCTIONS.map((label) => ({ label, apply: `${label}(`, type: "function" }))];
const times: Completion[] = Object.entries(TIMES).map(([label, detail]) => ({ label, detail, apply: `${label}()`, type: "function", boost: 1 }));
const words: Completion[] = [...told(TEMPORAL, "keyword"), ...options(SPARQL, "keyword"), ...calls, ...times];

/** `streams` are the names that the server knows. */
export function completions(streams: () => readonly string[]) {
  return (context: CompletionContext): CompletionResult | null | Promise<CompletionResult | null> => {
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
    const iri = context.matchBefore(/<[^<>\s]*/);
    if (iri) return seen(text, iri.from).then((names) => ({ from: iri.from, options: names.map((each) => carried(each, each.name)), validFor: /^<[^<>\s]*>?$/ }));
    const name = context.matchBefore(/[\w.-]*:[\w.-]*/);
    if (name) return seen(text, name.from).then((names) => prefixed(text, name.from, name.text, names));
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

/** After `a` or `rdf:type` stands a class, elsewhere a predicate. */
const TYPED = /(?:\sa|\brdf:type|22-rdf-syntax-ns#type>)\s+$/;

/** The predicates, or the classes, that the query's streams have carried lately. */
async function seen(text: string, from: number): Promise<SeenName[]> {
  const profiles = await Promise.all(streamsOf(text).map(profileOf));
  const typed = TYPED.test(text.slice(0, from));
  const found = profiles.flatMap((profile) => (profile ? (typed ? profile.classes : profile.predicates).names : []));
  return [...new Map(found.map((each) => [each.name, each])).values()];
}

const carried = ({ count, example }: SeenName, label: string): Completion => ({ label, detail: some(count, "event"), info: example, type: "property", boost: 2 });

/** Names by the prefixes that the text declares, and others that the text has. A name without a prefix is put in as a whole. */
function prefixed(text: string, from: number, own: string, names: readonly SeenName[]): CompletionResult {
  const prefixes = [...prefixesOf(text)];
  const found = names.flatMap((each) => {
    const iri = each.name.slice(1, -1);
    const declared = prefixes.find(([space]) => space && iri.startsWith(space) && /^[\w-]+$/.test(iri.slice(space.length)));
    if (declared) return [carried(each, `${declared[1]}:${iri.slice(declared[0].length)}`)];
    return [{ ...carried(each, `:${iri.slice(Math.max(iri.lastIndexOf("#"), iri.lastIndexOf("/")) + 1)}`), apply: each.name, boost: 0 }];
  });
  const there = new Set(found.map(({ label }) => label));
  const written = distinct(text, /(?<![\w<])[\w.-]*:[\w-]+/g, own).filter((label) => !there.has(label));
  return { from, options: [...found, ...options(written, "property")], validFor: /^[\w.-]*:[\w.-]*$/ };
}
