/** The client of this page's server, and the documents that the console shows. */

import { Client, type Schemas } from "epsparql";
import { renew } from "./sign_in";

export type { OntologyDocument as Ontology, QuerySummary, Schemas, StreamDocument, TrialDocument as Trial, TrialSide as Side, VersionDocument as Version } from "epsparql";
export type Mark = Schemas["Mark"];
export type PlanDocument = Schemas["PlanDocument"];
export type PlanStep = Schemas["PlanStep"];
export type PlanLive = Schemas["PlanLive"];
export type Goals = Schemas["GoalsDocument"];
export type PartialMatch = Schemas["PartialMatchDocument"];
export type CheckDocument = Schemas["CheckDocument"];
export type SeenName = Schemas["SeenDocument"];
export type Profile = Schemas["ProfileDocument"];
export type Connector = Schemas["ConnectorDocument"];
export type Webhook = Schemas["ObserverDocument"];

/** A term for the eye. */
export interface Term {
  type: "uri" | "literal" | "bnode" | "triple";
  /** The text; that of a triple term is as N-Triples has it, and `parts` has its terms. */
  value: string;
  parts?: [Term, Term, Term];
  datatype?: string;
  "xml:lang"?: string;
  "its:dir"?: string;
}

export interface Wish {
  query: string;
  policy: string;
  default_graph: string;
}

/** The options of a text as the client takes them. */
export const optionsOf = ({ policy, default_graph }: Omit<Wish, "query">) => ({
  policy,
  default_graph: default_graph as "all" | "unnamed",
});

/** From where in the log a query reads when it is registered. */
export type From = "now" | "beginning";

/** How a connection stands: `waiting` for another try, `ended` with all that it has given, or `gone` with what it was of. */
export type Standing = "connecting" | "live" | "waiting" | "ended" | "gone";

const TOKEN = "epsparql.token";

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (text: string) => {
    if (text) sessionStorage.setItem(TOKEN, text);
    else sessionStorage.removeItem(TOKEN);
    client.http.credentials.forget();
  },
};

/** Who signed in gets another token where one was refused, as when it has expired. */
async function findToken(refused?: string | null): Promise<string> {
  const renewed = refused ? await renew() : null;
  if (renewed) sessionStorage.setItem(TOKEN, renewed);
  return token.get();
}

/** Paths are relative, so the console also works below a proxy's prefix. A page goes on trying as long as it is open. */
export const client = new Client(".", { token: findToken, patienceMs: Infinity });
