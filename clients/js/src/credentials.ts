/** The token of a client: a text, or what a callback returns, which is asked again when the server refuses the token. */

type Token = string | null | undefined;
/** A callback is called for the first request, and again whenever the server refused a request: with the `refused` token, null where none was sent. */
export type TokenSource = string | ((refused?: string | null) => Token | Promise<Token>);

export class Credentials {
  #token: Promise<string | null> | null = null;

  constructor(private readonly source: TokenSource | undefined) {}

  /** Returns the token to send, null for none. */
  get(): Promise<string | null> {
    this.#token ??= this.#ask();
    return this.#token;
  }

  /** Returns whether there is another token than the refused one. Callers that are refused at once share one call of the callback. */
  async renew(refused: string | null): Promise<boolean> {
    if (typeof this.source !== "function") return false;
    const known = this.#token;
    if ((await known) === refused && this.#token === known) this.#token = this.#ask(refused);
    return (await this.get()) !== refused;
  }

  /** Forgets the callback's token, so that the next request asks for it. */
  forget(): void {
    this.#token = null;
  }

  async #ask(refused?: string | null): Promise<string | null> {
    try {
      return (typeof this.source === "function" ? await this.source(refused) : this.source) || null;
    } catch (error) {
      this.#token = null;
      throw error;
    }
  }
}

const BEARER = "epsparql.bearer.";

/** Returns a token as a subprotocol, because pages cannot choose the headers of their WebSockets. */
export function writeSubprotocol(token: string): string {
  const bytes = new TextEncoder().encode(token);
  return BEARER + btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
