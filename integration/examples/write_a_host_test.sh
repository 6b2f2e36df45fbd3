#!/usr/bin/env bash
# Runs the commands of docs/write-a-host.md as they are; the host on that page must conform to the contract.
# Usage: write_a_host_test.sh FOLDER-WITH-OUTBOARD
set -euo pipefail
bin=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Everything is built. A host must not outlive a failed command.
# shellcheck disable=SC2016
{
  echo 'trap "kill \$(jobs -p) 2>/dev/null || true" EXIT'
  awk '/^```sh$/ && mark == "<!-- tested by: component -->" { inside = 1; next }
    /^```$/ { inside = 0 }
    inside && $0 != "./dev build" { print }
    NF { mark = $0 }' docs/write-a-host.md
} | sed "s#^export PATH=\"\$PWD/build/release/bin:#export PATH=\"$bin:#" >"$dir/commands.sh"
bash -euo pipefail "$dir/commands.sh" >"$dir/out" 2>&1 </dev/null || {
  cat "$dir/out" /tmp/outboard-host/host.log
  echo "FAILED: a command of docs/write-a-host.md"
  exit 1
}
grep -qE '^[0-9]+ passed, 0 failed' "$dir/out" || {
  cat "$dir/out" /tmp/outboard-host/host.log
  echo "FAILED: the host of docs/write-a-host.md does not conform to the contract"
  exit 1
}
host=integration/examples/plain_python/host.py
lines=$(wc -l <"$host")
((lines <= 150)) || { echo "FAILED: $host has $lines lines, more than 150"; exit 1; }
# The table of the smallest hosts.
grep -qF "| \`../$host\` | with each call | $lines |" proto/README.md || {
  echo "FAILED: $host has $lines lines, and proto/README.md says otherwise"
  exit 1
}
grep -E '^[0-9]+ passed, 0 failed' "$dir/out"
