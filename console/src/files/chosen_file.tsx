/** A file that was chosen: its proposed mapping, the stream that it goes to, and how far it is sent. */

import { ApiError } from "epsparql";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { client } from "../api/client";
import { parseObject, settingsOf } from "../api/stream_settings";
import { bytes, count, some } from "../display/format";
import { Link } from "../display/link";
import { hashOf } from "../state/places";
import { refresh, streams, view } from "../state/server_state";
import { dialectOf, EVENTS, type FileKind, nameAfter } from "./file_kinds";
import { Choices, type Decisions, Preview, type Problem, type Proposal, Readings } from "./proposal";
import { beginningOf } from "./row_parts";
import { newKey, NOTHING_SENT, type Progress, sendFile } from "./sending";

export interface Choice extends FileKind {
  name: string;
  file: Blob;
  areEvents: boolean;
}

interface Props {
  chosen: Choice;
  /** The stream on whose page it was chosen. */
  stream: string | null;
  leave: () => void;
}

/** The server looks at so much of a file. */
const LOOKED_AT = 8 << 20;
const NOT_FOUND = 404;
const AMBIGUOUS = "ambiguous-date";

const find = (name: string) => streams.value.find((each) => each.name === name);

export function ChosenFile({ chosen, stream, leave }: Props) {
  const [target, setTarget] = useState(stream ?? nameAfter(chosen.name));
  const known = find(target);
  const [own, setOwn] = useState(known?.mapping ?? null);
  const proposed = useProposal(chosen, target, own !== null);
  const [written, write] = useState<string | null>(null);
  const [onError, setOnError] = useState(known?.on_error ?? "refuse");
  const mapping = written ?? JSON.stringify(own ?? proposed.found?.mapping ?? {}, null, 2);
  const shipment = useShipment(chosen, target, { mapping, onError });
  const fault = shipment.fault || proposed.fault;
  const ready = chosen.areEvents || own !== null || proposed.found !== null;
  const decide = (decisions: Decisions) => {
    write(null);
    proposed.decide(decisions);
  };
  const direct = (name: string) => {
    setTarget(name);
    setOwn(find(name)?.mapping ?? null);
  };
  const send = (event: Event) => {
    event.preventDefault();
    void shipment.send();
  };
  const dismissal =
    shipment.state === "sending" ? (
      <button type="button" onClick={shipment.cancel}>
        Cancel
      </button>
    ) : (
      <button type="button" onClick={leave}>
        {shipment.state === "sent" ? "Close" : "Leave it"}
      </button>
    );
  return (
    <form onSubmit={send}>
      <p>
        <b>{chosen.name}</b> <span class="quiet">{bytes(chosen.file.size)}</span>
        {proposed.asking && <span class="quiet"> · the server looks at it</span>}
      </p>
      {chosen.areEvents && <p class="quiet">Its lines are events with terms of their own, which need no mapping.</p>}
      {own && (
        <p class="quiet">
          The stream's own mapping is used.{" "}
          <button type="button" class="plain link" onClick={() => (write(null), setOwn(null))}>
            Propose another
          </button>
        </p>
      )}
      {proposed.open && <Readings problem={proposed.open} choose={(order) => decide({ ...proposed.decisions, order })} />}
      {proposed.found && !own && (
        <>
          {chosen.file.size > LOOKED_AT && <p class="quiet">The server looked at about the first {bytes(LOOKED_AT)}.</p>}
          <Choices proposal={proposed.found} decisions={proposed.decisions} decide={decide} />
          <Preview proposal={proposed.found} />
        </>
      )}
      {ready && !chosen.areEvents && <MappingText text={mapping} isOwn={own !== null} isChanged={written !== null} write={write} />}
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      {ready && (
        <Destination target={target} setTarget={direct} isFixed={stream !== null || shipment.state !== "new"} maps={!chosen.areEvents} onError={onError} setOnError={setOnError}>
          <button type="submit" class="primary" disabled={!target || proposed.asking || proposed.fault !== "" || shipment.state === "sending" || shipment.state === "sent"}>
            {shipment.now.sent > 0 && shipment.state !== "sent" ? "Send the rest" : "Send the events"}
          </button>
          {dismissal}
        </Destination>
      )}
      {ready && known?.mapping && !own && shipment.state === "new" && !chosen.areEvents && <p class="quiet small">This mapping replaces the one that {target} has.</p>}
      <Outcome chosen={chosen} target={target} shipment={shipment} isHere={stream !== null} onError={onError} />
      {!ready && <p>{dismissal}</p>}
    </form>
  );
}

// ---------------------------------------------------------------- the proposal
/** Ask the server for a mapping of the file, and again after each decision. */
function useProposal({ file, kind, mediaType, areEvents }: Choice, target: string, hasOwn: boolean) {
  const [decisions, decide] = useState<Decisions>({ choices: {} });
  const [found, setFound] = useState<Proposal | null>(null);
  const [open, setOpen] = useState<Problem | null>(null);
  const [fault, setFault] = useState("");
  const [asking, setAsking] = useState(false);
  useEffect(() => {
    if (areEvents || hasOwn) return;
    const control = new AbortController();
    const ask = async () => {
      setAsking(true);
      setFault("");
      try {
        const rows = await beginningOf(file, kind, LOOKED_AT);
        setFound(await client.proposeMapping(target || "default", rows, { mediaType, ...decisions, signal: control.signal }));
        setOpen(null);
      } catch (error) {
        if (control.signal.aborted) return;
        if (error instanceof ApiError && error.code === AMBIGUOUS) {
          setFound(null);
          setOpen(error.problem);
        } else setFault(error instanceof Error ? error.message : String(error));
      }
      if (!control.signal.aborted) setAsking(false);
    };
    void ask();
    return () => control.abort();
  }, [decisions, hasOwn, find(target)?.base ?? null]); // names are relative to the stream's base
  return { decisions, decide, found, open, fault, asking };
}

