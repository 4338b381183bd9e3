/**
 * Feeds two streams and follows the query of each, while the server is killed and the network is cut. Runs in Node.js and in pages.
 *
 * The events of the first stream have times, so they come in order; those of the second have none, so their frames have ids.
 */

const EX = "http://example.org/";
const START_MS = Date.UTC(2026, 0, 1);

/**
 * Returns what was received: `values` and `ids` of the first query in order, the sorted values of the second one, and how often the connection was lost.
 *
 * @param {object} options `report` is called `reports` times, with the number of solutions that were received.
 */
export async function run({ Client, url, token, events, reports, report }) {
  const client = new Client(url, { token, patienceMs: 300_000 });
  const others = Math.ceil(events / 10);
  for (const name of ["timed", "untimed"]) await client.register(name, `SELECT ?v FROM STREAM <${name}> WHERE { ?s <${EX}value> ?v }`);
  const event = (value) => ({ s: `<${EX}s>`, p: `<${EX}value>`, o: value });
  let lost = 0;
  const follow = async (name, most, each = () => {}) => {
    const found = [];
    const onNotice = ({ kind }) => (lost += kind === "lost");
    for await (const solution of client.follow(name, { onNotice })) {
      found.push(solution);
      each(found.length);
      if (found.length === most && name === "untimed") break;
    }
    return found;
  };
  const every = Math.floor(events / (reports + 1));
  const tell = (count) => count % every === 0 && count / every <= reports && report(count);
  const feed = async (name, most, time) => {
    const connection = client.feed(name, { batch: 100, window: 8 });
    for (let value = 0; value < most; value++) await connection.send({ ...event(value), ...time(value) });
    await connection.close();
  };
  const [timed, untimed] = await Promise.all([
    follow("timed", events, tell),
    follow("untimed", others),
    feed("timed", events, (value) => ({ at: new Date(START_MS + value) })).then(() => finish(client, "timed")),
    feed("untimed", others, () => ({})),
  ]);
  const values = (found) => found.map((solution) => solution.get("v").toValue());
  const accepted = (await client.stream("untimed")).accepted;
  return { values: values(timed), ids: timed.map(({ id }) => id), others: values(untimed).sort((one, other) => one - other), accepted, lost };
}

/** A request is not repeated by itself, so this one is where nothing answered. */
async function finish(client, name) {
  for (;;) {
    try {
      return await client.finish(name);
    } catch (error) {
      if (error.status !== 0) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}
