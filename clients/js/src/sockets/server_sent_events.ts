/** Server-Sent Events, read with fetch, because an EventSource could not send the token. Source: HTML Living Standard, section 9.2. */

export interface ServerSentEvent {
  id: string | null;
  /** The kind of the event, if it is a notice and no solution. */
  event: string | null;
  data: string | null;
  /** A comment; the server says in one why it ends. */
  comment: string | null;
}

/** Yields events and comments until the answer ends, or nothing came for `silenceMs`. Throws: TypeError where the connection breaks. */
export async function* readEvents(body: ReadableStream<Uint8Array>, silenceMs: number): AsyncGenerator<ServerSentEvent> {
  const [reader, decoder] = [body.getReader(), new TextDecoder()];
  let rest = "";
  try {
    for (;;) {
      const timer = silenceMs > 0 ? setTimeout(() => void reader.cancel().catch(() => {}), silenceMs) : undefined;
      const { done, value } = await reader.read();
      clearTimeout(timer);
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) yield parseBlock(block);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

function parseBlock(block: string): ServerSentEvent {
  const found: ServerSentEvent = { id: null, event: null, data: null, comment: null };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon) || "comment";
    if (name in found) found[name as keyof ServerSentEvent] = line.slice(colon + 1).trim();
  }
  return found;
}
