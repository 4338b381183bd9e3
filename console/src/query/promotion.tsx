/** A text takes the place of a running query. If it has other columns, that is asked once more. */

import { signal } from "@preact/signals";
import { ApiError } from "epsparql";
import { client, optionsOf, type Wish } from "../api/client";
import { attempt } from "../state/server_state";

/** The query and the text whose other columns were told. */
const told = signal("");
const key = (name: string, { query }: Wish) => `${name} ${query}`;

/** Put the text in the query's place, and return whether the server has taken it. */
export function promote(name: string, wish: Wish): Promise<boolean> {
  const changeColumns = told.peek() === key(name, wish);
  const ask = () =>
    client.promote(name, wish.query, { ...optionsOf(wish), changeColumns }).catch((error: unknown) => {
      if (error instanceof ApiError && error.problem.code === "other-columns") told.value = key(name, wish);
      throw error;
    });
  return attempt(ask, `the text will take the place of ${name}`);
}

interface Props {
  /** The query's name. */
  name: string;
  wish: Wish;
  /** Called once the server has taken the text. */
  done?: () => void;
}

export function Promote({ name, wish, done }: Props) {
  const asks = told.value === key(name, wish);
  return (
    <button
      type="button"
      class="primary"
      title={asks ? "Followers of the query get the columns of the new text" : "This text replaces the running query: solutions stay, and followers stay connected"}
      onClick={() => promote(name, wish).then((taken) => taken && done?.())}
      onBlur={() => (told.value = "")}
    >
      {asks ? "Promote with other columns?" : "Promote"}
    </button>
  );
}
