#!/usr/bin/env bash
# Runs the commands of README.md: every ```sh block after a line `<!-- tested -->`, in the repository's root, except `./dev test`, which runs
# this test.
#
# `<!-- tested by: TIER -->` names the tier of ./dev test that tests a block instead. A block with neither is a fault.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

script=$(mktemp)
trap 'rm -f "$script"' EXIT
awk '
  /^```sh$/ {
    inside = 1
    if (mark ~ /^<!-- tested by: (unit|component|go|cluster|sanitizers) -->$/) run = 0
    else if (mark == "<!-- tested -->") run = 1
    else { print "README.md:" NR ": no test runs this block" > "/dev/stderr"; exit 1 }
    next
  }
  /^```$/ { inside = 0; mark = ""; next }
  inside { if (run && $0 !~ /^\.\/dev test/) { sub(/ +# .*$/, ""); print; count++ } next }
  /^$/ { next }
  { mark = $0 }
  END { if (count == 0) { print "README.md: nothing to run" > "/dev/stderr"; exit 1 } }' README.md >"$script"
cat "$script"
bash -euxo pipefail "$script"
