/** Why a query finds nothing, as the server tells it when asked: the reason, and the count of each step. */

import { useState } from "preact/hooks";
import { client, type Schemas } from "../api/client";
import { count } from "../display/format";
import { notServed } from "./derivations";

type Diagnosis = Schemas["DiagnosisDocument"];
type Answer = { kind: "unasked" } | { kind: "asking" } | { kind: "told"; diagnosis: Diagnosis } | { kind: "not"; why: string };

/** A button that asks, and the answer below it; asking again looks at today's events. */
export function WhyNothing({ name }: { name: string }) {
  const [answer, setAnswer] = useState<Answer>({ kind: "unasked" });
  const ask = async () => {
    setAnswer({ kind: "asking" });
    try {
      setAnswer({ kind: "told", diagnosis: await client.diagnose(name) });
    } catch (error) {
      setAnswer({ kind: "not", why: notServed(error) ? "This server has no diagnoses." : error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <section class="diagnosis" aria-label="Why nothing?">
      <button type="button" disabled={answer.kind === "asking"} title="Looks for the first step of the query that lets nothing through" onClick={() => void ask()}>
        Why nothing?
      </button>
      <div role="status">
        {answer.kind === "asking" && <p class="quiet">Examining the last events …</p>}
        {answer.kind === "not" && <p>{answer.why}</p>}
        {answer.kind === "told" && <Told diagnosis={answer.diagnosis} />}
      </div>
    </section>
  );
}

function Told({ diagnosis: { state, reason, examined, steps } }: { diagnosis: Diagnosis }) {
  return (
    <>
      {reason ? (
        <p>
          <b>{reason.line !== null && `Line ${reason.line}, column ${reason.column}: `}</b>
          {reason.message}.
          {reason.remedy && <span class="remedy">What to do: {reason.remedy}.</span>}
        </p>
      ) : (
        <p>{state === "found" ? "The query finds solutions in these events." : "No reason is known; a trial runs the query over all of the log."}</p>
      )}
      {steps.length > 0 && <Steps steps={steps} />}
      <p class="quiet">
        {examined.bounded ? "The last " : ""}
        {count(examined.events)} {examined.events === 1 ? "event was" : "events were"} examined.
      </p>
    </>
  );
}

/** The first step without solutions, whose inputs all have some, is the one that the reason explains. */
function Steps({ steps }: { steps: Diagnosis["steps"] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">step</th>
          <th scope="col">in</th>
          <th scope="col">lets through</th>
        </tr>
      </thead>
      <tbody>
        {steps.map((step, k) => (
          <tr key={k} class={step.out === 0 && step.in.every((each) => each > 0) ? "silent" : ""}>
            <td>
              {step.operator} <code>{step.text}</code>
            </td>
            <td class="figures">{step.in.map(count).join(" + ")}</td>
            <td class="figures">
              {count(step.out)}
              {step.more && "+"}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
