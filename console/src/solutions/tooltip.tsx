/** What a mark in a picture stands for, beside it. */

import type { ComponentChildren } from "preact";
import type { Size } from "../display/element_size";
import { duration, interval, roundedTerm } from "../display/format";
import { usePrefixes } from "../state/query_source";
import type { Row } from "../state/solution_store";
import { readables } from "./derivations";
import { Behind } from "./source_events";

const WIDTH = 290;
const AWAY = 12;

interface Props {
  row: Row;
  /** The mark, within the picture. */
  x: number;
  y: number;
  room: Size;
  children?: ComponentChildren;
}

/** Below the mark, or above it in the lower half of the picture. */
export function Tip({ row, x, y, room, children }: Props) {
  const prefixes = usePrefixes();
  const left = `${Math.max(4, Math.min(x + AWAY, room.width - WIDTH))}px`;
  const style = y > room.height / 2 ? { left, bottom: `${room.height - y + AWAY}px` } : { left, top: `${y + AWAY}px` };
  return (
    <div class="tip" style={style} role="tooltip">
      <b class="figures">{interval(row.start, row.end)}</b>
      <span class="quiet"> {duration(row.end - row.start)}</span>
      {Object.entries(row.facets ?? {}).map(([name, value]) => (
        <div key={name} class="pair">
          <span class="quiet">{name}</span>
          <span>{value}</span>
        </div>
      ))}
      {Object.entries(row.binding).map(([name, term]) => (
        <div key={name} class="pair">
          <span class="quiet">?{name}</span>
          <span>{roundedTerm(term, prefixes)}</span>
        </div>
      ))}
      {row.triples && <pre>{readables(row.triples, prefixes).join("\n")}</pre>}
      {children}
      {!row.facets && <Behind row={row} prefixes={prefixes} />}
    </div>
  );
}
