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
  send(frame: Frame): void;
  /** Closes; the link is told nothing more. */
  close(): void;
}

/** Opens a channel over HTTP. Throws: ApiError; Unreachable. */
export type Opener = (link: Link) => Promise<Channel>;

export const NO_TOKEN = 4001;
export const BEHIND = 4008;
export const LOST = 1006;
/** No close code, but this client's own: the reader has to catch up first. */
export const PAUSED = 0;
const RESUMABLE = new Set([PAUSED, 1001, LOST, 1012, 1013, BEHIND]);
const OPEN_MS = 10_000;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [50, 1000];

/** Opens channels to one path, again and again. */
export class Dialer {
  #socketsWork = false;
  /** The token of the newest channel, and the one that was refused last. */
  #token: string | null = null;
  #refused: string | null | undefined;

  constructor(
    private readonly http: Http,
    private readonly subprotocols: readonly string[],
    private readonly overHttp: Opener,
  ) {}

  /** Opens a channel within the client's patience. Throws: Unreachable; Closed for what another try would only meet again. */
  async open(path: () => string, link: Link, signal: AbortSignal): Promise<void> {
    const deadline = Date.now() + this.http.patienceMs;
    let pauseMs = FIRST_PAUSE_MS;
    for (let attempt = 0; ; attempt++) {
      const { url } = this.http;
      try {
        link.channel = await this.#try(path(), link, attempt);
        return;
      } catch (error) {
        if (error instanceof Closed && !(await this.mayResume(error.code))) throw error;
        if (Date.now() + pauseMs > deadline) throw new Unreachable(url, reasonOf(error));
        this.http.turn();
      }
      await pause(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Returns whether another try may succeed after a close code. A refused token is asked for anew, once. */
  async mayResume(code: number): Promise<boolean> {
    if (code !== NO_TOKEN) return RESUMABLE.has(code);
    if (this.#refused === this.#token) return false;
    this.#refused = this.#token;
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

/** Returns a channel once the socket is open. Throws: Error where it does not open. */
function openSocket(Socket: typeof WebSocket, url: string, subprotocols: string[], link: Link): Promise<Channel> {
  return new Promise((done, failed) => {
    const socket = new Socket(url, subprotocols);
    const timer = setTimeout(() => socket.close(), OPEN_MS);
    const channel = {
      send: (frame: Frame) => socket.send(writeHead(frame) + frame.body),
      close: () => {
        socket.onmessage = socket.onclose = null;
        socket.close();
      },
    };
    socket.onopen = () => {
      clearTimeout(timer);
      done(channel);
    };
    socket.onerror = () => {};
    socket.onmessage = ({ data }: MessageEvent<string>) => link.take(data);
    socket.onclose = ({ code, reason }) => {
      clearTimeout(timer);
      failed(new Error("no WebSocket could be opened"));
      link.closed(code === 1005 ? LOST : code, reason);
    };
  });
}

/** Returns the line before the events, which says what the frame is; it is empty if there is nothing to say. */
export function writeHead({ id, source, format }: Frame): string {
  const head = JSON.stringify({ format, id, source });
  return head === "{}" ? "" : `${head}\n`;
}
