/** Gives the events of a stream in the order of arrival, each once, across reconnects. */

import { type Http, reasonOf } from "../http.js";
import { ApiError, Unreachable } from "../problem.js";
import { pause } from "./event_loop.js";
import { readEvents } from "./server_sent_events.js";

export interface TailOptions {
  /** So many of the last events come first: 20. */
  last?: number;
  /** The id after which to continue. */
  after?: string | null;
  /** Is told whether the connection is open or lost. */
  onNotice?: (notice: { kind: "open" | "lost"; reason: string }) => void;
}

/** An event as the stream has it; its terms are in N-Triples. */
export interface StreamEvent {
  id: string;
  s: string;
  p: string;
  o: string;
  g?: string;
  start: string;
  end: string;
  arrived: string;
  offset: number;
  late?: boolean;
}

const ENDS = new Set(["the stream is finished", "the stream was deleted"]);
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [100, 5000];
const TOO_MANY = 429;
/** An idle server sends a comment every 15 s, or as `comment_s` says. */
const SILENCE_MS = 60_000;

export class Tail implements AsyncIterable<StreamEvent> {
  /** The id after which it continues. */
  last: string | null;
  /** Why it ended; empty while it goes on. */
  end = "";
  readonly #over = new AbortController();

  constructor(
    private readonly http: Http,
    private readonly stream: string,
    private readonly options: TailOptions,
  ) {
    this.last = options.after ?? null;
  }

  /** Iterates over events until the stream is finished or deleted, or `close`. Throws: ApiError; Unreachable, once the client's patience is over. */
  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent> {
    let [deadline, pauseMs] = [Date.now() + this.http.patienceMs, FIRST_PAUSE_MS];
    while (!this.#over.signal.aborted && !this.end) {
      let reason = "the connection broke";
      try {
        const body = await this.#open();
        deadline = Infinity;
        pauseMs = FIRST_PAUSE_MS;
        this.options.onNotice?.({ kind: "open", reason: "" });
        yield* this.#read(body);
      } catch (error) {
        if (this.#over.signal.aborted) return;
        if (error instanceof ApiError && !mayRetry(error)) throw error;
        reason = reasonOf(error);
        if (Date.now() > deadline) throw error instanceof ApiError ? error : new Unreachable(this.http.url, reason);
      }
      if (this.end || this.#over.signal.aborted) return;
      this.options.onNotice?.({ kind: "lost", reason });
      deadline = Math.min(deadline, Date.now() + this.http.patienceMs);
      await pause(pauseMs, this.#over.signal).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  get isClosed(): boolean {
    return this.#over.signal.aborted;
  }

  /** Closes the connection; the iteration ends. */
  close(): void {
    this.#over.abort();
  }

  async #open(): Promise<ReadableStream<Uint8Array>> {
    const query = { last: this.options.last ?? 20, after: this.last };
    const options = { path: { name: this.stream }, query, headers: { Accept: "text/event-stream" }, signal: this.#over.signal };
    return (await this.http.request("get", "/streams/{name}/events", options)).body!;
  }

  async *#read(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
    for await (const { id, data, comment } of readEvents(body, SILENCE_MS)) {
      if (data !== null) {
        this.last = id ?? this.last;
        yield { id: id ?? "", ...(JSON.parse(data) as Omit<StreamEvent, "id">) };
      } else if (id !== null) this.last = id;
      else if (comment !== null && ENDS.has(comment)) this.end = comment;
    }
  }
}

function mayRetry(error: ApiError): boolean {
  return error.status === 0 || error.status === TOO_MANY || error.status >= 500;
}
