/** A query's solutions, or a stream's events, by server-sent events, read with fetch: an EventSource could not send the token. */

import { Refused } from "./api";

const SLOWEST_MS = 5000;
const TOO_MANY = 429;

export interface Event {
  id: string;
  data: string;
  /** What the event is called, where it is no solution but a notice; it counts for the place to read on from. */
  kind?: string;
}

export type Standing = "connecting" | "live" | "waiting" | "ended" | "gone";

/** The comments with which the server ends for good. */
const ENDED = ["the query is completed", "the query failed", "the stream is finished"];
const GONE = ["the query was dropped", "the stream was deleted"];

/** Follows until `signal` aborts; each time the connection breaks, `open` is called with the last id. */
export async function follow(
  open: (last: string | null, signal: AbortSignal) => Promise<Response>,
  after: string | null,
  take: (events: Event[]) => void,
  tell: (standing: Standing, why?: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = after;
  let pause = 250;
  while (!signal.aborted) {
    let why = "the connection broke";
    tell("connecting");
    try {
      const response = await open(last, signal);
      tell("live");
      pause = 250;
      const end = await read(response, (events) => {
        last = events[events.length - 1]!.id;
        take(events.filter((event) => event.kind === undefined));
      });
      if (ENDED.includes(end)) return tell("ended", end);
      if (GONE.includes(end)) return tell("gone", end);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && isFinal(error.problem.status)) return tell("gone", error.message);
      if (error instanceof Refused && error.problem.status === TOO_MANY) why = error.message;
    }
    tell("waiting", `${why}; it continues after the last one seen`);
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, SLOWEST_MS);
  }
}

/** Refused for good: not for now, as when there are too many subscribers. */
const isFinal = (status: number) => status >= 400 && status < 500 && status !== TOO_MANY;

/** Up to the end of the response; returns its last comment, by which the server says why it ended. */
async function read(response: Response, take: (events: Event[]) => void): Promise<string> {
  let rest = "";
  let comment = "";
  const decoder = new TextDecoder();
  const reader = response.body!.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return comment;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    const events: Event[] = [];
    for (const block of blocks) {
      if (block.startsWith(":")) comment = block.slice(1).trim() || comment;
      const id = /^id: (.*)$/m.exec(block);
      const data = /^data: (.*)$/m.exec(block);
      const kind = /^event: (.*)$/m.exec(block)?.[1];
      if (id && data) events.push({ id: id[1]!, data: data[1]!, ...(kind && { kind }) });
    }
    if (events.length) take(events);
  }
}
