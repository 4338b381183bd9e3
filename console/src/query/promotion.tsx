/** The button that puts a text in the place of a running query. If the text has other columns, it asks once more. */

import { useState } from "preact/hooks";
import { ApiError } from "epsparql";
import { client, optionsOf, type Wish } from "../api/client";
import { attempt } from "../state/server_state";

interface Props {
  /** The query's name. */
  name: string;
  wish: Wish;
  class?: string;
  /** Called once the server has taken the text. */
  done?: () => void;
}

export function Promote({ name, wish, class: kind, done }: Props) {
  /** The text whose other columns were told. */
  const [others, tell] = useState("");
  const asks = others === wish.query;
  const press = async () => {
    const { query } = wish;
    const taken = await attempt(
      () =>
        client.promote(name, query, { ...optionsOf(wish), changeColumns: asks }).catch((error: unknown) => {
          if (error instanceof ApiError && error.problem.code === "other-columns") tell(query);
          throw error;
        }),
      `the text will take the place of ${name}`,
    );
    if (taken) done?.();
  };
  return (
    <button
      type="button"
      class={kind}
      title={asks ? "Followers of the query get the columns of the new text" : "This text replaces the running query: solutions stay, and followers stay connected"}
      onClick={press}
      onBlur={() => tell("")}
    >
      {asks ? "Promote with other columns?" : "Promote"}
    </button>
  );
}
