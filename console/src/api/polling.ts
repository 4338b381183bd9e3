/** Asks the server again and again while somebody looks: not while the page is hidden, and ever more rarely while it fails. */

import { ApiError } from "epsparql";

const SLOWEST_MS = 30_000;
const NOT_FOUND = 404;

/** Asks until the returned function is called, or until what is asked for is gone. */
export function repeat(ask: () => Promise<unknown>, everyMs: number): () => void {
  let over = false;
  let asking = false;
  let next = 0;
  let pause = everyMs;
  const again = async () => {
    if (over || asking || document.hidden) return;
    asking = true;
    try {
      await ask();
      pause = everyMs;
    } catch (error) {
      if (error instanceof ApiError && error.problem.status === NOT_FOUND) return stop();
      pause = Math.min(pause * 2, SLOWEST_MS);
    } finally {
      asking = false;
    }
    if (!over && !document.hidden) next = window.setTimeout(again, pause);
  };
  const turned = () => {
    clearTimeout(next);
    void again();
  };
  const stop = () => {
    over = true;
    clearTimeout(next);
    document.removeEventListener("visibilitychange", turned);
  };
  document.addEventListener("visibilitychange", turned);
  void again();
  return stop;
}
