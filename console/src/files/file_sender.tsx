/** A place for files of rows or events: each is looked at by the server, and sent to a stream. */

import { useRef, useState } from "preact/hooks";
import { admin, asked } from "../state/server_state";
import { ChosenFile, type Choice } from "./chosen_file";
import { holdsEvents, kindOf, SUFFIXES } from "./file_kinds";
import { toUtf8 } from "./row_parts";

export function FileSender({ stream }: { stream: string | null }) {
  const field = useRef<HTMLInputElement>(null);
  const [chosen, choose] = useState<Choice | null>(null);
  const [fault, setFault] = useState("");
  const [over, setOver] = useState(false);

  const take = async (file: File | undefined) => {
    if (!file) return;
    setFault("");
    choose(null);
    try {
      const kind = kindOf(file.name);
      const content = await toUtf8(file);
      choose({ name: file.name, file: content, ...kind, areEvents: kind.kind === "json-lines" && (await holdsEvents(content)) });
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void take(event.dataTransfer?.files[0]);
  };
  return (
    <section class="mapping" aria-label="Send a file">
      {stream !== null && <h2>Send a file</h2>}
      <div class={`drop ${over ? "over" : ""}`} onDragOver={(event) => (event.preventDefault(), setOver(true))} onDragLeave={() => setOver(false)} onDrop={drop}>
        <span class="quiet">Drop a file of CSV, JSON or log lines here, or</span>
        <button type="button" onClick={() => field.current!.click()}>
          Choose a file
        </button>
        <input
          ref={field}
          type="file"
          class="unseen"
          tabIndex={-1}
          aria-label="File of rows"
          accept={SUFFIXES.join()}
          onChange={({ currentTarget }) => {
            void take(currentTarget.files?.[0]);
            currentTarget.value = ""; // the same file may be chosen again
          }}
        />
      </div>
      {chosen && <ChosenFile key={`${chosen.name} ${chosen.file.size}`} chosen={chosen} stream={stream} leave={() => choose(null)} />}
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </section>
  );
}

/** The page for a file whose stream is not there yet. */
export function FilePage() {
  if (asked.value && !admin.value) return <p class="empty">Files are sent with tokens that have the scope admin. Enter one under Token.</p>;
  return (
    <article class="page" aria-label="Send a file">
      <header>
        <h1>Send a file to a stream</h1>
        <p class="quiet">The server proposes a mapping, which says how its rows become triples. Nothing is sent before you have looked at it.</p>
      </header>
      <FileSender stream={null} />
    </article>
  );
}
