/** N-Triples, as the server writes them, into rows for the eye. */

export interface Statement {
  s: string;
  p: string;
  o: string;
}

const LINE = /^(<[^>]*>|_:\S+)\s+(<[^>]*>)\s+(.+?)\s*\.\s*$/;

/** At most `most`; and how many there are. */
export function statements(text: string, most: number): { rows: Statement[]; of: number } {
  const rows: Statement[] = [];
  let of = 0;
  for (const line of text.split("\n")) {
    const found = LINE.exec(line);
    if (!found) continue;
    of++;
    if (rows.length < most) rows.push({ s: found[1]!, p: found[2]!, o: found[3]! });
  }
  return { rows, of };
}

const SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>";

/** The classes by `rdfs:subClassOf`: the tops, and what is below each. */
export function classes(rows: readonly Statement[]): { tops: string[]; below: Map<string, string[]> } {
  const below = new Map<string, string[]>();
  const lower = new Set<string>();
  for (const { s, p, o } of rows) {
    if (p !== SUBCLASS || s === o || !o.startsWith("<")) continue;
    below.set(o, [...(below.get(o) ?? []), s]);
    lower.add(s);
  }
  return { tops: [...below.keys()].filter((name) => !lower.has(name)), below };
}
