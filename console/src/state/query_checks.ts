/** The server's word on the text in the editor, asked for when the writer pauses, and at once for a text that was opened. */

import { effect, signal } from "@preact/signals";
import { ApiError } from "epsparql";
import { type CheckDocument, client, type Mark, optionsOf } from "../api/client";
import { admin } from "./server_state";
import { tab } from "./tabs";

const PAUSE_MS = 250;
const AGAIN_MS = 2000;
const LIVE_MS = 30_000;
/** No answer, too many requests, not ready. */
const PASSING = [0, 429, 503];

export interface Checked extends CheckDocument {
  /** What was looked at; the marks hold for this text alone. */
  text: string;
}

export const checked = signal<Checked | null>(null);
/** Why the server's word is missing, if it was asked for in vain; it is asked for again. */
export const unchecked = signal("");

let control = new AbortController();
let waiting = 0;
let seen = "";
let shown = 0;

effect(() => {
  const now = tab.value;
  const key = now ? JSON.stringify([now.key, now.query, now.policy, now.default_graph, now.name]) : "";
  if (key === seen) return;
  seen = key;
  clearTimeout(waiting);
  control.abort();
  if (!now?.query.trim()) {
    checked.value = null;
    return;
  }
  const pause = now.key === shown ? PAUSE_MS : 0;
  shown = now.key;
  waiting = window.setTimeout(() => void look(now.query, now.policy, now.default_graph, now.name), pause);
});

/** Look again though the text is the same, as after the token changed. */
export function lookAgain(): void {
  const now = tab.peek();
  if (now?.query.trim()) void look(now.query, now.policy, now.default_graph, now.name);
}

/** Warnings follow the data of the server, so a text that rests is looked at again. */
setInterval(() => {
  if (!document.hidden && checked.peek()?.text === tab.peek()?.query) lookAgain();
}, LIVE_MS);

async function look(query: string, policy: string, default_graph: string, name: string): Promise<void> {
  if (!admin.peek()) return void (checked.value = null);
  control = new AbortController();
  try {
    const found = await client.check({ query, ...optionsOf({ policy, default_graph }), name }, control.signal);
    checked.value = { ...found, text: query };
    unchecked.value = "";
  } catch (error) {
    if (!(error instanceof ApiError)) return;
    checked.value = null;
    unchecked.value = error.message;
    if (PASSING.includes(error.problem.status)) waiting = window.setTimeout(lookAgain, AGAIN_MS);
  }
}

/** Where a mark lies in the text, in UTF-16 units as editors count; the server counts code points. */
export function range(mark: Mark, text: string): [from: number, to: number] {
  if (mark.line === null || mark.column === null) return [0, 0];
  const from = offset(text, mark.line, mark.column);
  const to = mark.end_line === null || mark.end_column === null ? from : offset(text, mark.end_line, mark.end_column);
  if (to > from) return [from, to];
  const word = /^[\w:?.-]+|^\S/u.exec(text.slice(from));
  return word ? [from, from + word[0].length] : [Math.max(0, text.slice(0, from).trimEnd().length - 1), from];
}

function offset(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const points = [...(lines[line - 1] ?? "")].slice(0, column - 1);
  return before + points.join("").length;
}
