/** Query texts being worked on: kept in this browser, and shared as links that hold all of one. */

import { computed, effect, signal } from "@preact/signals";
import type { From, QuerySummary, Wish } from "../api/client";
import { read, write } from "../api/storage";

const KEPT = "epsparql.tabs";
const LONGEST_LINK = 60_000;

export const PANES = ["solutions", "chart", "map", "plan", "partial", "versions", "webhooks"] as const;
export type Pane = (typeof PANES)[number];

export interface Tab extends Wish {
  /** Distinguishes tabs; never shown. */
  key: number;
  /** The name that the query is registered under. */
  name: string;
  from?: From;
  pane?: Pane;
  /** The variables whose values the chart shows. */
  values?: string[];
  /** The variable that parts the chart's lines and the map's colours; null for none. */
  by?: string | null;
}

const kept = read<{ tabs: Tab[]; open: number }>(localStorage, KEPT, { tabs: [], open: 0 });
export const tabs = signal<readonly Tab[]>(kept.tabs);
export const open = signal(kept.open);
export const tab = computed(() => tabs.value.find((each) => each.key === open.value) ?? tabs.value[0] ?? null);

/** What is shown below the text of the open tab: of each tab what was chosen there. */
export const pane = computed<Pane>(() => tab.value?.pane ?? "solutions");
export const choose = (pane: Pane) => change({ pane });

effect(() => write(localStorage, KEPT, { tabs: tabs.value, open: open.value }));

export function add(name: string, wish: Partial<Wish> = {}): void {
  const key = Math.max(0, ...tabs.value.map((each) => each.key)) + 1;
  tabs.value = [...tabs.value, { key, name, query: "", policy: "unrestricted", default_graph: "all", ...wish }];
  open.value = key;
}

export function change(part: Partial<Tab>): void {
  const key = tab.value?.key;
  tabs.value = tabs.value.map((each) => (each.key === key ? { ...each, ...part } : each));
}

export function close(key: number): void {
  const at = tabs.value.findIndex((each) => each.key === key);
  tabs.value = tabs.value.filter((each) => each.key !== key);
  if (open.value === key) open.value = (tabs.value[at] ?? tabs.value[at - 1])?.key ?? 0;
}

/** The tab of this name, with this text unless there is one already. */
export function show(name: string, wish: Partial<Wish>): void {
  const found = tabs.value.find((each) => each.name === name);
  if (found) open.value = found.key;
  else add(name, wish);
}

export const showQuery = (query: QuerySummary) => show(query.name, { query: query.query, policy: query.policy, default_graph: query.default_graph });

export function unused(stem: string, taken: Iterable<string>): string {
  const names = new Set([...taken, ...tabs.value.map((each) => each.name)]);
  for (let n = 1; ; n++) if (!names.has(n === 1 ? stem : `${stem}-${n}`)) return n === 1 ? stem : `${stem}-${n}`;
}

/** In what a registered query is another one; white space around a text makes none. */
export function differences(of: Wish, query: QuerySummary): string[] {
  const same = { text: of.query.trim() === query.query.trim(), policy: of.policy === query.policy, "default graph": of.default_graph === query.default_graph };
  return Object.entries(same).flatMap(([what, is]) => (is ? [] : [what]));
}

// ---------------------------------------------------------------- links
export function link(of: Tab): string | null {
  const parameters = new URLSearchParams({ name: of.name, query: of.query });
  if (of.policy !== "unrestricted") parameters.set("policy", of.policy);
  if (of.default_graph !== "all") parameters.set("default_graph", of.default_graph);
  const hash = parameters.toString();
  return hash.length > LONGEST_LINK ? null : `${location.origin}${location.pathname}#${hash}`;
}

/** Opens the query that a link holds, and never runs it: who follows a link looks first. Returns whether the hash is such a link. */
export function takeLink(hash: string): boolean {
  const parameters = new URLSearchParams(hash.slice(1));
  const query = parameters.get("query");
  if (query === null) return false;
  const name = parameters.get("name") || "shared";
  const found = tabs.value.find((each) => each.name === name);
  if (found?.query === query) open.value = found.key;
  else
    add(found ? unused(name, []) : name, {
      query,
      policy: parameters.get("policy") ?? "unrestricted",
      default_graph: parameters.get("default_graph") ?? "all",
    });
  return true;
}
