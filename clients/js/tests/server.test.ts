/** All that a client does, against the real server at EPSPARQL_URL, whose tokens are EPSPARQL_TOKEN (admin) and `reader` (read:*). */

import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { ApiError, Client, type ClientOptions, Closed, literal, namedNode, type Notice, quad, type Solution, Unreachable } from "../dist/index.js";

const URL_OF_SERVER = process.env["EPSPARQL_URL"]!;
const TOKEN = process.env["EPSPARQL_TOKEN"]!;
const EX = "http://example.org/";
const TRANSPORTS: [string, ClientOptions][] = [
  ["WebSocket", { token: TOKEN }],
  ["HTTP", { token: TOKEN, WebSocket: null }],
];
const client = new Client(URL_OF_SERVER, { token: TOKEN });
let names = Date.now();
/** A name that has to be encoded in a path. */
const fresh = (test: TestContext) => `${test.name} ${++names}/ä?`;
const values = (stream: string) => `SELECT ?s ?v FROM STREAM <${iri(stream)}> WHERE { ?s <${EX}value> ?v }`;
const iri = (stream: string) => stream;
const streamOf = (test: TestContext) => `${EX}${encodeURIComponent(test.name)}/${++names}?a=b%20c#ü`;
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const event = (number: number) => ({ s: `<${EX}s>`, p: `<${EX}value>`, o: number, at: at(number) });
const numbers = (found: Iterable<Solution>) => [...found].map((each) => each.get("v")!.toValue());
const range = (first: number, end: number) => Array.from({ length: end - first }, (_, number) => first + number);

async function collect<Item>(items: AsyncIterable<Item>, most = Infinity): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) if (found.push(item) >= most) break;
  return found;
}

/** A way to the server that can be cut, and counts its connections. */
class Network {
  opened = 0;
  readonly #sockets = new Set<Socket>();
  readonly #listener: Server;

  constructor() {
    this.#listener = createServer((near) => {
      this.opened++;
      const { hostname, port } = new URL(URL_OF_SERVER);
      const far = connect(Number(port), hostname);
      this.#sockets.add(near);
      near.pipe(far).pipe(near);
      for (const each of [near, far]) each.on("error", () => {}).on("close", () => (near.destroy(), far.destroy(), this.#sockets.delete(near)));
    });
  }

