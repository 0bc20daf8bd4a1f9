#!/usr/bin/env bash
# Builds the explorer's page in a temporary folder, and compares it with the one in the package.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
  echo "skipped: npm is not installed, so the explorer's page is not built again"
  exit 0
fi
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
if ! npm ci --no-audit --no-fund --silent; then
  echo "skipped: npm could not install the packages of explorer/package-lock.json"
  exit 0
fi
EXPLORER_OUT=$built npm run --silent build >"$built/log" 2>&1 || { cat "$built/log"; exit 1; }
for name in explorer.js explorer.css explorer.licences.md; do
  cmp "$built/$name" "../src/topicloom/reports/explorer/$name" || { echo "$name is not that of explorer/; run make explorer"; exit 1; }
done
echo "the explorer's page is that of explorer/"
