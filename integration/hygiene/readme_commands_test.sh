#!/usr/bin/env bash
# Runs the commands of README.md: every ```sh block that the line `<!-- tested -->` precedes, in the repository's root.
#
# A block may instead be preceded by `<!-- tested by: TIER -->`, the tier of ./dev test that runs it. A block with neither is a fault.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

script=$(mktemp)
trap 'rm -f "$script"' EXIT
awk '
  /^```sh$/ {
    inside = 1
    if (mark ~ /^<!-- tested by: (unit|component|go|cluster|sanitizers) -->$/) run = 0
    else if (mark == "<!-- tested -->") run = 1
    else { print "README.md:" NR ": nobody tests this block" > "/dev/stderr"; exit 1 }
    next
  }
  /^```$/ { inside = 0; mark = ""; next }
  inside { if (run) { sub(/ +# .*$/, ""); print; count++ } next }
  /^$/ { next }
  { mark = $0 }
  END { if (count == 0) { print "README.md: nothing to run" > "/dev/stderr"; exit 1 } }' README.md >"$script"
cat "$script"
bash -euxo pipefail "$script"
