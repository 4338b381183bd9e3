/** The server's word on the text, in a line. */

import { checked, range, unchecked } from "../state/query_checks";
import { admin, different, registered } from "../state/server_state";
import { tab } from "../state/tabs";
import type { EditorHost } from "./editor";

export function Verdict() {
  const now = tab.value!;
  const found = checked.value;
  const query = registered.value;
  const [fault] = found?.errors ?? [];
  const [doubt] = found?.warnings ?? [];
  const runs = query !== null && !different.value.length;
  if (runs && (query.state === "failed" || (query.state === "completed" && query.reason)))
    return (
      <p class={`verdict ${query.state === "failed" ? "bad" : ""}`} role="status">
        <b>{query.state}</b> {query.reason}
      </p>
    );
  const waits = runs && query.unfed.length > 0 && <span class="quiet"> · nothing was sent to {query.unfed.map((name) => `<${name}>`).join(", ")} yet</span>;
  const mark = fault ?? doubt;
  if (!found || !mark)
    return (
      <p class="verdict" role="status">
        {found && found.text === now.query ? <span class="good">✓ no faults</span> : <span class="quiet">{meanwhile(now.query)}</span>}
        {waits}
      </p>
    );
  const show = () => {
    const editor = document.querySelector<EditorHost>(".editor")?.editor;
    editor?.dispatch({ selection: { anchor: range(mark, found.text)[0] }, scrollIntoView: true });
    editor?.focus();
  };
  return (
    <p class={`verdict ${fault ? "bad" : "doubt"}`} role="status">
      {mark.line !== null && (
        <button type="button" class="plain figures" title="Go there" onClick={show}>
          {mark.line}:{mark.column}
        </button>
      )}{" "}
      {mark.message}
      {mark.expected && <span class="quiet">; expected {mark.expected}</span>}
      {!fault && found.warnings.length > 1 && <span class="quiet"> · and {found.warnings.length - 1} more</span>}
      {waits}
    </p>
  );
}

function meanwhile(text: string): string {
  if (!text.trim()) return "Write a query, or take an example.";
  if (!admin.value) return "Not checked: this token may read queries, but not register them.";
  return unchecked.value ? `Not checked yet: ${unchecked.value}` : "checking …";
}
