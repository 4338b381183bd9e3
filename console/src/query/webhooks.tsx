/** The webhooks of the open query: how their deliveries go, and a place to create, test and delete them. */

import { useEffect, useState } from "preact/hooks";
import { client, type QuerySummary, type Webhook } from "../api/client";
import { repeat } from "../api/polling";
import { Sure } from "../display/confirmation";
import { count, moment, toSecond } from "../display/format";
import { admin, attempt, say } from "../state/server_state";
import { millis } from "../state/solution_store";

const EVERY_MS = 2000;
const NUMBERS = new Set(["delivered", "given up"]);
const KINDS = ["slack", "teams", "pagerduty", "cloudevents"];

export function Webhooks({ query: { name } }: { query: QuerySummary }) {
  const [hooks, setHooks] = useState<readonly Webhook[] | null>(null);
  useEffect(() => {
    if (!admin.value) return;
    return repeat(async () => setHooks((await client.http.json("get", "/queries/{name}/observers", { path: { name } })).observers), EVERY_MS);
  }, [name, admin.value]);
  if (!admin.value) return <p class="empty">Webhooks are shown to tokens with the scope admin. Enter one under Token.</p>;
  const test = (id: string) =>
    attempt(async () => {
      const said = await client.http.json("post", "/queries/{name}/observers/{id}/test", { path: { name, id } });
      if (said.delivered) say("done", `The receiver of ${id} accepted the test, with status ${said.status}`);
      else say("fault", `The receiver of ${id} did not accept the test: ${said.error ?? `status ${said.status}`}`);
    });
  return (
    <section class="webhooks" aria-label="Webhooks of the query" tabIndex={0}>
      {hooks?.length === 0 && <p class="quiet">None yet. A webhook posts each new solution to an address, signed, and retries until the receiver accepts it.</p>}
      {hooks !== null && hooks.length > 0 && (
        <table>
          <thead>
            <tr>
              {["webhook", "to", "state", "delivered", "given up", "last error"].map((head) => (
                <th key={head} scope="col" class={NUMBERS.has(head) ? "right" : ""}>
                  {head}
                </th>
              ))}
              <th />
            </tr>
          </thead>
          <tbody>
            {hooks.map((hook) => (
              <tr key={hook.id}>
                <td class="mono">{hook.id}</td>
                <td class="reason">{hook.url}</td>
                <td class={`state ${hook.state === "active" ? (hook.error ? "paused" : "running") : "failed"}`}>{hook.state === "active" && hook.error ? "trying again" : hook.state}</td>
                <td class="figures right">{count(hook.delivered)}</td>
                <td class="figures right">{count(hook.given_up)}</td>
                <td class="reason">
                  {hook.error ?? hook.dead[0]?.error ?? ""}
                  {hook.next_try && <span class="quiet figures"> · next try {moment(toSecond(millis(hook.next_try)))}</span>}
                </td>
                <td>
                  <div class="buttons">
                  <button type="button" aria-label={`Test ${hook.id}`} title="Posts a message that is marked as a test" onClick={() => test(hook.id)}>
                    Test
                  </button>
                  <Sure label="Delete" question="Really delete?" of={hook.id} title="Nothing more is posted; the solutions stay" act={() => attempt(() => client.http.request("delete", "/queries/{name}/observers/{id}", { path: { name, id: hook.id } }), `${hook.id} is deleted`)} />
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <NewWebhook query={name} />
    </section>
  );
}

function NewWebhook({ query }: { query: string }) {
  const [id, setId] = useState("");
  const [url, setUrl] = useState("");
  const [kind, setKind] = useState("");
  const [secret, setSecret] = useState("");
  const create = () =>
    attempt(async () => {
      const body = { url: url.trim(), ...(kind && { template: kind }) };
      const made = await client.http.json("put", "/queries/{name}/observers/{id}", { path: { name: query, id: id.trim() }, body });
      setSecret(made.secret ?? "");
      setId("");
      setUrl("");
    }, `the webhook ${id.trim()} is created`);
  return (
    <form class="bar wide" aria-label="New webhook" onSubmit={(event) => event.preventDefault()}>
      <input type="text" aria-label="Name of the webhook" placeholder="its name" value={id} onInput={(event) => setId(event.currentTarget.value)} />
      <input type="url" aria-label="Address of the receiver" placeholder="https://…" value={url} onInput={(event) => setUrl(event.currentTarget.value)} />
      <select aria-label="Kind of receiver" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
        <option value="">a server of your own</option>
        {KINDS.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <button type="button" class="primary" disabled={!id.trim() || !url.trim()} title={id.trim() && url.trim() ? "" : "Enter a name and an address first"} onClick={create}>
        Create
      </button>
      {secret && (
        <span role="status">
          Its secret, shown only now: <code>{secret}</code>
        </span>
      )}
    </form>
  );
}
