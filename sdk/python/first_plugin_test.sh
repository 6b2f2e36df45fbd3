#!/usr/bin/env bash
# Runs the commands of docs/first-plugin.md as they are, and compares what they print with what the page says.
# Usage: first_plugin_test.sh FOLDER-WITH-OUTBOARD
set -euo pipefail
bin=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Everything is built.
awk '/^```sh$/ && mark == "<!-- tested by: component -->" { inside = 1; next }
  /^```$/ { inside = 0 }
  inside && $0 != "./dev run" { print }
  NF { mark = $0 }' docs/first-plugin.md |
  sed "s#^export PATH=\"\$PWD/build/release/bin:#export PATH=\"$bin:#" >"$dir/commands.sh"
bash -euo pipefail "$dir/commands.sh" >"$dir/out" 2>"$dir/err" </dev/null || {
  cat "$dir/out" "$dir/err" /tmp/outboard-plugin/*.log
  echo "FAILED: a command of docs/first-plugin.md"
  exit 1
}
failed=0
says() { # REGEX
  grep -qE "$1" "$dir/out" || { echo "FAILED: no line $1"; failed=1; }
}
says '^default/web .*scheduled on filled$'
says 'DataLocality: node\(s\) did not have the pod.s dataset$'
says '^default/web +scheduled +empty +only this node fits; of the others: 1 already had the pod.s dataset$'
says '^[0-9]+ passed, 0 failed'
[[ $failed == 0 ]] || cat "$dir/out" "$dir/err"
exit $failed
