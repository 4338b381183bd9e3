/** A link to a page of the console. A click opens it here; with a key held, in a tab of the browser, as links do. */

import type { ComponentChildren } from "preact";

interface Props {
  key?: string | number;
  href: string;
  act: () => void;
  class: string;
  title?: string | undefined;
  current?: boolean;
  children: ComponentChildren;
}

export function Link({ href, act, class: kind, title, current, children }: Props) {
  const press = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    act();
  };
  return (
    <a class={kind} href={href} title={title} aria-current={current ? "page" : undefined} onClick={press}>
      {children}
    </a>
  );
}
