/**
 * Sends events to a stream, in frames that the server acknowledges in order.
 *
 *     send ─▶ batch ─ full, or after a moment ─▶ unanswered frames ─▶ channel
 *                                                └ removed by their answers; sent again over a new channel
 *
 * A frame that is sent again is no second event: its events carry their times, or the frame has an id that the server remembers.
 */

import { type Http, reasonOf } from "../http.js";
import { ApiError, Closed, type Problem, Unreachable } from "../problem.js";
import type { EventTime } from "../terms/event_lines.js";
import { Batch, type FeedEvent } from "./batch.js";
import { type Channel, CLOSE_OF_STATUS, COMPLETED, type Frame, LOST, type SourcePosition, writeHead } from "./channel.js";
import { Dialer } from "./dialer.js";
import { yieldTurn } from "./event_loop.js";
import { Link, News } from "./link.js";

export interface FeedOptions {
  /** So many frames may be unanswered, 256 at most; `send` waits then. */
  window?: number;
  /** A frame holds at most so many events: 500. */
  batch?: number;
  /** Events wait so long for others to share a frame: 5 ms. */
  lingerMs?: number;
  /** With `json`, an event is any object, which the stream's mapping reads. */
  format?: "json";
}

export interface SendOptions {
  /** The time of events that have none; without it, the time of their arrival. */
  time?: EventTime;
  /** The events make one frame, which comes from this source. */
  source?: SourcePosition;
}

/** So many characters may be unanswered when `send` is called: more than a caller has who waits for each `send`. */
const MOST_CHARACTERS = 64 << 20;
const SILENCE_MS = 60_000;

