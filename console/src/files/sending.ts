/** Sends a file in parts: each has a key, so that the server accepts it once however often it is sent. */

import { ApiError } from "epsparql";
import { client } from "../api/client";
import { cutFile, type Dialect, type Kind } from "./row_parts";

export interface Shipment {
  stream: string;
  file: Blob;
  kind: Kind;
  mediaType: string;
  /** Bodies of one shipment share this beginning of their keys. */
  key: string;
}

/** How far a shipment is, and what the server said of it. */
export interface Progress {
  /** So many bytes of the file are accepted. */
  sent: number;
  accepted: number;
  late: number;
  rejected: number;
  /** What is wrong with the first row that did not map. */
  firstRejected: string;
  warning: string;
}

export const NOTHING_SENT: Progress = { sent: 0, accepted: 0, late: 0, rejected: 0, firstRejected: "", warning: "" };

const PART = 512 << 10;
const [BUSY, UNAVAILABLE, UNREACHABLE] = [429, 503, 0];
const MOST_TRIES = 30;
const PAUSE_MS = 1000;

/** A part was refused; those before it are accepted. `first` is the row of the file that its message calls row 1. */
export class PartRefused extends Error {
  constructor(
    readonly problem: ApiError,
    first: number,
  ) {
    super(first > 1 ? `${problem.message} (counted from row ${first} of the file, before which all is sent)` : problem.message);
  }
}

export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Send the rest of a file after what is sent, and tell the progress. Throws: PartRefused; what `signal` gives as its reason. */
export async function sendFile(shipment: Shipment, dialect: Dialect, since: Progress, tell: (now: Progress) => void, signal: AbortSignal): Promise<void> {
  const { stream, file, kind, mediaType, key } = shipment;
  let now = since;
  for await (const { body, from, to, first } of cutFile(file, kind, dialect, PART)) {
    if (to <= now.sent && now.sent > 0) continue;
    if (from < now.sent) throw new Error("this mapping cuts the file at other rows than the one before; choose the file again");
    try {
      const found = await persist(() => client.send(stream, body, { mediaType, key: `${key}-${from}`, signal }), signal);
      const row = found.first_rejected;
      now = {
        sent: to,
        accepted: now.accepted + found.accepted,
        late: now.late + found.late,
        rejected: now.rejected + (found.rejected ?? 0),
        firstRejected: now.firstRejected || (row ? `row ${row.row + first - 1}${row.field === null ? "" : `, field ${row.field}`}: ${row.reason}` : ""),
        warning: now.warning || (found.warning ?? ""),
      };
    } catch (error) {
      throw error instanceof ApiError ? new PartRefused(error, first) : error;
    }
    tell(now);
  }
}

/** Try again while the server is busy or away, for half a minute. */
async function persist<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      const passes = error instanceof ApiError && [BUSY, UNAVAILABLE, UNREACHABLE].includes(error.status);
      if (!passes || tries === MOST_TRIES) throw error;
    }
    await pause(signal);
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, PAUSE_MS);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
