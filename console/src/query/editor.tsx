/** The editor. It lives in a shadow tree, where CodeMirror's styles are constructed sheets, so the page's policy needs no exception. */

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Mark } from "../api/client";
import { checked, range } from "../state/query_checks";
import { streams } from "../state/server_state";
import { change, tab } from "../state/tabs";
import { completions } from "./completion";
import { colours, epsparql, etalis, isProgram } from "./language";

const look = EditorView.theme({
  "&": { height: "100%", backgroundColor: "transparent", color: "var(--ink)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { caretColor: "var(--accent)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--soft)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "34px", padding: "0 6px 0 4px", fontSize: "11.5px", lineHeight: "20.15px" },
  ".cm-activeLine": { backgroundColor: "var(--line-here)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection)", outline: "none" },
  ".cm-placeholder": { color: "var(--soft)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1.2px", textUnderlineOffset: "4px", textDecorationSkipInk: "none" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn) 1.2px", textUnderlineOffset: "4px", textDecorationSkipInk: "none" },
  ".cm-gutter-lint": { width: "10px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "7px 0 0 3px" },
  ".cm-lint-marker": { width: "6px", height: "6px", borderRadius: "3px", content: "none" },
  ".cm-lint-marker-error": { backgroundColor: "var(--bad)", content: "none" },
  ".cm-lint-marker-warning": { backgroundColor: "var(--warn)", content: "none" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    border: "1px solid var(--edge)",
    borderRadius: "6px",
    boxShadow: "var(--shadow)",
    color: "var(--ink)",
    fontFamily: "var(--sans)",
    fontSize: "12.5px",
  },
  ".cm-diagnostic": { padding: "6px 10px", borderLeft: "3px solid var(--bad)", maxWidth: "60ch", whiteSpace: "normal" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "260px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontFamily: "var(--sans)", fontStyle: "normal", opacity: "0.75" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)", borderTop: "1px solid var(--edge)" },
});

export function Editor({ run }: { run: () => void }) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | null>(null);
  const key = tab.value?.key;

  useLayoutEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const view = new EditorView({ root, parent: root as unknown as HTMLElement, state: fresh(tab.peek()?.query ?? "", run) });
    editor.current = view;
    (host.current as EditorHost).editor = view;
    if (!view.state.doc.length) view.focus();
    return () => view.destroy();
  }, [key]);

  const text = tab.value?.query;
  useEffect(() => {
    const view = editor.current;
    const now = tab.peek()?.query ?? ""; // not `text`, which may be older than what was typed since
    if (view && view.state.doc.toString() !== now) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: now } });
  }, [text]);

  const found = checked.value;
  useEffect(() => {
    const view = editor.current;
    if (view && (!found || view.state.doc.toString() === found.text)) view.dispatch(setDiagnostics(view.state, found ? diagnostics(found.text) : []));
  }, [found, key]);

  return <div class="editor" ref={host} />;
}

/** For the page's shortcuts: how to put the cursor into the editor. */
export interface EditorHost extends HTMLDivElement {
  editor?: EditorView;
}

const TO_LEAVE_MS = 2000;

/** What is typed over a selection: left to Chromium, it would come with inline styles, which the page's policy forbids. */
const overSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    const typed = event.data;
    if (event.inputType !== "insertText" || empty || typed === null || view.composing) return false;
    const insert = () => view.state.update(view.state.replaceSelection(typed), { userEvent: "input.type", scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, typed, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

/** Escape, then Tab, leaves the editor: also where Escape closes a list of completions, or one that is about to open. */
const leaving = EditorView.domEventObservers({
  keydown(event, view) {
    if (event.key === "Escape") view.setTabFocusMode(TO_LEAVE_MS);
  },
});

const language = new Compartment();
/** So many characters tell the language. */
const FIRST_LINE = 20;

const languageOf = (text: string) => (isProgram(text) ? etalis : epsparql);

function fresh(text: string, run: () => void): EditorState {
  return EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      lintGutter(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSpecialChars(),
      history(),
      drawSelection(),
      indentOnInput(),
      indentUnit.of("  "),
      bracketMatching(),
      closeBrackets(),
      highlightSelectionMatches(),
      autocompletion({ override: [completions(() => streams.peek().map((stream) => stream.name))], icons: false }),
      language.of(languageOf(text)),
      colours,
      look,
      placeholder("SELECT * WHERE { { ?s :temp ?a } SEQ { ?s :temp ?b } WITHIN \"PT1H\"^^xsd:duration }"),
      EditorView.lineWrapping,
      overSelection,
      leaving,
      EditorView.contentAttributes.of({ "aria-label": "Query text" }),
      keymap.of([
        { key: "Mod-Enter", run: () => (run(), true) },
        // Tab indents; Escape first, then Tab leaves the editor (`leaving`), as CodeMirror's own manual advises.
        ...closeBracketsKeymap,
        ...defaultKeymap,
        ...searchKeymap,
        ...historyKeymap,
        ...completionKeymap,
        ...lintKeymap,
        indentWithTab,
      ]),
      EditorView.updateListener.of((update) => update.docChanged && change({ query: update.state.doc.toString() })),
      EditorState.transactionExtender.of((transaction) => {
        const now = languageOf(transaction.newDoc.sliceString(0, FIRST_LINE));
        return transaction.docChanged && language.get(transaction.startState) !== now ? { effects: language.reconfigure(now) } : null;
      }),
    ],
  });
}

function diagnostics(text: string): Diagnostic[] {
  const of = (severity: "error" | "warning") => (mark: Mark) => {
    const [from, to] = range(mark, text);
    return { from, to, severity, message: mark.message + (mark.expected ? `; expected ${mark.expected}` : "") };
  };
  const found = [...(checked.peek()?.errors ?? []).map(of("error")), ...(checked.peek()?.warnings ?? []).map(of("warning"))];
  return found.filter(({ to }) => to <= text.length).sort((a, b) => a.from - b.from);
}
