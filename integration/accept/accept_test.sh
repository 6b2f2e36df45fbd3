#!/usr/bin/env bash
# Tests accept.sh with temporary suites in a temporary repository.
set -euo pipefail
accept=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/accept.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OUTBOARD_ROOT=$folder/repository OUTBOARD_SUITES=$folder/suites RUNS=$folder/runs
mkdir -p "$OUTBOARD_ROOT" "$OUTBOARD_SUITES"
cd "$OUTBOARD_ROOT"
git init -q .
git config user.email test@example.com
git config user.name test
echo build >.gitignore
git add .
git commit -qm first

cat >"$OUTBOARD_SUITES/s.lines" <<'LINES'
# name | what it must show | command
good | it works | echo good >>"$RUNS"
bad  | it works, too | echo bad >>"$RUNS"; [[ -e there ]] | cat
LINES
cat >"$OUTBOARD_SUITES/in_cluster.lines" <<'LINES'
manifests | they apply | true
LINES

failures=0 checks=0
expect() { # expect WHAT WANTED GOT
  checks=$((checks + 1))
  [[ $2 == "$3" ]] && return
  failures=$((failures + 1))
  printf 'FAIL %s: want %q, got %q\n' "$1" "$2" "$3"
}
run() { code=0; output=$("$accept" "$@" 2>&1) || code=$?; }

run s --list
expect "list" $'good               it works\nbad                it works, too' "$output"
run s
expect "one line fails" 1 "$code"
expect "closing line" "1 passed, 1 not, at $(git rev-parse --short HEAD)" "$(tail -n 1 <<<"$output")"
run s
expect "a passed line is not run again" "good bad bad" "$(xargs <"$RUNS")"
touch there
git add there
git commit -qm second
run s
expect "another commit" 0 "$code"
expect "runs every line again" "good bad bad good bad" "$(xargs <"$RUNS")"
run s --again good
expect "--again" "good bad bad good bad good" "$(xargs <"$RUNS")"
touch changed
run s good
run s good
expect "uncommitted changes: the line runs each time" "good bad bad good bad good good good" "$(xargs <"$RUNS")"
run s nonsense
expect "unknown line" 2 "$code"
run nonsense
expect "unknown suite" 2 "$code"
run 7 --list
expect "old name of in_cluster: code" 0 "$code"
expect "old name of in_cluster: warning and lines" \
  $'dev accept: the suite 7 is now called in_cluster; use that name\nmanifests          they apply' "$output"

echo "accept: $((checks - failures)) passed, $failures failed"
[[ $failures == 0 ]]
