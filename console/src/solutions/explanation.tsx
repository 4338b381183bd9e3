/** One solution in full, and where it came from. */

import { useEffect, useState } from "preact/hooks";
import { duration, fullTerm, interval, moment, prefixesOf } from "../display/format";
import { usePrefixes } from "../state/query_source";
import { say } from "../state/server_state";
import { millis, type Row } from "../state/solution_store";
import { tab } from "../state/tabs";
import { type Derived, notServed, readable, readables, type Reasons, reasons, type Step } from "./derivations";
import { selected } from "./selection";

const DEEPEST = 40;

type Answer = { kind: "asking" } | { kind: "found"; reasons: Reasons } | { kind: "not"; why: string };

export function Why({ rows }: { rows: readonly Row[] }) {
  const row = selected.value;
  const prefixes = usePrefixes();
  if (!row) return null;
  const at = rows.findIndex((each) => each.id === row.id);
  const [older, newer] = at < 0 ? [] : [rows[at - 1], rows[at + 1]];
  return (
    <aside class="why" aria-label="The chosen solution">
      <header class="bar">
        <b>Solution</b>
        <span class="grow" />
        <button type="button" class="plain" aria-label="Newer" title="The next newer solution" disabled={!newer} onClick={() => newer && (selected.value = newer)}>
          ↑
        </button>
        <button type="button" class="plain" aria-label="Older" title="The next older solution" disabled={!older} onClick={() => older && (selected.value = older)}>
          ↓
        </button>
        <button type="button" onClick={() => copy(row)} title="Copy it as JSON">
          Copy
        </button>
        <button type="button" class="plain" aria-label="Close" title="Close (Esc)" onClick={() => (selected.value = null)}>
          ×
        </button>
      </header>
      <div class="scroll" tabIndex={0} role="region" aria-label="Its values, and where it came from">
        <p class="figures">
          {interval(row.start, row.end)}
          <br />
          <span class="quiet">{duration(row.end - row.start)}</span>
        </p>
        <dl>
          {Object.entries(row.facets ?? {}).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
          {Object.entries(row.binding).map(([variable, term]) => (
            <div key={variable}>
              <dt>?{variable}</dt>
              <dd>{fullTerm(term)}</dd>
            </div>
          ))}
          {row.triples && (
            <div>
              <dt>triples</dt>
              <dd title={row.triples}>
                {readables(row.triples, prefixes).map((each) => (
                  <div key={each}>{each}</div>
                ))}
              </dd>
            </div>
          )}
          {!row.facets && (
            <div>
              <dt>id</dt>
              <dd>{row.id}</dd>
            </div>
          )}
        </dl>
        {!row.facets && (
          <>
            <h2>Where it came from</h2>
            <Origin id={row.id} />
          </>
        )}
      </div>
    </aside>
  );
}

async function copy(row: Row): Promise<void> {
  const [start, end] = [row.start, row.end].map((ms) => (Number.isNaN(ms) ? null : `${moment(ms).replace(" ", "T")}Z`));
  try {
    await navigator.clipboard.writeText(JSON.stringify({ ...(row.facets ?? { id: row.id }), start, end, ...(row.triples ? { triples: row.triples } : { binding: row.binding }) }));
    say("done", "The solution is copied as JSON.");
  } catch {
    say("fault", "This page may not write to the clipboard.");
  }
}

function Origin({ id }: { id: string }) {
  const name = tab.value?.name;
  const [answer, setAnswer] = useState<Answer>({ kind: "asking" });
  useEffect(() => {
    if (!name) return;
    let over = false;
    setAnswer({ kind: "asking" });
    reasons(name, id).then(
      (found) => !over && setAnswer({ kind: "found", reasons: found }),
      (error: unknown) => !over && setAnswer({ kind: "not", why: told(error) }),
    );
    return () => void (over = true);
  }, [id, name]);
  if (answer.kind === "asking") return <p class="quiet">Looking in the log …</p>;
  if (answer.kind === "not") return <p class="quiet">{answer.why}</p>;
  return <Steps steps={answer.reasons.because} rules={answer.reasons.rules} depth={0} />;
}

function told(error: unknown): string {
  if (notServed(error)) return "This server does not explain solutions.";
  return error instanceof Error ? error.message : String(error);
}

function Steps({ steps, rules, depth }: { steps: readonly Step[]; rules: readonly Derived[]; depth: number }) {
  return (
    <ol class="steps">
      {steps.map((step, k) => (
        <li key={k} class={step.kind}>
          <Because step={step} rules={rules} depth={depth} />
        </li>
      ))}
    </ol>
  );
}

function Because({ step, rules, depth }: { step: Step; rules: readonly Derived[]; depth: number }) {
  const prefixes = prefixesOf(tab.value?.query ?? "");
  if (step.kind === "absent")
    return (
      <>
        <span class="quiet">nothing for {step.operator ?? "this"}{step.until ? ` up to ${moment(millis(step.until))}` : ""}</span>
        {step.patterns?.map((pattern) => (
          <code key={pattern}>{readable(pattern, prefixes)}</code>
        ))}
      </>
    );
  if (step.kind === "members")
    return (
      <details>
        <summary>{step.count} solutions of a group</summary>
        {step.shown?.map((member, k) => (
          <Steps key={k} steps={member.because} rules={rules} depth={depth + 1} />
        ))}
      </details>
    );
  if (step.kind === "event")
    return (
      <>
        <span class="quiet figures">{when(step)}</span>
        <code>{step.event}</code>
        <details>
          <summary>by the rule {step.rule}</summary>
          <Steps steps={step.because ?? []} rules={rules} depth={depth + 1} />
        </details>
      </>
    );
  const rule = depth < DEEPEST ? rules.find((each) => each.query === step.rule && each.id === step.solution) : undefined;
  return (
    <>
      <span class="quiet figures">{when(step)}</span>
      <code>{readable(step.triple ?? "", prefixes)}</code>
      {rule && (
        <details>
          <summary>by the rule {rule.query}</summary>
          <Steps steps={rule.because} rules={rules} depth={depth + 1} />
        </details>
      )}
      {step.inferences && (
        <details>
          <summary>{step.inferences.length === 1 ? "an inference" : `${step.inferences.length} inferences`}</summary>
          {step.inferences.map((each, k) => (
            <p key={k} class="quiet">
              {each.rule}: {each.premises.map((premise) => readable(premise, prefixes)).join(", ")}
            </p>
          ))}
        </details>
      )}
    </>
  );
}

function when(step: Step): string {
  if (step.kind === "background") return "background";
  const at = step.start && step.end ? interval(millis(step.start), millis(step.end)) : "";
  return step.stream ? `${at} · ${step.stream}` : at;
}
