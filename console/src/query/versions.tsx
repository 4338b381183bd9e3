/** The texts that the open query has had, and the one that is to take its place. */

import { useEffect, useState } from "preact/hooks";
import { client, type QuerySummary, type Version } from "../api/client";
import { repeat } from "../api/polling";
import { Sure } from "../display/confirmation";
import { count, moment, toSecond } from "../display/format";
import { admin, attempt } from "../state/server_state";
import { millis } from "../state/solution_store";
import { change } from "../state/tabs";

const EVERY_MS = 2000;

export function Versions({ query: { name } }: { query: QuerySummary }) {
  const [versions, setVersions] = useState<readonly Version[]>([]);
  const [promotion, setPromotion] = useState<Version | null>(null);
  useEffect(
    () =>
      repeat(async () => {
        setVersions((await client.versions(name)).toReversed());
        setPromotion((await client.query(name)).promotion);
      }, EVERY_MS),
    [name],
  );
  const write = ({ query, policy }: Version) => change({ query, policy });
  return (
    <section class="table versions" aria-label="Versions of the query">
      {promotion && promotion.state !== "promoted" && (
        <p class="doubt" role="status">
          Another text {promotion.state === "waiting" ? `reads the log, up to ${count(promotion.reads ?? promotion.asked)}, and then takes this query's place` : `was ${promotion.state}`}
          {promotion.reason && `: ${promotion.reason}`}.{" "}
          {promotion.state === "waiting" && admin.value && <Sure label="Withdraw" question="Really withdraw?" title="The query goes on as it is" act={() => attempt(() => client.withdrawPromotion(name))} />}
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th>Version</th>
            <th title="Solutions of later log entries are this text's">From offset</th>
            <th>Asked for</th>
            <th>By</th>
            <th>Text</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {versions.map((each, k) => (
            <tr key={each.asked}>
              <td class="figures">{each.version}</td>
              <td class="figures">{count(each.position ?? 0)}</td>
              <td class="figures" title={each.at ?? ""}>
                {each.at ? moment(toSecond(millis(each.at))) : "–"}
              </td>
              <td>{each.by ?? "–"}</td>
              <td class="mono rest-text" title={each.query}>
                <button type="button" class="plain link" title="Write this text into the editor" onClick={() => write(each)}>
                  {each.query.slice(0, 400)}
                </button>
              </td>
              <td>
                {k > 0 && admin.value && (
                  <Sure
                    label="Promote"
                    question="Promote back?"
                    of={`version ${each.version}`}
                    title="This text takes the query's place again; followers stay connected"
                    act={() => attempt(() => client.promoteVersion(name, each.version!), `version ${each.version} will take its place`)}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
