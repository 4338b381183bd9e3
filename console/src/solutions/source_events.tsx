/** The occurrences behind a solution, in short: for the tip over its bar. */

import { useEffect, useState } from "preact/hooks";
import { clock } from "../display/format";
import { millis, type Row } from "../state/solution_store";
import { tab } from "../state/tabs";
import { asksInPassing, readable, reasons, type Step } from "./derivations";

const REST_MS = 250;
const MOST = 6;

export function Behind({ row, prefixes }: { row: Row; prefixes: ReadonlyMap<string, string> }) {
  const [steps, setSteps] = useState<Step[]>([]);
  useEffect(() => {
    setSteps([]);
    let over = false;
    const name = tab.peek()?.name;
    const rested = setTimeout(() => {
      if (!name || !asksInPassing()) return;
      reasons(name, row.id).then(
        (found) => !over && setSteps(found.because.filter((step) => step.triple)),
        () => undefined,
      );
    }, REST_MS);
    return () => {
      over = true;
      clearTimeout(rested);
    };
  }, [row.id]);
  if (!steps.length) return null;
  return (
    <ul class="behind">
      {steps.slice(0, MOST).map((step, k) => (
        <li key={k}>
          <span class="quiet figures">{step.end ? clock(millis(step.end)) : "always"}</span> {readable(step.triple ?? "", prefixes)}
        </li>
      ))}
      {steps.length > MOST && <li class="quiet">and {steps.length - MOST} more</li>}
    </ul>
  );
}
