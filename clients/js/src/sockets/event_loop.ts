/** Pauses of a task, while the event loop goes on. */

/** Resolves in a later turn of the event loop, without the least time of a timer. */
export function yieldTurn(): Promise<void> {
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      done();
    };
    port2.postMessage(null);
  });
}

/** Resolves after so many milliseconds. Throws: the reason of the signal, once that is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const timer = setTimeout(ended, ms);
    function ended(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", ended);
      if (signal?.aborted) failed(signal.reason);
      else done();
    }
    signal?.addEventListener("abort", ended);
    if (signal?.aborted) ended();
  });
}
