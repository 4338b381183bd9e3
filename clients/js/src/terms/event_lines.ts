/** Events of JavaScript as lines of ndjson, which the server reads. */

import { type AnyTerm, literal, writeTerm } from "./terms.js";

/** A time as an xsd:dateTime, a Date, or something that writes itself as an xsd:dateTime, such as a Temporal.Instant. */
export type Time = string | Date | { toString(): string };
export type EventTime = { at?: Time } | { start: Time; end: Time };
/** A text in N-Triples, a term of RDF/JS, or a value, which becomes a literal. */
export type EventTerm = string | AnyTerm | number | bigint | boolean | Date;

/** A triple with its time. Without one, the server takes the time of arrival. */
export type TripleEvent = { s: string | AnyTerm; p: string | AnyTerm; o: EventTerm; g?: string | AnyTerm } & { at?: Time; start?: Time; end?: Time };
/** A quad of any library that follows RDF/JS. */
export type QuadLike = AnyTerm & { subject: AnyTerm; predicate: AnyTerm; object: AnyTerm; graph: AnyTerm };
export type Event = TripleEvent | QuadLike;

const MEMBERS = new Set(["s", "p", "o", "g", "at", "start", "end"]);

/** Returns a line for an event, and whether it has a time; `time` is that of an event without one. Throws: TypeError for another member. */
export function writeEvent(event: Event, time: EventTime | undefined): { line: string; isTimed: boolean } {
  const triple = isQuad(event) ? partsOf(event) : event;
  for (const name in triple) if (!MEMBERS.has(name)) throw new TypeError(`an event has no member ${name}; expected s, p, o, g, at, or start and end`);
  const { s, p, o, g, at, start, end } = triple;
  const own = at === undefined && start === undefined && end === undefined ? (time as TripleEvent | undefined) : { at, start, end };
  const isTimed = own?.at !== undefined || own?.start !== undefined;
  let line = `{"s":${quote(s)},"p":${quote(p)},"o":${quote(o)}`;
  if (g !== undefined) line += `,"g":${quote(g)}`;
  if (own?.at !== undefined) line += `,"at":${writeTime(own.at)}`;
  if (own?.start !== undefined) line += `,"start":${writeTime(own.start)}`;
  if (own?.end !== undefined) line += `,"end":${writeTime(own.end)}`;
  return { line: `${line}}`, isTimed };
}

const quote = (part: EventTerm) => JSON.stringify(writePart(part));

function isQuad(event: Event): event is QuadLike {
  return "termType" in event || "subject" in event;
}

function partsOf({ subject, predicate, object, graph }: QuadLike): TripleEvent {
  return { s: subject, p: predicate, o: object, ...(graph && graph.termType !== "DefaultGraph" && { g: graph }) };
}

export function writePart(part: EventTerm): string {
  if (typeof part === "string") return part;
  if (typeof part === "object" && !(part instanceof Date)) return writeTerm(part);
  return writeTerm(literal(part));
}

function writeTime(time: Time): string {
  return time instanceof Date ? `"${time.toISOString()}"` : JSON.stringify(String(time));
}
