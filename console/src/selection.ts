/** The solution that is looked at, the same in table and timeline. */

import { signal } from "@preact/signals";
import type { Row } from "./solutions";

export const selected = signal<Row | null>(null);
export const hovered = signal<string | null>(null);
