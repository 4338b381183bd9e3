/** A heading of the table by which its rows are put in order, and the field that says which rows are shown. */

import { count } from "../display/format";
import type { Row } from "../state/solution_store";
import { matching, order, turn, wanted } from "./sort_order";

export function Heading({ by, class: kind = "" }: { by: string; class?: string }) {
  const now = order.value?.by === by ? (order.value.falls ? "descending" : "ascending") : "none";
  return (
    <th scope="col" class={kind} aria-sort={now}>
      <button type="button" class="plain sort" title={by === "start" ? "All times are UTC. Press for an order by this column" : "Press for an order by this column"} onClick={() => turn(by)}>
        {by}
        <span aria-hidden="true">{{ ascending: " ↑", descending: " ↓", none: "" }[now]}</span>
      </button>
    </th>
  );
}

export function Filter({ rows }: { rows: readonly Row[] }) {
  return (
    <>
      {wanted.value.trim() && (
        <span class="quiet" role="status">
          {count(matching(rows).length)} of {count(rows.length)} rows
        </span>
      )}
      <input
        type="search"
        class="filter"
        aria-label="Show only rows that contain"
        placeholder="Filter rows"
        value={wanted.value}
        onInput={(event) => (wanted.value = event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && (wanted.value = "")}
      />
    </>
  );
}
