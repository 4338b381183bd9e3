/** Plays an example's data into its stream at a chosen pace, by the same requests that any client sends. */

import { signal } from "@preact/signals";
import { ApiError } from "epsparql";
import { client } from "../api/client";
import { read, write } from "../api/storage";
import { EXAMPLES, type Example } from "./example_queries";

const KEPT = "epsparql.play";
const TICK_MS = 100;
const DAY_MS = 86_400_000;
const DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal";
/** Instants of the data per second; the last is as fast as the server takes them. */
export const PACES = [8, 40, 200] as const;

export interface Play {
  example: string;
  /** Names the requests, so that one sent again is taken once. */
  id: string;
  at: number;
  /** By how many days the data are moved, when they are played after they were played before. */
  days: number;
  pace: number;
  playing: boolean;
}

export const play = signal<Play | null>(null);
export const played = signal<{ of: number; moment: string; fault: string }>({ of: 0, moment: "", fault: "" });

interface Instant {
  at: string;
  triples: string[];
}

let turn = 0;

export async function start(example: Example): Promise<void> {
  const instants = await load(example);
  const known = (await client.streams()).find((stream) => stream.name === example.stream);
  const days = known?.latest ? Math.max(0, Math.floor((Date.parse(known.latest) - Date.parse(instants[0]!.at)) / DAY_MS) + 1) : 0;
  if (!known?.description) {
    const settings = known && { max_delay: known.max_delay, idle_timeout: known.idle_timeout, max_ahead: known.max_ahead, sources: known.sources, instants: known.instants, local: known.local };
    await client.createStream(example.stream, { ...settings, description: example.source });
  }
  const id = `${example.id}-${Date.now().toString(36)}`;
  set({ example: example.id, id, at: 0, days, pace: PACES[0], playing: true });
  void run(example, instants);
}

/** What was being played when the page was left goes on where it was. */
export async function goOn(): Promise<void> {
  const found = read<Play | null>(sessionStorage, KEPT, null);
  const example = found && EXAMPLES.find((each) => each.id === found.example);
  if (!found || !example) return;
  play.value = found;
  void run(example, await load(example));
}

export const toggle = () => play.value && set({ ...play.value, playing: !play.value.playing });
export const quicken = (pace: number) => play.value && set({ ...play.value, pace });

export function stop(): void {
  turn++;
  set(null);
}

function set(now: Play | null): void {
  play.value = now;
  write(sessionStorage, KEPT, now);
}

async function run(example: Example, instants: readonly Instant[]): Promise<void> {
  const mine = ++turn;
  let owed = 1;
  played.value = { of: instants.length, moment: "", fault: "" };
  while (mine === turn && play.value && play.value.at < instants.length) {
    const now = play.value;
    const batch = now.playing ? instants.slice(now.at, now.at + Math.floor(owed)) : [];
    if (batch.length) {
      owed -= batch.length;
      const ok = await send(example, batch, now);
      if (mine !== turn || !play.value) return;
      if (ok) set({ ...play.value, at: now.at + batch.length });
      else await wait(10 * TICK_MS);
    }
    await wait(TICK_MS);
    if (play.value?.playing) owed = Math.min(owed + (play.value.pace * TICK_MS) / 1000, play.value.pace);
  }
  if (mine === turn) set(null);
}

async function send(example: Example, batch: readonly Instant[], now: Play): Promise<boolean> {
  const lines = batch.map(({ at, triples }) => JSON.stringify({ triples: triples.join("\n"), at: moved(at, now.days) }));
  try {
    await client.send(example.stream, lines.join("\n"), { key: `${now.id}-${now.at}` });
    played.value = { ...played.value, moment: moved(batch[batch.length - 1]!.at, now.days), fault: "" };
    return true;
  } catch (error) {
    const fatal = error instanceof ApiError && error.problem.status >= 400 && error.problem.status !== 429 && error.problem.status < 500;
    played.value = { ...played.value, fault: error instanceof Error ? error.message : String(error) };
    if (fatal && play.value) set({ ...play.value, playing: false });
    return false;
  }
}

const moved = (at: string, days: number) => new Date(Date.parse(at) + days * DAY_MS).toISOString().replace(".000Z", "Z");
const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function load(example: Example): Promise<Instant[]> {
  const [head, ...lines] = (await (await fetch(example.data)).text()).trim().split("\n");
  const quantities = head!.split(",").slice(2);
  const instants: Instant[] = [];
  for (const line of lines) {
    const [at, subject, ...values] = line.split(",");
    if (instants[instants.length - 1]?.at !== at) instants.push({ at: at!, triples: [] });
    values.forEach((value, k) => {
      const triple = `<${example.subject}${subject}> <${example.vocabulary}${quantities[k]}> "${value}"^^<${DECIMAL}> .`;
      if (value) instants[instants.length - 1]!.triples.push(triple);
    });
  }
  return instants;
}
