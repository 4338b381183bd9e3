/** The triple patterns that a plan's scans look for, and events that match them. */

import type { PlanDocument } from "../api/client";
import { shortIri } from "../display/format";
import { LONG_AGO } from "../state/watermark";

export interface Pattern {
  subject: string;
  predicate: string;
  object: string;
  stream: string;
  /** How many events have matched since the query was registered; null where that is not known. */
  events: number | null;
}

const TERMS = /"(?:[^"\\]|\\.)*"(?:\^\^(?:<[^>]*>|\S+)|@[\w-]+)?|<<.*?>>|<[^>]*>|\S+/g;

/** The patterns over streams, each once, in the order of the plan. Those over graphs or of triple terms are left out. */
export function patternsOf(plan: PlanDocument): Pattern[] {
  const found = new Map<string, Pattern>();
  for (const { operator, detail, live } of plan.plan) {
    const [subject, predicate, object, of, stream, ...rest] = operator === "scan" ? (detail.match(TERMS) ?? []) : [];
    if (!subject || !predicate || !object || of !== "of" || !stream || rest.length || [subject, predicate, object].some((term) => term.startsWith("<<"))) continue;
    const key = `${subject} ${predicate} ${object} ${stream}`;
    const events = live?.out ?? null;
    const known = found.get(key);
    if (!known) found.set(key, { subject, predicate, object, stream, events });
    else known.events = known.events === null || events === null ? null : Math.max(known.events, events);
  }
  return [...found.values()];
}

/** A pattern as the query writes it. */
export const written = ({ subject, predicate, object }: Pattern, prefixes: ReadonlyMap<string, string>) =>
  [subject, predicate, object].map((term) => (term.startsWith("<") ? shortIri(term.slice(1, -1), prefixes) : term)).join(" ");

/** An event of that stream which matches the pattern, as a line of ndjson; without a pattern, any. */
export function eventOf(pattern: Pattern | undefined, prefixes: ReadonlyMap<string, string>): string {
  const term = <T>(text: string | undefined, otherwise: T) => (text === undefined || /^[?$]|^any$|^_:/.test(text) ? otherwise : full(text, prefixes));
  return JSON.stringify({ s: term(pattern?.subject, "<http://example.org/s>"), p: term(pattern?.predicate, "<http://example.org/p>"), o: term(pattern?.object, 1), at: LONG_AGO });
}

/** A term without prefixes. */
function full(term: string, prefixes: ReadonlyMap<string, string>): string {
  const name = /^([\w.-]*):(.*)$/.exec(term);
  const space = name && [...prefixes].find(([, prefix]) => prefix === name[1])?.[0];
  return space ? `<${space}${name[2]}>` : term;
}