function MappingText({ text, isOwn, isChanged, write }: { text: string; isOwn: boolean; isChanged: boolean; write: (text: string | null) => void }) {
  return (
    <details>
      <summary>The mapping as JSON</summary>
      <textarea aria-label="Mapping" spellcheck={false} rows={Math.min(20, text.split("\n").length + 1)} value={text} onInput={(event) => write(event.currentTarget.value)} />
      {isChanged && (
        <p class="quiet small">
          {isOwn ? "It is changed by hand. " : "It is changed by hand, and the triples above are those of the proposal. "}
          <button type="button" class="plain link" onClick={() => write(null)}>
            Undo
          </button>
        </p>
      )}
    </details>
  );
}

// ---------------------------------------------------------------- where it goes
interface DestinationProps {
  target: string;
  setTarget: (name: string) => void;
  isFixed: boolean;
  maps: boolean;
  onError: string;
  setOnError: (word: string) => void;
  children: preact.ComponentChildren;
}

function Destination({ target, setTarget, isFixed, maps, onError, setOnError, children }: DestinationProps) {
  const id = useId();
  const isNew = target && !find(target);
  return (
    <div class="bar">
      {!isFixed && (
        <label class="pick">
          {isNew ? "to the new stream" : "to the stream"}
          <input type="text" list={id} required value={target} onInput={(event) => setTarget(event.currentTarget.value.trim())} />
          <datalist id={id}>
            {streams.value.filter(({ finished }) => !finished).map(({ name }) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </label>
      )}
      {maps && (
        <select aria-label="Rows that do not map" value={onError} onChange={(event) => setOnError(event.currentTarget.value)}>
          <option value="refuse">A row that does not map ends the sending</option>
          <option value="skip">Rows that do not map are left out and counted</option>
          <option value="dead_letter">Rows that do not map are set aside</option>
        </select>
      )}
      {children}
    </div>
  );
}

// ---------------------------------------------------------------- sending
type State = "new" | "sending" | "stopped" | "sent";

/** Send the file, or what is left of it. */
function useShipment({ file, kind, mediaType, areEvents }: Choice, stream: string, wish: { mapping: string; onError: string }) {
  const [state, setState] = useState<State>("new");
  const [now, tell] = useState<Progress>(NOTHING_SENT);
  const [fault, setFault] = useState("");
  const control = useRef<AbortController | null>(null);
  const key = useRef(newKey());
  useEffect(() => () => control.current?.abort(), []);
  const send = async () => {
    const { signal } = (control.current = new AbortController());
    setFault("");
    setState("sending");
    try {
      const mapping = areEvents ? {} : parseObject(wish.mapping, "the mapping");
      if (!areEvents) await setMapping(stream, mapping, wish.onError);
      await sendFile({ stream, file, kind, mediaType: areEvents ? EVENTS : mediaType, key: key.current }, dialectOf(mapping), now, tell, signal);
      setState("sent");
    } catch (error) {
      setState("stopped");
      if (!signal.aborted) setFault(error instanceof Error ? error.message : String(error));
    }
    await refresh();
  };
  return { state, now, fault, send, cancel: () => control.current?.abort() };
}

/** Set the mapping with the stream, which keeps its other settings, or becomes a new one. */
async function setMapping(name: string, mapping: Record<string, unknown>, onError: string): Promise<void> {
  const found = await client.stream(name).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === NOT_FOUND) return null;
    throw error;
  });
  await client.createStream(name, { ...(found && settingsOf(found)), mapping, on_error: onError });
}

function Outcome({ chosen, target, shipment, isHere, onError }: { chosen: Choice; target: string; shipment: ReturnType<typeof useShipment>; isHere: boolean; onError: string }) {
  const { state, now } = shipment;
  if (state === "new" || (state === "stopped" && !now.sent)) return null;
  const told = [`${some(now.accepted, "event")} accepted`, now.late && `${count(now.late)} of them late`, now.rejected && `${some(now.rejected, "row")} did not map`];
  return (
    <div class="outcome">
      {state !== "sent" && <progress max={chosen.file.size} value={now.sent} aria-label={`Sent of ${chosen.name}`} />}
      <p {...(state !== "sending" && { role: "status" as const })}>
        {chosen.name}: {state !== "sent" && `${bytes(now.sent)} of ${bytes(chosen.file.size)} sent, `}
        {told.filter(Boolean).join(", ")}
        {state === "stopped" && ". The rest is not sent."}
      </p>
      {now.firstRejected && (
        <p class="fault">
          The first of them: {now.firstRejected}
          {onError === "dead_letter" && ". All are in the stream's dead-letter feed."}
        </p>
      )}
      {now.warning && <p class="quiet">{now.warning}</p>}
      {!isHere && state !== "sending" && (
        <Link class="plain link" href={hashOf(["stream", target])} act={() => (view.value = { kind: "stream", name: target })}>
          Open the stream {target}
        </Link>
      )}
    </div>
  );
}
