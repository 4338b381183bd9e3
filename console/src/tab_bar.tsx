/** The tabs of the texts being worked on. */

import { useEffect, useRef } from "preact/hooks";
import { blank } from "./examples/gallery";
import { queries, view } from "./state/server_state";
import { close, open, tab, tabs } from "./state/tabs";

export function Tabs() {
  const box = useRef<HTMLDivElement>(null);
  const chosen = view.value.kind === "query" ? tab.value?.key : undefined;
  useEffect(() => box.current?.querySelector(".tab.chosen")?.scrollIntoView({ inline: "nearest", block: "nearest" }), [chosen, tabs.value.length]);
  const states = new Map(queries.value.map((query) => [query.name, query.state]));
  const show = (key: number) => {
    open.value = key;
    view.value = { kind: "query" };
  };
  return (
    <>
      <div class="tabs" ref={box} role="group" aria-label="Queries being worked on">
        {tabs.value.map(({ key, name }) => (
          <span key={key} class={`tab ${key === chosen ? "chosen" : ""}`} onAuxClick={(event) => event.button === 1 && close(key)}>
            <button type="button" class="open" aria-current={key === chosen} title={name} onClick={() => show(key)}>
              <span class={`dot ${states.get(name) ?? "draft"}`} />
              <span class="name">{name}</span>
            </button>
            <button type="button" class="plain close" aria-label={`Close ${name}`} title="Close the tab; the query stays as it is" onClick={() => close(key)}>
              ×
            </button>
          </span>
        ))}
      </div>
      <button type="button" class="plain new" aria-label="New query" title="New query (Alt N)" onClick={blank}>
        +
      </button>
      <span class="grow" />
    </>
  );
}
