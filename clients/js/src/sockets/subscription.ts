/** Gives the solutions of a query in order, each once, across reconnects. */

import type { Http } from "../http.js";
import { ApiError, Closed } from "../problem.js";
import { BEHIND, type Channel, CLOSE_OF_STATUS, COMPLETED, LOST, PAUSED, REFUSED, STOPPING } from "./channel.js";
import { Dialer } from "./dialer.js";
import { Link, News } from "./link.js";
import { type Change, type Notice, readMessage, Solution, type Word } from "./messages.js";
import { readEvents } from "./server_sent_events.js";

export interface FollowOptions {
  /** The id of the last solution or notice that was read already; without it, the first solution comes first. */
  after?: string | null;
  /** A reader that is too slow is disconnected, and resumes; or it loses the oldest solutions, and is told of the gap. */
  policy?: "disconnect" | "drop-oldest";
  /** The id of the instance whose solutions are followed, of a query with PARAMETERS; without it, those of all. */
  instance?: string;
  /** Is told of progress, gaps, promotions, and of the connection, while solutions or changes are iterated over. */
  onNotice?: (notice: Notice) => void;
  /** A connection on which nothing came for so long is opened anew: 60 s; 0 stands for never. */
  silenceMs?: number;
}

const [DROPPED, FAILED] = [4004, 1011];
const ENDS: Readonly<Record<string, number>> = { "the query is completed": COMPLETED, "the query was dropped": DROPPED, "the query failed": FAILED, "the server stops": STOPPING };
const FINISHED = "no further solution will follow";
const CLOSES: typeof CLOSE_OF_STATUS = { ...CLOSE_OF_STATUS, 400: REFUSED, 410: REFUSED };
const SILENCE_MS = 60_000;

export class Subscription implements AsyncIterable<Solution> {
  /** The id of the newest solution or notice that was given out: keep it, and give it as `after` to resume. */
  last: string | null;
  readonly #dialer: Dialer;
  readonly #news = new News();
  readonly #over = new AbortController();
  #link: Link | null = null;
  #opening: Promise<void> | null = null;
  #lines: string[] = [];
  #notices: Notice[] = [];

  constructor(
    private readonly http: Http,
    private readonly query: string,
    private readonly options: FollowOptions,
  ) {
    this.last = options.after ?? null;
    this.#dialer = new Dialer(http, ["epsparql.v1+ndjson", "epsparql.v1+json"], (link) => this.#openEvents(link));
  }

