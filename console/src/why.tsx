/** One solution in full, and where it came from. */

import { useEffect, useState } from "preact/hooks";
import { justification, notServed, occurrences, shown } from "./behind";
import { duration, fullTerm, interval, moment, prefixesOf } from "./format";
import { selected } from "./selection";
import { millis } from "./solutions";
import { tab } from "./tabs";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Answer = { kind: "asking" } | { kind: "found"; document: Json } | { kind: "not"; reason: string };

const DEEPEST = 8;
const MOST = 200;

export function Why() {
  const row = selected.value;
  const name = tab.value?.name;
  const [answer, setAnswer] = useState<Answer>({ kind: "asking" });
  useEffect(() => {
    if (!row || !name) return;
    let over = false;
    setAnswer({ kind: "asking" });
    justification(name, row.id).then(
      (document) => !over && setAnswer({ kind: "found", document: document as Json }),
      (error: unknown) => !over && setAnswer({ kind: "not", reason: reason(error) }),
    );
    return () => void (over = true);
  }, [row?.id, name]);
  if (!row) return null;
  return (
    <aside class="why" aria-label="The chosen solution">
      <header class="bar">
        <b>Solution</b>
        <span class="grow" />
        <button type="button" class="plain" aria-label="Close" title="Close (Esc)" onClick={() => (selected.value = null)}>
          ×
        </button>
      </header>
      <div class="scroll">
        <p class="figures">
          {interval(row.start, row.end)}
          <br />
          <span class="quiet">{duration(row.end - row.start)}</span>
        </p>
        <dl>
          {Object.entries(row.binding).map(([variable, term]) => (
            <div key={variable}>
              <dt>?{variable}</dt>
              <dd>{fullTerm(term)}</dd>
            </div>
          ))}
          {row.triples && (
            <div>
              <dt>triples</dt>
              <dd>{row.triples}</dd>
            </div>
          )}
          <div>
            <dt>id</dt>
            <dd>{row.id}</dd>
          </div>
        </dl>
        <h3>Where it came from</h3>
        {answer.kind === "asking" && <p class="quiet">Looking in the log …</p>}
        {answer.kind === "not" && <p class="quiet">{answer.reason}</p>}
        {answer.kind === "found" && <Found document={answer.document} />}
      </div>
    </aside>
  );
}

/** The occurrences first, by which most questions are answered; all of the document below. */
function Found({ document }: { document: Json }) {
  const prefixes = prefixesOf(tab.value?.query ?? "");
  return (
    <>
      <ul class="behind">
        {occurrences(document).map((each) => (
          <li key={[each.s, each.p, each.o, each.end].join(" ")}>
            <span class="quiet figures">{each.end ? moment(millis(each.end)) : "always"}</span>
            <br />
            {shown(each.s, prefixes)} {shown(each.p, prefixes)} {shown(each.o, prefixes)}
          </li>
        ))}
      </ul>
      <details>
        <summary>All that is known</summary>
        <Tree value={document} depth={0} />
      </details>
    </>
  );
}

function reason(error: unknown): string {
  if (notServed(error)) return "This server does not tell where a solution came from.";
  return error instanceof Error ? error.message : String(error);
}

/** Any document, as nested names and values. */
function Tree({ value, depth }: { value: Json; depth: number }) {
  if (value === null || typeof value !== "object") return <span class="leaf">{value === null ? "–" : String(value)}</span>;
  const entries = Array.isArray(value) ? value.map((each): [string, Json] => ["", each]) : Object.entries(value);
  if (!entries.length) return <span class="quiet">none</span>;
  if (depth > DEEPEST) return <span class="quiet">…</span>;
  return (
    <ul class="tree">
      {entries.slice(0, MOST).map(([name, each], k) => (
        <li key={k}>
          {name && <span class="quiet">{name.replaceAll("_", " ")} </span>}
          <Tree value={each} depth={depth + 1} />
        </li>
      ))}
      {entries.length > MOST && <li class="quiet">and {entries.length - MOST} more</li>}
    </ul>
  );
}
