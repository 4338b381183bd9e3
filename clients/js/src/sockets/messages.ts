/** What a subscription says: solutions, changes, and notices. asyncapi.yaml describes the server's messages. */

import { parseNTriples } from "../terms/ntriples.js";
import { readTerm, type SentTerm, type SolutionTerm } from "../terms/solution_terms.js";
import type { Quad } from "../terms/terms.js";

/** An argument of an event that an ETALIS program reports. A number or name is itself, and so are the members of a list. */
export type EventArgument = string | number | { string: string } | { datime: string } | { functor: string; args: EventArgument[] } | EventArgument[];

/** A solution as the server sends it: it has a `binding`, `triples`, a `boolean`, or an `event` with its `args`. */
export interface SentSolution {
  query: string;
  id: string;
  start: string | null;
  end: string | null;
  binding?: Record<string, SentTerm>;
  triples?: string;
  boolean?: boolean;
  event?: string;
  args?: EventArgument[];
  /** The id of the instance, of a query with PARAMETERS. */
  instance?: string;
}

/** One solution of a query, with its interval. */
export class Solution {
  readonly kind = "solution";
  #binding: Record<string, SolutionTerm> | undefined;

  constructor(readonly document: SentSolution) {}

  get query(): string {
    return this.document.query;
  }
  get id(): string {
    return this.document.id;
  }
  /** An xsd:dateTime in UTC, with up to six digits of a second; null for a timeless solution. */
  get start(): string | null {
    return this.document.start;
  }
  get end(): string | null {
    return this.document.end;
  }
  /** The terms of a SELECT, by variable. */
  get binding(): Readonly<Record<string, SolutionTerm>> {
    this.#binding ??= Object.fromEntries(Object.entries(this.document.binding ?? {}).map(([name, term]) => [name, readTerm(term)]));
    return this.#binding;
  }
  /** The answer of an ASK. */
  get boolean(): boolean | undefined {
    return this.document.boolean;
  }
  /** The name of the event that an ETALIS program reports. */
  get event(): string | undefined {
    return this.document.event;
  }
  /** The arguments of that event. */
  get args(): readonly EventArgument[] | undefined {
    return this.document.args;
  }
  /** The id of its instance, of a query with PARAMETERS. */
  get instance(): string | undefined {
    return this.document.instance;
  }
  get(variable: string): SolutionTerm | undefined {
    return this.binding[variable];
  }
  /** Returns the triples of a CONSTRUCT or DESCRIBE. */
  triples(): Quad[] {
    return parseNTriples(this.document.triples ?? "");
  }
  toJSON(): SentSolution {
    return this.document;
  }
}

/** Solutions of a revised query came, or stand no more. Reading resumes after `seq`; what ends before `settled` is decided for good. */
export interface Change {
  kind: "change";
  query: string;
  seq: string;
  added: Solution[];
  withdrawn: Solution[];
  settled: string | null;
  /** The next change belongs to the same entry of the log. */
  more: boolean;
}

/** No solution with an `end` below `watermark` will follow; with `finished`, none at all. */
export interface Progress {
  kind: "progress";
  watermark: string;
  finished: boolean;
}

/** A subscriber with the policy `drop-oldest` was too slow for `missed` solutions after the id `after`, up to the id `resume`. */
export interface Gap {
  kind: "gap";
  after: string;
  resume: string;
  missed: number;
}

/** Another text took the query's place: later solutions are those of version `after`. */
export interface Promoted {
  kind: "promoted";
  id: string;
  position: number;
  before: number;
  after: number;
  sha256: string;
}

/** The state of the connection: it is `open`, it was `lost`, or the server closed it because the reader is `behind`. It resumes by itself. */
export interface ConnectionNotice {
  kind: "open" | "lost" | "behind";
  reason: string;
}

export type Notice = Progress | Gap | Promoted | ConnectionNotice;
export type Word = Solution | Change | Notice;

/** Returns a change as the server sends it, with the solutions as objects. */
export function readChange(sent: { query: string; seq: string; added: SentSolution[]; withdrawn: SentSolution[]; settled: string | null; more?: boolean }): Change {
  const { query, seq, settled, more = false } = sent;
  const [added, withdrawn] = [sent.added, sent.withdrawn].map((each) => each.map((document) => new Solution({ ...document, query })));
  return { kind: "change", query, seq, added: added!, withdrawn: withdrawn!, settled, more };
}

/* eslint-disable-next-line -- the messages are those of asyncapi.yaml */
type Sent = any;

/** Returns what a message says, and the id after which to resume; null for a message of a kind that this client does not know. */
export function readMessage(line: string): { word: Word; last: string | null } | null {
  const sent = JSON.parse(line) as Sent;
  if (sent.solution) return { word: new Solution(sent.solution), last: sent.solution.id };
  if (sent.change) return { word: readChange(sent.change), last: sent.change.seq };
  if (sent.gap) return { word: { kind: "gap", ...sent.gap }, last: sent.gap.resume };
  if (sent.promoted) {
    const { id, position, from, to } = sent.promoted;
    return { word: { kind: "promoted", id, position, before: from.version, after: to.version, sha256: to.sha256 }, last: id };
  }
  if (sent.progress) return { word: { kind: "progress", watermark: sent.progress.watermark, finished: sent.progress.finished === true }, last: null };
  return null;
}
