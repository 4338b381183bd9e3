/** The equirectangular projection: degrees as they are, longitudes drawn together as at the middle latitude. */

import type { Size } from "../display/element_size";
import type { Coordinates } from "./places";

const KM_A_DEGREE = 111.195;
const MARGIN = 44;
/** Degrees: a single place has this much around it. */
const LEAST_SPAN = 0.02;
const STEPS = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 45, 90];
const LEAST_MESH = 72;
const LEAST_SCALE = 0.5;
const MOST_SCALE = 2_000_000;

export interface View {
  centre: Coordinates;
  /** Pixels to a degree of latitude. */
  scale: number;
}

/** What all of the places need: their middle latitude, and whether longitudes go on beyond 180° east. */
export interface Frame {
  shrink: number;
  beyond: boolean;
}

const span = (values: readonly number[]) => values.reduce(([least, most], each) => [Math.min(least, each), Math.max(most, each)] as [number, number], [Infinity, -Infinity] as [number, number]);
const turned = (lon: number) => (lon < 0 ? lon + 360 : lon);
const width = ([least, most]: [number, number]) => most - least;

/** The places are around the date line where that makes them lie closer together. */
export function framed(places: readonly Coordinates[]): Frame {
  const lons = places.map(({ lon }) => lon);
  const [south, north] = span(places.map(({ lat }) => lat));
  return { shrink: Math.max(0.1, Math.cos(((south + north) / 2) * (Math.PI / 180))), beyond: width(span(lons.map(turned))) < width(span(lons)) };
}

export const longitude = (lon: number, { beyond }: Frame) => (beyond ? turned(lon) : lon);

/** All of the places on view. */
export function fitted(places: readonly Coordinates[], frame: Frame, room: Size): View {
  const [west, east] = span(places.map(({ lon }) => longitude(lon, frame)));
  const [south, north] = span(places.map(({ lat }) => lat));
  const across = Math.max(20, room.width - 2 * MARGIN) / (Math.max(east - west, LEAST_SPAN) * frame.shrink);
  const upward = Math.max(20, room.height - 2 * MARGIN) / Math.max(north - south, LEAST_SPAN);
  return { centre: { lon: (west + east) / 2, lat: (south + north) / 2 }, scale: bounded(Math.min(across, upward)) };
}

export const bounded = (scale: number) => Math.min(MOST_SCALE, Math.max(LEAST_SCALE, scale));

export interface Projection {
  x: (lon: number) => number;
  y: (lat: number) => number;
  /** Where these pixels are, with longitudes as on the map. */
  invert: (x: number, y: number) => Coordinates;
}

export function projection({ centre, scale }: View, frame: Frame, room: Size): Projection {
  const across = scale * frame.shrink;
  return {
    x: (lon) => room.width / 2 + (longitude(lon, frame) - centre.lon) * across,
    y: (lat) => room.height / 2 - (lat - centre.lat) * scale,
    invert: (x, y) => ({ lon: centre.lon + (x - room.width / 2) / across, lat: centre.lat - (y - room.height / 2) / scale }),
  };
}

export interface Line {
  /** Pixels from the left or from the top. */
  at: number;
  label: string;
}

/** The meridians and parallels on view, at round degrees. */
export function graticule({ centre, scale }: View, frame: Frame, room: Size): { meridians: Line[]; parallels: Line[] } {
  const across = scale * frame.shrink;
  const lines = (pixels: number, middle: number, size: number, sign: 1 | -1, label: (degrees: number, step: number) => string, most: number) => {
    const step = STEPS.find((each) => each * pixels >= LEAST_MESH) ?? 90;
    const [first, last] = [Math.ceil((middle - size / 2 / pixels) / step), Math.floor((middle + size / 2 / pixels) / step)];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => (first + k) * step)
      .filter((degrees) => Math.abs(degrees) <= most)
      .map((degrees): Line => ({ at: size / 2 + sign * (degrees - middle) * pixels, label: label(degrees, step) }));
  };
  return {
    meridians: lines(across, centre.lon, room.width, 1, (degrees, step) => degreesOf(((degrees + 540) % 360) - 180, step, "E", "W"), 540),
    parallels: lines(scale, centre.lat, room.height, -1, (degrees, step) => degreesOf(degrees, step, "N", "S"), 90),
  };
}

export function degreesOf(degrees: number, step: number, positive: string, negative: string): string {
  const digits = Math.max(0, Math.ceil(-Math.log10(step)));
  const shown = Math.abs(degrees).toFixed(digits);
  return `${shown}°${Number(shown) % 180 === 0 ? "" : degrees > 0 ? positive : negative}`;
}

/** A round distance of at most `most` pixels, as measured at the middle latitude. */
export function scaleBar({ scale }: View, most: number): { pixels: number; label: string } {
  const pixelsAKm = scale / KM_A_DEGREE;
  const power = 10 ** Math.floor(Math.log10(most / pixelsAKm));
  const km = power * ([5, 2].find((each) => each * power * pixelsAKm <= most) ?? 1);
  return { pixels: km * pixelsAKm, label: km >= 1 ? `${km.toLocaleString("en").replaceAll(",", "\u202f")} km` : `${Number((km * 1000).toPrecision(1))} m` };
}
