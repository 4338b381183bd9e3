/** Requests to a server, whose paths and answers openapi.yaml describes. */

import { Credentials, type TokenSource } from "./credentials.js";
import type { paths } from "./openapi.js";
import { ApiError, readProblem, Unreachable } from "./problem.js";

export type Method = "get" | "put" | "post" | "delete";
type JsonOf<Answer> = Answer extends { content: { "application/json": infer Found } } ? Found : never;
type Successes<Answers> = Answers extends object ? Answers[keyof Answers & (200 | 201 | 202)] : never;

/** The document with which a route answers. */
export type Document<Path extends keyof paths, Verb extends Method> = paths[Path][Verb] extends { responses: infer Answers } ? JsonOf<Successes<Answers>> : never;

/** The paths that take a method. */
export type PathOf<Verb extends Method> = { [Path in keyof paths]: paths[Path][Verb] extends { responses: unknown } ? Path : never }[keyof paths];

export interface RequestOptions {
  /** Values for the names in braces of the path. */
  path?: Readonly<Record<string, string | number>>;
  query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
  headers?: Readonly<Record<string, string | undefined>>;
  /** A text or bytes, or an object to send as JSON. */
  body?: BodyInit | object;
  signal?: AbortSignal;
}

export interface ClientOptions {
  token?: TokenSource;
  /** How long a feed or a subscription goes on trying to reach a server that does not answer: 60 s. A request that takes 30 s more is given up. */
  patienceMs?: number;
  /** The class of WebSockets, where the platform has none; null: only HTTP is used. */
  WebSocket?: typeof WebSocket | null;
}

const JSON_TYPE = "application/json";
const PATIENCE_MS = 60_000;
const UNAUTHORIZED = 401;
const UNAVAILABLE = 503;

export class Http {
  readonly patienceMs: number;
  readonly credentials: Credentials;
  readonly #urls: readonly string[];
  #turns = 0;

  constructor(
    urls: string,
    readonly options: ClientOptions,
  ) {
    this.#urls = urls.split(",").map((url) => absolute(url.trim()));
    this.patienceMs = options.patienceMs ?? PATIENCE_MS;
    this.credentials = new Credentials(options.token);
  }

  /** The URL of the server whose turn it is, with a slash at its end. */
  get url(): string {
    return this.#urls[this.#turns % this.#urls.length]!;
  }

  /** Turns to the next server after one that does not serve; returns whether there are several. */
  turn(): boolean {
    this.#turns++;
    return this.#urls.length > 1;
  }

  /** Returns the document with which the server answers. Throws: ApiError; Unreachable. */
  async json<Verb extends Method, Path extends PathOf<Verb>>(verb: Verb, path: Path, options: RequestOptions = {}): Promise<Document<Path, Verb>> {
    const response = await this.request(verb, path, options);
    return (await this.#within(response.json())) as Document<Path, Verb>;
  }

  /** Returns an answer as a text. Throws: as `json`. */
  async text<Verb extends Method>(verb: Verb, path: PathOf<Verb>, options: RequestOptions = {}): Promise<string> {
    return this.#within((await this.request(verb, path, options)).text());
  }

  /** Returns an answer whose body has yet to be read. A token that is refused is asked for anew, once. Throws: as `json`. */
  async request<Verb extends Method>(verb: Verb, path: PathOf<Verb>, options: RequestOptions = {}): Promise<Response> {
    const token = await this.credentials.get();
    const response = await this.#send(verb, path, options, token);
    if (response.status === UNAUTHORIZED && (await this.credentials.renew(token))) {
      return this.#checked(await this.#send(verb, path, options, await this.credentials.get()));
    }
    return this.#checked(response);
  }

  async #checked(response: Response): Promise<Response> {
    if (response.status === UNAVAILABLE) this.turn();
    if (!response.ok) throw new ApiError(await readProblem(response));
    return response;
  }

  async #send(verb: Method, path: string, options: RequestOptions, token: string | null): Promise<Response> {
    const headers = new Headers();
    for (const [name, value] of Object.entries(options.headers ?? {})) if (value !== undefined) headers.set(name, value);
    if (token !== null) headers.set("Authorization", `Bearer ${token}`);
    const plain = isPlain(options.body);
    if (plain) headers.set("Content-Type", JSON_TYPE);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(this.patienceMs, PATIENCE_MS) + 30_000);
    const signal = options.signal ? AbortSignal.any([options.signal, late.signal]) : late.signal;
    const body = plain ? JSON.stringify(options.body) : ((options.body as BodyInit | undefined) ?? null);
    try {
      return await fetch(this.address(path, options), { method: verb.toUpperCase(), headers, body, signal, cache: "no-store" });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      const { url } = this;
      this.turn();
      throw new Unreachable(url, late.signal.aborted ? "no answer came in time" : reasonOf(error));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the URL of a path, with its names filled in. */
  address(path: string, { path: names = {}, query = {} }: RequestOptions = {}): string {
    const filled = path.slice(1).replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name]!));
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null) parameters.set(name, String(value));
    return this.url + filled + (parameters.size ? `?${parameters}` : "");
  }

  async #within<Found>(read: Promise<Found>): Promise<Found> {
    try {
      return await read;
    } catch (error) {
      if (error instanceof Error && error.name === "AbortError") throw error;
      throw new Unreachable(this.url, `the answer broke off: ${reasonOf(error)}`);
    }
  }
}

/** Relative URLs are below the page; without a page, a URL is absolute. */
function absolute(url: string): string {
  const page = (globalThis as { document?: { baseURI: string } }).document?.baseURI ?? (globalThis as { location?: { href: string } }).location?.href;
  return new URL(url.endsWith("/") ? url : `${url}/`, page).href;
}

function isPlain(body: RequestOptions["body"]): boolean {
  if (body === undefined || typeof body !== "object") return false;
  const prototype: unknown = Object.getPrototypeOf(body);
  return prototype === Object.prototype || prototype === null;
}

/** Returns why something failed; fetch hides the reason in `cause`. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message;
}
