import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// One script and one style sheet, which the Python package puts into each page.
export default defineConfig({
  plugins: [svelte({ compilerOptions: { discloseVersion: false } })],
  build: {
    outDir: process.env.EXPLORER_OUT ?? "../src/topicloom/reports/explorer",
    emptyOutDir: false,
    target: ["chrome111", "firefox115", "safari16.4"],
    cssTarget: ["chrome111", "firefox115", "safari16.4"],
    modulePreload: false,
    license: { fileName: "explorer.licences.md" },
    lib: { entry: "src/main.ts", formats: ["iife"], name: "topicloomExplorer", fileName: () => "explorer.js", cssFileName: "explorer" },
  },
});
