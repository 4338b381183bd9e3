/** Values over time: a plot for each chosen variable, and in it a line for each group, at the ends of the solutions' intervals. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Size, useSize } from "../display/element_size";
import { isNumber } from "../display/format";
import { selected } from "../solutions/selection";
import { Tip } from "../solutions/tooltip";
import type { Row } from "../state/solution_store";
import { change, tab } from "../state/tabs";
import { fullDate, ticks } from "../timeline/axis";
import { grouping, groupsOf } from "./groups";
import { ChooseGroups, Legend } from "./legend";
import { bounds, Period, pictured } from "./period";
import { barsOf, figure, instantsOf, marks, numericVariables, type Point, type Series, seriesOf, thinned } from "./series";

/** So many variables are shown until somebody chooses. */
const FIRST = 2;
const LEAST_HEIGHT = 110;
const [TOP, RIGHT, BOTTOM] = [22, 14, 22];
/** How wide a figure of an axis is. */
const LETTER = 7;
/** A pointer this near to a point means it. */
const NEAR = 40;
/** Lines of more points than these have none of them marked. */
const MARKED = 150;

interface Span {
  from: number;
  to: number;
}

export interface Plotted {
  name: string;
  series: Series[];
}

/** The place of a point: its plot, its line there, and where in the line. */
interface Place {
  plot: number;
  line: number;
  point: number;
}

export function Chart() {
  const shown = pictured.value;
  const numeric = useMemo(() => numericVariables(shown), [shown]);
  const by = grouping(shown);
  const chosen = tab.value?.values?.filter((name) => numeric.includes(name)) ?? numeric.filter((name) => name !== by).slice(0, FIRST);
  const { groups, left } = useMemo(() => groupsOf(shown, by), [shown, by]);
  const plots = useMemo(() => chosen.map((name) => ({ name: `?${name}`, series: seriesOf(shown, name, by, groups) })), [shown, chosen.join(" "), by, groups]);
  const toggle = (name: string) => change({ values: numeric.filter((each) => (each === name ? !chosen.includes(name) : chosen.includes(each))) });
  return (
    <section class="chart" aria-label="Values over time">
      <div class="bar">
        {numeric.length > 0 && (
          <>
            <span class="pick" role="group" aria-label="Values">
              values
              {numeric.map((name) => (
                <label key={name} class="check">
                  <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />?{name}
                </label>
              ))}
            </span>
            <ChooseGroups what="lines by" by={by} rows={shown} />
          </>
        )}
        <span class="grow" />
        <Period />
      </div>
      {chosen.length > 0 && <Legend by={by} groups={groups} left={left} />}
      {plots.some((plot) => plot.series.length) ? <Plots plots={plots} within={bounds.value} hint="Enter shows the solution. The table under Solutions has the same values." choose={(row) => (selected.value = row)} /> : <p class="empty">{why(shown, numeric)}</p>}
    </section>
  );
}

function why(shown: readonly Row[], numeric: readonly string[]): string {
  if (!shown.length) return "No solution ends in this range.";
  if (numeric.length) return "Choose one of the values above.";
  const quoted = shown.some((row) => Object.values(row.binding).some((term) => term.type === "literal" && !isNumber(term) && term.value.trim() && Number.isFinite(Number(term.value))));
  return quoted ? "No solution has a number. Some have texts that look like numbers: xsd:decimal(?x) in the query makes numbers of them." : "No solution has a number, so there is nothing to draw.";
}

interface PlotsProps {
  plots: readonly Plotted[];
  /** What the axis of time begins and ends with; where a bound is NaN, it is that of the points. */
  within: Span;
  /** For those who cannot see it: what Enter does, and where the values can be read. */
  hint: string;
  choose: (row: Row) => void;
}

