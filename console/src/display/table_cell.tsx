/** A table's cell. A short text keeps its width; a long one takes what room there is, and is cut only where there is none. */

import type { ComponentChildren } from "preact";

const SHORT = 32;

export const isLong = (text: string) => text.length > SHORT;

interface Props {
  text: string;
  title?: string | undefined;
  class?: string;
  /** What stands before the text. */
  children?: ComponentChildren;
}

export function Cell({ text, title, class: kind = "", children }: Props) {
  return (
    <td class={kind} title={title}>
      {isLong(text) ? (
        <div class="long">
          {children}
          {text}
        </div>
      ) : (
        <>
          {children}
          {text}
        </>
      )}
    </td>
  );
}
