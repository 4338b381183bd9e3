/** The size of an element, as it changes. */

import { useEffect, useState } from "preact/hooks";

export interface Size {
  width: number;
  height: number;
}

/** The room inside `box`; none before it is in the page. */
export function useSize(box: HTMLElement | null): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useEffect(() => {
    if (!box) return;
    const observer = new ResizeObserver(() => setSize({ width: box.clientWidth, height: box.clientHeight }));
    observer.observe(box);
    return () => observer.disconnect();
  }, [box]);
  return size;
}
