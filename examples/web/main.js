/** Measures three rooms, and draws the solutions of a query over the readings as they come. `?server=URL` chooses the server. */

import { Client } from "./node_modules/epsparql/dist/index.js";

const SHOWN_MS = 60_000;
const ROOMS = ["hall", "kitchen", "office"];
const QUERY = `
  PREFIX : <http://example.org/>
  PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
  SELECT ?room ?cold ?warm FROM STREAM <rooms> WHERE {
    { ?room :temperature ?cold } SEQ { ?room :temperature ?warm }
    FILTER(?warm >= ?cold + 5 && getDURATION() <= "PT10S"^^xsd:duration)
  }`;

const [status, button, chart] = ["[role=status]", "button", "svg"].map((selector) => document.querySelector(selector));
const server = new URLSearchParams(location.search).get("server") ?? "http://127.0.0.1:8080";
/** The token is asked for when the server refuses a request, and kept as long as this tab is open. */
const token = (refused) => (refused === undefined ? sessionStorage.token : (sessionStorage.token = prompt("Token")));
const client = new Client(server, { token, patienceMs: Infinity });

let measures = true;
button.onclick = () => {
  measures = !measures;
  button.textContent = measures ? "Stop measuring" : "Measure";
};

async function measure() {
  const feed = client.feed("rooms");
  const event = (room) => ({ s: `<http://example.org/${room}>`, p: "<http://example.org/temperature>", o: Math.round(150 + 100 * Math.random()) / 10, at: new Date() });
  for (;;) {
    if (measures) await feed.send(ROOMS.map(event));
    await new Promise((done) => setTimeout(done, 500));
  }
}

/** The newest time is on the right. */
function draw(solutions) {
  const newest = Date.parse(solutions.at(-1).end);
  const x = (time) => 600 - ((newest - Date.parse(time)) / SHOWN_MS) * 600;
  const shapes = ROOMS.map((room, row) => `<text x="4" y="${row * 40 + 14}">${room}</text>`);
  for (const solution of solutions) {
    const row = ROOMS.indexOf(solution.get("room").value.split("/").pop());
    shapes.push(`<rect x="${x(solution.start)}" width="${Math.max(x(solution.end) - x(solution.start), 2)}" y="${row * 40 + 18}" height="14"></rect>`);
  }
  chart.innerHTML = shapes.join("");
}

async function follow() {
  const onNotice = ({ kind, reason }) => {
    if (kind === "open" || kind === "lost") status.textContent = kind === "open" ? "live" : `${reason}; connecting again`;
  };
  let shown = [];
  for await (const solution of client.follow("warm-up", { onNotice })) {
    shown = [...shown, solution].filter(({ end }) => Date.parse(end) > Date.parse(solution.end) - SHOWN_MS);
    draw(shown);
  }
}

try {
  await client.register("warm-up", QUERY);
  await Promise.all([measure(), follow()]);
} catch (error) {
  status.textContent = error.message;
}
