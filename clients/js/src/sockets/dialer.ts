/**
 * A connection that can be opened again: a WebSocket, or HTTP where a proxy lets no WebSocket through.
 *
 *     Feed, Subscription ── send, close ──▶ Channel ── WebSocket or HTTP ──▶ server
 *                        ◀── messages ── Link ◀── take, closed ──
 */

import { writeSubprotocol } from "../credentials.js";
import { type Http, reasonOf } from "../http.js";
import { Closed, Unreachable } from "../problem.js";
import { BEHIND, type Channel, COMPLETED, type Frame, FULL, GOING_AWAY, LOST, NO_STATUS, NO_TOKEN, PAUSED, STOPPING, writeHead } from "./channel.js";
import { pause } from "./event_loop.js";
import type { Link } from "./link.js";

/** Opens a channel over HTTP. Throws: ApiError; Unreachable. */
export type Opener = (link: Link) => Promise<Channel>;

const RESUMABLE = new Set<number>([PAUSED, GOING_AWAY, LOST, STOPPING, FULL, BEHIND]);
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
