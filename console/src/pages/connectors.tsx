/** The connectors: how each one is doing, and a place to create, change and delete them. */

import { useRef, useState } from "preact/hooks";
import EXAMPLES from "../../data/connectors.json";
import { client, type Connector } from "../api/client";
import { parseObject } from "../api/stream_settings";
import { Sure } from "../display/confirmation";
import { count, moment } from "../display/format";
import { admin, asked, attempt, connectors, refresh, say } from "../state/server_state";
import { millis } from "../state/solution_store";

export const isFailing = ({ state }: Connector) => state === "failed" || state === "retrying" || state === "waiting";

/** How a state is coloured: as the states of queries are. */
const COLOURS: Record<Connector["state"], string> = {
  starting: "paused",
  running: "running",
  waiting: "paused",
  retrying: "paused",
  failed: "failed",
  completed: "completed",
  stopped: "completed",
};
const TELLS: Record<Connector["state"], string> = {
  starting: "its process starts, or asks for its position",
  running: "it reads or writes",
  waiting: "a system does not answer, and is tried again",
  retrying: "you must mend something; it tries again meanwhile",
  failed: "its settings, or the data that it reads, must be corrected",
  completed: "its query has ended, and all solutions are written",
  stopped: "it was stopped",
};
/** Every connector counts these; a count of zero is not shown. */
const SELDOM: ["late" | "skipped" | "missed" | "restarts", string][] = [
  ["late", "arrived behind the stream's watermark"],
  ["skipped", "were refused, and left out"],
  ["missed", "were deleted before they were read"],
  ["restarts", "restarts of its process"],
];
const written = (options: object) => JSON.stringify(options, null, 2);

interface Wanted {
  name: string;
  text: string;
}

export function Connectors() {
  const form = useRef<HTMLFormElement>(null);
  const [wanted, want] = useState<Wanted>({ name: "", text: written(EXAMPLES[0]!.options) });
  const edit = ({ name, options }: Connector) => {
    want({ name, text: written(options) });
    form.current!.scrollIntoView({ block: "nearest" });
    form.current!.querySelector("textarea")!.focus();
  };
  if (asked.value && !admin.value) return <p class="empty">Connectors are shown to tokens with the scope admin. Enter one under Token.</p>;
  const all = connectors.value;
  return (
    <article class="page" aria-label="Connectors">
      <header>
        <h1>Connectors</h1>
        <p class="quiet">A connector moves messages of another system into a stream, or solutions of a query into another system. It runs beside the server.</p>
      </header>
      {asked.value && !all.length && <p class="quiet">None yet: create one below.</p>}
      {all.length > 0 && (
        <ul class="graphs connectors">
          {all.map((each) => (
            <li key={each.name} aria-label={each.name}>
              <Standing of={each} edit={() => edit(each)} />
            </li>
          ))}
        </ul>
      )}
      <form ref={form} class="send" aria-label="Settings of a connector" onSubmit={(event) => event.preventDefault()}>
        <Settings wanted={wanted} want={want} />
      </form>
    </article>
  );
}

