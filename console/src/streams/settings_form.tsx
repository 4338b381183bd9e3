/** A stream's settings: how long it waits, and for what. */

import { useEffect, useState } from "preact/hooks";
import { client, type StreamDocument } from "../api/client";
import { profileOf } from "../api/stream_profiles";
import { settingsOf } from "../api/stream_settings";
import { lookAgain } from "../state/query_checks";
import { attempt } from "../state/server_state";

const SETTINGS: ["max_delay" | "idle_timeout" | "max_ahead", string, string][] = [
  ["max_delay", "PT0S", "the allowed lateness: how long the stream waits for events that come out of order"],
  ["idle_timeout", "never, if events carry times", "after this silence, the stream's time moves with the clock"],
  ["max_ahead", "no limit", "how far events may be ahead of the clock; a new stream takes a day"],
];

export function StreamSettings({ stream }: { stream: StreamDocument }) {
  const { name, max_delay, idle_timeout, max_ahead } = stream;
  const [wanted, want] = useState({ max_delay, idle_timeout: idle_timeout ?? "", max_ahead: max_ahead ?? "", description: stream.description });
  const [instants, setInstants] = useState(stream.instants);
  const [local, setLocal] = useState(stream.local);
  const [offered, offer] = useState(false);
  useEffect(() => void profileOf(name).then((found) => offer(!!found?.events && !found.lasting)), [name]);
  const save = (event: Event) => {
    event.preventDefault();
    const given = Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, value.trim() || (key === "description" ? "" : null)]));
    void attempt(() => client.createStream(name, { ...settingsOf(stream), ...given, max_delay: given.max_delay ?? 0, instants, local }), "Saved").then(lookAgain); // a warning may have named the setting
  };
  return (
    <form class="settings" onSubmit={save}>
      <h2>Settings</h2>
      <p class="quiet">Durations as in queries: PT30S, PT10M, P1D.</p>
      <div class="fields">
        {SETTINGS.map(([key, otherwise, tells]) => (
          <div key={key} class="field">
            <label for={key}>{key}</label>
            <input id={key} type="text" aria-describedby={`${key}-tells`} placeholder={otherwise} value={wanted[key]} onInput={(event) => want({ ...wanted, [key]: event.currentTarget.value })} />
            <span id={`${key}-tells`} class="quiet small">
              {tells}
            </span>
          </div>
        ))}
        <div class="field">
          <label for="description">description</label>
          <input id="description" type="text" value={wanted.description} onInput={(event) => want({ ...wanted, description: event.currentTarget.value })} />
        </div>
        <div class="field">
          <label for="instants">instants</label>
          <input id="instants" type="checkbox" aria-describedby="instants-tells" checked={instants} onChange={(event) => setInstants(event.currentTarget.checked)} />
          <span id="instants-tells" class="quiet small">
            events that last are refused, so that queries keep less{offered && !stream.instants && "; no event of this stream has lasted so far"}
          </span>
        </div>
        <div class="field">
          <label for="local">local</label>
          <input id="local" type="checkbox" aria-describedby="local-tells" checked={local} onChange={(event) => setLocal(event.currentTarget.checked)} />
          <span id="local-tells" class="quiet small">
            a subject that another body has described is refused, so that what a subject lacks is certain at once
          </span>
        </div>
      </div>
      <button type="submit">Save</button>
    </form>
  );
}
