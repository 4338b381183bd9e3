/** A connection over which frames are sent, the frames, and the codes with which it closes. */

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

export const COMPLETED = 1000;
export const LOST = 1006;
export const REFUSED = 1008;
export const STOPPING = 1012;
export const BEHIND = 4008;
export const [GOING_AWAY, NO_STATUS, FULL, NO_TOKEN, NOT_ALLOWED, UNKNOWN] = [1001, 1005, 1013, 4001, 4003, 4004] as const;
/** No close code, but this client's own: the reader has to catch up first. */
export const PAUSED = 0;
/** The code with which the server closes a WebSocket, where it answers a request with a status. */
export const CLOSE_OF_STATUS: Readonly<Record<number, number>> = { 401: NO_TOKEN, 403: NOT_ALLOWED, 404: UNKNOWN, 429: FULL, 503: FULL };

/** Returns the line before the events, which says what the frame is; it is empty if there is nothing to say. */
export function writeHead({ id, source, format }: Frame): string {
  const head = JSON.stringify({ format, id, source });
  return head === "{}" ? "" : `${head}\n`;
}
