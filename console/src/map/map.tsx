/** Solutions on a map, by the coordinates that they carry. It has a graticule and a scale, and asks nobody for tiles. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Group, grouping, groupsOf, keyOf } from "../chart/groups";
import { ChooseGroups, Legend } from "../chart/legend";
import { Period, pictured } from "../chart/period";
import { type Size, useSize } from "../display/element_size";
import { count, some } from "../display/format";
import { selected } from "../solutions/selection";
import { Tip } from "../solutions/tooltip";
import { type Locator, locators, type Mark, marksOf } from "./places";
import { bounded, degreesOf, fitted, type Frame, framed, graticule, projection, scaleBar, type View } from "./projection";

const MOST_PLACES = 2000;
const ZOOM = 1.5;
/** A pointer this near to a mark means it. */
const NEAR = 14;
const RADIUS = 4.5;
const LONGEST_BAR = 110;
/** The room that a label of the graticule needs, in pixels. */
const LABEL = { width: 54, height: 12 };

export function PointMap() {
  const shown = pictured.value;
  const offered = useMemo(() => locators(shown), [shown]);
  const [wanted, want] = useState("");
  const locator = offered.find(({ name }) => name === wanted) ?? offered[0];
  const by = grouping(shown);
  const { groups, left } = useMemo(() => groupsOf(shown, by), [shown, by]);
  return (
    <section class="map" aria-label="Map of solutions">
      <div class="bar">
        {offered.length > 1 && (
          <label class="pick">
            places by
            <select value={locator?.name} onChange={(event) => want(event.currentTarget.value)}>
              {offered.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        {locator && <ChooseGroups what="colours by" by={by} rows={shown} />}
        <span class="grow" />
        <Period />
      </div>
      {locator && <Legend by={by} groups={groups} left={left} />}
      {locator ? (
        <Places key={locator.name} locator={locator} by={by} groups={groups} />
      ) : shown.length ? (
        <p class="empty">
          No solution carries coordinates. A map needs a point as text, such as "POINT(13.4 52.5)" with longitude first, or two numbers in variables named ?lat and ?long.
        </p>
      ) : (
        <p class="empty">No solution ends in this range.</p>
      )}
    </section>
  );
}

function Places({ locator, by, groups }: { locator: Locator; by: string | null; groups: ReadonlyMap<string, Group> }) {
  const shown = pictured.value;
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const room = useSize(box);
  const [moved, setMoved] = useState<View | null>(null);
  const [key, setKey] = useState<string | null>(null);
  const { marks, left, nowhere } = useMemo(() => marksOf(shown, locator.locate, MOST_PLACES), [shown, locator.name]);
  const frame = useMemo(() => framed(marks.map(({ at }) => at)), [marks]);
  const whole = useMemo(() => fitted(marks.map(({ at }) => at), frame, room), [marks, frame, room]);
  const view = moved ?? whole;
  const { x, y } = projection(view, frame, room);
  const here = marks.find((mark) => keyOfPlace(mark) === key);
  const act = actions({ view, frame, room, marks, here, setMoved, setKey });
  useEffect(() => (box ? wheel(box, act.zoom) : undefined));
  return (
    <>
      <div
        class="places"
        ref={setBox}
        tabIndex={0}
        role="application"
        aria-label={`${some(marks.length, "place")} on a map. Arrow keys move it, plus and minus zoom, 0 shows all. N and P go from place to place, Enter shows the newest solution there. The table under Solutions has the same values.`}
        onKeyDown={act.key}
        onPointerDown={act.down}
        onPointerMove={act.hover}
        onPointerLeave={() => setKey(null)}
        onClick={() => here && (selected.value = here.row)}
      >
        {room.width > 0 && (
          <svg width={room.width} height={room.height} aria-hidden="true">
            <Graticule view={view} frame={frame} room={room} />
            {marks.map((mark) => (
              <circle
                key={keyOfPlace(mark)}
                class={mark === here ? "here" : ""}
                data-place={keyOfPlace(mark)}
                cx={x(mark.at.lon)}
                cy={y(mark.at.lat)}
                r={RADIUS}
                style={{ color: groups.get(keyOf(mark.row, by))?.colour ?? "var(--faint)" }}
              />
            ))}
            {here && <circle class="ring" cx={x(here.at.lon)} cy={y(here.at.lat)} r={RADIUS + 3} />}
            <Scale view={view} room={room} />
          </svg>
        )}
        <div aria-live="polite">
          {here && (
            <Tip row={here.row} x={x(here.at.lon)} y={y(here.at.lat)} room={room}>
              <div class="quiet figures">
                {degreesOf(here.at.lat, 0.001, "N", "S")} {degreesOf(here.at.lon, 0.001, "E", "W")}
                {here.count > 1 && ` · the newest of ${count(here.count)} here`}
              </div>
            </Tip>
          )}
        </div>
      </div>
      <div class="bar foot">
        <span class="quiet figures" role="status">
          {left ? `the newest ${count(marks.length)} of ${count(marks.length + left)} places` : some(marks.length, "place")}
          {nowhere > 0 && ` · ${some(nowhere, "solution")} without coordinates`}
        </span>
        <span class="grow" />
        <span class="buttons" role="group" aria-label="What the map shows">
          <button type="button" title="Zoom out (−)" aria-label="Zoom out" onClick={() => act.zoom(1 / ZOOM)}>
            −
          </button>
          <button type="button" title="Zoom in (+)" aria-label="Zoom in" onClick={() => act.zoom(ZOOM)}>
            +
          </button>
          <button type="button" title="All places (0)" aria-pressed={moved === null} onClick={() => setMoved(null)}>
            All
          </button>
        </span>
      </div>
    </>
  );
}

const keyOfPlace = ({ at }: Mark) => `${at.lon} ${at.lat}`;

function Graticule({ view, frame, room }: { view: View; frame: Frame; room: Size }) {
  const { meridians, parallels } = graticule(view, frame, room);
  return (
    <g class="graticule">
      {meridians.map(({ at, label }) => (
        <g key={label}>
          <line x1={at} x2={at} y1={0} y2={room.height} />
          {at < room.width - LABEL.width && (
            <text x={at + 4} y={LABEL.height}>
              {label}
            </text>
          )}
        </g>
      ))}
      {parallels.map(({ at, label }) => (
        <g key={label}>
          <line x1={0} x2={room.width} y1={at} y2={at} />
          {at > 2 * LABEL.height + 4 && (
            <text x={4} y={at - 4}>
              {label}
            </text>
          )}
        </g>
      ))}
    </g>
  );
}

function Scale({ view, room }: { view: View; room: Size }) {
  const { pixels, label } = scaleBar(view, LONGEST_BAR);
  const [left, top] = [room.width - 14 - pixels, room.height - 14];
  return (
    <g class="scale">
      <path d={`M${left} ${top - 5}V${top}H${left + pixels}V${top - 5}`} />
      <text x={left + pixels / 2} y={top - 6} text-anchor="middle">
        {label}
      </text>
    </g>
  );
}

// ---------------------------------------------------------------- what people do
interface Shown {
  view: View;
  frame: Frame;
  room: Size;
  marks: readonly Mark[];
  here: Mark | undefined;
  setMoved: (view: View | null) => void;
  setKey: (key: string | null) => void;
}

function actions({ view, frame, room, marks, here, setMoved, setKey }: Shown) {
  const { x, y, invert } = projection(view, frame, room);
  const pan = (right: number, down: number) => setMoved({ ...view, centre: invert(room.width / 2 + right, room.height / 2 + down) });
  /** The place under `at` stays there. */
  const zoom = (factor: number, at = { x: room.width / 2, y: room.height / 2 }) => {
    const scale = bounded(view.scale * factor);
    const share = 1 - view.scale / scale;
    setMoved({ scale, centre: invert(room.width / 2 + (at.x - room.width / 2) * share, room.height / 2 + (at.y - room.height / 2) * share) });
  };
  const step = (by: 1 | -1) => {
    const at = here ? marks.indexOf(here) : -1;
    const next = marks[at < 0 ? marks.length - 1 : (at + by + marks.length) % marks.length];
    if (!next) return;
    setKey(keyOfPlace(next));
    const [left, top] = [x(next.at.lon), y(next.at.lat)];
    if (left < 0 || left > room.width || top < 0 || top > room.height) pan(left - room.width / 2, top - room.height / 2);
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => pan(-room.width / 8, 0),
    ArrowRight: () => pan(room.width / 8, 0),
    ArrowUp: () => pan(0, -room.height / 8),
    ArrowDown: () => pan(0, room.height / 8),
    "+": () => zoom(ZOOM),
    "=": () => zoom(ZOOM),
    "-": () => zoom(1 / ZOOM),
    "0": () => setMoved(null),
    n: () => step(1),
    p: () => step(-1),
    Enter: () => here && (selected.value = here.row),
  };
  const point = (event: PointerEvent) => setKey(nearest(marks, (mark) => Math.hypot(x(mark.at.lon) - event.offsetX, y(mark.at.lat) - event.offsetY)));
  return {
    zoom,
    key: (event: KeyboardEvent) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    },
    hover: (event: PointerEvent) => {
      if (!event.buttons) point(event);
    },
    down: (event: PointerEvent) => {
      point(event); // a finger does not hover
      const box = event.currentTarget as HTMLElement;
      const from = { x: event.clientX, y: event.clientY };
      const moved = (move: PointerEvent) => {
        if (Math.hypot(move.clientX - from.x, move.clientY - from.y) <= 3) return;
        setKey(null); // who drags means no mark
        pan(from.x - move.clientX, from.y - move.clientY);
      };
      box.setPointerCapture(event.pointerId);
      box.addEventListener("pointermove", moved);
      box.addEventListener("pointerup", () => box.removeEventListener("pointermove", moved), { once: true });
    },
  };
}

/** Of several that are equally near, the newest. */
function nearest(marks: readonly Mark[], away: (mark: Mark) => number): string | null {
  let [found, least]: [Mark | null, number] = [null, NEAR];
  for (const mark of marks) if (away(mark) <= least) [found, least] = [mark, away(mark)];
  return found && keyOfPlace(found);
}

function wheel(box: HTMLElement, zoom: (factor: number, at: { x: number; y: number }) => void): () => void {
  const on = (event: WheelEvent) => {
    event.preventDefault();
    zoom(Math.exp(-Math.max(-240, Math.min(240, event.deltaY)) / 480), { x: event.offsetX, y: event.offsetY });
  };
  box.addEventListener("wheel", on, { passive: false });
  return () => box.removeEventListener("wheel", on);
}
