/** Whose solutions a picture or a table shows: those of the open tab's query, unless a page says otherwise. */

import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { prefixesOf } from "../display/format";
import { tab } from "./tabs";

/** The text of the query that found them; null for that of the open tab. */
export const Source = createContext<string | null>(null);

/** The prefixes by which its terms are shortened. */
export function usePrefixes(): ReadonlyMap<string, string> {
  const text = useContext(Source) ?? tab.value?.query ?? "";
  return useMemo(() => prefixesOf(text), [text]);
}
