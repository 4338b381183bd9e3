/** What the browser keeps between visits; what it holds broken, or will not hold, counts as not there. */

export function read<T>(storage: Storage, key: string, otherwise: T): T {
  try {
    const found = storage.getItem(key);
    return found === null ? otherwise : (JSON.parse(found) as T);
  } catch {
    return otherwise;
  }
}

export function write(storage: Storage, key: string, value: unknown): void {
  try {
    if (value === null) storage.removeItem(key);
    else storage.setItem(key, JSON.stringify(value));
  } catch {
    // full, or forbidden: the page works without
  }
}