export class Feed {
  /** The newest acknowledged position of the log, and how many frames were answered. */
  acked = 0;
  answered = 0;
  readonly #dialer: Dialer;
  readonly #news = new News();
  readonly #over = new AbortController();
  readonly #batch: Batch;
  readonly #frames: Frame[] = [];
  readonly #refusals: ApiError[] = [];
  /** Why sending ended; the next call tells it, and the one after it tries again. */
  #failure: Error | null = null;
  #sent = 0;
  /** The characters of unanswered frames. */
  #unanswered = 0;
  /** Frames were made since the event loop had its last turn. */
  #owesTurn = false;
  #link: Link | null = null;
  #running = false;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly http: Http,
    private readonly stream: string,
    private readonly options: FeedOptions,
  ) {
    this.#batch = new Batch(options.format, options.batch ?? 500);
    this.#dialer = new Dialer(http, ["epsparql.v1+json"], (link) => this.#openHttp(link));
  }

  /**
   * Takes events, and resolves when there is room for more. `flush` waits until they are durable.
   *
   * Throws before it takes them: TypeError for what is no event; Closed after `close`; RangeError if earlier calls were not awaited, and too much waits.
   * Throws, once each and after it has taken them: ApiError for an earlier frame that was refused (later ones go on); Unreachable; Closed.
   */
  async send(events: FeedEvent | Iterable<FeedEvent>, { time, source }: SendOptions = {}): Promise<void> {
    this.#over.signal.throwIfAborted();
    const window = Math.min(this.options.window ?? 256, 256);
    if (this.#unanswered > MOST_CHARACTERS && this.#frames.length > window)
      throw new RangeError(`the feed of ${this.stream} has ${this.#frames.length} unanswered frames; await each send`);
    const lines = this.#batch.write(events, time);
    if (source) this.#cut();
    for (const line of lines) {
      this.#batch.add(line);
      if (this.#batch.isFull && !source) this.#cut();
    }
    if (source) this.#cut(source);
    else if (!this.#batch.isEmpty) this.#linger ??= setTimeout(() => this.#cut(), this.options.lingerMs ?? 5);
    this.#raise();
    await this.#takeTurn();
    while (this.#frames.length > window) await this.#wait();
  }

  /** Waits until every event is answered; returns `acked`. Throws: as `send`. */
  async flush(): Promise<number> {
    this.#cut();
    this.#raise();
    while (this.#frames.length > 0) await this.#wait();
    this.#raise();
    return this.acked;
  }

  /** Waits until every event is answered, also those after a refused frame, and closes the connection. Throws: as `send`; what was not answered then is given up. */
  async close(): Promise<void> {
    if (this.#over.signal.aborted) return;
    try {
      await this.#flushAll();
    } finally {
      this.#over.abort(new Closed(COMPLETED, "closed by its sender"));
      this.#link?.end(COMPLETED, "");
      this.#link = null;
    }
  }

  /** Waits until every event is answered. Throws: the first refusal, at the end; Unreachable; Closed. */
  async #flushAll(): Promise<void> {
    let refusal: ApiError | null = null;
    do {
      try {
        await this.flush();
      } catch (error) {
        if (!(error instanceof ApiError) || error instanceof Unreachable) throw error;
        refusal ??= error;
      }
    } while (this.#frames.length > 0 || this.#refusals.length > 0);
    if (refusal) throw refusal;
  }

  /** Makes a frame of the events that wait. */
  #cut(source?: SourcePosition): void {
    clearTimeout(this.#linger);
    this.#linger = undefined;
    if (this.#batch.isEmpty) return;
    const frame = this.#batch.cut(source);
    this.#frames.push(frame);
    this.#unanswered += frame.body.length;
    this.#owesTurn = true;
    this.#start();
  }

  /** Lets the platform write frames and read answers: a loop over `send` would otherwise hold both up until the window is full. */
  async #takeTurn(): Promise<void> {
    if (!this.#owesTurn) return;
    this.#owesTurn = false;
    await yieldTurn();
  }

  #raise(): void {
    this.#start();
    const error = this.#refusals.shift() ?? this.#failure;
    if (error === this.#failure) this.#failure = null;
    if (error) throw error;
  }

  async #wait(): Promise<void> {
    this.#over.signal.throwIfAborted();
    this.#raise();
    await this.#news.wait();
    this.#raise();
  }

  #start(): void {
    if (this.#running) this.#sendFrames();
    else if (this.#frames.length > 0 && this.#failure === null) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (this.#frames.length > 0) {
        this.#link ??= await this.#connect();
        this.#sendFrames();
        if (this.#link.isEmpty && this.#link.closedWith === null) await this.#news.wait();
        await this.#takeAnswers(this.#link);
      }
    } catch (error) {
      this.#forget();
      if (!this.#over.signal.aborted) this.#failure = error as Error;
    }
    this.#running = false;
    this.#news.tell();
  }

  async #connect(): Promise<Link> {
    const link = new Link(this.#news.tell, SILENCE_MS);
    await this.#dialer.open(() => `/streams/${encodeURIComponent(this.stream)}/feed`, link, this.#over.signal);
    return link;
  }

  #sendFrames(): void {
    if (!this.#link?.channel || this.#link.closedWith !== null) return;
    if (this.#sent === 0) this.#link.listen(); // an answer is awaited from now on
    while (this.#sent < this.#frames.length) this.#link.channel.send(this.#frames[this.#sent++]!);
  }

  async #takeAnswers(link: Link): Promise<void> {
    for (let message = link.next(); message !== undefined; message = link.next()) {
      const answer = JSON.parse(message) as Answer;
      if (answer.error?.status === UNAVAILABLE && this.http.turn()) {
        link.end(LOST, answer.error.detail); // another server has the store now, and is sent the frame again
        break;
      }
      this.#takeAnswer(answer, link.channel!.writesHeads);
    }
    this.#news.tell();
    if (link.closedWith === null) return;
    this.#forget();
    const { code, reason } = link.closedWith;
    if (!(await this.#dialer.mayResume(code))) throw new Closed(code, reason);
  }

  #takeAnswer(answer: Answer, hasHead: boolean): void {
    this.#dialer.confirm();
    const frame = this.#frames.shift()!;
    this.#sent--;
    this.#unanswered -= frame.body.length;
    this.answered++;
    if (answer.error) this.#refusals.push(new ApiError(hasHead ? placeInBody(answer.error, frame) : answer.error, frame.events));
    else this.acked = answer.ack!;
  }

  #forget(): void {
    this.#link?.end(COMPLETED, "");
    this.#link = null;
    this.#sent = 0;
  }

  /** Sends frames by POST, one after the other. */
  async #openHttp(link: Link): Promise<Channel> {
    await this.http.json("get", "/livez");
    let queue = Promise.resolve();
    const post = async (frame: Frame) => {
      if (link.closedWith === null) await postFrame(this.http, this.stream, frame, link);
    };
    return { writesHeads: false, send: (frame) => (queue = queue.then(() => post(frame))), close: () => {} };
  }
}

/** Returns a problem whose line counts from the first event; JSON is one line. */
function placeInBody(problem: Problem, frame: Frame): Problem {
  return problem.line && writeHead(frame) ? { ...problem, line: Math.max(problem.line - 1, 1) } : problem;
}

interface Answer {
  ack?: number;
  error?: Problem;
}

const UNAVAILABLE = 503;

async function postFrame(http: Http, stream: string, { id, source, format, body }: Frame, link: Link): Promise<void> {
  const headers = {
    "Content-Type": format === "json" ? "application/json" : "application/x-ndjson",
    "Idempotency-Key": id,
    "Epsparql-Source": source && JSON.stringify(source),
  };
  try {
    const { offset, ...rest } = await http.json("post", "/streams/{name}/events", { path: { name: stream }, body, headers });
    link.take(JSON.stringify({ ack: offset, ...rest }));
  } catch (error) {
    if (!(error instanceof ApiError) || error instanceof Unreachable) link.closed(LOST, reasonOf(error));
    else if (error.status in CLOSE_OF_STATUS) link.closed(CLOSE_OF_STATUS[error.status]!, error.message);
    else link.take(JSON.stringify({ error: error.problem }));
  }
}
