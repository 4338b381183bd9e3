/** Two parts of a page with a divider between them, whose place is kept. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

const SPLIT = "epsparql.split";

/** A timeline above, and a table below. */
export function Split({ children: [timeline, table] }: { children: [ComponentChildren, ComponentChildren] }) {
  const box = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(() => Number(localStorage.getItem(SPLIT)) || 0.56);
  const drag = useSplit(box, setShare, SPLIT);
  return (
    <div class="found" ref={box} style={{ gridTemplateRows: `minmax(110px, ${share}fr) 7px minmax(80px, ${1 - share}fr)` }}>
      {timeline}
      <Divider label="Timeline above, table below" share={share} set={setShare} drag={drag} />
      {table}
    </div>
  );
}

/** A divider that is dragged, or moved with the arrow keys. */
export function Divider({ label, share, set, drag }: { label: string; share: number; set: (share: number) => void; drag: (event: PointerEvent) => void }) {
  const move = (event: KeyboardEvent) => {
    const by = { ArrowUp: -0.05, ArrowDown: 0.05 }[event.key];
    if (by) set(Math.min(0.85, Math.max(0.15, share + by)));
  };
  return (
    <div
      class="divider"
      role="separator"
      tabIndex={0}
      aria-orientation="horizontal"
      aria-label={label}
      aria-valuenow={Math.round(share * 100)}
      aria-valuemin={15}
      aria-valuemax={85}
      onPointerDown={drag}
      onKeyDown={move}
    />
  );
}

export function useSplit(box: { current: HTMLElement | null }, set: (share: number) => void, key: string) {
  return (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    const { top, height } = box.current!.getBoundingClientRect();
    const moved = (move: PointerEvent) => {
      const share = Math.min(0.85, Math.max(0.15, (move.clientY - top) / height));
      set(share);
      localStorage.setItem(key, String(share));
    };
    handle.setPointerCapture(event.pointerId);
    handle.addEventListener("pointermove", moved);
    handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", moved), { once: true });
  };
}
