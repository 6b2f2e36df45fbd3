#!/usr/bin/env bash
# deploy/examples/compare-schedulers/compare.sh counts pods, gangs and GPUs correctly, gives the second scheduler the
# nodes that the first had, and deletes what it created, also after a failure. A fake kubectl answers.
# Usage: compare_schedulers_test.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

cat >"$dir/kubectl" <<'SH'
#!/usr/bin/env bash
# Logs apply and delete; answers get from files.
folder=$(dirname "$0")
case $1 in
  apply) echo "apply $(basename "$3")" >>"$folder/log" ;;
  delete) echo "delete $3" >>"$folder/log" ;;
  get) [[ $2 == jobs ]] && cat "$folder/jobs" || cat "$folder/$4" ;;
esac
SH
chmod +x "$dir/kubectl"
printf '%s\n' 'big-a gang 3' 'big-b gang 3' 'small gang 2' 'sweep single 2' >"$dir/jobs"
printf '%s\n' 'big-a n1 8' 'big-a <none> 8' 'big-a n2 8' 'big-b n3 8' 'big-b <none> 8' 'big-b <none> 8' 'small n4 4' 'small n4 4' \
  'sweep n5 1' 'sweep <none> 1' >"$dir/compare-kube-scheduler"
printf '%s\n' 'big-a n1 8' 'big-a n3 8' 'big-a n2 8' 'big-b <none> 8' 'big-b <none> 8' 'big-b <none> 8' 'small n4 4' 'small n4 4' \
  'sweep n5 1' 'sweep n5 1' >"$dir/compare-outboard"
compare() { PATH=$dir:$PATH "$root/deploy/examples/compare-schedulers/compare.sh" --quiet 1 --at-most 5; }

expect() { # WHAT VALUE WANTED
  [[ $2 == "$3" ]] && echo "ok: $1" && return
  printf 'FAILED: %s:\n%s\nnot\n%s\n' "$1" "$2" "$3"
  failed=1
}
table=$(compare | tr -s ' ')
expect "split gangs hold GPUs" "$(grep ^kube <<<"$table")" "kube-scheduler 6/10 1 2 0 33 24"
expect "whole gangs do not" "$(grep ^outboard <<<"$table")" "outboard 7/10 2 0 1 34 0"
expect "one after the other" "$(paste -sd ' ' "$dir/log")" \
  "apply kube-scheduler delete compare-kube-scheduler apply outboard delete compare-outboard"

: >"$dir/log"
rm "$dir/compare-outboard"
if compare >"$dir/out" 2>&1; then expect "a failure of kubectl is one of the script" success failure; fi
expect "after a failure nothing is left" "$(tail -n 1 "$dir/log")" "delete compare-outboard"
exit $failed
