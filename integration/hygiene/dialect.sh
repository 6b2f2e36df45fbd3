#!/usr/bin/env bash
# Prints each line of the repository with a word of dialect.txt: FILE:LINE:TEXT. dialect.sh [--all]; --all includes the
# lines that dialect_exceptions.txt allows. OUTBOARD_ROOT selects another tree.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "${OUTBOARD_ROOT:-$here/../..}"

rows() { grep -v '^#' "$here/$1"; }
words=$(rows dialect.txt | cut -f 1 | paste -sd '|')
# The start of a line of grep's output for files that match a pattern.
at_file() { if [[ $1 == ^* ]]; then echo "$1[^:]*"; else echo "^[^:]*$1[^:]*"; fi; }
exceptions=()
if [[ ${1:-} != --all ]]; then
  while IFS=$'\t' read -r file line _; do exceptions+=(-e "$(at_file "$file"):[0-9]+:.*$line"); done < <(rows dialect_exceptions.txt)
fi
# No build output, no hidden files, not these lists.
find . \( -name build -o -name '.?*' \) -prune -o -type f ! -path './integration/hygiene/*' ! -name '*.sum' -print |
  sed 's,^\./,,' | sort | tr '\n' '\0' | xargs -0 --no-run-if-empty grep -IinwE -- "$words" /dev/null |
  if ((${#exceptions[@]} > 0)); then grep -viE "${exceptions[@]}" || true; else cat; fi
