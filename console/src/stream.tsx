/** One stream: its settings and counts, what came late, and a place to send events from. */

import { useEffect, useState } from "preact/hooks";
import { api, type StreamDocument } from "./api";
import { count, moment, rate } from "./format";
import { millis } from "./solutions";
import { attempt, rateOf, say, streams, view } from "./state";

const SHOWN = 100;
const EXAMPLE = () =>
  `{"s":"<http://example.org/sensor>","p":"<http://example.org/temp>","o":"\\"21.5\\"^^<http://www.w3.org/2001/XMLSchema#decimal>","at":"${new Date().toISOString().slice(0, 19)}Z"}\n`;

interface Late {
  s: string;
  p: string;
  o: string;
  end: string;
  watermark: string;
  reason: string;
}

export function Stream({ name }: { name: string }) {
  const stream = streams.value.find((each) => each.name === name);
  if (!stream) return <p class="empty">There is no stream {name} any more.</p>;
  const drop = async () => {
    if (await attempt(() => api.dropStream(name), `${name} is forgotten`)) view.value = { kind: "query" };
  };
  return (
    <article class="page" aria-label={`Stream ${name}`}>
      <header>
        <h1>{name}</h1>
        <p class="quiet">{stream.description || "A stream of events."}</p>
        <div class="buttons">
          {!stream.finished && (
            <button type="button" title="It has ended: nothing is waited for any more" onClick={() => attempt(() => api.finish(name), `${name} is finished`)}>
              Finish
            </button>
          )}
          <button type="button" class="bad" onClick={drop}>
            Forget
          </button>
        </div>
      </header>
      <Figures stream={stream} />
      <Send name={name} />
      <LateEvents stream={stream} />
    </article>
  );
}

function Figures({ stream }: { stream: StreamDocument }) {
  const time = (text: string | null) => (text ? moment(millis(text)) : "–");
  const told: [string, string, string][] = [
    ["events", count(stream.accepted), `${rate(rateOf(`stream ${stream.name}`))} now`],
    ["late", count(stream.late), "came behind the watermark, and were not applied"],
    ["latest", time(stream.latest), "the end of the newest event"],
    ["watermark", stream.finished ? "finished" : time(stream.watermark), "nothing earlier is waited for"],
    ["max_delay", stream.max_delay, "how long the watermark holds back"],
    ["idle_timeout", stream.idle_timeout ?? "–", "after which a silent stream goes on"],
    ["max_ahead", stream.max_ahead ?? "–", "how far events may be ahead of the clock"],
  ];
  return (
    <dl class="figures-list">
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

function Send({ name }: { name: string }) {
  const [text, setText] = useState(EXAMPLE);
  const [type, setType] = useState("application/x-ndjson");
  const [fault, setFault] = useState("");
  const send = async (event: Event) => {
    event.preventDefault();
    setFault("");
    try {
      const { accepted, late } = await api.send(name, text, type);
      say("done", `${accepted} accepted${late ? `, ${late} of them late` : ""}`);
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form class="send" onSubmit={send}>
      <h2>Send events</h2>
      <textarea aria-label="Events" spellcheck={false} rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
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

function LateEvents({ stream }: { stream: StreamDocument }) {
  const [late, setLate] = useState<readonly Late[]>([]);
  useEffect(() => {
    let over = false;
    if (!stream.late) setLate([]);
    else
      api.late(stream.name).then(
        (text) => !over && setLate(text.split("\n").filter(Boolean).map((line) => JSON.parse(line) as Late)),
        () => !over && setLate([]),
      );
    return () => void (over = true);
  }, [stream.name, stream.late]);
  if (!late.length) return null;
  return (
    <section>
      <h2>What came late</h2>
      <div class="table" tabIndex={0} role="region" aria-label="Late events">
        <table>
          <thead>
            <tr>
              {["end", "watermark", "s", "p", "o", "reason"].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {late.slice(-SHOWN).map((each, k) => (
              <tr key={k}>
                <td class="figures">{moment(millis(each.end))}</td>
                <td class="figures">{moment(millis(each.watermark))}</td>
                <td class="mono">{each.s}</td>
                <td class="mono">{each.p}</td>
                <td class="mono">{each.o}</td>
                <td>{each.reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
