/** The query's solutions as a file, in the formats that the server gives. */

import { client } from "../api/client";
import { count } from "../display/format";
import { Menu } from "../display/menu";
import { attempt, registered } from "../state/server_state";

const MOST = 100_000;
const ROWS: [label: string, type: string, ending: string][] = [
  ["CSV", "text/csv", "csv"],
  ["JSON", "application/sparql-results+json", "json"],
  ["ndjson", "application/x-ndjson", "ndjson"],
];
const GRAPHS: typeof ROWS = [
  ["TriG, timed", "application/trig", "trig"],
  ["Turtle", "text/turtle", "ttl"],
  ["ndjson", "application/x-ndjson", "ndjson"],
];

const read = async (name: string, type: string) =>
  (await client.http.request("get", "/queries/{name}/solutions", { path: { name }, query: { limit: MOST }, headers: { Accept: type } })).blob();

export function Download({ graphs }: { graphs: boolean }) {
  const { name, solutions } = registered.value!;
  const give = async (type: string, ending: string) => {
    const got = (blob: Blob) => save(blob, `${name}.${ending}`);
    await attempt(async () => got(await read(name, type)), solutions > MOST ? `The first ${count(MOST)} solutions are saved` : "Saved");
  };
  return (
    <Menu summary="Download" title="Save the solutions as a file">
      {(close) =>
        (graphs ? GRAPHS : ROWS).map(([label, type, ending]) => (
          <button key={ending} type="button" class="plain" onClick={() => (close(), give(type, ending))}>
            {label}
          </button>
        ))
      }
    </Menu>
  );
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
