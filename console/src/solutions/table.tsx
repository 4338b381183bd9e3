/** Solutions as rows, the last one first; only those on view are in the page, however many there are. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { clock, day, duration, fullTerm, isNumber, roundedTerm } from "../display/format";
import { Cell, isLong } from "../display/table_cell";
import { usePrefixes } from "../state/query_source";
import type { Row } from "../state/solution_store";
import { Heading } from "./column_heading";
import { readables } from "./derivations";
import { facetsOf, variables } from "./lanes";
import { COLOURS, hovered, legend, selected } from "./selection";
import { arranged, order, wanted } from "./sort_order";

const HEIGHT = 26;
const SPARE = 12;

/** `first`: which row is at the top, in words. */
export function Table({ rows, first: top }: { rows: readonly Row[]; first: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState({ top: 0, height: 400 });
  const shown = useMemo(() => arranged(rows), [rows, order.value, wanted.value]);
  const newest = shown[shown.length - 1]?.id;
  const before = useRef<{ newest: string | undefined; length: number }>({ newest, length: 0 });

  useEffect(() => {
    const here = box.current!;
    const observer = new ResizeObserver(() => setAt({ top: here.scrollTop, height: here.clientHeight }));
    observer.observe(here);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const last = before.current.newest;
    const grown = order.value !== null || last === undefined || newest === last ? 0 : shown.length - 1 - shown.findLastIndex((row) => row.id === last);
    if (box.current!.scrollTop > HEIGHT) box.current!.scrollTop += grown * HEIGHT; // who reads further down stays there
    before.current = { newest, length: shown.length };
  }, [newest]);

  const chosen = selected.value?.id;
  useEffect(() => reveal(box.current!, shown, chosen), [chosen]);

  const prefixes = usePrefixes();
  const facets = facetsOf(rows);
  const names = variables(shown);
  const triples = shown.some((row) => row.triples !== null);
  const first = Math.max(0, Math.floor(at.top / HEIGHT) - SPARE);
  const last = Math.min(shown.length, first + Math.ceil(at.height / HEIGHT) + 2 * SPARE);
  const visible = shown.slice(shown.length - last, shown.length - first).reverse();
  const roomy = visible.some((row) => row.triples !== null || names.some((name) => isLong(roundedTerm(row.binding[name], prefixes)))); // all the width is for values
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowDown" ? -1 : event.key === "ArrowUp" ? 1 : 0;
    if (!by) return;
    event.preventDefault();
    const here = shown.findIndex((row) => row.id === chosen);
    selected.value = shown[here < 0 ? shown.length - 1 : here + by] ?? selected.value;
  };

  return (
    <div
      class="table"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={`Solutions, ${order.value ? `by ${order.value.by}` : `${top} first`}; up and down choose one`}
      onKeyDown={move}
      onScroll={(event) => setAt({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <table aria-rowcount={shown.length}>
        <thead>
          <tr>
            <Heading by="start" />
            <Heading by="end" />
            <Heading by="lasts" class="right lasts" />
            {facets.map((name) => (
              <Heading key={name} by={name} />
            ))}
            {names.map((name) => (
              <Heading key={name} by={`?${name}`} class={numeric(shown, name) ? "right" : ""} />
            ))}
            {triples && <th scope="col">triples</th>}
            {!roomy && <th class="rest" aria-hidden="true" />}
          </tr>
        </thead>
        <tbody>
          <Space rows={first} />
          {visible.map((row) => (
            <tr
              key={row.id}
              data-id={row.id}
              class={[row.id === chosen ? "chosen" : row.id === hovered.value ? "near" : "", row.withdrawn ? "withdrawn" : ""].join(" ").trim()}
              title={row.withdrawn ? "withdrawn: a later event changed the past" : undefined}
              onClick={() => (selected.value = row)}
              onMouseEnter={() => (hovered.value = row.id)}
              onMouseLeave={() => (hovered.value = null)}
            >
              <td class="figures">{time(row.start)}</td>
              <td class="figures">{until(row)}</td>
              <td class="figures right quiet lasts">{duration(row.end - row.start)}</td>
              {facets.map((name) => (
                <Cell key={name} text={row.facets![name]!}>
                  {name === legend.value.by && <Swatch of={row.facets![name]!} />}
                </Cell>
              ))}
              {names.map((name) => {
                const term = row.binding[name];
                return (
                  <Cell key={name} class={term && isNumber(term) ? "right figures" : ""} title={term && fullTerm(term)} text={roundedTerm(term, prefixes)}>
                    {name === legend.value.by && <Swatch of={term?.value ?? ""} />}
                  </Cell>
                );
              })}
              {triples && <Cell class="mono" title={row.triples ?? ""} text={row.triples ? readables(row.triples, prefixes).join(" · ") : ""} />}
              {!roomy && <td class="rest" />}
            </tr>
          ))}
          <Space rows={shown.length - last} />
        </tbody>
      </table>
    </div>
  );
}

/** The colour that the row has in the timeline. */
function Swatch({ of }: { of: string }) {
  const colour = legend.value.colours.get(of);
  return <i class="swatch" style={{ background: colour === undefined ? "var(--faint)" : `var(--g${colour % COLOURS})` }} />;
}

/** Stands for rows that are not in the page. */
const Space = ({ rows: n }: { rows: number }) => (n > 0 ? <tr class="space" aria-hidden="true" style={{ height: `${n * HEIGHT}px` }} /> : null);

const time = (ms: number) =>
  Number.isNaN(ms) ? (
    <span class="faint">always</span>
  ) : (
    <>
      <span class="quiet">{day(ms)}</span> {clock(ms)}
    </>
  );

/** The day of the end only where it is another one. */
function until({ start, end }: Row) {
  if (end === start) return <span class="faint">=</span>;
  return Number.isNaN(end) || day(start) !== day(end) ? time(end) : clock(end);
}

const numeric = (shown: readonly Row[], name: string) => {
  const term = shown[shown.length - 1]?.binding[name];
  return term !== undefined && isNumber(term);
};

function reveal(box: HTMLElement, shown: readonly Row[], id: string | undefined): void {
  const at = shown.findLastIndex((row) => row.id === id);
  if (at < 0) return;
  const top = (shown.length - 1 - at) * HEIGHT;
  if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * HEIGHT) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
}
