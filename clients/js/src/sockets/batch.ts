/** Events that wait to share a frame. */

import { type Event, type EventTime, writeEvent } from "../terms/event_lines.js";
import type { Frame, SourcePosition } from "./channel.js";

/** An event, or lines of ndjson; with the format `json`, any object. */
export type FeedEvent = Event | string | object;

/** The text of one event, and whether it says when the event was. */
export interface EventLine {
  line: string;
  isTimed: boolean;
}

const FRAME_CHARACTERS = 64 << 10;
const HAS_TIME = /"(?:at|start)"\s*:/;

export class Batch {
  /** Ids of frames begin with this, and end with their number. */
  readonly #ids = crypto.getRandomValues(new Uint32Array(4)).join("-");
  #numbers = 0;
  #lines: string[] = [];
  #size = 0;
  #isTimed = true;

  constructor(
    private readonly format: "json" | undefined,
    private readonly mostEvents: number,
  ) {}

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }
  get isFull(): boolean {
    return this.#lines.length >= this.mostEvents || this.#size >= FRAME_CHARACTERS;
  }

  /** Returns the texts of events. Throws: TypeError for what is no event. */
  write(events: FeedEvent | Iterable<FeedEvent>, time: EventTime | undefined): EventLine[] {
    const found: EventLine[] = [];
    for (const event of isMany(events) ? events : [events]) {
      if (this.format === "json") found.push({ line: typeof event === "string" ? event : JSON.stringify(event), isTimed: false });
      else if (typeof event !== "string") found.push(writeEvent(event as Event, time));
      else for (const line of event.split("\n")) if (line.trim()) found.push({ line, isTimed: HAS_TIME.test(line) });
    }
    return found;
  }

  add({ line, isTimed }: EventLine): void {
    this.#isTimed &&= isTimed;
    this.#lines.push(line);
    this.#size += line.length;
  }

  /** Returns the frame of the events that wait, and begins the next one. Without times or a source, it gets an id. */
  cut(source: SourcePosition | undefined): Frame {
    const { format } = this;
    const body = format === "json" ? `[${this.#lines.join(",")}]` : this.#lines.join("\n");
    const id = this.#isTimed || source ? undefined : `${this.#ids}-${++this.#numbers}`;
    const frame = { id, source, format, body, events: this.#lines.length };
    [this.#lines, this.#size, this.#isTimed] = [[], 0, true];
    return frame;
  }
}

function isMany(events: FeedEvent | Iterable<FeedEvent>): events is Iterable<FeedEvent> {
  return typeof events === "object" && Symbol.iterator in events;
}
