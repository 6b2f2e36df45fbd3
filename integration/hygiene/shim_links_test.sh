#!/usr/bin/env bash
# shim_links_test.sh BUILD-FOLDER: every source under shim/ is part of outboard-shim, tests and what only they use excepted.
#
# Asks the build graph. A source that the shim does not need belongs into cli/, integration/ or a folder testing/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$1
linked=$(mktemp)
trap 'rm -f "$linked"' EXIT
ninja -C "$build" -t inputs bin/outboard-shim | while read -r input; do
  case $input in
    # Sources that are compiled together: the file that includes them.
    */merged/*.cc)
      [[ $input == /* ]] || input=$build/$input
      sed -n 's/^#include "\(.*\)"$/\1/p' "$input"
      ;;
    *.cc) printf '%s\n' "$input" ;;
  esac
done | sed "s,^$PWD/,," | sort -u >"$linked"
grep -q '^shim/main.cc$' "$linked" || { echo "the build graph does not name shim/main.cc"; exit 1; }
if unused=$(git ls-files 'shim/*.cc' | grep -vE '_test\.cc$|_fuzzer\.cc$|_benchmark\.cc$|/testing/' | sort | comm -23 - "$linked" | grep .); then
  printf 'outboard-shim does not link:\n%s\n' "$unused"
  exit 1
fi
