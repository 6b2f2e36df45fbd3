#!/usr/bin/env bash
# check.sh [--base REF] [--all]: what `./dev check` does after `dev` has installed the packages and configured build/release.
#
# Exit code: 0 everything passed; 1 something failed; 2 wrong usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
base=main all=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --base) [[ $# -gt 1 ]] || { echo "dev check: --base needs a commit" >&2; exit 2; }; base=$2; shift ;;
    --base=*) base=${1#--base=} ;;
    --all) all=1 ;;
    *) printf 'dev check: unknown flag %s\nusage: ./dev check [--base REF] [--all]\n' "$1" >&2; exit 2 ;;
  esac
  shift
done
git rev-parse --quiet --verify "$base^{commit}" >/dev/null || { echo "dev check: $base is not a commit; say --base REF" >&2; exit 2; }
from=$(git merge-base "$base" HEAD)
mapfile -t changed < <({ git diff --name-only --diff-filter=d "$from"; git ls-files --others --exclude-standard; } | sort -u)
if [[ ${#changed[@]} == 0 ]]; then
  echo "nothing has changed since $base"
  exit 0
fi
printf '%d files changed since %s\n' "${#changed[@]}" "$base"
build=build/release failed=0
mapfile -t cpp < <(printf '%s\n' "${changed[@]}" | grep -E '\.(cc|h)$' || true)
mapfile -t go < <(printf '%s\n' "${changed[@]}" | grep -E '\.go$' || true)
mapfile -t scripts < <(printf '%s\n' "${changed[@]}" | grep -E '(\.sh|^dev|^\.ci/run)$' || true)
[[ ${#cpp[@]} == 0 ]] || clang-format-14 -i "${cpp[@]}"
[[ ${#scripts[@]} == 0 ]] || shellcheck "${scripts[@]}" || failed=1

targets=() tests=()
while read -r kind name; do
  if [[ $kind == test ]]; then targets+=("tests/$name"); tests+=("$name"); else targets+=("bin/$name"); fi
done < <(python3 integration/affected/affected.py "$build" "${changed[@]}")
if [[ ${#targets[@]} -gt 0 ]]; then
  printf 'building %d programs, %d of them tests\n' "${#targets[@]}" "${#tests[@]}"
  ninja -C "$build" -j "${OUTBOARD_JOBS:-$(nproc)}" --quiet "${targets[@]}" || exit 1
fi
# Scripts drive the programs; they are affected when one of these is.
if printf '%s\n' "${targets[@]+"${targets[@]}"}" | grep -qE '^bin/outboard'; then
  mapfile -t -O "${#tests[@]}" tests < <(ctest --test-dir "$build" --label-regex '^component$' --show-only | sed -n 's/^ *Test *#[0-9]*: *\(.*_script\)$/\1/p')
fi
costs=$build/Testing/Temporary/CTestCostData.txt short=() long=()
for name in "${tests[@]+"${tests[@]}"}"; do
  seconds=$(awk -v name="$name" '$1 == name { printf "%d", $3 }' "$costs" 2>/dev/null || true)
  if [[ $all == 0 && ${seconds:-0} -gt 10 ]]; then long+=("$name (${seconds} s)"); else short+=("$name"); fi
done
mapfile -t -O "${#short[@]}" short < <(ctest --test-dir "$build" --label-regex '^hygiene$' --show-only | sed -n 's/^ *Test *#[0-9]*: *\(hygiene.*\)$/\1/p')
ctest --test-dir "$build" --parallel "${OUTBOARD_JOBS:-$(nproc)}" --output-on-failure --tests-regex "^($(IFS='|' && echo "${short[*]}"))\$" || failed=1
if [[ ${#go[@]} -gt 0 ]]; then
  gofmt -w "${go[@]}"
  mapfile -t packages < <(printf '%s\n' "${go[@]}" | sed -n 's,^integration/,./,p' | xargs --no-run-if-empty -n 1 dirname | grep -v '^./examples' | sort -u)
  [[ ${#packages[@]} == 0 ]] || (cd integration && go vet "${packages[@]}") || failed=1
  echo "Go changed: ./dev test go cluster runs its tests"
fi
[[ ${#long[@]} == 0 ]] || printf 'affected as well, and left to ./dev test or --all: %s\n' "${long[*]}"
[[ $failed == 0 ]] || { echo "check failed"; exit 1; }
echo "check passed"