  /** Connects now rather than at the first `next`. Throws: Unreachable; Closed. */
  async open(): Promise<void> {
    if (this.#link === null) await (this.#opening ??= this.#connect().finally(() => (this.#opening = null)));
  }

  async #connect(): Promise<void> {
    this.#lines = []; // they come again, since the address says which one was the last
    const link = new Link(this.#news.tell, this.options.silenceMs ?? SILENCE_MS);
    await this.#dialer.open(() => this.#path, link, this.#over.signal);
    this.#link = link;
    this.#notices.push({ kind: "open", reason: "" });
  }

  /**
   * Returns the next solution, change or notice; null after `timeoutMs`, or once it was closed.
   *
   * Throws: Closed when the server ends it, with code 1000 for a query that is completed; Unreachable.
   */
  async next(timeoutMs = Infinity): Promise<Word | null> {
    const deadline = timeoutMs === Infinity ? null : Date.now() + timeoutMs;
    const { signal } = this.#over;
    try {
      while (!signal.aborted) {
        const found = this.#take();
        if (found) return found;
        if (this.#link?.closedWith && this.#link.isEmpty) await this.#end(this.#link.closedWith);
        else if (this.#link === null) await this.open();
        else if (this.#link.isEmpty && !(await within(this.#news.wait(), deadline))) return null;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return null;
  }

  /** Closes the connection; iterations end. Another call of `next` ends too. */
  close(): void {
    this.#over.abort(new Closed(COMPLETED, "closed by its reader"));
    this.#link?.end(COMPLETED, "");
    this.#link = null;
    this.#news.tell();
  }

  /** Iterates over solutions until no further one can come, or `close`. Throws: as `next`. */
  [Symbol.asyncIterator](): AsyncGenerator<Solution> {
    return this.#of("solution");
  }

  /** Iterates over the changes of a revised query, as over solutions. */
  changes(): AsyncGenerator<Change> {
    return this.#of("change");
  }

  /** Iterates over all that is said: solutions, changes and notices. */
  async *words(): AsyncGenerator<Word> {
    try {
      for (let word = await this.next(); word !== null; word = await this.next()) {
        yield word;
        if (word.kind === "progress" && word.finished) return;
      }
    } catch (error) {
      if (!(error instanceof Closed && error.code === COMPLETED)) throw error;
    } finally {
      this.#link?.end(COMPLETED, "");
      this.#link = null;
    }
  }

  async *#of<Kind extends "solution" | "change">(kind: Kind): AsyncGenerator<Extract<Word, { kind: Kind }>> {
    for await (const word of this.words()) {
      if (word.kind === kind) yield word as Extract<Word, { kind: Kind }>;
      else if (word.kind !== "solution" && word.kind !== "change") this.options.onNotice?.(word);
    }
  }

  /** Returns what is there already. */
  #take(): Word | undefined {
    for (;;) {
      const notice = this.#notices.shift();
      if (notice) return notice;
      if (this.#lines.length === 0) this.#lines = this.#link?.next()?.trimEnd().split("\n").reverse() ?? [];
      const line = this.#lines.pop();
      if (line === undefined) return undefined;
      this.#dialer.confirm();
      const found = readMessage(line);
      if (found === null) continue;
      this.last = found.last ?? this.last;
      return found.word;
    }
  }

  async #end({ code, reason }: { code: number; reason: string }): Promise<void> {
    this.#link = null;
    if (code === PAUSED) return;
    if (!(await this.#dialer.mayResume(code))) throw new Closed(code, reason);
    this.#notices.push({ kind: code === BEHIND ? "behind" : "lost", reason: reason || "the connection broke" });
  }

  get #path(): string {
    const parameters = new URLSearchParams({ policy: this.options.policy ?? "disconnect", ...(this.last && { after: this.last }) });
    const part = this.options.instance === undefined ? "" : `/instances/${encodeURIComponent(this.options.instance)}`;
    return `/queries/${encodeURIComponent(this.query)}${part}/feed?${parameters}`;
  }

  /** Follows by Server-Sent Events, and gives the same messages. */
  async #openEvents(link: Link): Promise<Channel> {
    const abort = new AbortController();
    try {
      const options = { query: { after: this.last }, headers: { Accept: "text/event-stream" }, signal: abort.signal };
      const [name, instance] = [this.query, this.options.instance];
      const response =
        instance === undefined
          ? await this.http.request("get", "/queries/{name}/events", { ...options, path: { name } })
          : await this.http.request("get", "/queries/{name}/instances/{instance}/events", { ...options, path: { name, instance } });
      void readInto(response, link);
    } catch (error) {
      if (error instanceof ApiError && error.status in CLOSES) throw new Closed(CLOSES[error.status]!, error.message);
      throw error;
    }
    return { writesHeads: false, send: () => {}, close: () => abort.abort() };
  }
}

async function readInto(response: Response, link: Link): Promise<void> {
  let comment = "";
  try {
    for await (const event of readEvents(response.body!, 0)) {
      comment = event.comment || comment;
      if (event.comment === FINISHED) link.take('{"progress":{"watermark":"","finished":true}}');
      else if (event.data === null) link.listen();
      else link.take(writeMessage(event.event, event.data));
    }
    link.closed(ENDS[comment] ?? LOST, comment);
  } catch (error) {
    link.closed(LOST, String(error));
  }
}

/** Returns the message of a WebSocket that says the same as an event. */
function writeMessage(event: string | null, data: string): string {
  if (event === "promoted") return `{"promoted":${data}}`;
  return data.includes('"withdrawn":') && "seq" in (JSON.parse(data) as object) ? `{"change":${data}}` : `{"solution":${data}}`;
}

/** Returns whether `news` came before the deadline. */
async function within(news: Promise<void>, deadline: number | null): Promise<boolean> {
  if (deadline === null) {
    await news;
    return true;
  }
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((done) => (timer = setTimeout(() => done(false), Math.max(deadline - Date.now(), 0))));
  const found = await Promise.race([news.then(() => true), late]);
  clearTimeout(timer);
  return found;
}
