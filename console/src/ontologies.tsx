/** Background knowledge: what is loaded, loading more, and a look into it. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, Refused } from "./api";
import { bytes, count, shortIri } from "./format";
import { classes, statements, type Statement } from "./ntriples";
import { attempt } from "./state";

const MOST = 5000;
const SHOWN = 300;
const DEEPEST = 12;
const NONE: ReadonlyMap<string, string> = new Map();
const TYPES: Record<string, string> = {
  ttl: "text/turtle",
  rdf: "application/rdf+xml",
  owl: "application/rdf+xml",
  xml: "application/rdf+xml",
  nt: "application/n-triples",
  jsonld: "application/ld+json",
};

interface Ontology {
  name: string;
  [member: string]: unknown;
}

export function Ontologies() {
  const [all, setAll] = useState<readonly Ontology[] | null>(null);
  const [fault, setFault] = useState("");
  const [open, setOpen] = useState<string | null>(null);
  const list = () =>
    api.ontologies().then(
      (found) => (setFault(""), setAll((found as { ontologies?: Ontology[] }).ontologies ?? [])),
      (error: unknown) => setFault(error instanceof Refused && error.problem.status === 404 ? "This server keeps no ontologies." : String(error)),
    );
  useEffect(() => void list(), []);
  return (
    <article class="page" aria-label="Ontologies">
      <header>
        <h1>Ontologies</h1>
        <p class="quiet">Facts and schemas that always hold: queries match them beside their streams, and classes and properties are inferred by them.</p>
      </header>
      {fault ? <p class="empty">{fault}</p> : <Load done={list} />}
      {all && !all.length && <p class="hint">None yet: choose a file above.</p>}
      {all && all.length > 0 && (
        <ul class="graphs">
          {all.map((each) => (
            <li key={each.name}>
              <button type="button" class="plain mono" aria-expanded={open === each.name} onClick={() => setOpen(open === each.name ? null : each.name)}>
                {each.name}
              </button>
              <span class="quiet figures"> {told(each)}</span>
              <button
                type="button"
                class="bad"
                aria-label={`Drop ${each.name}`}
                onClick={async () => (await attempt(() => api.dropOntology(each.name), `${each.name} is dropped`)) && list()}
              >
                Drop
              </button>
              {open === each.name && <Browse name={each.name} />}
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

/** Whatever numbers the server tells of it. */
function told(of: Ontology): string {
  const numbers = Object.entries(of).filter((pair): pair is [string, number] => typeof pair[1] === "number" && pair[0] !== "offset");
  return numbers.map(([name, n]) => (/bytes|size/.test(name) ? bytes(n) : `${count(n)} ${name.replaceAll("_", " ")}`)).join(" · ");
}

function Load({ done }: { done: () => unknown }) {
  const [name, setName] = useState("");
  const [type, setType] = useState("text/turtle");
  const [file, setFile] = useState<File | null>(null);
  const choose = (found: File | null) => {
    setFile(found);
    if (!found) return;
    setType(TYPES[found.name.split(".").pop() ?? ""] ?? type);
    if (!name) setName(found.name.replace(/\.\w+$/, ""));
  };
  const load = async (add: boolean) => {
    if (!file || !name) return;
    const loading = async () => api.loadOntology(name, await contents(file), type, add);
    if (await attempt(loading, `${file.name} is loaded as ${name}`)) done();
  };
  return (
    <form class="load bar" onSubmit={(event) => (event.preventDefault(), void load(false))}>
      <input type="file" aria-label="File" onChange={(event) => choose(event.currentTarget.files?.[0] ?? null)} />
      <input type="text" aria-label="Name" placeholder="name of the graph" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <select aria-label="Format" value={type} onChange={(event) => setType(event.currentTarget.value)}>
        {[...new Set(Object.values(TYPES))].map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <button type="submit" class="primary" disabled={!file || !name}>
        Load
      </button>
      <button type="button" disabled={!file || !name} title="Add to what the graph holds" onClick={() => load(true)}>
        Add
      </button>
    </form>
  );
}

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
      const text = await api.readOntology(name);
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
        <details>
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
          <tbody>
            {rows.slice(0, SHOWN).map((row, k) => (
              <tr key={k}>
                {[row.s, row.p, row.o].map((term, column) => (
                  <td key={column} class="mono" title={term}>
                    {shown(term)}
                  </td>
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
