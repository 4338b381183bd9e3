/** The page. */

import { useEffect, useRef, useState } from "preact/hooks";
import { KeysDialog, refusal, TokenDialog } from "./dialogs";
import { Divider, useSplit } from "./display/split";
import { theme, turn } from "./display/theme";
import { blank, Gallery } from "./examples/gallery";
import { PlayBar } from "./examples/player_bar";
import { FilePage } from "./files/file_sender";
import { Ontologies } from "./pages/background";
import { Connectors } from "./pages/connectors";
import { Health } from "./pages/health";
import { Sparql } from "./pages/sparql";
import { Editor, type EditorHost } from "./query/editor";
import { run, Toolbar } from "./query/toolbar";
import { Verdict } from "./query/verdict";
import { Rail } from "./rail";
import { Results } from "./results";
import { selected } from "./solutions/selection";
import { admin, asked, isTokenRefused, notice, overlay, trouble, view } from "./state/server_state";
import { choose, open, tab, tabs } from "./state/tabs";
import { Stream } from "./streams/stream_page";
import { Tabs } from "./tab_bar";
import { Trials } from "./trials/trial_list";
import { TrialPage } from "./trials/trial_page";

const SPLIT = "epsparql.editor";
const TITLES: Record<string, string> = { ontologies: "background", sparql: "SPARQL", file: "send a file", health: "lag and errors" };

export function App() {
  useEffect(() => shortcuts(), []);
  const shown = view.value;
  const title = shown.kind === "query" ? tab.value?.name : shown.kind === "stream" || shown.kind === "sought" ? shown.name : (TITLES[shown.kind] ?? shown.kind);
  useEffect(() => void (document.title = title ? `${title} · epsparql` : "epsparql"), [title]);
  return (
    <div class={`frame ${trouble.value?.code === "unreachable" ? "away" : ""}`}>
      <button type="button" class="skip" onClick={() => document.querySelector("main")?.focus()}>
        Past the lists
      </button>
      <Rail />
      <main tabIndex={-1}>
        <div class="masthead">
          <button type="button" class="plain burger" aria-label="Queries and streams" aria-expanded={overlay.value === "rail"} onClick={() => (overlay.value = overlay.value === "rail" ? "" : "rail")}>
            ☰
          </button>
          <Tabs />
          <button type="button" class="plain theme" onClick={turn} title="Light, dark, or as the system has it" aria-label={`Theme: ${theme.value}`}>
            {{ system: "◐", light: "○", dark: "●" }[theme.value]}
          </button>
        </div>
        {trouble.value && <Trouble />}
        {shown.kind === "sought" && <Sought name={shown.name} />}
        {shown.kind === "stream" && <Stream name={shown.name} />}
        {shown.kind === "file" && <FilePage />}
        {shown.kind === "ontologies" && <Ontologies />}
        {shown.kind === "connectors" && <Connectors />}
        {shown.kind === "sparql" && <Sparql />}
        {shown.kind === "health" && <Health />}
        {shown.kind === "trials" && (shown.id === null ? <Trials /> : <TrialPage key={shown.id} id={shown.id} />)}
        {(shown.kind === "examples" || (shown.kind === "query" && !tab.value)) && <Gallery />}
        {shown.kind === "query" && tab.value && <Work />}
        <PlayBar />
      </main>
      {notice.value && (
        <div class={`notice ${notice.value.kind}`} role={notice.value.kind === "fault" ? "alert" : "status"}>
          {notice.value.text}
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => (notice.value = null)}>
            ×
          </button>
        </div>
      )}
      {overlay.value === "token" && <TokenDialog />}
      {overlay.value === "keys" && <KeysDialog />}
    </div>
  );
}

function Work() {
  const box = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(() => Number(localStorage.getItem(SPLIT)) || 0.3);
  const drag = useSplit(box, setShare, SPLIT);
  return (
    <>
      <h1 class="unseen">Query {tab.value!.name}</h1>
      <Toolbar />
      <div class="work" ref={box} style={{ gridTemplateRows: `minmax(80px, ${share}fr) auto 7px minmax(160px, ${1 - share}fr)` }}>
        <Editor run={() => void run()} />
        <Verdict />
        <Divider label="Editor above, results below" share={share} set={setShare} drag={drag} />
        <Results />
      </div>
    </>
  );
}

/** An address names a query that is neither registered nor in a tab. */
const Sought = ({ name }: { name: string }) => (
  <p class="empty">
    {asked.value && !trouble.value ? `There is no query ${name} ${admin.value ? "on this server" : "that this token may read"}, and this browser has no tab of this name. A link made with Share holds a query's text.` : "…"}
  </p>
);

function Trouble() {
  const now = trouble.value!;
  return (
    <p class={`banner ${now.code === "not-ready" ? "" : "bad"}`} role="alert">
      {now.code === "unreachable" ? "The server does not answer. The page asks again each second; your text is kept in this browser." : isTokenRefused() ? refusal() : now.detail}
      {(isTokenRefused() || now.code === "not-allowed") && (
        <button type="button" onClick={() => (overlay.value = "token")}>
          Enter a token
        </button>
      )}
    </p>
  );
}

/** With Alt, so that they also work while somebody writes. */
function shortcuts(): () => void {
  const on = (event: KeyboardEvent) => {
    const writing = event.target instanceof HTMLElement && (event.target.closest("input, textarea, select, .editor") !== null || event.target.isContentEditable);
    if (event.key === "?" && !writing) overlay.value = "keys";
    else if (event.key === "Escape" && overlay.peek() === "rail") overlay.value = "";
    else if (event.key === "Escape" && selected.peek() && !writing && !overlay.peek()) selected.value = null;
    else if (event.altKey && /^Digit[1-9]$/.test(event.code)) {
      open.value = tabs.value[Number(event.code[5]) - 1]?.key ?? open.value;
      view.value = { kind: "query" };
    } else if (event.altKey && event.code === "KeyN") blank();
    else if (event.altKey && event.code === "KeyS") choose("solutions");
    else if (event.altKey && event.code === "KeyC") choose("chart");
    else if (event.altKey && event.code === "KeyM") choose("map");
    else if (event.altKey && event.code === "KeyP") choose("plan");
    else if (event.altKey && event.code === "KeyE") document.querySelector<EditorHost>(".editor")?.editor?.focus();
    else if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && !event.defaultPrevented) void run();
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", on);
  return () => removeEventListener("keydown", on);
}