function Standing({ of, edit }: { of: Connector; edit: () => void }) {
  const { name, options, state, fault } = of;
  const there = String(options.type);
  const seldom = SELDOM.filter(([counter]) => of[counter] > 0);
  const failing = isFailing(of);
  return (
    <>
      <div class="graph-line">
        <span>
          <span class={`dot ${COLOURS[state]}`} /> <b class="mono">{name}</b>
        </span>
        <span class={`state ${COLOURS[state]}`} title={TELLS[state]}>
          {state}
        </span>
        <span class="quiet">{of.direction === "in" ? `${there} → stream ${options.stream}` : `query ${options.query} → ${there}`}</span>
        <span class="buttons">
          {of.fixed ? (
            <span class="quiet small">set in the server's file of connectors</span>
          ) : (
            <>
              <button type="button" aria-label={`Edit ${name}`} title="Its settings, in the form below" onClick={edit}>
                Edit
              </button>
              <Sure label="Delete" question="Really delete?" of={name} title="Stops it; the position it has reached stays stored" act={() => attempt(() => client.http.request("delete", "/connectors/{name}", { path: { name } }), `${name} is deleted`)} />
            </>
          )}
        </span>
      </div>
      <dl class="figures-list">
        <Figure label="messages" value={count(of.messages)} tells={of.direction === "in" ? "taken over" : "written"} />
        <Figure label="lag" value={of.lag === null ? "–" : count(of.lag)} tells={of.lag === null ? "not known" : "messages behind"} />
        <Figure label="last position" value={of.position ?? "–"} tells={of.position === null ? "none yet" : "the receiving system stores it"} />
        <Figure label="faults" value={count(of.faults)} tells="since its process started" />
        {seldom.map(([counter, tells]) => (
          <Figure key={counter} label={counter} value={count(of[counter])} tells={tells} />
        ))}
      </dl>
      {fault && (
        <p class={failing ? "fault" : "quiet"}>
          {failing ? "" : "Last fault: "}
          {fault} {of.fault_at && <span class="quiet figures">· {moment(Math.floor(millis(of.fault_at) / 1000) * 1000)} UTC</span>}
        </p>
      )}
    </>
  );
}

const Figure = ({ label, value, tells }: { label: string; value: string; tells: string }) => (
  <div>
    <dt>{label}</dt>
    <dd class="figures">{value}</dd>
    <dd class="quiet">{tells}</dd>
  </div>
);

function Settings({ wanted, want }: { wanted: Wanted; want: (wanted: Wanted) => void }) {
  const [fault, setFault] = useState("");
  const name = wanted.name.trim();
  const known = connectors.value.some((each) => each.name === name);
  const put = async () => {
    setFault("");
    try {
      await client.http.json("put", "/connectors/{name}", { path: { name }, body: parseObject(wanted.text, "the text above") });
      say("done", known ? `${name} starts again with these settings` : `${name} is created`);
      await refresh();
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <h2>{known ? `Change ${name}` : "New connector"}</h2>
      <p class="quiet">
        The settings are JSON; the page{" "}
        <a class="link" href="docs/connectors/" target="_blank" rel="noopener">
          Connectors
        </a>{" "}
        of the documentation lists them all. A password or token is never written here: <code>password_env</code> or <code>token_env</code> names a variable of the
        server's environment, which begins with EPSPARQL_CONNECTOR_.
      </p>
      <div class="bar settings-bar">
        <input type="text" aria-label="Name of the connector" placeholder="its name" value={wanted.name} onInput={(event) => want({ ...wanted, name: event.currentTarget.value })} />
        <select
          aria-label="Example settings"
          onChange={({ currentTarget }) => {
            const example = EXAMPLES[Number(currentTarget.value)];
            if (example) want({ ...wanted, text: written(example.options) });
            currentTarget.value = "";
          }}
        >
          <option value="">Begin with an example …</option>
          {EXAMPLES.map(({ title }, k) => (
            <option key={title} value={k}>
              {title}
            </option>
          ))}
        </select>
      </div>
      <textarea
        aria-label="Settings as JSON"
        spellcheck={false}
        rows={Math.min(20, wanted.text.split("\n").length + 1)}
        value={wanted.text}
        onInput={(event) => want({ ...wanted, text: event.currentTarget.value })}
      />
      <div class="bar">
        {known ? (
          <Sure label="Replace" question="Really replace?" title={`Gives ${name} these settings, and starts it again from its position`} act={put} />
        ) : (
          <button type="button" class="primary" disabled={!name} title={name ? "" : "Enter a name first"} onClick={put}>
            Create
          </button>
        )}
        {fault && (
          <span class="fault" role="alert">
            {fault}
          </span>
        )}
      </div>
    </>
  );
}

/** In the list at the left: how many there are, and how many of them do not work. */
export function connectorsInShort(): string {
  const failing = connectors.value.filter(isFailing).length;
  const all = count(connectors.value.length);
  return failing ? `${all} · ${count(failing)} with a fault` : connectors.value.length ? all : "";
}
