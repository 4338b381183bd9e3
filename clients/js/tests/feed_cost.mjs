/** Sends events over one feed, and prints the seconds that this took, and those of CPU. Arguments: URL, stream, number of events. */

import { Client } from "../dist/index.js";

const [url, stream, count] = process.argv.slice(2);
const feed = new Client(url).feed(stream);
await feed.send({ s: "<http://example.org/s>", p: "<http://example.org/value>", o: 0, at: new Date() });
await feed.flush(); // the connection is open, and the platform's part of it loaded
const [cpu, began] = [process.cpuUsage(), performance.now()];
for (let first = 0; first < Number(count); first += 500) {
  const events = [];
  for (let number = first; number < Math.min(first + 500, Number(count)); number++) {
    events.push({ s: "<http://example.org/s>", p: "<http://example.org/value>", o: number, at: new Date(Date.UTC(2026, 0, 1) + number) });
  }
  await feed.send(events);
}
await feed.flush();
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ cpu_s: (user + system) / 1e6, wall_s: (performance.now() - began) / 1000 }));
await feed.close();
