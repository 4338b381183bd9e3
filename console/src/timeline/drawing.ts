/** Draws the timeline: lanes of intervals, a time axis above, and below the whole window with the part that is on view. */

import { FOUND_BY, type Lanes, type Placed, SIDES } from "../solutions/lanes";
import type { Row } from "../state/solution_store";
import { fullDate, type Tick, ticks } from "./axis";

export const AXIS = 26;
export const STRIP = 30;
const GAP = 9;
const THICK = 15;
const LEAST = 3;
/** Where full and hollow bars are to be told apart. */
const LEAST_HOLLOW = 6;
/** Where the corner at the left of the axis, and the names of the lanes, begin. */
const CORNER = 12;
/** Thinner bars have no round corners: nobody sees them, and thousands of paths take long. */
const ROUND = 3;

export interface Extent {
  from: number;
  to: number;
}

export interface Picture {
  width: number;
  height: number;
  left: number;
  view: Extent;
  whole: Extent;
  lanes: Lanes;
  rows: readonly Row[];
  labels: readonly string[];
  hovered: string | null;
  selected: string | null;
  /** Up to which time the answer is certain; NaN if that is not known. */
  certain: number;
}

export interface Box {
  placed: Placed;
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Palette {
  ink: string;
  soft: string;
  faint: string;
  grid: string;
  ground: string;
  accent: string;
  mono: string;
  sans: string;
  groups: string[];
}

/** A canvas needs colours as such: each variable of the style sheet as the element has it. */
export function palette(element: HTMLElement): Palette {
  const probe = element.ownerDocument.createElement("i");
  element.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found: Palette = {
    ink: colour("ink"),
    soft: colour("soft"),
    faint: colour("faint"),
    grid: colour("grid"),
    ground: colour("ground"),
    accent: colour("accent"),
    groups: [0, 1, 2, 3, 4, 5, 6, 7].map((n) => colour(`g${n}`)),
    mono: getComputedStyle(element).getPropertyValue("--mono"),
    sans: getComputedStyle(element).getPropertyValue("--sans"),
  };
  probe.remove();
  return found;
}

const x = (picture: Picture, at: number) => picture.left + ((at - picture.view.from) / (picture.view.to - picture.view.from)) * (picture.width - picture.left);

/** How thick a lane is, and where each group begins: all of them fit into the height. */
function rooms(picture: Picture): { thick: number; tops: number[] } {
  const groups = picture.lanes.groups;
  const total = groups.reduce((sum, group) => sum + Math.max(1, group.lanes), 0);
  const gap = groups.length > 8 ? 4 : GAP;
  const free = picture.height - AXIS - STRIP - gap * (groups.length + 1);
  const thick = Math.max(1, Math.min(THICK, free / Math.max(1, total)));
  const tops: number[] = [];
  let y = AXIS + gap;
  for (const group of groups) {
    tops.push(y);
    y += Math.max(1, group.lanes) * thick + gap;
  }
  return { thick, tops };
}

/** Of what is on view; the last one is drawn on top. */
export function boxes(picture: Picture): Box[] {
  const { thick, tops } = rooms(picture);
  const found: Box[] = [];
  for (const placed of picture.lanes.placed) {
    if (placed.row.end < picture.view.from || placed.row.start > picture.view.to) continue;
    const left = x(picture, placed.row.start);
    const w = Math.max(placed.row.facets ? LEAST_HOLLOW : LEAST, x(picture, placed.row.end) - left);
    found.push({ placed, x: left, y: tops[placed.group]! + placed.lane * thick, w, h: Math.max(1.5, thick - (thick > 5 ? 2 : 1)) });
  }
  return found;
}

export function draw(canvas: HTMLCanvasElement, picture: Picture, colours: Palette): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(picture.width * ratio);
  canvas.height = Math.round(picture.height * ratio);
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  grid(context, picture, colours);
  names(context, picture, colours);
  context.save();
  context.beginPath();
  context.rect(picture.left, AXIS, picture.width - picture.left, picture.height - AXIS - STRIP);
  context.clip();
  certain(context, picture, colours);
  for (const box of boxes(picture)) bar(context, box, picture, colours);
  context.restore();
  strip(context, picture, colours);
}

function grid(context: CanvasRenderingContext2D, picture: Picture, colours: Palette): void {
  const bottom = picture.height - STRIP;
  const found = ticks(picture.view.from, picture.view.to, Math.max(2, (picture.width - picture.left) / 78));
  context.font = `11px ${colours.sans}`;
  context.textBaseline = "middle";
  const corner = found.some((tick) => tick.major) ? "UTC" : `${fullDate(picture.view.from)} UTC`;
  const taken = CORNER + context.measureText(corner).width + 6;
  for (const tick of found) line(context, picture, tick, taken, bottom, colours);
  context.fillStyle = colours.soft;
  context.fillText(corner, CORNER, AXIS / 2 + 1);
  context.fillStyle = colours.grid;
  context.fillRect(0, AXIS - 1, picture.width, 1);
}

