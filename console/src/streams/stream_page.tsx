/** One stream: its counts and settings, what came late, and a place to send events from. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { client, type StreamDocument } from "../api/client";
import { Sure } from "../display/confirmation";
import { count, moment, rate, toSecond } from "../display/format";
import { Link } from "../display/link";
import { Spark } from "../display/sparkline";
import { Cell } from "../display/table_cell";
import { FileSender } from "../files/file_sender";
import { readable } from "../solutions/derivations";
import { hashOf } from "../state/places";
import { admin, asked, attempt, feeds, queries, rateOf, rates, say, streams, view } from "../state/server_state";
import { millis } from "../state/solution_store";
import { showQuery } from "../state/tabs";
import { LONG_AGO, streamsOf, writtenBy } from "../state/watermark";
import { LastEvents } from "./last_events";
import { StreamSettings } from "./settings_form";

const SHOWN = 100;
/** More queries of a stream are named when they are asked for. */
const QUERIES_SHOWN = 8;
const FED = 200;
const NONE: ReadonlyMap<string, string> = new Map();
/** The page names so many of the sources for which events wait. */
const SOURCES_SHOWN = 3;

/** An event of the stream's own time: one at its newest event or watermark moves neither, and is not late. */
function example({ latest, watermark }: StreamDocument): string {
  const at = [latest, watermark].reduce((newest, each) => (each && millis(each) > millis(newest) ? each : newest), LONG_AGO);
  return `{"s":"<http://example.org/sensor>","p":"<http://example.org/temp>","o":"\\"21.5\\"^^<http://www.w3.org/2001/XMLSchema#decimal>","at":"${at}"}\n`;
}

interface Late {
  s: string;
  p: string;
  o: string;
  end: string;
  watermark: string;
  reason: string;
}

interface Rejected {
  row: number;
  field: string | null;
  reason: string;
  text: string;
  arrived: string;
}

export function Stream({ name }: { name: string }) {
  const stream = streams.value.find((each) => each.name === name);
  if (!stream) return <p class="empty">{asked.value ? `There is no stream ${name}${feeds.value ? "" : " that this token may see"}.` : "…"}</p>;
  return (
    <article class="page" aria-label={`Stream ${name}`}>
      <header>
        <h1>{name}</h1>
        <p class="quiet">{stream.description || "A stream of events."}</p>
        <Used by={name} />
      </header>
      <Figures stream={stream} />
      <LastEvents name={name} known={stream.accepted > 0} />
      <Send key={name} stream={stream} />
      {admin.value && !stream.finished && <FileSender key={`file ${name}`} stream={name} />}
      <LateEvents stream={stream} />
      <RejectedRows stream={stream} />
      {admin.value && <StreamSettings key={name} stream={stream} />}
      {admin.value && <Endings stream={stream} />}
    </article>
  );
}

/** What cannot be undone. */
function Endings({ stream: { name, finished } }: { stream: StreamDocument }) {
  const drop = async () => {
    if (await attempt(() => client.dropStream(name), `${name} is deleted`)) view.value = { kind: "query" };
  };
  return (
    <section class="buttons">
      {!finished && (
        <Sure
          label="Finish"
          question="Really finish?"
          title="The stream has ended: no query waits for it any longer, and it accepts no more events"
          act={() => attempt(() => client.finish(name), `${name} is finished`)}
        />
      )}
      <Sure label="Delete" question="Really delete?" title="Deletes its name, settings and counts; not possible while a query reads it" act={drop} />
    </section>
  );
}

/** The queries that read or write it, as far as their texts tell. */
function Used({ by }: { by: string }) {
  const readers = queries.value.filter((query) => streamsOf(query.query).includes(by));
  const writers = queries.value.filter((query) => writtenBy(query.query).includes(by));
  const links = (of: typeof readers) =>
    of.map((query) => (
      <Link key={query.registered} class="plain link" href={hashOf(["query", query.name])} act={() => (showQuery(query), (view.value = { kind: "query" }))}>
        {query.name}
      </Link>
    ));
  const part = (title: string, of: typeof readers) =>
    of.length > 0 && (
      <div class="used">
        {title} {links(of.slice(0, QUERIES_SHOWN))}
        {of.length > QUERIES_SHOWN && (
          <details>
            <summary>and {count(of.length - QUERIES_SHOWN)} more</summary>
            <div class="used">{links(of.slice(QUERIES_SHOWN, SHOWN))}</div>
          </details>
        )}
      </div>
    );
  return (
    <>
      {part("Read by", readers)}
      {part("Written by", writers)}
    </>
  );
}

