/**
 * A connection that can be opened again: a WebSocket, or HTTP where a proxy lets no WebSocket through.
 *
 *     Feed, Subscription ── send, close ──▶ Channel ── WebSocket or HTTP ──▶ server
 *                        ◀── messages ── Link ◀── take, closed ──
 */

import { writeSubprotocol } from "../credentials.js";
import { type Http, reasonOf } from "../http.js";
import { pause } from "./event_loop.js";
import type { Link } from "./link.js";
import { Closed, Unreachable } from "../problem.js";

/** One body of events. Its `id` lets the server accept it once, however often it is sent. */
export interface Frame {
  id: string | undefined;
  source: SourcePosition | undefined;
  format: "json" | undefined;
  body: string;
  events: number;
}

/** Where a body comes from: it takes the source `id` from the position `after` to `position`, and is accepted once. */
export interface SourcePosition {
  id: string;
  after: string | null;
  position: string | null;
  reset?: boolean;
}

export interface Channel {
  /** A frame begins with its head, which the server counts as a line. */
  readonly writesHeads: boolean;
  send(frame: Frame): void;
  /** Closes; the link is told nothing more. */
  close(): void;
}

/** Opens a channel over HTTP. Throws: ApiError; Unreachable. */
export type Opener = (link: Link) => Promise<Channel>;

export const COMPLETED = 1000;
export const LOST = 1006;
export const REFUSED = 1008;
export const STOPPING = 1012;
export const BEHIND = 4008;
const [GOING_AWAY, NO_STATUS, FULL, NO_TOKEN, NOT_ALLOWED, UNKNOWN] = [1001, 1005, 1013, 4001, 4003, 4004];
/** No close code, but this client's own: the reader has to catch up first. */
export const PAUSED = 0;
/** The code with which the server closes a WebSocket, where it answers a request with a status. */
export const CLOSE_OF_STATUS: Readonly<Record<number, number>> = { 401: NO_TOKEN, 403: NOT_ALLOWED, 404: UNKNOWN, 429: FULL, 503: FULL };
const RESUMABLE = new Set([PAUSED, GOING_AWAY, LOST, STOPPING, FULL, BEHIND]);
const OPEN_MS = 10_000;
/** So many tokens in a row are asked for, if the server refuses each at once. */
const MOST_RENEWALS = 3;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [50, 1000];

/** Opens channels to one path, again and again. */
export class Dialer {
  #socketsWork = false;
  /** The token of the newest channel, and how many were refused in a row. */
  #token: string | null = null;
  #renewals = 0;
  /** While channels fail: until when another one is opened, and after which pause. */
  #deadline: number | null = null;
  #pauseMs = 0;
  #openedAt = 0;

  constructor(
    private readonly http: Http,
    private readonly subprotocols: readonly string[],
    private readonly overHttp: Opener,
  ) {}

  /**
   * Opens a channel within the client's patience. One that the server closes at once, without a message, counts as a failed attempt.
   *
   * Throws: Unreachable; Closed for what another try would only meet again; the reason of the signal, once that is aborted.
   */
  async open(path: () => string, link: Link, signal: AbortSignal): Promise<void> {
    if (Date.now() - this.#openedAt > LONGEST_PAUSE_MS) this.confirm();
    this.#deadline ??= Date.now() + this.http.patienceMs;
    for (let attempt = 0; ; attempt++) {
      if (this.#pauseMs > 0) await pause(this.#pauseMs, signal);
      this.#pauseMs = Math.min(this.#pauseMs * 2 || FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
      const { url } = this.http;
      try {
        link.start(await this.#try(path(), link, attempt));
        this.#openedAt = Date.now();
        break;
      } catch (error) {
        if (error instanceof Closed && !(await this.mayResume(error.code))) throw error;
        if (Date.now() + this.#pauseMs > this.#deadline) throw new Unreachable(url, reasonOf(error));
        this.http.turn();
      }
    }
    if (signal.aborted) link.end(COMPLETED, "");
    signal.throwIfAborted();
  }

  /** Notes that the channel works: if it is lost, another one is opened at once. */
  confirm(): void {
    this.#deadline = null;
    this.#pauseMs = this.#renewals = 0;
  }

  /** Returns whether another try may succeed after a close code. A refused token is asked for anew. */
  async mayResume(code: number): Promise<boolean> {
    if (code !== NO_TOKEN) return RESUMABLE.has(code);
    if (this.#renewals++ >= MOST_RENEWALS) return false; // else a callback whose tokens are all refused would be asked without end
    return this.http.credentials.renew(this.#token);
  }

  /** WebSockets come first. Until one was open, HTTP is tried in every second attempt, because a proxy may refuse WebSockets alone. */
  async #try(path: string, link: Link, attempt: number): Promise<Channel> {
    const { options, credentials } = this.http;
    this.#token = await credentials.get();
    const Socket = options.WebSocket === undefined ? globalThis.WebSocket : options.WebSocket;
    if (!Socket || (!this.#socketsWork && attempt % 2 === 1)) return this.overHttp(link);
    const subprotocols = [...this.subprotocols, ...(this.#token === null ? [] : [writeSubprotocol(this.#token)])];
    const channel = await openSocket(Socket, this.http.address(path).replace(/^http/, "ws"), subprotocols, link);
    this.#socketsWork = true;
    return channel;
  }
}

/** Returns a channel once the socket is open; from then on the link is told. Throws: Error where it does not open. */
function openSocket(Socket: typeof WebSocket, url: string, subprotocols: string[], link: Link): Promise<Channel> {
  return new Promise((done, failed) => {
    const socket = new Socket(url, subprotocols);
    const timer = setTimeout(() => socket.close(), OPEN_MS);
    const channel = {
      writesHeads: true,
      send: (frame: Frame) => socket.send(writeHead(frame) + frame.body),
      close: () => {
        socket.onmessage = socket.onclose = null;
        socket.close();
      },
    };
    socket.onopen = () => {
      clearTimeout(timer);
      socket.onclose = ({ code, reason }) => link.closed(code === NO_STATUS ? LOST : code, reason);
      done(channel);
    };
    socket.onerror = () => {};
    socket.onmessage = ({ data }: MessageEvent<string>) => link.take(data);
    socket.onclose = () => {
      clearTimeout(timer);
      failed(new Error("no WebSocket could be opened"));
    };
  });
}

/** Returns the line before the events, which says what the frame is; it is empty if there is nothing to say. */
export function writeHead({ id, source, format }: Frame): string {
  const head = JSON.stringify({ format, id, source });
  return head === "{}" ? "" : `${head}\n`;
}
