/** Where on Earth a solution is: by a WKT point, or by two variables of latitude and longitude. */

import { statements } from "../api/ntriples";
import { isNumber } from "../display/format";
import { variables } from "../solutions/lanes";
import type { Row } from "../state/solution_store";

/** Degrees, east and north. */
export interface Coordinates {
  lon: number;
  lat: number;
}

/** A way to tell where a solution is. */
export interface Locator {
  /** The variables, or the predicate, as a person reads them. */
  name: string;
  locate: (row: Row) => Coordinates | null;
}

const POINT = /^\s*(?:<([^>]*)>\s*)?POINT\s*(?:ZM?|M)?\s*\(\s*([-+.\deE]+)\s+([-+.\deE]+)(?:\s+[-+.\deE]+){0,2}\s*\)\s*$/i;
const WKT = "http://www.opengis.net/ont/geosparql#wktLiteral";
const AS_WKT = "<http://www.opengis.net/ont/geosparql#asWKT>";
const LATITUDE = /^(.*?)_?(?:latitude|lat)_?(\d*)$/i;
const LONGITUDE = /^(.*?)_?(?:longitude|long|lng|lon)_?(\d*)$/i;

/** GeoSPARQL has longitude first by default, and the axes of EPSG:4326 where that is named. Other systems are not read. */
export function pointOf(text: string): Coordinates | null {
  const found = POINT.exec(text);
  if (!found) return null;
  const [first, second] = [Number(found[2]), Number(found[3])];
  const system = found[1] ?? "CRS84";
  if (/[/:]4326$/.test(system)) return onEarth(second, first);
  return /CRS84h?$/.test(system) ? onEarth(first, second) : null;
}

const onEarth = (lon: number, lat: number) => (Math.abs(lon) <= 180 && Math.abs(lat) <= 90 ? { lon, lat } : null);

/** The ways that the rows offer, the surest first. */
export function locators(rows: readonly Row[]): Locator[] {
  const names = variables(rows);
  const found = [...names.map(byPoint), ...pairs(names).map(byPair), BY_TRIPLES];
  return found.filter(({ locate }) => rows.some((row) => locate(row)));
}

const byPoint = (name: string): Locator => ({
  name: `?${name}`,
  locate: ({ binding }) => {
    const term = binding[name];
    return term?.type === "literal" ? pointOf(term.value) : null;
  },
});

const byPair = ([lat, lon]: [string, string]): Locator => ({
  name: `?${lat}, ?${lon}`,
  locate: ({ binding }) => {
    const [north, east] = [binding[lat], binding[lon]];
    return north && east && isNumber(north) && isNumber(east) ? onEarth(Number(east.value), Number(north.value)) : null;
  },
});

/** Of a solution that is triples: the first point that they give. */
const BY_TRIPLES: Locator = {
  name: "geo:asWKT",
  locate: ({ triples }) => {
    if (!triples?.includes(WKT) && !triples?.includes(AS_WKT)) return null;
    for (const { p, o } of statements(triples, Infinity).rows) {
      const point = p === AS_WKT || o.endsWith(`<${WKT}>`) ? pointOf(o.slice(1, o.lastIndexOf('"'))) : null;
      if (point) return point;
    }
    return null;
  },
};

/** A latitude and a longitude whose names are otherwise the same: ?lat and ?long, ?fromLat and ?fromLon, ?lat1 and ?lon1. */
function pairs(names: readonly string[]): [string, string][] {
  const keyOf = (found: RegExpExecArray | null) => found && `${found[1]} ${found[2]}`.toLowerCase();
  const longitudes = new Map(names.map((name) => [keyOf(LONGITUDE.exec(name)), name]));
  return names.flatMap((name): [string, string][] => {
    const key = keyOf(LATITUDE.exec(name));
    const longitude = key ? longitudes.get(key) : undefined;
    return longitude ? [[name, longitude]] : [];
  });
}

export interface Mark {
  at: Coordinates;
  /** The newest one here is shown. */
  row: Row;
  /** How many solutions are here. */
  count: number;
}

/** A mark for each place, in order of their newest solutions, at most `most` of them; and how many rows have no place. */
export function marksOf(rows: readonly Row[], locate: Locator["locate"], most: number): { marks: Mark[]; left: number; nowhere: number } {
  const found = new Map<string, Mark>();
  let nowhere = 0;
  for (const row of rows) {
    const at = locate(row);
    if (!at) {
      nowhere++;
      continue;
    }
    const key = `${at.lon} ${at.lat}`;
    const before = found.get(key);
    found.delete(key); // what is newest comes last
    found.set(key, { at, row, count: (before?.count ?? 0) + 1 });
  }
  const marks = [...found.values()];
  return { marks: marks.slice(-most), left: Math.max(0, marks.length - most), nowhere };
}
