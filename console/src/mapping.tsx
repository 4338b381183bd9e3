/** A file of CSV or JSON for a stream: the mapping is proposed, changed by hand, set with the stream, and the rows are sent. */

import { useRef, useState } from "preact/hooks";
import { client, type StreamDocument } from "./server";
import { bytes, count, some } from "./format";
import { refresh, say } from "./state";

const CSV = "text/csv";
const JSON_TYPE = "application/json";
const TYPES: Record<string, string> = { csv: CSV, json: JSON_TYPE, ndjson: JSON_TYPE, jsonl: JSON_TYPE };
/** So much of a file shows how its rows look. JSON in one piece is shown whole. */
const LOOKED_AT = 256 << 10;

interface Chosen {
  file: File;
  type: string;
  mapping: string;
  comments: readonly string[];
}

/** What a stream is set to, apart from its mapping; a PUT replaces all of it. */
export const settingsOf = (stream: StreamDocument) => ({
  max_delay: stream.max_delay,
  idle_timeout: stream.idle_timeout,
  max_ahead: stream.max_ahead,
  description: stream.description,
  sources: stream.sources,
  base: stream.base,
  mapping: stream.mapping,
  on_error: stream.on_error,
  key: stream.key,
  parts: stream.parts,
  revisable: stream.revisable,
  round: stream.round,
  prefixes: stream.prefixes,
});

export function FileOfRows({ stream }: { stream: StreamDocument }) {
  const { name } = stream;
  const field = useRef<HTMLInputElement>(null);
  const [chosen, choose] = useState<Chosen | null>(null);
  const [onError, setOnError] = useState(stream.on_error);
  const [fault, setFault] = useState("");
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);

  /** Does a thing at a time, and tells what the server refuses. */
  const work = async (what: () => Promise<void>) => {
    setFault("");
    setBusy(true);
    try {
      await what();
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  const take = (file: File | undefined, anew = false) =>
    work(async () => {
      if (!file) return;
      const type = TYPES[/\.(\w+)$/.exec(file.name)?.[1]?.toLowerCase() ?? ""];
      if (!type) throw new Error(`${file.name} has no mapping: choose a file whose name ends in .csv, .json, .ndjson or .jsonl`);
      if (stream.mapping && !anew) return choose({ file, type, mapping: JSON.stringify(stream.mapping, null, 2), comments: ["this is the stream's own mapping"] });
      const found = await client.proposeMapping(name, await beginning(file), type);
      choose({ file, type, mapping: JSON.stringify(found.mapping, null, 2), comments: found.comments });
    });
  const send = ({ file, type, mapping }: Chosen) =>
    work(async () => {
      await client.createStream(name, { ...settingsOf(stream), mapping: parsed(mapping, "the mapping"), on_error: onError });
      const { accepted, late, rejected } = await client.send(name, file, { mediaType: type });
      say("done", [`${file.name}: ${some(accepted, "event")} accepted`, late && `${count(late)} of them late`, rejected && `${some(rejected, "row")} did not map`].filter(Boolean).join(", "));
      choose(null);
      await refresh();
    });
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void take(event.dataTransfer?.files[0]);
  };
  return (
    <section class="mapping" aria-label="Send a file">
      <h2>Send a file</h2>
      <div class={`drop ${over ? "over" : ""}`} onDragOver={(event) => (event.preventDefault(), setOver(true))} onDragLeave={() => setOver(false)} onDrop={drop}>
        <span class="quiet">Drop a file of CSV or JSON here, or</span>
        <button type="button" disabled={busy} onClick={() => field.current!.click()}>
          Choose a file
        </button>
        <input
          ref={field}
          type="file"
          class="unseen"
          tabIndex={-1}
          aria-label="File of CSV or JSON"
          accept=".csv,.json,.ndjson,.jsonl"
          onChange={({ currentTarget }) => {
            void take(currentTarget.files?.[0]);
            currentTarget.value = ""; // the same file may be chosen again
          }}
        />
      </div>
      {chosen && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void send(chosen);
          }}
        >
          <p>
            <b>{chosen.file.name}</b> <span class="quiet">{bytes(chosen.file.size)}</span>
          </p>
          <ul class="quiet small">
            {chosen.comments.map((comment, k) => (
              <li key={k}>{comment}</li>
            ))}
          </ul>
          <textarea
            aria-label="Mapping"
            spellcheck={false}
            rows={Math.min(20, chosen.mapping.split("\n").length + 1)}
            value={chosen.mapping}
            onInput={(event) => choose({ ...chosen, mapping: event.currentTarget.value })}
          />
          <div class="bar">
            <select aria-label="Rows that do not map" value={onError} onChange={(event) => setOnError(event.currentTarget.value)}>
              <option value="refuse">A row that does not map refuses the file</option>
              <option value="skip">Rows that do not map are left out and counted</option>
              <option value="dead_letter">Rows that do not map are set aside</option>
            </select>
            <button type="submit" class="primary" disabled={busy}>
              Set the mapping and send
            </button>
            {stream.mapping && (
              <button type="button" disabled={busy} onClick={() => void take(chosen.file, true)}>
                Propose another
              </button>
            )}
            <button type="button" onClick={() => (choose(null), setFault(""))}>
              Leave it
            </button>
          </div>
        </form>
      )}
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </section>
  );
}

/** The first rows: whole lines, where the file has lines. */
async function beginning(file: File): Promise<string> {
  if (file.size <= LOOKED_AT || file.name.toLowerCase().endsWith(".json")) return file.text();
  const text = await file.slice(0, LOOKED_AT).text();
  return text.slice(0, text.lastIndexOf("\n") + 1);
}

/** The object that a person wrote as JSON; a fault names it by `subject`. */
export function parsed(text: string, subject: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new Error(`${subject} is no JSON: ${error instanceof Error ? error.message : error}`);
  }
}
