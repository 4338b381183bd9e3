/** A button that opens a small panel below it. Escape closes the panel, and so does leaving it. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  summary: ComponentChildren;
  title: string;
  /** What it is called for those who hear it, where the summary is a sign. */
  label?: string;
  class?: string;
  /** The panel; it is given what closes it. */
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ summary, title, label, class: kind = "", children }: Props) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => void (menu.current!.open = false);
  const leave = (event: FocusEvent) => {
    if (event.relatedTarget && !menu.current!.contains(event.relatedTarget as Node)) close();
  };
  useEffect(() => {
    const press = (event: PointerEvent) => void (menu.current!.contains(event.target as Node) || close());
    addEventListener("pointerdown", press);
    return () => removeEventListener("pointerdown", press);
  }, []);
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !menu.current!.open) return;
    event.stopPropagation();
    close();
    menu.current!.querySelector("summary")!.focus();
  };
  return (
    <details class={`menu ${kind}`} ref={menu} onFocusOut={leave} onKeyDown={key}>
      <summary title={title} aria-label={label}>
        {summary}
      </summary>
      <div class="choices">{children(close)}</div>
    </details>
  );
}
