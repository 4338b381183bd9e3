/** Addresses of what the page shows: `#/query/alert/chart?solution=…&from=…&to=…`, `#/stream/hall`, `#/background/…`, `#/trials/…`, or one of the other pages. */

import type { View } from "./server_state";
import { type Pane, PANES } from "./tabs";

/** Pages by the first part of their addresses. */
const PAGES = { examples: "examples", file: "file", connectors: "connectors", sparql: "sparql", lag: "health" } as const;
const WORDS = Object.fromEntries(Object.entries(PAGES).map(([word, kind]) => [kind, word]));

/** The parts of a page's address. That of the open tab has the tab's name, so it is written as one that is sought. */
export function pathOf(shown: View): string[] {
  if (shown.kind === "sought") return ["query", shown.name];
  if (shown.kind === "stream") return ["stream", shown.name];
  if (shown.kind === "ontologies") return ["background", ...(shown.name === null ? [] : [shown.name])];
  if (shown.kind === "trials") return ["trials", ...(shown.id === null ? [] : [shown.id])];
  return [WORDS[shown.kind] ?? "examples"];
}

/** What is chosen on a page: a solution by its id, and a range of time as fields have it. */
export interface Chosen {
  solution?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

export function hashOf(path: readonly string[], pane: Pane | null = null, chosen: Chosen = {}): string {
  const parts = pane === null || pane === "solutions" ? path : [...path, pane];
  const rest = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${rest && "?"}${rest}`;
}

/** What an address names; null for one that names nothing. */
export function readHash(hash: string): { view: View; chosen: Chosen } | null {
  const [path, rest] = hash.slice(2).split("?");
  const [page = "", name = null, below] = path!.split("/").map(decoded);
  const view = viewOf(page, name, PANES.find((each) => each === below) ?? "solutions");
  return view && { view, chosen: Object.fromEntries(new URLSearchParams(rest)) };
}

function viewOf(page: string, name: string | null, pane: Pane): View | null {
  if (page === "query" && name) return { kind: "sought", name, pane };
  if (page === "stream" && name) return { kind: "stream", name };
  if (page === "background") return { kind: "ontologies", name: name || null };
  if (page === "trials") return { kind: "trials", id: name || null };
  return Object.hasOwn(PAGES, page) ? { kind: PAGES[page as keyof typeof PAGES] } : null;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
