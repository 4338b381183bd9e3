/** Light, dark, or as the system has it. */

import { effect, signal } from "@preact/signals";
import { read, write } from "../api/storage";

const KEPT = "epsparql.theme";
export type Theme = "system" | "light" | "dark";
export const theme = signal<Theme>(read<Theme>(localStorage, KEPT, "system"));

effect(() => {
  write(localStorage, KEPT, theme.value);
  document.documentElement.dataset.theme = theme.value;
});

export const turn = () => (theme.value = { system: "light", light: "dark", dark: "system" }[theme.value] as Theme);
