/** What came over one channel and was not taken yet, and how the channel ended. */

import { type Channel, LOST, PAUSED } from "./channel.js";

/** So many characters may wait. Then the channel is closed; reading goes on over a new one, after the last message that was taken. */
const MOST_CHARACTERS = 16 << 20;

export class Link {
  channel: Channel | null = null;
  closedWith: { code: number; reason: string } | null = null;
  /** The older messages, the oldest last, and the newer ones, the newest last: `shift` of one array would move all that wait. */
  #older: string[] = [];
  #newer: string[] = [];
  #size = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `wake` is called for each message, and at the end. After `silenceMs` without a message the connection counts as lost; 0 stands for never. */
  constructor(
    private readonly wake: () => void,
    private readonly silenceMs: number,
  ) {}

  /** Begins with an open channel. */
  start(channel: Channel): void {
    this.channel = channel;
    if (this.closedWith === null) this.listen();
  }

  /** Takes a message from the channel. */
  take(message: string): void {
    if (this.closedWith !== null) return;
    this.#newer.push(message);
    this.#size += message.length;
    if (this.#size > MOST_CHARACTERS) this.end(PAUSED, "the reader is slower than the server");
    else this.listen();
    this.wake();
  }

  /** Notes that the channel was closed. */
  closed(code: number, reason: string): void {
    clearTimeout(this.#timer);
    this.closedWith ??= { code, reason };
    this.wake();
  }

  /** Returns the next message; undefined where none waits. */
  next(): string | undefined {
    if (this.#older.length === 0) [this.#older, this.#newer] = [this.#newer.reverse(), []];
    const found = this.#older.pop();
    this.#size -= found?.length ?? 0;
    return found;
  }

  /** Closes the channel. */
  end(code: number, reason: string): void {
    this.channel?.close();
    this.closed(code, reason);
  }

  /** Begins to wait for a message anew. */
  listen(): void {
    clearTimeout(this.#timer);
    if (this.silenceMs > 0) this.#timer = setTimeout(() => this.end(LOST, `nothing came for ${this.silenceMs / 1000} s`), this.silenceMs);
  }

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return this.#older.length + this.#newer.length === 0;
  }
}

/** Wakes those who wait for news. */
export class News {
  #wake: () => void = () => {};
  #next = this.#renew();

  #renew(): Promise<void> {
    return new Promise((done) => (this.#wake = done));
  }

  /** Resolves at the next `tell`. */
  wait(): Promise<void> {
    return this.#next;
  }

  tell = (): void => {
    this.#wake();
    this.#next = this.#renew();
  };
}
