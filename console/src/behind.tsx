/** The occurrences behind a solution, as the server's justification names them. */

import { useEffect, useState } from "preact/hooks";
import { api, Refused } from "./api";
import { clock, shortIri } from "./format";
import { millis, type Row } from "./solutions";
import { tab } from "./tabs";

const REST_MS = 250;
const MOST = 6;
const KEPT = 200;
const DEEPEST = 12;

export interface Occurrence {
  s: string;
  p: string;
  o: string;
  end: string | null;
}

const known = new Map<string, Promise<unknown>>();
let served = true;

/** The justification, asked for once. Rejects with Refused; `notServed` tells whether this server has none at all. */
export function justification(name: string, id: string): Promise<unknown> {
  const key = `${name}\n${id}`;
  let found = known.get(key);
  if (!found) {
    found = api.why(name, id);
    found.catch((error: unknown) => {
      known.delete(key);
      if (notServed(error)) served = false;
    });
    known.set(key, found);
    if (known.size > KEPT) known.delete(known.keys().next().value!);
  }
  return found;
}

export const notServed = (error: unknown) => error instanceof Refused && error.problem.code === "not-found";

/** Whatever in the document has a subject, a predicate and an object, once each, in order. */
export function occurrences(document: unknown): Occurrence[] {
  const found = new Map<string, Occurrence>();
  const walk = (node: unknown, depth: number): void => {
    if (node === null || typeof node !== "object" || depth > DEEPEST) return;
    const { s, p, o, end, at } = node as Record<string, unknown>;
    if (typeof s === "string" && typeof p === "string" && typeof o === "string") {
      const when = typeof end === "string" ? end : typeof at === "string" ? at : null;
      found.set([s, p, o, when].join(" "), { s, p, o, end: when });
    }
    for (const each of Object.values(node)) walk(each, depth + 1);
  };
  walk(document, 0);
  return [...found.values()];
}

/** A term in N-Triples' syntax, for the eye. */
export function shown(term: string, prefixes: ReadonlyMap<string, string>): string {
  if (term.startsWith("<")) return shortIri(term.slice(1, -1), prefixes);
  return /^"((?:[^"\\]|\\.)*)"/.exec(term)?.[1] ?? term;
}

/** For a tip: comes once the pointer has rested. */
export function Behind({ row, prefixes }: { row: Row; prefixes: ReadonlyMap<string, string> }) {
  const [found, setFound] = useState<Occurrence[]>([]);
  useEffect(() => {
    setFound([]);
    let over = false;
    const name = tab.peek()?.name;
    const rest = setTimeout(() => {
      if (!name || !served) return;
      justification(name, row.id).then(
        (document) => !over && setFound(occurrences(document)),
        () => undefined,
      );
    }, REST_MS);
    return () => {
      over = true;
      clearTimeout(rest);
    };
  }, [row.id]);
  if (!found.length) return null;
  return (
    <ul class="behind">
      {found.slice(0, MOST).map((each) => (
        <li key={[each.s, each.p, each.o, each.end].join(" ")}>
          <span class="quiet figures">{each.end ? clock(millis(each.end)) : "always"}</span> {shown(each.s, prefixes)} {shown(each.p, prefixes)} {shown(each.o, prefixes)}
        </li>
      ))}
      {found.length > MOST && <li class="quiet">and {found.length - MOST} more</li>}
    </ul>
  );
}
