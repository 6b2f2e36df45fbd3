#!/usr/bin/env bash
# Runs the commands of README.md and docs/: for each page in turn, all ```sh blocks after a line `<!-- tested -->`, as one script in the
# repository's root, except `./dev test`, which runs this test. `documents_test.sh [PAGE…]`, all by default.
#
# `<!-- tested by: TIER -->` names the tier of ./dev test that tests a block instead, or the runs of integration/operations. A block with neither is a fault; what is not to be
# run, such as a command with placeholders, stands in a ```text block.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

script=$(mktemp)
trap 'rm -f "$script"' EXIT
[[ $# -gt 0 ]] || set -- README.md docs/*.md docs/operations/*.md
for page in "$@"; do
  awk -v page="$page" '
    /^```sh$/ {
      inside = 1
      if (mark ~ /^<!-- tested by: (unit|component|go|cluster|guide|sanitizers|operations[a-z -]*) -->$/) run = 0
      else if (mark == "<!-- tested -->") run = 1
      else { print page ":" NR ": no test runs this block" > "/dev/stderr"; exit 1 }
      next
    }
    /^```$/ { inside = 0; mark = ""; next }
    inside { if (run && $0 !~ /^\.\/dev test/) { sub(/ +# .*$/, ""); print } next }
    /^$/ { next }
    { mark = $0 }' "$page" >"$script"
  [[ -s $script ]] || continue
  printf '%s\n' "--- $page"
  (bash -euxo pipefail "$script" </dev/null) || { echo "$page: a command failed"; exit 1; }
done
