/** The token of a client: a text, or what a callback returns, which is asked again when the server refuses the token. */

type Token = string | null | undefined;
/** A callback is called for the first request, and again whenever the server refused a request: with the `refused` token, null where none was sent. */
export type TokenSource = string | ((refused?: string | null) => Token | Promise<Token>);

export class Credentials {
  #token: Promise<string | null> | null = null;

  constructor(private readonly source: TokenSource | undefined) {}

  /** Returns the token to send, null for none. Throws: what the callback throws; the next call asks it again. */
  get(): Promise<string | null> {
    return this.#token ?? this.#ask();
  }

  /** Returns whether there is another token than the refused one. Callers that are refused at once share one call of the callback. */
  async renew(refused: string | null): Promise<boolean> {
    if (typeof this.source !== "function") return false;
    const known = this.#token;
    if ((await known) === refused && this.#token === known) void this.#ask(refused);
    return (await this.get()) !== refused;
  }

  /** Forgets the callback's token, so that the next request asks for it. */
  forget(): void {
    this.#token = null;
  }

  #ask(refused?: string | null): Promise<string | null> {
    const asked = this.#call(refused);
    this.#token = asked;
    asked.catch(() => {
      if (this.#token === asked) this.#token = null;
    });
    return asked;
  }

  async #call(refused: string | null | undefined): Promise<string | null> {
    return (typeof this.source === "function" ? await this.source(refused) : this.source) || null;
  }
}

const BEARER = "epsparql.bearer.";

/** Returns a token as a subprotocol, because pages cannot choose the headers of their WebSockets. */
export function writeSubprotocol(token: string): string {
  const bytes = new TextEncoder().encode(token);
  return BEARER + btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