function line(context: CanvasRenderingContext2D, picture: Picture, tick: Tick, taken: number, bottom: number, colours: Palette): void {
  const at = Math.round(x(picture, tick.at));
  context.fillStyle = colours.grid;
  context.fillRect(at, tick.major ? 4 : AXIS - 5, 1, bottom - (tick.major ? 4 : AXIS - 5));
  if (at + 5 < taken || at < picture.left) return;
  if (at + 60 > picture.width && context.measureText(tick.label).width + at + 6 > picture.width) return;
  context.fillStyle = tick.major ? colours.ink : colours.soft;
  context.fillText(tick.label, at + 5, AXIS / 2 + 1);
}

function names(context: CanvasRenderingContext2D, picture: Picture, colours: Palette): void {
  const { thick, tops } = rooms(picture);
  context.font = `500 12px ${colours.mono}`;
  context.textBaseline = "middle";
  picture.lanes.groups.forEach((group, k) => {
    const middle = tops[k]! + (Math.max(1, group.lanes) * thick) / 2;
    context.fillStyle = colours.groups[group.colour % colours.groups.length]!;
    context.fillRect(0, tops[k]!, 3, Math.max(1, group.lanes) * thick - 2);
    if (!picture.labels[k]) return;
    context.fillStyle = colours.ink;
    context.fillText(fitting(context, picture.labels[k], picture.left - CORNER - 6), CORNER, middle);
  });
}

/** The text, or as much of its beginning and end as there is room for. */
function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const kept = Math.max(2, Math.floor(room / context.measureText("m").width) - 1);
  return `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(-Math.floor(kept / 2))}`;
}

function certain(context: CanvasRenderingContext2D, picture: Picture, colours: Palette): void {
  const at = x(picture, picture.certain);
  if (Number.isNaN(at) || at > picture.width) return;
  context.strokeStyle = colours.accent;
  context.globalAlpha = 0.6;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(at + 0.5, AXIS);
  context.lineTo(at + 0.5, picture.height - STRIP);
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function bar(context: CanvasRenderingContext2D, box: Box, picture: Picture, colours: Palette): void {
  const { id, facets } = box.placed.row;
  const chosen = id === picture.selected || id === picture.hovered;
  const colour = colours.groups[picture.lanes.groups[box.placed.group]!.colour % colours.groups.length]!;
  const side = facets?.[FOUND_BY] ?? "";
  context.fillStyle = colour;
  context.globalAlpha = chosen ? 1 : picture.hovered || picture.selected ? 0.6 : 0.78;
  if (side === SIDES[1]) outline(context, box, colour);
  else if (side === SIDES[2]) context.fillRect(box.x, box.y + box.h / 3, box.w, Math.max(1, box.h / 3));
  else if (box.h < ROUND) context.fillRect(box.x, box.y, box.w, box.h);
  else {
    context.beginPath();
    context.roundRect(box.x, box.y, box.w, box.h, Math.min(3, box.h / 2, box.w / 2));
    context.fill();
  }
  context.globalAlpha = 1;
  if (!chosen) return;
  context.strokeStyle = colours.ink;
  context.lineWidth = 1.5;
  context.strokeRect(box.x - 1, box.y - 1, box.w + 2, box.h + 2);
}

/** Only the old side has it: hollow, where the new side's are full, and what both have is a thin line. */
function outline(context: CanvasRenderingContext2D, { x, y, w, h }: Box, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = Math.min(1.5, h / 2);
  context.strokeRect(x + 0.75, y + 0.75, Math.max(1, w - 1.5), Math.max(0.5, h - 1.5));
}

/** How many solutions end when, over the whole window. */
function strip(context: CanvasRenderingContext2D, picture: Picture, colours: Palette): void {
  const top = picture.height - STRIP;
  const width = picture.width - picture.left;
  const counts = new Array<number>(Math.max(1, Math.ceil(width / 3))).fill(0);
  const span = picture.whole.to - picture.whole.from || 1;
  for (const row of picture.rows) {
    const at = Math.floor(((row.end - picture.whole.from) / span) * counts.length);
    if (at >= 0 && at < counts.length) counts[at]!++;
  }
  const most = Math.max(1, ...counts);
  context.fillStyle = colours.grid;
  context.fillRect(0, top, picture.width, 1);
  context.fillStyle = colours.faint;
  counts.forEach((count, k) => {
    const h = count && Math.max(1.5, (Math.sqrt(count / most) * (STRIP - 9)) | 0);
    context.fillRect(picture.left + k * 3, picture.height - 3 - h, 2, h);
  });
  const from = picture.left + ((picture.view.from - picture.whole.from) / span) * width;
  const to = picture.left + ((picture.view.to - picture.whole.from) / span) * width;
  context.strokeStyle = colours.accent;
  context.lineWidth = 1;
  context.globalAlpha = 0.1;
  context.fillStyle = colours.accent;
  context.fillRect(from, top + 3, to - from, STRIP - 5);
  context.globalAlpha = 0.85;
  context.strokeRect(Math.max(picture.left, from) + 0.5, top + 3.5, Math.max(2, Math.min(picture.width - 1, to) - Math.max(picture.left, from) - 1), STRIP - 6);
  context.globalAlpha = 1;
}
