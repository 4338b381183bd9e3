/** A stream's settings: how long it waits, and for what. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { client, type StreamDocument } from "../api/client";
import { profileOf } from "../api/stream_profiles";
import { settingsOf } from "../api/stream_settings";
import { durationFromWords, durationInWords } from "../display/format";
import { lookAgain } from "../state/query_checks";
import { attempt } from "../state/server_state";

const DURATIONS: [key: "max_delay" | "idle_timeout" | "max_ahead", label: string, otherwise: string, tells: string][] = [
  ["max_delay", "Wait for late events", "not at all", "so long, events may come out of order; solutions come so much later"],
  ["idle_timeout", "Time goes on after a silence of", "never, if events carry times", "after it, the stream's time moves with the clock, so that queries see that nothing came"],
  ["max_ahead", "Events may be ahead of the clock by", "no limit", "events further in the future are refused; a new stream takes a day"],
];

interface FieldProps {
  /** The setting as requests name it. */
  of: string;
  label: string;
  tells?: ComponentChildren;
  children: ComponentChildren;
}

function Field({ of, label, tells, children }: FieldProps) {
  return (
    <div class="field">
      <label for={of}>
        {label} <code class="quiet">{of}</code>
      </label>
      {children}
      {tells && (
        <span id={`${of}-tells`} class="quiet small">
          {tells}
        </span>
      )}
    </div>
  );
}

export function StreamSettings({ stream }: { stream: StreamDocument }) {
  const { name } = stream;
  const written = (text: string | null) => (text === null ? "" : durationInWords(text));
  const [wanted, want] = useState({ max_delay: written(stream.max_delay), idle_timeout: written(stream.idle_timeout), max_ahead: written(stream.max_ahead) });
  const [description, describe] = useState(stream.description);
  const [instants, setInstants] = useState(stream.instants);
  const [local, setLocal] = useState(stream.local);
  const [offered, offer] = useState(false);
  useEffect(() => void profileOf(name).then((found) => offer(!!found?.events && !found.lasting)), [name]);
  const save = (event: Event) => {
    event.preventDefault();
    const given = Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, durationFromWords(value) || null]));
    void attempt(() => client.createStream(name, { ...settingsOf(stream), ...given, max_delay: given.max_delay ?? 0, description: description.trim(), instants, local }), "Saved").then(lookAgain); // a warning may have named the setting
  };
  return (
    <form class="settings" onSubmit={save}>
      <h2>Settings</h2>
      <p class="quiet">Durations are in words, such as 500 ms, 30 s or 1 h 30 min, or as in queries: PT30S, P1D.</p>
      <div class="fields">
        {DURATIONS.map(([key, label, otherwise, tells]) => (
          <Field key={key} of={key} label={label} tells={tells}>
            <input id={key} type="text" aria-describedby={`${key}-tells`} placeholder={otherwise} value={wanted[key]} onInput={(event) => want({ ...wanted, [key]: event.currentTarget.value })} />
          </Field>
        ))}
        <Field of="description" label="What the stream is">
          <input id="description" type="text" value={description} onInput={(event) => describe(event.currentTarget.value)} />
        </Field>
        <Field of="instants" label="Events have no duration" tells={<>those that last are refused, so that queries keep less{offered && !stream.instants && "; no event of this stream has lasted so far"}</>}>
          <input id="instants" type="checkbox" aria-describedby="instants-tells" checked={instants} onChange={(event) => setInstants(event.currentTarget.checked)} />
        </Field>
        <Field of="local" label="One request says all about a subject" tells="a subject that another request has described is refused, so that what a subject lacks is certain at once">
          <input id="local" type="checkbox" aria-describedby="local-tells" checked={local} onChange={(event) => setLocal(event.currentTarget.checked)} />
        </Field>
      </div>
      <button type="submit">Save</button>
    </form>
  );
}
