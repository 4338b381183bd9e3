/** Marks on a time axis: round distances, from milliseconds to years. All times are UTC. */

import { clock, day } from "../display/format";

const S = 1000;
const MIN = 60 * S;
const H = 60 * MIN;
const D = 24 * H;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, S, 2 * S, 5 * S, 10 * S, 15 * S, 30 * S, MIN, 2 * MIN, 5 * MIN, 10 * MIN, 15 * MIN, 30 * MIN, H, 2 * H, 3 * H, 6 * H, 12 * H, D, 2 * D, 7 * D];
const MONTHS = [1, 3, 6, 12, 24, 60, 120, 600, 1200];

export interface Tick {
  at: number;
  label: string;
  /** A day, or a longer unit, begins here. */
  major: boolean;
}

export function ticks(from: number, to: number, most: number): Tick[] {
  const step = STEPS.find((each) => (to - from) / each <= most);
  return step ? regular(from, to, step) : months(from, to, most);
}

function regular(from: number, to: number, step: number): Tick[] {
  const found: Tick[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const major = at % D === 0;
    found.push({ at, major, label: major ? date(at) : step < S ? clock(at).slice(3) : step < MIN ? clock(at) : clock(at).slice(0, 5) });
  }
  return found;
}

function months(from: number, to: number, most: number): Tick[] {
  const length = MONTHS.find((each) => (to - from) / (each * 30 * D) <= most) ?? 12_000;
  const first = new Date(from);
  const found: Tick[] = [];
  for (let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / length) * length; ; month += length) {
    const at = Date.UTC(Math.floor(month / 12), month % 12);
    if (at > to || found.length > 100) return found;
    const year = month % 12 === 0;
    if (at >= from) found.push({ at, major: year, label: length >= 12 || year ? day(at).slice(0, 4) : day(at).slice(0, 7) });
  }
}

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function date(ms: number): string {
  const at = new Date(ms);
  return `${WEEKDAYS[at.getUTCDay()]} ${at.getUTCDate()} ${NAMES[at.getUTCMonth()]}`;
}
export const fullDate = (ms: number) => `${date(ms)} ${new Date(ms).getUTCFullYear()}`;
