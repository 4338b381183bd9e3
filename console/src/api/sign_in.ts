/** Sign in at the issuer that the server was given: the authorization code flow with PKCE. The server passes on what the issuer's token endpoint is asked. */

interface Offer {
  address: string;
  parameters: Record<string, string>;
}

interface Tokens {
  access_token: string;
  refresh_token?: string;
}

/** What this tab has to know when the issuer leads back to it. */
interface Pending {
  state: string;
  verifier: string;
  hash: string;
}

const PENDING = "epsparql.sign-in";
const REFRESH = "epsparql.refresh";
const BYTES = 32;

/** Returns where users sign in; null where the server offers no sign-in, or cannot at the moment. */
export async function findOffer(): Promise<Offer | null> {
  try {
    const answer = await fetch("sign-in", { cache: "no-store" });
    return answer.ok ? ((await answer.json()) as Offer | null) : null;
  } catch {
    return null;
  }
}

/** Leaves the page for the issuer's. */
export async function begin({ address, parameters }: Offer): Promise<void> {
  const pending: Pending = { state: random(), verifier: random(), hash: location.hash };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier));
  const wanted = new URL(address);
  const asked = {
    ...parameters,
    redirect_uri: here(),
    response_mode: "fragment", // so that the code comes into no log
    state: pending.state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(asked)) wanted.searchParams.set(name, value);
  location.assign(wanted);
}

/** Returns the token, where the issuer led back to this page with a code that this tab asked for; else null. Throws: Error with the issuer's reason. */
export async function end(): Promise<string | null> {
  const answer = new URLSearchParams(location.hash.slice(1));
  const state = answer.get("state");
  const kept = sessionStorage.getItem(PENDING);
  if (!state || !kept || !(answer.has("code") || answer.has("error"))) return null;
  const pending = JSON.parse(kept) as Pending;
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", pending.hash || location.pathname);
  if (state !== pending.state) throw new Error("The sign-in was begun elsewhere. Sign in again.");
  const code = answer.get("code");
  if (!code) throw new Error(`The issuer refused: ${answer.get("error_description") ?? answer.get("error")}`);
  return keep(await ask({ code, verifier: pending.verifier, redirect_uri: here() }));
}

/** Returns another token than one that was refused; null where there is none without a new sign-in. */
export async function renew(): Promise<string | null> {
  const refresh = sessionStorage.getItem(REFRESH);
  if (!refresh) return null;
  try {
    return keep(await ask({ refresh_token: refresh }));
  } catch {
    sessionStorage.removeItem(REFRESH);
    return null;
  }
}

/** Forgets who signed in, as when a token is entered by hand. */
export const forget = () => sessionStorage.removeItem(REFRESH);

async function ask(body: Record<string, string>): Promise<Tokens> {
  const answer = await fetch("sign-in", { method: "POST", cache: "no-store", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const found = await answer.json();
  if (!answer.ok) throw new Error(String(found.detail));
  return found as Tokens;
}

function keep(tokens: Tokens): string {
  if (tokens.refresh_token) sessionStorage.setItem(REFRESH, tokens.refresh_token);
  return tokens.access_token;
}

/** The page without what it shows: the issuer knows this address. */
const here = () => location.origin + location.pathname;

const random = () => base64url(crypto.getRandomValues(new Uint8Array(BYTES)));

const base64url = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
