/** The timeline of a query's solutions: wheel and keys zoom, dragging pans, and the newest stays on view until somebody looks elsewhere. */

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSize } from "../display/element_size";
import { count, duration, roundedTerm, some } from "../display/format";
import { facetsOf, fitted, natural, variables } from "../solutions/lanes";
import { hovered, selected, showLegend } from "../solutions/selection";
import { Tip } from "../solutions/tooltip";
import { usePrefixes } from "../state/query_source";
import { type Row, WINDOW } from "../state/solution_store";
import { AXIS, type Box, boxes, draw, type Extent, palette, type Picture, STRIP } from "./drawing";

const LEAST_MS = 1;
const MARGIN = 0.03;
const ZOOM = 1.25;
/** How wide a letter of a lane's name is, and how much of the width the names may take. */
const LETTER = 7.3;
const NAMES = 0.25;

/** `all`: everything there is; `follow`: the newest, at this zoom; `free`: where somebody looks. */
type Mode = "all" | "follow" | "free";
const mode = signal<Mode>("all");
const seen = signal<Extent>({ from: 0, to: 1 });

export function showAll(): void {
  mode.value = "all";
}

/** What a timeline that grows is told. */
interface Live {
  /** Up to which time the answer is certain; NaN if that is not known. */
  certain: number;
  /** Reads from the first solution, where only the newest are shown. */
  readAll: (() => void) | null;
}

/** `of`: whose rows they are; what was chosen for others is forgotten. */
export function Timeline({ rows: shown, of, live }: { rows: readonly Row[]; of: string; live?: Live }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [sheet, setSheet] = useState<HTMLDivElement | null>(null);
  const room = useSize(sheet);
  const [by, setBy] = useState<string | null | undefined>(undefined);
  const [tip, setTip] = useState<{ box: Box; x: number } | null>(null);
  useEffect(() => (setBy(undefined), showAll()), [of]);

  const whole = useMemo(() => extent(shown), [shown]);
  const view = viewed(whole);
  const facets = facetsOf(shown);
  const lanesBy = by === undefined ? (facets[0] ?? natural(shown)) : by;
  const span = whole.to - whole.from;
  const inner = Math.max(60, room.height - AXIS - STRIP - 40);
  const zoom = 2 ** Math.round(Math.log2((view.to - view.from) / span));
  const lanes = useMemo(() => fitted(shown, lanesBy, (zoom * span) / 300, inner), [shown, lanesBy, zoom, span, inner]);
  useEffect(() => showLegend(lanesBy, lanes), [lanes]);
  const prefixes = usePrefixes();
  const labels = lanes.groups.map((group) => roundedTerm(group.term, prefixes) || group.key);
  const left = lanesBy === null ? 12 : Math.max(92, Math.min(30 + LETTER * Math.max(...labels.map((label) => label.length)), room.width * NAMES));
  const picture: Picture = {
    ...room,
    left,
    view,
    whole,
    lanes,
    rows: shown,
    labels,
    hovered: hovered.value,
    selected: selected.value?.id ?? null,
    certain: live?.certain ?? Number.NaN,
  };
  useEffect(() => {
    const frame = requestAnimationFrame(() => canvas.current && room.width && draw(canvas.current, picture, palette(canvas.current.parentElement!)));
    return () => cancelAnimationFrame(frame);
  });
  const act = actions(picture, setTip);
  useEffect(() => wheel(canvas.current!, act));

  return (
    <section class="timeline" aria-label="Timeline of intervals">
      <div class="bar">
        <label class="pick">
          lanes by
          <select value={lanesBy ?? ""} onChange={(event) => setBy(event.currentTarget.value || null)}>
            <option value="">nothing</option>
            {facets.map((name) => (
              <option key={name}>{name}</option>
            ))}
            {variables(shown).map((name) => (
              <option key={name} value={name}>
                ?{name}
              </option>
            ))}
          </select>
        </label>
        <span class="grow" />
        <span class="quiet figures extent">
          {some(shown.length, "interval")} · {duration(Math.round(view.to - view.from))} in view
        </span>
        {live?.readAll && (
          <button type="button" title={`The newest ${count(WINDOW)} are kept here`} onClick={live.readAll}>
            Read from the first
          </button>
        )}
        <span class="buttons" role="group" aria-label="What the timeline shows">
          <button type="button" title="Zoom out (−)" aria-label="Zoom out" onClick={() => act.zoom(ZOOM)}>
            −
          </button>
          <button type="button" title="Zoom in (+)" aria-label="Zoom in" onClick={() => act.zoom(1 / ZOOM)}>
            +
          </button>
          <button type="button" title="Everything (0)" aria-pressed={mode.value === "all"} onClick={showAll}>
            All
          </button>
          {live && (
            <button type="button" title="Keep the newest in view (F)" aria-pressed={mode.value === "follow"} onClick={act.follow}>
              Follow
            </button>
          )}
        </span>
      </div>
      <div class="canvas" ref={setSheet}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={`${some(shown.length, "solution")} as intervals over time. Arrow keys move, plus and minus zoom, 0 shows everything, F follows the newest, N and P go from one solution to the next. The table below has the same rows.`}
          onKeyDown={act.key}
          onPointerDown={act.down}
          onPointerMove={act.move}
          onPointerLeave={() => (setTip(null), (hovered.value = null))}
          onClick={act.click}
        />
        {tip && <Tip row={tip.box.placed.row} x={tip.x} y={tip.box.y + tip.box.h / 2} room={room} />}
      </div>
    </section>
  );
}

