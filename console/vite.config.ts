import { defineConfig } from "vite";

// Hashed names in one folder, no inlined data: URIs (the page's policy allows 'self' alone), and paths relative to the page.
export default defineConfig({
  base: "./",
  resolve: { alias: { epsparql: new URL("../clients/js/src/index.ts", import.meta.url).pathname } },
  assetsInclude: ["**/*.csv"],
  build: {
    outDir: "../server/console/dist",
    emptyOutDir: true,
    assetsDir: "console",
    assetsInlineLimit: 0,
    target: ["chrome123", "firefox128", "safari18"],
    modulePreload: { polyfill: false },
    license: { fileName: "console/licenses.txt" },
    chunkSizeWarningLimit: 900,
  },
});
