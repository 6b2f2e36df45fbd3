# shellcheck shell=bash disable=SC2154
# What `./dev check` does. Sourced by dev, whose functions it uses, with integration/test_tiers.sh.

# run_check [--base REF] [--all]. Exit code: 0 everything passed; 1 something failed.
run_check() {
  local base=main all=0
  while [[ $# -gt 0 ]]; do
    case $1 in
      --base) [[ $# -gt 1 ]] || usage "check: --base needs a commit"; base=$2; shift ;;
      --base=*) base=${1#--base=} ;;
      --all) all=1 ;;
      *) usage "check: unexpected argument \"$1\"; it accepts --base REF and --all" ;;
    esac
    shift
  done
  git rev-parse --quiet --verify "$base^{commit}" >/dev/null ||
    usage "check: --base $base: not a commit"
  need_packages "${build_packages[@]}" "${test_packages[@]}" "${lint_packages[@]}" python3
  configure release -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOUTBOARD_BUILD_TESTS=ON
  [[ -z $(git ls-files --modified --others --exclude-standard -- '*.go') ]] || need_go
  local from changed cpp go scripts failed=0
  from=$(git merge-base "$base" HEAD)
  mapfile -t changed < <({ git diff --name-only --diff-filter=d "$from"; git ls-files --others --exclude-standard; } | sort -u)
  if [[ ${#changed[@]} == 0 ]]; then
    say "nothing has changed since $base"
    return
  fi
  say "${#changed[@]} files changed since $base"
  mapfile -t cpp < <(printf '%s\n' "${changed[@]}" | grep -E '\.(cc|h)$' || true)
  mapfile -t go < <(printf '%s\n' "${changed[@]}" | grep -E '\.go$' || true)
  mapfile -t scripts < <(printf '%s\n' "${changed[@]}" | grep -E '(\.sh|^dev|^\.ci/run)$' || true)
  [[ ${#cpp[@]} == 0 ]] || clang-format-14 -i "${cpp[@]}"
  [[ ${#scripts[@]} == 0 ]] || shellcheck "${scripts[@]}" || failed=1

  local affected kind name targets=() tests=()
  affected=$(python3 integration/affected/affected.py "$build/release" "${changed[@]}") || die "check: cannot tell what is affected"
  while read -r kind name; do
    [[ -n $kind ]] || continue
    if [[ $kind == test ]]; then tests+=("$name"); else targets+=("$name"); fi
  done <<<"$affected"
  [[ ${#targets[@]} == 0 ]] || compile release "${targets[@]}"
  # Scripts drive the programs; they are affected when one of these is.
  if printf '%s\n' "${targets[@]+"${targets[@]}"}" | grep -qE '^bin/outboard'; then
    mapfile -t -O "${#tests[@]}" tests < <(test_names release '^component$' | grep '_script$')
  fi
  local costs=$build/release/Testing/Temporary/CTestCostData.txt seconds short=() long=()
  for name in "${tests[@]+"${tests[@]}"}"; do
    seconds=$(awk -v name="$name" '$1 == name { printf "%d", $3 }' "$costs" 2>/dev/null || true)
    if [[ $all == 0 && ${seconds:-0} -gt 10 ]]; then long+=("$name (${seconds} s)"); else short+=("$name"); fi
  done
  mapfile -t -O "${#short[@]}" short < <(test_names release '^hygiene$' | grep '^hygiene')
  ctest --test-dir "$build/release" --parallel "$jobs" --tests-regex "^($(IFS='|' && echo "${short[*]}"))\$" || failed=1
  if [[ ${#go[@]} -gt 0 ]]; then
    gofmt -w "${go[@]}"
    local packages
    mapfile -t packages < <(printf '%s\n' "${go[@]}" | sed -n 's,^integration/,./,p' | xargs --no-run-if-empty -n 1 dirname | grep -vE '^./(examples|numa)' | sort -u)
    [[ ${#packages[@]} == 0 ]] || (cd integration && go vet "${packages[@]}") || failed=1
    say "Go changed: ./dev test go cluster runs its tests"
  fi
  [[ ${#long[@]} == 0 ]] || say "affected as well, and left to ./dev test or --all: ${long[*]}"
  [[ $failed == 0 ]] || die "check failed"
  say "check passed"
}
