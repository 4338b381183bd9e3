/** How terms, times and amounts are written on the screen. */

import type { Term } from "../api/client";

const NUMBER = /#(integer|decimal|double|float|int|long|short|byte|nonNegativeInteger|positiveInteger|unsignedInt|unsignedLong)$/;
const XSD = "http://www.w3.org/2001/XMLSchema#";
const WELL_KNOWN: Record<string, string> = {
  "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
  "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
  [XSD]: "xsd",
  "http://www.w3.org/2002/07/owl#": "owl",
  "http://www.w3.org/ns/prov#": "prov",
  "http://www.w3.org/ns/sosa/": "sosa",
};

export function prefixesOf(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of text.matchAll(/\bPREFIX\s+([\w.-]*):\s*<([^>\s]*)>/gi)) found.set(match[2] ?? "", match[1] ?? "");
  return found;
}

/** An IRI by the prefixes of the query, else by well-known ones, else its last part. */
export function shortIri(iri: string, prefixes: ReadonlyMap<string, string>): string {
  const cut = Math.max(iri.lastIndexOf("#"), iri.lastIndexOf("/")) + 1;
  const [space, local] = [iri.slice(0, cut), iri.slice(cut)];
  const prefix = prefixes.get(space) ?? WELL_KNOWN[space];
  if (prefix !== undefined) return `${prefix}:${local}`;
  return local || iri;
}

export function shortTerm(term: Term | undefined, prefixes: ReadonlyMap<string, string>): string {
  if (!term) return "";
  if (term.type === "uri") return shortIri(term.value, prefixes);
  if (term.type === "bnode") return `_:${term.value}`;
  if (term.parts) return `<<( ${term.parts.map((part) => shortTerm(part, prefixes)).join(" ")} )>>`;
  return term["xml:lang"] ? `${term.value}@${tag(term)}` : term.value;
}

/** Digits that are shown of a number with a fraction. */
const DIGITS = 6;

/** As `shortTerm`, but numbers with a fraction have few digits; the place that shows them tells the exact one on hover. */
export function roundedTerm(term: Term | undefined, prefixes: ReadonlyMap<string, string>): string {
  return term && isNumber(term) ? rounded(term.value) : shortTerm(term, prefixes);
}

/** Whole numbers stay as they are, and so does what has few digits. */
export function rounded(text: string): string {
  const value = Number(text);
  const digits = text.replace(/e.*$/i, "").replace(/^[-+0.]+|\D/g, "").length;
  if (!/[.e]/i.test(text) || digits <= DIGITS || !Number.isFinite(value)) return text;
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (/e/i.test(text) || size < -DIGITS || size > 2 * DIGITS) return value.toExponential(DIGITS - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  const decimals = Math.max(0, DIGITS - 1 - size);
  return value.toFixed(decimals).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

export const isNumber = (term: Term) => term.type === "literal" && NUMBER.test(term.datatype ?? "");

export function fullTerm(term: Term): string {
  if (term.type === "uri") return `<${term.value}>`;
  if (term.type === "bnode") return `_:${term.value}`;
  if (term.parts) return term.value;
  const tail = term["xml:lang"] ? `@${tag(term)}` : term.datatype ? `^^${datatype(term.datatype)}` : "";
  return `"${term.value}"${tail}`;
}

/** The language, with the base direction if there is one. */
const tag = (term: Term) => [term["xml:lang"], term["its:dir"]].filter(Boolean).join("--");

const datatype = (iri: string) => (iri.startsWith(XSD) ? `xsd:${iri.slice(XSD.length)}` : `<${iri}>`);

const pad = (n: number, width = 2) => String(n).padStart(width, "0");

export const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** Time of day, as fine as it has to be. */
export function clock(ms: number): string {
  const at = new Date(ms);
  const micros = Math.round((ms - Math.floor(ms)) * 1000) % 1000;
  const fine = micros ? `.${pad(at.getUTCMilliseconds(), 3)}${pad(micros, 3)}` : at.getUTCMilliseconds() ? `.${pad(at.getUTCMilliseconds(), 3)}` : "";
  return `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}${fine}`;
}

/** The second in which an instant is: what a person reads of the server's own times. */
export const toSecond = (ms: number) => Math.floor(ms / 1000) * 1000;

export const moment = (ms: number) => `${day(ms)} ${clock(ms)}`;

export function interval(start: number, end: number): string {
  if (Number.isNaN(end)) return "always";
  if (start === end) return moment(end);
  return `${moment(start)} → ${day(start) === day(end) ? clock(end) : moment(end)}`;
}

export function duration(ms: number): string {
  if (Number.isNaN(ms)) return "";
  if (ms === 0) return "instant";
  const units: [number, string][] = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1000, "s"],
    [1, "ms"],
  ];
  const at = units.findIndex(([size]) => ms >= size);
  if (at < 0) return `${Math.round(ms * 1000)} µs`;
  const [size, name] = units[at]!;
  const next = units[at + 1];
  const rest = next && Math.floor((ms % size) / next[0]);
  return `${Math.floor(ms / size)} ${name}${next && rest ? ` ${rest} ${next[1]}` : ""}`;
}

const SECONDS: Record<string, number> = { d: 86_400, h: 3600, min: 60, s: 1, ms: 0.001 };
const AMOUNTS = String.raw`(?:\d+(?:\.\d+)?)`;
const ISO = new RegExp(`^P(?:(${AMOUNTS})D)?(?:T(?:(${AMOUNTS})H)?(?:(${AMOUNTS})M)?(?:(${AMOUNTS})S)?)?$`);

/** An xsd:duration in words, such as "1 min 30 s"; one with months or years, or what is none, as it is written. */
export function durationInWords(text: string): string {
  const parts = ISO.exec(text);
  if (!parts) return text;
  let left = Math.round([86_400, 3600, 60, 1].reduce((sum, unit, k) => sum + unit * Number(parts[k + 1] ?? 0), 0) * 1e6);
  const words = [];
  for (const unit of ["d", "h", "min", "s"]) {
    const size = SECONDS[unit]! * 1e6;
    const amount = unit === "s" ? left / size : Math.floor(left / size);
    left -= amount * size;
    if (amount) words.push(`${amount} ${unit}`);
  }
  return words.join(" ") || "0 s";
}

/** The xsd:duration of such words; other texts, as durations are, stay as they are. */
export function durationFromWords(text: string): string {
  const words = text.trim();
  if (!new RegExp(`^(?:${AMOUNTS}\\s*(?:ms|s|min|h|d)\\s*)+$`).test(words)) return words;
  const seconds = [...words.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)/g)].reduce((sum, [, amount, unit]) => sum + Number(amount) * SECONDS[unit!]!, 0);
  return `PT${Number(seconds.toFixed(6))}S`;
}

/** A number of things: "1 solution", "2 solutions". */
export const some = (n: number, thing: string) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;

export const partialMatches = (n: number) => `${count(n)} partial ${n === 1 ? "match" : "matches"}`;

export const count = (n: number) => n.toLocaleString("en").replaceAll(",", "\u202f");

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (n >= 1024 && at < 3) [n, at] = [n / 1024, at + 1];
  return `${n >= 100 || at === 0 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

export function rate(perSecond: number): string {
  if (perSecond === 0) return "0/s";
  if (perSecond < 10) return `${perSecond.toFixed(1)}/s`;
  return perSecond < 10_000 ? `${count(Math.round(perSecond))}/s` : `${Math.round(perSecond / 1000)}k/s`;
}
