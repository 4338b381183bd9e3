/** The background: its graphs, loading more, and a look into them. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { client } from "../api/client";
import { classes, statements, type Statement } from "../api/ntriples";
import { Sure } from "../display/confirmation";
import { bytes, count, shortIri, some } from "../display/format";
import { Cell } from "../display/table_cell";
import { admin, asked, attempt, ontologies, view } from "../state/server_state";

const MOST = 5000;
const SHOWN = 300;
const DEEPEST = 12;
const NONE: ReadonlyMap<string, string> = new Map();
const FORMATS: [type: string, name: string, endings: string[]][] = [
  ["text/turtle", "Turtle", ["ttl"]],
  ["application/rdf+xml", "RDF/XML", ["rdf", "owl", "xml"]],
  ["application/n-triples", "N-Triples", ["nt"]],
  ["application/ld+json", "JSON-LD", ["jsonld", "json"]],
];

export function Ontologies() {
  const open = view.value.kind === "ontologies" ? view.value.name : null;
  const setOpen = (name: string | null) => (view.value = { kind: "ontologies", name });
  const all = ontologies.value;
  if (asked.value && !admin.value) return <p class="empty">The background is shown to tokens with the scope admin. Enter one under Token.</p>;
  return (
    <article class="page" aria-label="Background">
      <header>
        <h1>Background</h1>
        <p class="quiet">The background has facts that are always true. Queries match them together with their streams, and infer classes and properties from its schemas.</p>
      </header>
      <Load />
      {asked.value && open !== null && all.every(({ name }) => name !== open) && <p class="quiet">There is no graph {open}.</p>}
      {asked.value && !all.length && <p class="quiet">None yet: choose a file above.</p>}
      {all.length > 0 && (
        <ul class="graphs">
          {all.map((each) => (
            <li key={each.name}>
              <div class="graph-line">
                <button type="button" class="plain mono" aria-expanded={open === each.name} onClick={() => setOpen(open === each.name ? null : each.name)}>
                  <span aria-hidden="true">{open === each.name ? "▾" : "▸"}</span> {each.name}
                </button>
                <span class="quiet figures">
                  {some(each.triples, "triple")} · {bytes(each.size)}
                </span>
                <Sure label="Drop" question="Really drop?" of={each.name} title="Triples that were inferred from it no longer hold" act={() => attempt(() => client.dropBackground(each.name), `${each.name} is dropped`)} />
              </div>
              {open === each.name && <Browse key={each.triples} name={each.name} />}
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

function Load() {
  const [name, setName] = useState("");
  const [named, setNamed] = useState(false);
  const [type, setType] = useState("text/turtle");
  const [file, setFile] = useState<File | null>(null);
  const choose = (found: File | null) => {
    setFile(found);
    if (!found) return;
    const ending = found.name.split(".").pop()!.toLowerCase();
    setType(FORMATS.find(([, , endings]) => endings.includes(ending))?.[0] ?? type);
    if (!named) setName(iriOf(found));
  };
  const rename = (text: string) => {
    setName(text);
    setNamed(text !== ""); // a name that somebody wrote stays until it is used
  };
  const load = async (add: boolean) => {
    if (!file || !name) return;
    const loading = async () => client.loadBackground(name, await contents(file), { mediaType: type, add });
    if (await attempt(loading, `${file.name} is loaded as ${name}`)) setNamed(false);
  };
  return (
    <form class="load bar" onSubmit={(event) => (event.preventDefault(), void load(false))}>
      <input type="file" aria-label="File" onChange={(event) => choose(event.currentTarget.files?.[0] ?? null)} />
      <input type="text" aria-label="Name" placeholder="the graph: an IRI, or default" value={name} onInput={(event) => rename(event.currentTarget.value)} />
      <select aria-label="Format" value={type} onChange={(event) => setType(event.currentTarget.value)}>
        {FORMATS.map(([each, called]) => (
          <option key={each} value={each}>
            {called}
          </option>
        ))}
      </select>
      <span class="buttons">
        <button type="submit" class="primary" disabled={!file || !name}>
          Load
        </button>
        <button type="button" disabled={!file || !name} title="Add to what the graph holds" onClick={() => load(true)}>
          Add
        </button>
      </span>
    </form>
  );
}

/** A graph is named by an IRI; that of a file, as tools for RDF have it, though a browser tells no folder. */
const iriOf = (file: File) => `file:///${encodeURIComponent(file.name)}`;

/** A browser does not read a file that was changed after it was chosen. */
function contents(file: File): Promise<Blob> {
  return file.arrayBuffer().then(
    (bytes) => new Blob([bytes]),
    () => Promise.reject(new Error(`${file.name} has changed since it was chosen; choose it again`)),
  );
}

function Browse({ name }: { name: string }) {
  const [found, setFound] = useState<{ rows: Statement[]; of: number } | null>(null);
  const [filter, setFilter] = useState("");
  useEffect(() => {
    let over = false;
    void attempt(async () => {
      const text = await client.readBackground(name, { mediaType: "application/n-triples" });
      if (!over) setFound(statements(text, MOST));
    });
    return () => void (over = true);
  }, [name]);
  const tree = useMemo(() => classes(found?.rows ?? []), [found]);
  if (!found) return <p class="quiet">Reading …</p>;
  const wanted = filter.toLowerCase();
  const rows = found.rows.filter(({ s, p, o }) => `${s} ${p} ${o}`.toLowerCase().includes(wanted));
  return (
    <div class="browse">
      {tree.tops.length > 0 && (
        <details open>
          <summary>Classes</summary>
          <ul class="tree">
            {tree.tops.slice(0, SHOWN).map((top) => (
              <Class key={top} name={top} below={tree.below} depth={0} />
            ))}
          </ul>
        </details>
      )}
      <div class="bar">
        <input type="search" aria-label="Find in the triples" placeholder="find" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="quiet figures">
          {count(Math.min(rows.length, SHOWN))} of {count(found.of)} triples
        </span>
      </div>
      <div class="table" tabIndex={0} role="region" aria-label={`Triples of ${name}`}>
        <table>
          <thead>
            <tr>
              {["subject", "predicate", "object"].map((each) => (
                <th key={each} scope="col">
                  {each}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, SHOWN).map((row, k) => (
              <tr key={k}>
                {[row.s, row.p, row.o].map((term, column) => (
                  <Cell key={column} class="mono" title={term} text={shown(term)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Class({ name, below, depth }: { name: string; below: Map<string, string[]>; depth: number }) {
  const lower = below.get(name) ?? [];
  if (!lower.length || depth > DEEPEST) return <li title={name}>{shown(name)}</li>;
  return (
    <li title={name}>
      <details open={depth === 0}>
        <summary>
          {shown(name)} <span class="quiet figures">{lower.length}</span>
        </summary>
        <ul class="tree">
          {lower.slice(0, SHOWN).map((each) => (
            <Class key={each} name={each} below={below} depth={depth + 1} />
          ))}
        </ul>
      </details>
    </li>
  );
}

const shown = (term: string) => (term.startsWith("<") ? shortIri(term.slice(1, -1), NONE) : term);