export function Plots({ plots, within, hint, choose }: PlotsProps) {
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const room = useSize(box);
  const [at, setAt] = useState<Place | null>(null);
  useEffect(() => setAt(null), [plots.length]);
  const points = plots.flatMap((plot) => plot.series.flatMap((series) => series.points));
  const height = Math.max(LEAST_HEIGHT, Math.floor(room.height / plots.length));
  const span = useMemo(() => timeSpan(points, within), [plots, within.from, within.to]);
  const left = Math.max(44, ...plots.map((plot) => widest(plot, height)));
  const x = (time: number) => left + ((time - span.from) / (span.to - span.from)) * (room.width - left - RIGHT);
  const place = at && pointAt(plots, at) ? at : null;
  const point = place && pointAt(plots, place)!;
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && point) choose(point.row);
    else if (event.key === "Escape" && place) setAt(null);
    else {
      const next = step(plots, place, event.key);
      if (!next) return;
      setAt(next);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="plots"
      ref={setBox}
      tabIndex={0}
      role="application"
      aria-label={`${plots.map(({ name }) => name).join(" and ")} over time, ${points.length} points. Left and right go along a line, up and down to another one. ${hint}`}
      onKeyDown={key}
      onPointerLeave={() => setAt(null)}
      onClick={() => point && choose(point.row)}
    >
      {room.width > 0 && (
        <div class="plotted" style={{ height: `${height * plots.length}px` }}>
          {plots.map((plot, k) => (
            <Plot key={plot.name} plot={plot} room={{ width: room.width, height }} left={left} x={x} span={span} chosen={place?.plot === k ? point : null} hover={(found) => setAt(found && { plot: k, ...found })} />
          ))}
          <div aria-live="polite">
            {point && <Tip row={point.row} x={x(point.at)} y={place.plot * height + scaled(plots[place.plot]!, height)(point.value)} room={{ width: room.width, height: height * plots.length }} />}
          </div>
        </div>
      )}
    </div>
  );
}

interface PlotProps {
  plot: Plotted;
  room: Size;
  left: number;
  x: (time: number) => number;
  span: Span;
  chosen: Point | null;
  hover: (found: Omit<Place, "plot"> | null) => void;
}

function Plot({ plot, room, left, x, span, chosen, hover }: PlotProps) {
  const y = scaled(plot, room.height);
  const times = ticks(span.from, span.to, Math.max(2, (room.width - left) / 90));
  const corner = times.some((tick) => tick.major) ? "UTC" : `${fullDate(span.from)} UTC`;
  const bottom = room.height - BOTTOM;
  const marked = plot.series.reduce((sum, { points }) => sum + points.length, 0) <= MARKED;
  const drawn = useMemo(
    () =>
      plot.series.map(({ points }) => {
        const instants = instantsOf(points);
        const line = thinned(instants, x).map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
        const bars = barsOf(instants, x).map(({ at, least, greatest }) => `M${x(at).toFixed(1)} ${y(least).toFixed(1)}V${y(greatest).toFixed(1)}`);
        return { line: line.join(" "), bars: bars.join("") };
      }),
    [plot, span, left, room.width, room.height],
  ); // not at each move of the pointer
  const find = (event: PointerEvent) => hover(nearest(plot, event.offsetX, event.offsetY, x, y));
  return (
    <svg width={room.width} height={room.height} onPointerDown={find} onPointerMove={find} aria-hidden="true">
      <text class="title" x={left} y={14}>
        {plot.name}
      </text>
      <text class="soft" x={room.width - RIGHT} y={14} text-anchor="end">
        {corner}
      </text>
      {figuresOf(plot, room.height).map((value) => (
        <g key={value}>
          <line x1={left} x2={room.width - RIGHT} y1={y(value)} y2={y(value)} />
          <text class="soft" x={left - 6} y={y(value) + 4} text-anchor="end">
            {figure(value)}
          </text>
        </g>
      ))}
      {times.map((tick) => (
        <g key={tick.at}>
          <line x1={x(tick.at)} x2={x(tick.at)} y1={TOP} y2={bottom + 4} />
          <text class={tick.major ? "" : "soft"} x={Math.min(x(tick.at), room.width - (LETTER * tick.label.length) / 2)} y={bottom + 16} text-anchor="middle">
            {tick.label}
          </text>
        </g>
      ))}
      {plot.series.map(({ group, points }, k) => (
        <g key={group.key} style={{ color: group.colour }} data-group={group.key}>
          {drawn[k]!.bars && <path d={drawn[k]!.bars} />}
          <polyline points={drawn[k]!.line} stroke-dasharray={group.dash} />
          {(marked || points.length === 1) && points.map(({ row, at, value }) => <circle key={row.id} cx={x(at)} cy={y(value)} r={2} />)}
        </g>
      ))}
      {chosen && <circle class="ring" cx={x(chosen.at)} cy={y(chosen.value)} r={5} />}
    </svg>
  );
}

