/** What the server proposes for a file: its choices, the triples of the first rows, and what it guessed. */

import { useEffect, useId, useState } from "preact/hooks";
import type { Schemas } from "../api/client";

export type Proposal = Schemas["MappingProposal"];
export type Problem = Schemas["ProblemDocument"];
type Order = "day-first" | "month-first";

/** What a person decided. */
export interface Decisions {
  order?: Order;
  timeZone?: string;
  choices: Readonly<Record<string, string>>;
}

const LABELS: Record<string, string> = { time: "time", subject: "subject", rows: "rows", order: "day and month", numbers: "commas", header_rows: "header rows", encoding: "encoding" };
const ORDERS: Record<string, string> = { "day-first": "the day first", "month-first": "the month first" };
const ZONES: readonly string[] = Intl.supportedValuesOf("timeZone");

/** What a setting is called: one of a field is named with it. */
function labelOf(setting: string): string {
  const [about, field] = [setting.slice(0, setting.indexOf(":")), setting.slice(setting.indexOf(":") + 1)];
  if (setting.startsWith("values:")) return `${about} of ${field}`;
  if (setting.startsWith("null:")) return `“no value” in ${field}`;
  return LABELS[setting] ?? setting;
}

interface Props {
  proposal: Proposal;
  decisions: Decisions;
  decide: (decisions: Decisions) => void;
}

/** Each thing that the file leaves open, with its alternatives; another one asks the server again. */
export function Choices({ proposal, decisions, decide }: Props) {
  if (!proposal.choices.length) return null;
  const choose = (setting: string, value: string) =>
    decide(setting === "order" ? { ...decisions, order: value as Order } : { ...decisions, choices: { ...decisions.choices, [setting]: value } });
  return (
    <div class="choices-made" role="group" aria-label="Choices">
      {proposal.choices.map(({ setting, value, alternatives }) =>
        setting === "time_zone" ? (
          <Zone key={setting} zone={value} decide={(timeZone) => decide({ choices: decisions.choices, ...(decisions.order && { order: decisions.order }), ...(timeZone && { timeZone }) })} />
        ) : (
          <label key={setting}>
            {labelOf(setting)}
            <select value={value} onChange={(event) => choose(setting, event.currentTarget.value)}>
              {[value, ...alternatives].map((each) => (
                <option key={each} value={each}>
                  {ORDERS[each] ?? each}
                </option>
              ))}
            </select>
          </label>
        ),
      )}
    </div>
  );
}

/** Enter asks the server again; it does not send the file. */
function leaveByEnter(event: KeyboardEvent): void {
  if (event.key !== "Enter") return;
  event.preventDefault();
  (event.currentTarget as HTMLElement).blur();
}

/** The zone of times that name none. What is typed stays when the page is drawn anew meanwhile. */
function Zone({ zone, decide }: { zone: string; decide: (zone: string) => void }) {
  const id = useId();
  const [typed, type] = useState(zone);
  useEffect(() => type(zone), [zone]);
  return (
    <label>
      time zone
      <input
        type="text"
        list={id}
        value={typed}
        placeholder="UTC, or such as Europe/Vienna"
        onInput={(event) => type(event.currentTarget.value)}
        onChange={(event) => decide(event.currentTarget.value.trim())}
        onKeyDown={leaveByEnter}
      />
      <datalist id={id}>
        {ZONES.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  );
}

/** Both readings of dates that can be either way round. */
export function Readings({ problem, choose }: { problem: Problem; choose: (order: Order) => void }) {
  return (
    <div class="fault" role="alert">
      <p>{problem.detail}</p>
      <p class="buttons readings">
        {Object.entries(problem.readings ?? {}).map(([order, day]) => (
          <button key={order} type="button" onClick={() => choose(order as Order)}>
            {ORDERS[order] ?? order}: {day}
          </button>
        ))}
      </p>
    </div>
  );
}

/** The triples of the first rows, as the server writes them, and what was guessed. */
export function Preview({ proposal }: { proposal: Proposal }) {
  return (
    <>
      <h3>The first rows as triples</h3>
      <ol class="preview" tabIndex={0} aria-label="The first rows as triples">
        {proposal.preview.map((triples, row) => (
          <li key={row}>{triples.length ? triples.map((triple, k) => <code key={k}>{triple}</code>) : <span class="quiet">gives no triple</span>}</li>
        ))}
      </ol>
      <details open={proposal.comments.length <= 12}>
        <summary>What was guessed, and what else it could be</summary>
        <ul class="quiet small">
          {proposal.comments.map((comment, k) => (
            <li key={k}>{comment}</li>
          ))}
        </ul>
      </details>
    </>
  );
}
