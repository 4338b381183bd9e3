/** The address has what is looked at: the page, the tab, the view below it and the chosen solution. So reload, Back and links work. */

import { batch, computed, effect, untracked } from "@preact/signals";
import { range, seekRange } from "./chart/period";
import { selected, sought } from "./solutions/selection";
import { type Chosen, hashOf, pathOf, readHash } from "./state/places";
import { overlay, queries, view } from "./state/server_state";
import { choose, open, type Pane, pane, showQuery, tab, tabs, takeLink } from "./state/tabs";

interface Place {
  /** The page, without what is chosen on it. */
  path: readonly string[];
  pane: Pane | null;
  /** The tab's key: under another name, it is the same place. */
  tab: number | null;
  chosen: Chosen;
}

const place = computed<Place>(() => {
  const shown = view.value;
  const solution = selected.value?.id ?? sought.value ?? undefined;
  const chosen = (below: Pane): Chosen => ({ solution, ...((below === "chart" || below === "map") && range.value) });
  if (shown.kind === "query" && tab.value) return { path: ["query", tab.value.name], pane: pane.value, tab: tab.value.key, chosen: chosen(pane.value) };
  if (shown.kind === "sought") return { path: pathOf(shown), pane: shown.pane, tab: null, chosen: chosen(shown.pane) };
  return { path: pathOf(shown), pane: null, tab: null, chosen: shown.kind === "trials" ? { solution } : {} };
});

/** Show what the address names. One that names nothing changes nothing. */
function take(): void {
  if (takeLink(location.hash)) return void (view.value = { kind: "query" });
  const found = readHash(location.hash);
  if (!found) return;
  batch(() => {
    view.value = found.view;
    selected.value = null;
    if (overlay.peek() === "rail") overlay.value = "";
  });
  const { solution, from, to } = found.chosen;
  sought.value = solution ?? null; // now that what was chosen on the page before is forgotten
  if (found.view.kind === "sought") seekRange(from || to ? { from: from ?? "", to: to ?? "" } : null);
}

/** Open the query that is sought, in its tab or in a new one, as soon as it is known. */
function find(): void {
  const wanted = view.value;
  if (wanted.kind !== "sought") return;
  const known = tabs.value.find(({ name }) => name === wanted.name);
  const query = queries.value.find(({ name }) => name === wanted.name);
  if (!known && !query) return;
  untracked(() =>
    batch(() => {
      if (known) open.value = known.key;
      else showQuery(query!);
      choose(wanted.pane);
      view.value = { kind: "query" };
    }),
  );
}

/** Forget what is chosen on a page when another one is shown. */
function forget(): void {
  let before = "";
  effect(() => {
    const now = JSON.stringify(place.value.path);
    if (before && now !== before)
      untracked(() =>
        batch(() => {
          selected.value = null;
          sought.value = null;
          seekRange(null);
        }),
      );
    before = now;
  });
}

/** Whether a step between two places is none that Back undoes: another name of a tab, or another solution beside the table. */
function isSame(a: Place, b: Place): boolean {
  const page = a.tab === null ? String(a.path) === String(b.path) : a.tab === b.tab;
  return page && a.pane === b.pane && a.chosen.from === b.chosen.from && a.chosen.to === b.chosen.to && !a.chosen.solution === !b.chosen.solution;
}

/** Keep the address and what is shown the same. What a click changes in several steps is one entry of the history. */
export function followAddress(): void {
  let before: Place | null = null;
  let waits = false;
  const record = () => {
    waits = false;
    const now = place.peek();
    const hash = hashOf(now.path, now.pane, now.chosen);
    if (hash !== location.hash) history[before && !isSame(before, now) ? "pushState" : "replaceState"](null, "", hash);
    before = now;
  };
  const follow = () => {
    take();
    before = null; // the browser has made the entry
    queueMicrotask(record);
  };
  follow();
  effect(find);
  forget();
  effect(() => {
    place.value; // each change of it is recorded
    if (!waits) queueMicrotask(record);
    waits = true;
  });
  addEventListener("hashchange", follow);
}
