#!/usr/bin/env bash
# accept.sh SUITE [--list] [--again] [LINE…]: runs an acceptance suite line by line. A line that has passed at this commit is not run
# again, so that checks of hours can be interrupted and resumed. Results: build/accept/SUITE; their table: build/accept/SUITE.md.
# Exit code: 0 every line has passed; 1 a line has not; 2 wrong usage.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${OUTBOARD_ROOT:-$(cd "$here/../.." && pwd)}
suites=${OUTBOARD_SUITES:-$here}

usage() {
  printf 'dev accept: %s\n' "$1" >&2
  printf 'usage: ./dev accept SUITE [--list] [--again] [LINE…]; suites:' >&2
  for file in "$suites"/*.lines; do printf ' %s' "$(basename "$file" .lines)" >&2; done
  printf '\n' >&2
  exit 2
}

suite='' list=0 again=0 wanted=()
for argument in "$@"; do
  case $argument in
    --list) list=1 ;;
    --again) again=1 ;;
    -*) usage "unknown flag $argument" ;;
    *) if [[ -z $suite ]]; then suite=$argument; else wanted+=("$argument"); fi ;;
  esac
done
[[ -n $suite ]] || usage "missing suite"
if [[ $suite == 7 ]]; then
  printf 'dev accept: the suite 7 is now called in_cluster; use that name\n' >&2
  suite=in_cluster
fi
[[ -f $suites/$suite.lines ]] || usage "unknown suite $suite"

names=() promises=() commands=()
while IFS='|' read -r name promise command; do
  [[ -z ${name// /} || $name == \#* ]] && continue
  names+=("$(xargs <<<"$name")")
  promises+=("$(sed "s/^ *//; s/ *$//" <<<"$promise")")
  commands+=("$command")
done <"$suites/$suite.lines"
for name in "${wanted[@]+"${wanted[@]}"}"; do
  [[ " ${names[*]} " == *" $name "* ]] || usage "suite $suite: unknown line $name; lines: ${names[*]}"
done
if [[ $list == 1 ]]; then
  for i in "${!names[@]}"; do printf '%-18s %s\n' "${names[$i]}" "${promises[$i]}"; done
  exit 0
fi

# A result with uncommitted changes belongs to no commit ("+"): its line always runs again.
commit=$(git -C "$root" rev-parse --short HEAD)
[[ -z $(git -C "$root" status --porcelain) ]] || commit+=+
results=$root/build/accept/$suite
mkdir -p "$results"

# For the lines: Go tests of a package. At least one must run, and none may be skipped.
tests() { # tests PACKAGE PATTERN [FLAG…]
  local package=$1 pattern=$2 output status=0
  shift 2
  # The installs need the host for claims; seconds once it is built.
  BUILD_ONLY=1 plugins/dynamic_resources/host/run.sh || return 1
  output=$(mktemp)
  # As it comes, so that the log of an hour can be followed.
  (cd integration && go test -count=1 -timeout 120m "$package" -run "$pattern" -v "$@" 2>&1) | tee "$output" || status=1
  ! grep -qE 'no tests to run|^--- SKIP' "$output" || status=1
  rm "$output"
  return $status
}
export -f tests
export OUTBOARD_COMMIT=$commit # For results that name it.

# A result: passed or failed, commit, seconds, day.
result_of() { cat "$results/$1.result" 2>/dev/null || true; }

for i in "${!names[@]}"; do
  name=${names[$i]}
  [[ ${#wanted[@]} -eq 0 || " ${wanted[*]} " == *" $name "* ]] || continue
  read -r state at _ <<<"$(result_of "$name")" || true
  if [[ $again == 0 && ${state:-} == passed && ${at:-} == "$commit" && $commit != *+ ]]; then
    printf '==> %s: has passed at %s\n' "$name" "$commit"
    continue
  fi
  printf '==> %s: %s\n' "$name" "${promises[$i]}"
  began=$SECONDS state=passed
  (cd "$root" && bash -o pipefail -c "${commands[$i]}") >"$results/$name.log" 2>&1 </dev/null || state=failed
  printf '%s %s %s %s\n' "$state" "$commit" $((SECONDS - began)) "$(date -u +%F)" >"$results/$name.result"
  [[ $state == passed ]] || tail -n 20 "$results/$name.log"
  printf -- '--- %s: %s in %s s\n' "$name" "$state" $((SECONDS - began))
done

passed=0
{
  printf '| line | it must show | result | commit | seconds | day |\n|---|---|---|---|---:|---|\n'
  for i in "${!names[@]}"; do
    read -r state at seconds day <<<"$(result_of "${names[$i]}")" || true
    printf '| %s | %s | %s | %s | %s | %s |\n' "${names[$i]}" "${promises[$i]}" "${state:-not run}" "${at:-}" "${seconds:-}" "${day:-}"
    if [[ ${state:-} == passed && ${at:-} == "$commit" ]]; then passed=$((passed + 1)); fi
  done
} >"$root/build/accept/$suite.md"
cat "$root/build/accept/$suite.md"
printf '%s passed, %s not, at %s\n' "$passed" $((${#names[@]} - passed)) "$commit"
[[ $passed == "${#names[@]}" ]]
