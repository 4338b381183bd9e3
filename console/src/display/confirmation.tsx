/** A button for what cannot be undone: it asks once more, and forgets the question with the focus. */

import { useState } from "preact/hooks";

interface Props {
  label: string;
  question: string;
  title: string;
  /** What it is called for those who hear it, where its place does not tell what is meant. */
  of?: string;
  act: () => unknown;
}

export function Sure({ label, question, title, of, act }: Props) {
  const [asked, ask] = useState(false);
  const press = () => {
    ask(!asked);
    if (asked) void act();
  };
  const shown = asked ? question : label;
  return (
    <button type="button" class="bad" title={title} aria-label={of ? `${shown} ${of}` : undefined} onClick={press} onBlur={() => ask(false)}>
      {shown}
    </button>
  );
}