// ---------------------------------------------------------------- axes
/** The numbers of the axis. Where all values are whole, so are they. */
function figuresOf(plot: Plotted, height: number): number[] {
  const { from, to } = extent(plot);
  const whole = plot.series.every(({ points }) => points.every(({ value }) => Number.isInteger(value)));
  return marks(from, to, Math.max(2, Math.floor(height / 34))).filter((value) => !whole || Number.isInteger(value));
}

function extent({ series }: Plotted): Span {
  let [from, to] = [Infinity, -Infinity];
  for (const { points } of series) {
    for (const { value } of points) {
      if (value < from) from = value;
      if (value > to) to = value;
    }
  }
  if (to < from) return { from: 0, to: 1 };
  const margin = (to - from) * 0.06 || Math.abs(to) * 0.1 || 1;
  return { from: from - margin, to: to + margin };
}

function scaled(plot: Plotted, height: number): (value: number) => number {
  const { from, to } = extent(plot);
  return (value) => height - BOTTOM - ((value - from) / (to - from)) * (height - TOP - BOTTOM);
}

/** The room that the figures of the axis take. */
function widest(plot: Plotted, height: number): number {
  return 16 + LETTER * Math.max(0, ...figuresOf(plot, height).map((value) => figure(value).length));
}

/** The chosen range, else that of the points. */
function timeSpan(points: readonly Point[], wanted: Span): Span {
  let [from, to] = [Infinity, -Infinity];
  for (const { at } of points) {
    if (at < from) from = at;
    if (at > to) to = at;
  }
  if (!Number.isNaN(wanted.from)) from = wanted.from;
  if (!Number.isNaN(wanted.to)) to = wanted.to;
  const margin = Math.max((to - from) * 0.02, 500);
  return { from: from - margin, to: to + margin };
}

// ---------------------------------------------------------------- points
const pointAt = (plots: readonly Plotted[], { plot, line, point }: Place): Point | undefined => plots[plot]?.series[line]?.points[point];

function nearest({ series }: Plotted, left: number, top: number, x: (at: number) => number, y: (value: number) => number): Omit<Place, "plot"> | null {
  let found: Omit<Place, "plot"> | null = null;
  let least = NEAR;
  series.forEach(({ points }, line) =>
    points.forEach(({ at, value }, point) => {
      const away = Math.hypot(x(at) - left, y(value) - top);
      if (away < least) [least, found] = [away, { line, point }];
    }),
  );
  return found;
}

/** Where a key leads; from nowhere to the newest point of the first line. */
function step(plots: readonly Plotted[], from: Place | null, key: string): Place | null {
  const all = plots.flatMap(({ series }, plot) => series.map(({ points }, line) => ({ plot, line, points })));
  const here = from ? all.findIndex(({ plot, line }) => plot === from.plot && line === from.line) : -1;
  const way = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[key];
  const other = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (way === undefined && other === undefined) return null;
  const to = all[here < 0 ? 0 : (here + (other ?? 0) + all.length) % all.length];
  if (!to) return null;
  const last = to.points.length - 1;
  if (here < 0) return { plot: to.plot, line: to.line, point: last };
  const point = other === undefined ? from!.point + way! : closest(to.points, all[here]!.points[from!.point]!.at);
  return { plot: to.plot, line: to.line, point: Math.min(last, Math.max(0, point)) };
}

const closest = (points: readonly Point[], at: number) => points.reduce((best, point, k) => (Math.abs(point.at - at) < Math.abs(points[best]!.at - at) ? k : best), 0);