  static async open(): Promise<Network> {
    const network = new Network();
    await new Promise<void>((done) => network.#listener.listen(0, "127.0.0.1", done));
    return network;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }
  get connections(): number {
    return this.#sockets.size;
  }
  cut(): void {
    for (const each of this.#sockets) each.destroy();
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.cut();
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 30_000; !isTrue(); ) {
    assert.ok(Date.now() < deadline);
    await new Promise((done) => setTimeout(done, 10));
  }
}

for (const [transport, options] of TRANSPORTS) {
  const over = new Client(URL_OF_SERVER, options);

  test(`events in, solutions out, over ${transport}`, async (context) => {
    const [stream, query] = [streamOf(context), fresh(context)];
    assert.equal((await over.register(query, values(stream))).state, "running");
    const feed = over.feed(stream, { batch: 3, window: 2 });
    for (const number of range(0, 20)) await feed.send(event(number));
    await feed.send(quad(namedNode(`${EX}s`), namedNode(`${EX}value`), literal(20)), { time: { at: at(20) } });
    await feed.send([event(21), JSON.stringify({ s: `<${EX}s>`, p: `<${EX}value>`, o: '"22"^^<http://www.w3.org/2001/XMLSchema#integer>', at: at(22) })]);
    assert.ok((await feed.flush()) > 0);
    await feed.close();
    await over.finish(stream);
    const subscription = over.follow(query);
    const found = await collect(subscription);
    assert.deepEqual(numbers(found), range(0, 23));
    assert.equal(subscription.last, found.at(-1)!.id);
    assert.equal(found[5]!.end, "2026-01-01T00:00:05Z");
    assert.deepEqual(found[5]!.get("s"), namedNode(`${EX}s`));
    assert.deepEqual(numbers(await collect(over.follow(query, { after: found[9]!.id }))), range(10, 23));
    assert.deepEqual(await over.solutions(query, { waitMs: 1000 }), found);
  });

  test(`a refused frame is told, and the later ones go on, over ${transport}`, async (context) => {
    const stream = streamOf(context);
    const feed = over.feed(stream);
    await feed.send("{");
    await assert.rejects(feed.flush(), (error: ApiError) => error.status === 400 && error.line === 1 && error.events === 1);
    await feed.send(event(1));
    assert.ok((await feed.flush()) > 0);
    await feed.close();
    assert.equal((await over.stream(stream)).accepted, 1);
  });

  test(`close waits for the frames after a refused one, and ends a feed, over ${transport}`, async (context) => {
    const stream = streamOf(context);
    const feed = over.feed(stream, { batch: 1 });
    await feed.send("{");
    await feed.send(range(0, 20).map(event));
    await assert.rejects(feed.close(), (error: ApiError) => error.status === 400);
    assert.equal((await over.stream(stream)).accepted, 20);
    await assert.rejects(feed.send(event(21)), Closed);
    await feed.close();
  });

  test(`lines of one text are so many events, over ${transport}`, async (context) => {
    const stream = streamOf(context);
    const feed = over.feed(stream);
    const line = JSON.stringify({ ...event(1), o: '"1"' });
    await feed.send(`${line}\n\n{\n`);
    await assert.rejects(feed.flush(), (error: ApiError) => error.events === 2 && error.line === 2);
    await feed.close();
  });

  test(`a callback whose tokens are all refused is asked no more than a few times, over ${transport}`, async (context) => {
    let asked = 0;
    const stranger = new Client(URL_OF_SERVER, { ...options, token: () => `stranger ${++asked}` });
    await assert.rejects(collect(stranger.follow(fresh(context))), (error: Closed) => error.code === 4001);
    const feed = stranger.feed(streamOf(context));
    await feed.send(event(1));
    await assert.rejects(feed.flush(), (error: Closed) => error.code === 4001);
    assert.ok(asked <= 20, `${asked} calls`);
  });

  test(`a callback that fails is asked again, over ${transport}`, async (context) => {
    const stream = streamOf(context);
    let failures = 0;
    const token = () => {
      if (failures++ === 1) throw new Error("no token for now");
      return TOKEN;
    };
    const renewing = new Client(URL_OF_SERVER, { ...options, token });
    const feed = renewing.feed(stream);
    await feed.send(event(1));
    await feed.flush();
    renewing.http.credentials.forget();
    await feed.send(event(2));
    await feed.close();
    assert.equal((await over.stream(stream)).accepted, 2);
  });

  test(`a subscription that is closed while it connects leaves no connection, over ${transport}`, async (context) => {
    const [stream, query] = [streamOf(context), fresh(context)];
    await over.register(query, values(stream));
    await using network = await Network.open();
    const subscription = new Client(network.url, options).follow(query);
    const opening = subscription.open();
    subscription.close();
    await assert.rejects(opening, Closed);
    assert.equal(await subscription.next(), null);
    await until(() => network.opened > 0 && network.connections === 0);
  });

  test(`an iteration that stops goes on after the last solution, over ${transport}`, async (context) => {
    const [stream, query] = [streamOf(context), fresh(context)];
    await over.register(query, values(stream));
    const feed = over.feed(stream);
    await feed.send(range(0, 10).map(event));
    await feed.close();
    await over.finish(stream);
    const subscription = over.follow(query);
    assert.deepEqual(numbers(await collect(subscription, 4)), range(0, 4));
    assert.deepEqual(numbers(await collect(subscription)), range(4, 10));
  });

  test(`a promotion and the end are told, over ${transport}`, async (context) => {
    const [stream, query] = [streamOf(context), fresh(context)];
    await over.register(query, values(stream));
    const feed = over.feed(stream);
    await feed.send(event(1));
    await feed.flush();
    const notices: Notice[] = [];
    const subscription = over.follow(query, { onNotice: (notice) => notices.push(notice) });
    const solutions = subscription[Symbol.asyncIterator]();
    assert.deepEqual(numbers([(await solutions.next()).value as Solution]), [1]);
    await over.promote(query, values(stream).replace("}", "FILTER(?v > 0) }"));
    while ((await over.promotion(query)).state === "waiting") await new Promise((done) => setTimeout(done, 20));
    await feed.send(event(2));
    await feed.close();
    await over.finish(stream);
    assert.deepEqual(numbers(await collect(solutions)), [2]);
    assert.deepEqual(
      notices.filter((notice) => notice.kind === "promoted").map((notice) => [notice.before, notice.after]),
      [[1, 2]],
    );
    assert.equal((await over.versions(query)).length, 2);
  });

  test(`a revised query gives changes, over ${transport}`, async (context) => {
    const [stream, query] = [streamOf(context), fresh(context)];
    await over.createStream(stream, { revisable: "PT1H" });
    await over.register(query, values(stream), { emit: "revised" });
    await over.send(stream, JSON.stringify({ ...event(1), o: '"1"' }), {});
    const [change] = await collect(over.follow(query).changes(), 1);
    assert.deepEqual([change!.added.map((each) => each.get("v")!.toValue()), change!.withdrawn], [["1"], []]);
    assert.deepEqual((await over.changes(query))[0]!.seq, change!.seq);
  });

  test(`a program gives its events, and their changes if it is revised, over ${transport}`, async (context) => {
    const [stream, query] = [streamOf(context), fresh(context)];
    const program = `#!etalis unrestricted\nfrom_stream('${stream}').\nprint_trigger(up/2).\nup(X, Y) <- price(X) seq price(Y) where X < Y.\n`;
    await over.createStream(stream, { revisable: "PT1H" });
    await over.register(`${query} certain`, program);
    await over.register(query, program, { emit: "revised" });
    const price = (number: number) => `_:p a <urn:ele:price> ; <urn:ele:arg1> ${number} .`;
    for (const number of [1, 2]) await over.send(stream, JSON.stringify({ triples: price(number), at: at(number) }), {});
    const [change] = await collect(over.follow(query).changes(), 1);
    assert.deepEqual([change!.added.map((each) => [each.event, each.args]), change!.withdrawn], [[["up", [1, 2]]], []]);
    await over.finish(stream);
    const [solution] = await collect(over.follow(`${query} certain`), 1);
    assert.deepEqual([solution!.event, solution!.args], ["up", [1, 2]]);
  });

  test(`an unknown query and a foreign token end a subscription, over ${transport}`, async (context) => {
    await assert.rejects(collect(over.follow(fresh(context))), (error: Closed) => error.code === 4004 && error.reason.includes("no query named"));
    const stranger = new Client(URL_OF_SERVER, { ...options, token: "stranger" });
    await assert.rejects(collect(stranger.follow("q")), (error: Closed) => error.code === 4001);
    const feed = stranger.feed("s");
    await feed.send(event(1));
    await assert.rejects(feed.flush(), (error: Closed) => error.code === 4001);
  });

  test(`a token that expired is asked for anew, once, over ${transport}`, async (context) => {
    const [stream, query] = [streamOf(context), fresh(context)];
    await over.register(query, values(stream));
    await over.send(stream, JSON.stringify({ ...event(1), o: '"1"' }));
    const asked: (string | null | undefined)[] = [];
    const renewing = new Client(URL_OF_SERVER, { ...options, token: (refused) => (asked.push(refused), refused === undefined ? "expired" : TOKEN) });
    assert.deepEqual(numbers(await collect(renewing.follow(query), 1)), ["1"]);
    assert.deepEqual(asked, [undefined, "expired"]);
    const feed = renewing.feed(stream);
    await feed.send(event(2));
    await feed.close();
    renewing.http.credentials.forget();
    await Promise.all([renewing.query(query), renewing.query(query)]);
    assert.equal(asked.length, 4);
  });
}

test("events without times are accepted once, however often a frame is sent", async (context) => {
  const stream = streamOf(context);
  const feed = client.feed(stream);
  const sent: string[] = [];
  const plain = WebSocket.prototype.send;
  WebSocket.prototype.send = function (frame) {
    plain.call(this, frame);
    if (sent.push(frame as string) === 1) this.close(); // the answer may get lost, and the event not
  };
  try {
    await feed.send({ s: `<${EX}s>`, p: `<${EX}value>`, o: 1 });
    await feed.flush();
  } finally {
    WebSocket.prototype.send = plain;
  }
  await feed.close();
  assert.equal(sent.length, 2);
  assert.equal(sent[0], sent[1]);
  assert.match(sent[0]!, /^\{"id":"[\d-]+"\}\n/);
  assert.equal((await client.stream(stream)).accepted, 1);
});

test("a loop over send leaves turns to timers and to the network", async (context) => {
  const feed = client.feed(streamOf(context), { batch: 50 });
  let isOver = false;
  setTimeout(() => (isOver = true), 0);
  let sent = 0;
  for (; !isOver && sent < 255 * 50; sent++) await feed.send(event(sent)); // so many fit into the window
  assert.ok(isOver, `no timer was called within ${sent} events`);
  await feed.close();
});

test("objects go through the stream's mapping", async (context) => {
  const [stream, query] = [streamOf(context), fresh(context)];
  await client.createStream(stream, { mapping: { base: EX, time: "time", subject: "{sensor}", properties: { value: ":value" } } });
  await client.register(query, values(stream));
  const feed = client.feed(stream, { format: "json" });
  await feed.send(range(0, 3).map((value) => ({ sensor: "s", value, time: at(value) })));
  await feed.close();
  await client.finish(stream);
  assert.deepEqual(numbers(await collect(client.follow(query))), [0, 1, 2]);
});

test("a source's body is accepted once", async (context) => {
  const stream = streamOf(context);
  const feed = client.feed(stream);
  for (const _ of range(0, 2)) await feed.send(range(0, 600).map(event), { source: { id: "readings", after: null, position: "2" } });
  await feed.close();
  assert.equal((await client.stream(stream)).accepted, 600);
  assert.deepEqual(await client.sources(stream), { readings: "2" });
});

test("triples of a rule, an ASK, and reasons", async (context) => {
  const [stream, rule, ask] = [streamOf(context), fresh(context), fresh(context)];
  await client.register(rule, `CONSTRUCT { ?s <${EX}seen> ?v } INTO STREAM <${stream}/seen> FROM STREAM <${stream}> WHERE { ?s <${EX}value> ?v }`);
  await client.register(ask, `ASK FROM STREAM <${stream}> WHERE { ?s <${EX}value> 7 }`);
  const feed = client.feed(stream);
  await feed.send(event(7));
  await feed.close();
  await client.finish(stream);
  const [found] = await collect(client.follow(rule));
  assert.ok(found!.triples()[0]!.equals(quad(namedNode(`${EX}s`), namedNode(`${EX}seen`), literal(7))));
  assert.deepEqual((await client.why(rule, found!.id)).because.map(({ kind }) => kind), ["occurrence"]);
  assert.equal((await client.diagnose(rule)).state, "found");
  assert.equal((await collect(client.follow(ask)))[0]!.boolean, true);
});

test("queries are paused, replaced, checked and dropped", async (context) => {
  const [stream, query] = [streamOf(context), fresh(context)];
  await client.register(query, values(stream), { start: "beginning", policy: "recent" });
  assert.equal((await client.pause(query)).state, "paused");
  assert.equal((await client.resume(query)).state, "running");
  await assert.rejects(client.register(query, `${values(stream)} LIMIT`), (error: ApiError) => error.code === "syntax" && error.line === 1 && error.column! > 1 && error.expected !== undefined);
  await assert.rejects(client.register(query, values("other")), (error: ApiError) => error.status === 409);
  assert.equal((await client.replace(query, values(`${stream}other`))).state, "running");
  assert.equal((await client.check({ query: "SELECT" })).errors.length, 1);
  assert.ok((await client.plan(query)).plan.length > 0);
  assert.deepEqual((await client.goals(query)).partial_matches, []);
  assert.ok((await client.queries()).some(({ name }) => name === query));
  await client.drop(query);
  await assert.rejects(client.query(query), (error: ApiError) => error.status === 404);
});

for (const [transport, options] of TRANSPORTS)
  test(`instances have their own solutions, over ${transport}`, async (context) => {
    const [stream, query, over] = [streamOf(context), fresh(context), new Client(URL_OF_SERVER, options)];
    await over.register(query, `SELECT ?user ?v FROM STREAM <${stream}> PARAMETERS (?user ?limit) WHERE { <${EX}s> <${EX}value> ?v FILTER (?v > ?limit) }`);
    assert.equal((await over.setInstance(query, "ann", { user: literal("Ann"), limit: 2 })).id, "ann");
    assert.equal((await over.setInstances(query, { bob: { user: literal("Bob"), limit: 3 }, eve: { user: literal("Eve"), limit: 0 } })).set, 2);
    await over.removeInstance(query, "eve");
    assert.deepEqual((await over.instances(query, { limit: 10 })).map(({ id }) => id), ["ann", "bob"]);
    const feed = over.feed(stream);
    for (const number of range(0, 6)) await feed.send(event(number));
    await feed.close();
    await over.finish(stream);
    const found = await collect(over.follow(query, { instance: "bob" }));
    assert.deepEqual(found.map((each) => [each.instance, each.get("user")!.value, each.get("v")!.value]), [["bob", "Bob", "4"], ["bob", "Bob", "5"]]);
    assert.deepEqual(await over.solutions(query, { instance: "bob" }), found);
    await assert.rejects(collect(over.follow(query, { instance: "eve" })), (error: Closed) => error.code === 4004);
  });

test("a stream's events are shown and followed", async (context) => {
  const stream = streamOf(context);
  await client.send(stream, range(0, 5).map((number) => JSON.stringify({ ...event(number), o: `"${number}"` })).join("\n"));
  assert.deepEqual((await client.events(stream, 2)).map(({ o }) => o), ['"4"', '"3"']);
  assert.equal((await client.profile(stream)).events, 5);
  const tail = client.tail(stream, { last: 3 });
  assert.deepEqual((await collect(tail, 2)).map(({ o }) => o), ['"2"', '"3"']);
  await client.finish(stream);
  assert.deepEqual((await collect(tail)).map(({ o }) => o), ['"4"']);
  assert.ok((await client.streams()).some(({ name }) => name === stream));
});

test("a tail goes on after a lost connection, however long it was open", async (context) => {
  const stream = streamOf(context);
  await client.send(stream, JSON.stringify({ ...event(0), o: '"0"' }));
  await using network = await Network.open();
  const patienceMs = 200;
  const tail = new Client(network.url, { token: TOKEN, patienceMs }).tail(stream);
  const events = tail[Symbol.asyncIterator]();
  assert.equal((await events.next()).value.o, '"0"');
  await new Promise((done) => setTimeout(done, 2 * patienceMs));
  network.cut();
  await client.send(stream, JSON.stringify({ ...event(1), o: '"1"' }));
  assert.equal((await events.next()).value.o, '"1"');
  tail.close();
});

test("the background is loaded, extended, queried and dropped", async () => {
  const graph = `${EX}rooms`;
  assert.equal((await client.loadBackground(graph, `<${EX}s> <${EX}in> <${EX}hall> .`)).triples, 1);
  assert.equal((await client.loadBackground(graph, `<${EX}t> <${EX}in> <${EX}hall> .`, { add: true, mediaType: "application/n-triples" })).triples, 2);
  assert.ok((await client.background()).some(({ name }) => name === graph));
  assert.equal(JSON.parse(await client.queryBackground(`ASK { GRAPH <${graph}> { <${EX}t> ?p ?o } }`)).boolean, true);
  assert.match(await client.readBackground(graph, { mediaType: "application/n-triples" }), /hall/);
  await client.dropBackground(graph);
  await assert.rejects(client.readBackground(graph), (error: ApiError) => error.status === 404);
});

test("a trial", async (context) => {
  const stream = streamOf(context);
  await client.send(stream, JSON.stringify({ ...event(1), o: '"1"' }));
  const { id } = await client.startTrial(values(stream));
  let trial = await client.trial(id);
  while (trial.state === "waiting" || trial.state === "running") {
    await new Promise((done) => setTimeout(done, 50));
    trial = await client.trial(id);
  }
  assert.deepEqual([trial.state, trial.counts.new], ["completed", 1]);
  assert.equal((await client.trialSolutions(id)).length, 1);
  assert.ok((await client.trials()).some((each) => each.id === id));
  await client.dropTrial(id);
});

test("a server that does not answer", async () => {
  const nobody = new Client("http://127.0.0.1:1", { patienceMs: 200 });
  await assert.rejects(nobody.queries(), (error: Unreachable) => error instanceof Unreachable && error.code === "unreachable");
  await assert.rejects(collect(nobody.follow("q")), Unreachable);
  const feed = nobody.feed("s");
  await feed.send(event(1));
  await assert.rejects(feed.flush(), Unreachable);
  await assert.rejects(feed.close(), Unreachable);
});

test("events wait in bounded memory if sends are not awaited", async () => {
  const feed = new Client("http://127.0.0.1:1", { patienceMs: 1 }).feed("s", { window: 1 });
  const line = JSON.stringify({ ...event(1), o: `"${"x".repeat(1 << 20)}"` });
  const outcomes = await Promise.allSettled(range(0, 70).map(() => feed.send(line)));
  const refused = outcomes.filter((each) => each.status === "rejected" && each.reason instanceof RangeError);
  assert.deepEqual([refused.length > 0, refused.length < 10], [true, true]);
  await assert.rejects(feed.close(), Unreachable);
});

/** Stands for two servers, of which only the second one has the store. */
class TwoServers {
  readonly #url: string;
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;

  constructor(url: string) {
    this.#url = url;
    queueMicrotask(() => this.onopen?.());
  }
  send(): void {
    const answer = this.#url.includes("first") ? { error: { status: 503, code: "unavailable", detail: "the lease is lost" } } : { ack: 7, accepted: 1 };
    queueMicrotask(() => this.onmessage?.({ data: JSON.stringify(answer) }));
  }
  close(): void {}
}

test("a frame that a server without its store refused is sent to the next server", async () => {
  const pair = new Client("http://first.example,http://second.example", { WebSocket: TwoServers as unknown as typeof WebSocket });
  const feed = pair.feed("s");
  await feed.send(event(1));
  assert.equal(await feed.flush(), 7);
  await feed.close();
});

test("a mapping is proposed with choices, and a body may be given up", async (context) => {
  const stream = streamOf(context);
  const rows = "Date,sensor,room,temp\n04/01/2026 10:00,a,x,1.5\n04/01/2026 10:01,b,x,2.5\n";
  await assert.rejects(client.proposeMapping(stream, rows), (error: ApiError) => error.problem.readings!["day-first"] === "2026-01-04");
  const found = await client.proposeMapping(stream, rows, { order: "day-first", timeZone: "+01:00", choices: { subject: "room" } });
  assert.ok(found.preview[0]!.includes('<room/x> :temp "1.5"^^xsd:decimal .  # 2026-01-04T09:00:00Z'));
  assert.equal(found.choices.find(({ setting }) => setting === "subject")!.value, "room");
  await assert.rejects(client.send(stream, JSON.stringify(event(1)), { signal: AbortSignal.abort() }), { name: "AbortError" });
});
