/** The two dialogs: the token, and the keys. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { token } from "./api/client";
import { begin, findOffer } from "./api/sign_in";
import { lookAgain } from "./state/query_checks";
import { isTokenRefused, overlay, trouble, useToken } from "./state/server_state";

function Dialog({ title, children }: { title: string; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current!.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={() => (overlay.value = "")} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

/** Why the server answers nothing: no token was entered, or one that it does not know, or takes no longer. */
export function refusal(): string {
  if (trouble.value?.code === "invalid-token") return `${trouble.value.detail}.`;
  return token.get() ? "The server does not know this token. It may be misspelt, or have been withdrawn." : "This server asks for a token.";
}

export function TokenDialog() {
  const [text, setText] = useState(token.get());
  const [fault, tell] = useState("");
  const [offer, setOffer] = useState<Awaited<ReturnType<typeof findOffer>>>(null);
  useEffect(() => void findOffer().then(setOffer), []);
  const enter = async (event: Event) => {
    event.preventDefault();
    tell("");
    await useToken(text);
    if (isTokenRefused()) return tell(refusal());
    lookAgain();
    overlay.value = "";
  };
  return (
    <Dialog title="Token">
      <form onSubmit={enter}>
        <p class="quiet">
          {isTokenRefused() ? "This server asks for a bearer token." : "It is sent with every request, and removed when this tab is closed."} The console shows what it allows; with the scope{" "}
          <code>admin</code>, everything.
        </p>
        <input type="password" aria-label="Bearer token" aria-invalid={fault !== ""} autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        {fault && (
          <p class="fault" role="alert">
            {fault}
          </p>
        )}
        <div class="buttons">
          {offer && (
            <button type="button" class="primary" onClick={() => begin(offer).catch((error) => tell(`Signing in needs a page with https: ${error}`))}>
              Sign in
            </button>
          )}
          <button type="submit" class={offer ? "" : "primary"}>
            Use it
          </button>
          <button type="button" onClick={() => (overlay.value = "")}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const KEYS: [string, [string, string][]][] = [
  [
    "Everywhere",
    [
      ["Ctrl Enter", "run the query of the open tab"],
      ["Alt N", "new query"],
      ["Alt 1 … 9", "the tab of this number"],
      ["Alt S / P", "solutions / plan"],
      ["Alt C / M", "chart / map"],
      ["Alt E", "into the editor (Escape, then Tab, leaves it)"],
      ["↑ ↓", "in the table: choose a solution"],
      ["Esc", "close what is chosen"],
      ["?", "these keys"],
    ],
  ],
  [
    "Timeline",
    [
      ["wheel or + −", "zoom"],
      ["drag or ← →", "move"],
      ["0", "everything"],
      ["F", "follow the newest"],
      ["N / P", "next / previous solution"],
    ],
  ],
  [
    "Chart",
    [
      ["← →", "along a line"],
      ["↑ ↓", "to another line"],
      ["Enter", "the solution of the point"],
    ],
  ],
  [
    "Map",
    [
      ["wheel or + −", "zoom"],
      ["drag or ← →", "move"],
      ["0", "everything"],
      ["N / P", "next / previous place"],
      ["Enter", "the newest solution there"],
    ],
  ],
  [
    "Editor",
    [
      ["Ctrl Space", "complete"],
      ["F8", "to the next fault"],
      ["Ctrl F", "find"],
      ["Ctrl /", "comment"],
    ],
  ],
];

/** What stands between keys, and is none. */
const BETWEEN = ["/", "…", "or"];

export function KeysDialog() {
  return (
    <Dialog title="Keys">
      <div class="keys">
        {KEYS.map(([where, pairs]) => (
          <section key={where}>
            <h3>{where}</h3>
            <dl>
              {pairs.map(([keys, does]) => (
                <div key={keys}>
                  <dt>
                    {keys.split(" ").map((key, k, all) => (BETWEEN.includes(key) && k < all.length - 1 ? ` ${key} ` : <kbd key={key}>{key}</kbd>))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </Dialog>
  );
}
