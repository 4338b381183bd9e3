/** Lets Node.js load the console's sources as Vite does, and gives them the two things of a page that they look for when they are loaded. */

import { existsSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";

const CLIENT = new URL("../../clients/js/src/index.ts", import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "epsparql") return next(CLIENT, context);
    if (specifier.startsWith(".") && context.parentURL) {
      const stem = new URL(specifier.replace(/\.js$/, ""), context.parentURL).href;
      const source = [".ts", ".tsx"].map((suffix) => stem + suffix).find((each) => existsSync(fileURLToPath(each)));
      if (source) return next(source, context);
    }
    return next(specifier, context);
  },
});

const stored = new Map();
const storage = { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, value), removeItem: (key) => stored.delete(key) };
Object.assign(globalThis, { document: { baseURI: "http://console.test/", addEventListener: () => {}, hidden: false } });
for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(globalThis, name, { value: storage, configurable: true });