function Figures({ stream }: { stream: StreamDocument }) {
  const key = `stream ${stream.name}`;
  const time = (text: string | null) => (text ? moment(toSecond(millis(text))) : "–");
  const told: [string, string, string][] = [
    ["late", count(stream.late), "arrived behind the watermark, and were not evaluated"],
    ["latest", time(stream.latest), "the end of the newest event, UTC"],
    ["watermark", stream.finished ? "finished" : time(stream.watermark), "no earlier event is accepted"],
  ];
  if (stream.waits_for.length > 0) {
    const shown = stream.waits_for.slice(0, SOURCES_SHOWN).join(", ");
    const more = stream.waits_for.length - SOURCES_SHOWN;
    told.unshift(["waiting", count(stream.waiting), `for ${shown}${more > 0 ? ` and ${count(more)} more` : ""}`]);
  }
  return (
    <dl class="figures-list">
      <div>
        <dt>events</dt>
        <dd class="figures">{count(stream.accepted)}</dd>
        <dd class="quiet">
          {rate(rateOf(key))} now <Spark rates={rates.value.get(key)?.rates ?? []} />
        </dd>
      </div>
      {told.map(([label, value, tells]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd class="figures">{value}</dd>
          <dd class="quiet">{tells}</dd>
        </div>
      ))}
    </dl>
  );
}

function Send({ stream }: { stream: StreamDocument }) {
  const { name } = stream;
  const [written, write] = useState<string | null>(null);
  const text = written ?? example(stream);
  const [type, setType] = useState("application/x-ndjson");
  const [fault, setFault] = useState("");
  const send = async (event: Event) => {
    event.preventDefault();
    setFault("");
    try {
      const { accepted, late } = await client.send(name, text, { mediaType: type });
      say("done", `${accepted} accepted${late ? `, ${late} of them late` : ""}`);
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form class="send" onSubmit={send}>
      <h2>Send events</h2>
      <textarea aria-label="Events" spellcheck={false} rows={4} value={text} onInput={(event) => write(event.currentTarget.value)} />
      <div class="bar">
        <select aria-label="Format" value={type} onChange={(event) => setType(event.currentTarget.value)}>
          <option value="application/x-ndjson">ndjson</option>
          <option value="application/trig">TriG</option>
          <option value="text/turtle">Turtle, as of now</option>
        </select>
        <button type="submit">Send</button>
        {fault && (
          <span class="fault" role="alert">
            {fault}
          </span>
        )}
      </div>
    </form>
  );
}

/** A feed of the stream, read again when its count changes. */
function useFeed<T>(name: string, size: number, read: (name: string) => Promise<string>): readonly T[] {
  const [found, setFound] = useState<readonly T[]>([]);
  useEffect(() => {
    let over = false;
    if (!size) setFound([]);
    else
      read(name).then(
        (text) => !over && setFound(text.split("\n").filter(Boolean).map((line) => JSON.parse(line) as T)),
        () => !over && setFound([]),
      );
    return () => void (over = true);
  }, [name, size]);
  return found;
}

/** A table of a feed's last rows. */
function FeedTable({ title, columns, rows }: { title: string; columns: string[]; rows: ComponentChildren[] }) {
  return (
    <section>
      <h2>{title}</h2>
      <div class="table" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              {columns.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(-SHOWN).map((row, k) => (
              <tr key={k}>{row}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function LateEvents({ stream }: { stream: StreamDocument }) {
  const late = useFeed<Late>(stream.name, stream.late, (name) => client.late(name, FED));
  if (!late.length) return null;
  const rows = late.map((each) => (
    <>
      <td class="figures">{moment(millis(each.end))}</td>
      <td class="figures">{moment(millis(each.watermark))}</td>
      {[each.s, each.p, each.o].map((term, column) => (
        <Cell key={column} class="mono" title={term} text={readable(term, NONE)} />
      ))}
      <td class="reason">{each.reason}</td>
    </>
  ));
  return <FeedTable title="Late events" columns={["end", "watermark", "subject", "predicate", "object", "reason"]} rows={rows} />;
}

/** The dead-letter feed: what was sent and did not map. */
function RejectedRows({ stream }: { stream: StreamDocument }) {
  const rejected = useFeed<Rejected>(stream.name, stream.rejected, (name) => client.rejected(name, FED));
  if (!rejected.length) return null;
  const rows = rejected.map((each) => (
    <>
      <td class="figures">{moment(Math.floor(millis(each.arrived)))}</td>
      <td class="figures">{each.row}</td>
      <td class="mono">{each.field ?? "–"}</td>
      <td class="reason">{each.reason}</td>
      <Cell class="mono" title={each.text} text={each.text} />
    </>
  ));
  return <FeedTable title="Rows that did not map" columns={["arrived", "row", "field", "reason", "text"]} rows={rows} />;
}
