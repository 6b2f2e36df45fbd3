#!/usr/bin/env bash
# shellcheck disable=SC2154
# Tests how test_tiers.sh counts and shows tests that ran twice, with a gotestsum that writes given events, and with ctest.
set -euo pipefail
tiers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/test_tiers.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build=$folder/build
mkdir -p "$build" "$folder/module"
# shellcheck disable=SC1090
source "$tiers"
mkdir -p "$logs"
say() { :; }
alone() { :; }

failures=0 checks=0
expect() { # expect WHAT WANTED GOT
  checks=$((checks + 1))
  [[ $2 == "$3" ]] && return
  failures=$((failures + 1))
  printf 'FAIL %s: want %q, got %q\n' "$1" "$2" "$3"
}
# event ACTION TEST [OUTPUT]
event() {
  if [[ $1 == output ]]; then
    printf '{"Time":"t","Action":"output","Package":"outboard.dev/integration/p","Test":"%s","Output":"%s\\n"}\n' "$2" "$3"
  else
    printf '{"Time":"t","Action":"%s","Package":"outboard.dev/integration/p","Test":"%s","Elapsed":0.1}\n' "$1" "$2"
  fi
}

gotestsum=$folder/gotestsum
cat >"$gotestsum" <<'SCRIPT'
#!/usr/bin/env bash
while [[ $1 != -- ]]; do
  [[ $1 != --jsonfile ]] || report=$2
  printf '%s\n' "$1" >>"$0.arguments"
  shift
done
printf '%s\n' "$@" >>"$0.arguments"
cp "$0.events" "$report"
printf '    --- FAIL: TestLate (0.1s)\nFAIL p.TestLate (0.1s)\n'
exit "$(cat "$0.status")"
SCRIPT
chmod +x "$gotestsum"
{
  event pass TestGood
  event skip TestSkipped
  event output TestLate/a '    a_test.go:1: too \"slow\"'
  event output TestLate/a '--- FAIL: TestLate/a (0.1s)'
  event fail TestLate/a
  event pass TestLate/b
  event fail TestLate
  event output TestBad '    a_test.go:2: wrong'
  event fail TestBad
  event output TestHarm '5 pods, 5 binds, 1 nodes (at most 5 pods on one): 0 unbound, 1 bound twice, 0 overcommitted'
  event fail TestHarm
  # The second try.
  event pass TestLate/a
  event pass TestLate/b
  event pass TestLate
  event fail TestBad
  event pass TestHarm
} >"$gotestsum.events"
echo 1 >"$gotestsum.status"

run() {
  : >"$summary"
  rm -f "$logs"/{failures,second_tries} "$gotestsum.arguments"
  cd "$folder"
  output=$(go_module=module go_tests go "tests" -timeout 1m ./p/... ./q)
}

tries=2 run
expect "counts" "go 4 2 1 tests" "$(cat "$summary")"
expect "a first try is shown in other words" $'    --- failed: TestLate (0.1s)\nfailed p.TestLate (0.1s)\n--- tests: 4 passed, 2 failed, 1 skipped' "$output"
expect "second tries" $'\np TestLate/a\n    a_test.go:1: too \\"slow\\"\n--- failed: TestLate/a (0.1s)\n\np TestLate' "$(cat "$logs/second_tries")"
expect "failures" $'\np\n--- FAIL: TestBad\n    a_test.go:2: wrong\n\np\n--- FAIL: TestHarm\n5 pods, 5 binds, 1 nodes (at most 5 pods on one): 0 unbound, 1 bound twice, 0 overcommitted' "$(cat "$logs/failures")"
expect "packages and flags" $'--packages=./p/... ./q\n--\n-count=1\n-timeout\n1m' "$(tail -n 5 "$gotestsum.arguments")"

tries=1 run
expect "one try" $'--\n-count=1\n-timeout\n1m\n./p/...\n./q' "$(sed -n '/^--$/,$p' "$gotestsum.arguments")"

event pass TestGood >"$gotestsum.events"
tries=2 run
expect "a run that failed without a failed test" "go 1 1 0 tests" "$(cat "$summary")"
echo 0 >"$gotestsum.status"
tries=2 run
expect "all passed" "go 1 0 0 tests" "$(cat "$summary")"
: >"$gotestsum.events"
tries=2 run
expect "no tests" "go 0 1 0 tests" "$(cat "$summary")"

# Tests of ctest: one fails once, one crashes once.
mkdir -p "$build/release"
# shellcheck disable=SC2034
jobs=1
once() { # NAME COMMAND
  printf 'add_test(%s bash -c "[ -e %s/%s ] || { touch %s/%s; %s; }")\n' "$1" "$folder" "$1" "$folder" "$1" "$2"
}
{ once good true && once late 'exit 1' && once crashed 'kill -ABRT $$'; } >"$build/release/CTestTestfile.cmake"
: >"$summary"
rm -f "$logs"/{failures,second_tries}
tries=2 cpp_tests unit "programs" release >/dev/null
expect "counts of programs" "unit 2 1 0 programs" "$(cat "$summary")"
expect "a late program" $'\nlate\n  its messages are above' "$(cat "$logs/second_tries")"
expect "a crash" $'\ncrashed crashed at its first try; its messages are above' "$(cat "$logs/failures")"

printf '%d passed, %d failed\n' "$((checks - failures))" "$failures"
[[ $failures == 0 ]]
