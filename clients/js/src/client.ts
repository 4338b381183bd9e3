/** The client of a server: its requests, feeds and subscriptions. */

import { type ClientOptions, Http } from "./http.js";
import { background } from "./requests/background.js";
import { instances } from "./requests/instances.js";
import { queries } from "./requests/queries.js";
import { streams } from "./requests/streams.js";
import { trials } from "./requests/trials.js";
import { Feed, type FeedOptions } from "./sockets/feed.js";
import { type FollowOptions, Subscription } from "./sockets/subscription.js";
import { Tail, type TailOptions } from "./sockets/tail.js";
import { ApiError, Unreachable } from "./problem.js";
import { pause } from "./sockets/event_loop.js";

type Requests = ReturnType<typeof queries> & ReturnType<typeof streams> & ReturnType<typeof background> & ReturnType<typeof trials> & ReturnType<typeof instances>;

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- the constructor adds these methods
export interface Client extends Requests {}

export class Client {
  /** For requests that have no method of their own; openapi.yaml describes them. */
  readonly http: Http;

  /**
   * Takes a server's URL, or those of servers that stand by for each other, with commas between them. In a page, a URL may be relative.
   *
   * Requests throw ApiError for what the server refuses, and Unreachable where it does not answer.
   */
  constructor(url: string, options: ClientOptions = {}) {
    this.http = new Http(url, options);
    Object.assign(this, queries(this.http), streams(this.http), background(this.http), trials(this.http), instances(this.http));
  }

  /** Resolves when the server and its runner are up. Throws: Unreachable. */
  async waitReady(withinMs = this.http.patienceMs): Promise<void> {
    const deadline = Date.now() + withinMs;
    for (;;) {
      try {
        await this.http.json("get", "/readyz");
        return;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (Date.now() > deadline || error.detail.includes("failed")) throw new Unreachable(this.http.url, error.message);
      }
      await pause(100);
    }
  }

  /** Returns a connection for events, which is opened when the first one is sent. */
  feed(stream: string, options: FeedOptions = {}): Feed {
    return new Feed(this.http, stream, options);
  }

  /** Follows a query's solutions after an id (from the first one without), and as they come. */
  follow(query: string, options: FollowOptions = {}): Subscription {
    return new Subscription(this.http, query, options);
  }

  /** Follows the events of a stream as they arrive: first the last ones, or those after an event's id. */
  tail(stream: string, options: TailOptions = {}): Tail {
    return new Tail(this.http, stream, options);
  }
}