// ---------------------------------------------------------------- what is in view
function extent(of: readonly Row[]): Extent {
  let [from, to] = [Infinity, -Infinity];
  for (const row of of) {
    if (row.start < from) from = row.start;
    if (row.end > to) to = row.end;
  }
  if (!(to >= from)) return { from: 0, to: 1 };
  const margin = Math.max((to - from) * MARGIN, 500);
  return { from: from - margin, to: to + margin };
}

function viewed(whole: Extent): Extent {
  if (mode.value === "all") return whole;
  const { from, to } = seen.value;
  return mode.value === "free" ? { from, to } : { from: whole.to - (to - from), to: whole.to };
}

// ---------------------------------------------------------------- what people do
function wheel(canvas: HTMLCanvasElement, act: { zoom: (factor: number, at?: number) => void; slide: (pixels: number) => void }): () => void {
  const on = (event: WheelEvent) => {
    event.preventDefault();
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) act.slide(event.deltaX || event.deltaY);
    else act.zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY)) / 480), event.offsetX);
  };
  canvas.addEventListener("wheel", on, { passive: false });
  return () => canvas.removeEventListener("wheel", on);
}

function actions(picture: Picture, setTip: (tip: { box: Box; x: number } | null) => void) {
  const width = picture.width - picture.left;
  const { from, to } = picture.view;
  const span = to - from;

  const go = (next: Extent) => {
    mode.value = "free";
    seen.value = next;
  };
  const pan = (by: number) => go({ from: from + by, to: to + by });
  const zoom = (factor: number, at?: number) => {
    const next = Math.min(Math.max(span * factor, LEAST_MS), (picture.whole.to - picture.whole.from) * 4);
    if (mode.value === "follow") {
      seen.value = { from: to - next, to };
      return;
    }
    const share = at === undefined ? 0.5 : (at - picture.left) / width;
    const pivot = from + share * span;
    go({ from: pivot - share * next, to: pivot + (1 - share) * next });
  };
  const follow = () => {
    seen.value = mode.value === "all" ? { from: to - span / 4, to } : { from, to };
    mode.value = "follow";
  };
  const hit = (event: PointerEvent | MouseEvent): Box | undefined => {
    const near = boxes(picture).filter((box) => event.offsetY >= box.y - 2 && event.offsetY <= box.y + box.h + 2);
    return near.findLast((box) => event.offsetX >= box.x - 3 && event.offsetX <= box.x + box.w + 3);
  };
  const drag = (event: PointerEvent) => {
    const canvas = event.currentTarget as HTMLCanvasElement;
    const overview = event.offsetY > picture.height - STRIP;
    const [start, at] = [event.clientX, picture.view];
    const whole = picture.whole.to - picture.whole.from;
    if (overview) pan(picture.whole.from + ((event.offsetX - picture.left) / width) * whole - (from + to) / 2);
    const base = overview ? seen.value : at;
    const moved = (move: PointerEvent) => {
      const by = ((move.clientX - start) / width) * (overview ? whole : -span);
      if (overview || Math.abs(move.clientX - start) > 3) go({ from: base.from + by, to: base.to + by });
    };
    canvas.setPointerCapture(event.pointerId);
    canvas.addEventListener("pointermove", moved);
    canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", moved), { once: true });
  };
  const step = (by: 1 | -1) => {
    const at = picture.rows.findIndex((row) => row.id === picture.selected);
    const next = picture.rows[at < 0 ? picture.rows.length - 1 : at + by];
    if (!next) return;
    selected.value = next;
    if (next.end < from || next.start > to) pan((next.start + next.end) / 2 - (from + to) / 2);
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => pan(-span / 8),
    ArrowRight: () => pan(span / 8),
    "+": () => zoom(1 / ZOOM),
    "=": () => zoom(1 / ZOOM),
    "-": () => zoom(ZOOM),
    "0": showAll,
    f: follow,
    n: () => step(1),
    p: () => step(-1),
    Escape: () => (selected.value = null),
  };
  return {
    zoom,
    follow,
    slide: (pixels: number) => pan((pixels / width) * span),
    key: (event: KeyboardEvent) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    },
    down: (event: PointerEvent) => event.offsetY > AXIS - 20 && drag(event),
    move: (event: PointerEvent) => {
      const box = event.buttons ? undefined : hit(event);
      hovered.value = box?.placed.row.id ?? null;
      setTip(box ? { box, x: event.offsetX } : null);
    },
    click: (event: MouseEvent) => {
      const box = hit(event);
      if (box) selected.value = box.placed.row;
    },
  };
}
