/** What is being played into a stream, and how fast. */

import { EXAMPLES } from "./example_queries";
import { PACES, play, played, quicken, stop, toggle } from "./player";

export function PlayBar() {
  const now = play.value;
  if (!now) return null;
  const example = EXAMPLES.find((each) => each.id === now.example);
  const { of, moment, fault } = played.value;
  return (
    <section class="playbar" aria-label="Data being played">
      <button type="button" onClick={toggle} aria-label={now.playing ? "Pause the data" : "Continue the data"}>
        {now.playing ? "❙❙" : "▶"}
      </button>
      <span>
        <b>{example?.stream}</b> <span class="figures quiet">{moment.replace("T", " ").replace(/:00Z$/, "")}</span>
        {now.days > 0 && <span class="quiet"> · dates moved by {now.days} days, as they were played before</span>}
      </span>
      <progress max={of || 1} value={now.at} aria-label="How much of the data is played" />
      <span class="figures quiet">
        {now.at}/{of}
      </span>
      <span class="buttons" role="group" aria-label="Pace">
        {PACES.map((pace, k) => (
          <button key={pace} type="button" aria-pressed={now.pace === pace} onClick={() => quicken(pace)}>
            {["1×", "5×", "25×"][k]}
          </button>
        ))}
      </span>
      {fault && (
        <span class="fault" role="alert">
          {fault}
        </span>
      )}
      <span class="grow" />
      <button type="button" onClick={stop}>
        Stop
      </button>
    </section>
  );
}
