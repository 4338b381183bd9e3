/** The errors of the client. Each carries a stable `code`; wording may change. */

import type { components } from "./openapi.js";

export type Problem = components["schemas"]["ProblemDocument"];

const UNREACHABLE = "unreachable";

/** What the server refused: its problem document, as RFC 9457 has it. */
export class ApiError extends Error {
  override readonly name: string = "ApiError";

  constructor(
    readonly problem: Problem,
    /** Of a refused frame of a feed: the number of its events. None of them was accepted. */
    readonly events: number = 0,
  ) {
    super(describe(problem));
  }

  get status(): number {
    return this.problem.status;
  }
  get code(): string {
    return this.problem.code;
  }
  get detail(): string {
    return this.problem.detail;
  }
  get line(): number | undefined {
    return this.problem.line ?? undefined;
  }
  get column(): number | undefined {
    return this.problem.column ?? undefined;
  }
  get expected(): string | undefined {
    return this.problem.expected ?? undefined;
  }
}

/** The server did not answer, or not within the client's patience. Its status is 0. */
export class Unreachable extends ApiError {
  override readonly name = "Unreachable";

  constructor(url: string, reason: string) {
    super({ type: `urn:epsparql:problem:${UNREACHABLE}`, title: "Unreachable", status: 0, code: UNREACHABLE, detail: `the server does not answer at ${url}: ${reason}` });
  }
}

/** The server ended a connection for good. `code` is that of the WebSocket: 4001 no token, 4003 not allowed, 4004 unknown or dropped, 1011 failed. */
export class Closed extends Error {
  override readonly name = "Closed";

  constructor(
    readonly code: number,
    readonly reason: string,
  ) {
    super(`closed with ${code}: ${reason}`);
  }
}

function describe({ line, column, detail, expected }: Problem): string {
  return (line ? `line ${line}, column ${column ?? 1}: ` : "") + detail + (expected ? `; expected ${expected}` : "");
}

/** Returns the problem of an answer from status 400 on; a proxy's answer may hold none. */
export async function readProblem(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  if (body !== null && typeof body === "object" && "detail" in body && "code" in body) return body as Problem;
  const detail = `the server answered ${response.status} ${response.statusText}`;
  return { type: "about:blank", title: response.statusText, status: response.status, code: "http", detail };
}
