#!/usr/bin/env bash
# soak.sh piece N: a piece of the long run, with seed N; its result: build/accept/soak/piece-NN.json.
# soak.sh total N: the sum of the pieces 1 to N.
# The commands of soak.lines; uses accept.sh's function `tests`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
results=$root/build/accept/soak
case $1 in
  piece)
    name=$(printf 'piece-%02d' "$2")
    rm -f "$results/$name.json"
    tests ./faults/soak '^TestSoak$' -args -soak.name="$name" -soak.seed="$2" -soak.binds=100000 -soak.faults=500 \
      -soak.rate=0 -soak.every=1100ms -soak.result="$results/$name.json"
    ;;
  total)
    files=()
    for n in $(seq "$2"); do files+=("$(printf '%s/piece-%02d.json' "$results" "$n")"); done
    cd integration
    go run ./faults/soak/total -binds $(($2 * 100000)) -faults $(($2 * 500)) -commit "$OUTBOARD_COMMIT" "${files[@]}" | tee "$results/total.md"
    ;;
esac
