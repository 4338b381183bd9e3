/** What comes over a connection, in batches for the screen, and how the connection stands. */

import { ApiError, Closed, type StreamEvent, type Subscription, type Tail, type Word } from "epsparql";
import type { Standing } from "./client";

type Content = Extract<Word, { kind: "solution" | "change" }>;
type Tell = (standing: Standing, why?: string) => void;

const [FAILED, DROPPED] = [1011, 4004];

/** Show what a subscription says until it ends; what comes at once is taken at once. */
export async function show(subscription: Subscription, take: (words: Content[]) => void, tell: Tell): Promise<void> {
  const batch = new Batch(take);
  tell("connecting");
  try {
    for await (const word of subscription.words()) {
      if (word.kind === "solution" || word.kind === "change") batch.add(word);
      else if (word.kind === "open") tell("live");
      else if (word.kind === "lost" || word.kind === "behind") tell("waiting", `${word.reason}; it continues after the last one seen`);
    }
    tell("ended", "the query is completed");
  } catch (error) {
    if (error instanceof Closed && error.code === FAILED) tell("ended", error.reason);
    else tell("gone", error instanceof Closed && error.code === DROPPED ? error.reason : String(error));
  }
}

/** Show the events of a stream until it ends. */
export async function showEvents(tail: Tail, take: (events: StreamEvent[]) => void, tell: Tell): Promise<void> {
  const batch = new Batch(take);
  try {
    for await (const event of tail) batch.add(event);
    if (tail.end) tell(tail.end === "the stream was deleted" ? "gone" : "ended", tail.end);
  } catch (error) {
    tell("gone", error instanceof ApiError ? error.message : String(error));
  }
}

class Batch<Item> {
  private items: Item[] = [];
  constructor(private readonly take: (items: Item[]) => void) {}

  add(item: Item): void {
    if (this.items.push(item) === 1) setTimeout(() => this.take(this.items.splice(0)));
  }
}
