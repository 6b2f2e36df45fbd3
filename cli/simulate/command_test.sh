#!/usr/bin/env bash
# The whole output of `outboard simulate`: each case against testdata/NAME.golden, which also has the command line.
# UPDATE_GOLDEN=1 writes these files. Usage: command_test.sh FOLDER-OF-PROGRAMS
set -euo pipefail
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/testdata"
dir=$(mktemp -d)
hosts=()
trap 'kill "${hosts[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
failed=0

# check NAME: compares $dir/out.
check() {
  sed -i "s#$dir#/tmp#g" "$dir/out"
  [[ ${UPDATE_GOLDEN:-} == 1 ]] && cp "$dir/out" "$1.golden"
  if diff -u "$1.golden" "$dir/out"; then
    echo "ok: $1"
  else
    echo "FAILED: $1"
    failed=1
  fi
}
# golden NAME FLAGS...: the command line, standard output, standard error, and the exit code.
golden() {
  local name=$1 code=0
  shift
  echo "\$ outboard simulate $*" >"$dir/out"
  timeout 60 "$bin/outboard" simulate "$@" >>"$dir/out" 2>"$dir/err" </dev/null || code=$?
  [[ -s $dir/err ]] && sed 's/^/[stderr] /' "$dir/err" >>"$dir/out"
  echo "[exit code $code]" >>"$dir/out"
  check "$name"
  local long
  long=$(grep -v '^[[{$]' "$dir/out" | LC_ALL=C.UTF-8 awk 'length($0) > 100' || true)
  if [[ -n $long ]]; then
    printf 'FAILED: %s: lines of more than 100 columns:\n%s\n' "$name" "$long"
    failed=1
  fi
}
pods=(--cluster cluster.yaml --pods pods.yaml --config config.yaml)
group=(--cluster full.yaml --pods gang.yaml --config config.yaml)

golden table "${pods[@]}"
golden json "${pods[@]}" -o json
golden scheduler_name "${pods[@]}" --scheduler-name default-scheduler
golden group_preempts "${group[@]}"
golden until_settled "${group[@]}" --until-settled
golden until_settled_json "${group[@]}" --until-settled -o json
golden preempted --cluster chain.yaml --pods chain-pods.yaml --until-settled
golden preempted_json --cluster chain.yaml --pods chain-pods.yaml --until-settled -o json
golden preempted_explain --cluster chain.yaml --pods chain-pods.yaml --until-settled --explain filler
golden explain "${pods[@]}" --explain web-1
golden explain_namespaced "${pods[@]}" --explain research/large-0
golden explain_group "${pods[@]}" --explain research/train-0
golden explain_skipped "${pods[@]}" --explain elsewhere
golden explain_json "${pods[@]}" --explain gated -o json
golden explain_until_settled "${group[@]}" --until-settled --explain train-0
golden diff "${pods[@]}" --diff packing.yaml
golden diff_json "${pods[@]}" --diff packing.yaml -o json
golden diff_nothing "${pods[@]}" --diff config.yaml

# What is wrong is said at once, in one place, with the way out.
golden wrong_pod "${pods[@]}" --explain wab-1
golden wrong_scheduler_name "${pods[@]}" --scheduler-name default-schedular
golden wrong_plugin --cluster cluster.yaml --pods pods.yaml --config wrong_plugin.yaml
golden wrong_args --cluster cluster.yaml --pods pods.yaml --config wrong_args.yaml
golden wrong_diff "${pods[@]}" --diff wrong_plugin.yaml

# Two hosts serve the plugins of a profile together; a third one has other defaults.
plugins=NodeName,NodePorts
"$bin/outboard-host" --listen "unix:$dir/a.sock" --plugins "$plugins" 2>"$dir/a.log" & hosts+=($!)
"$bin/outboard-host" --listen "unix:$dir/b.sock" --plugins "-${plugins//,/,-}" 2>"$dir/b.log" & hosts+=($!)
golden two_hosts_lack_a_plugin --cluster cluster.yaml --pods pods.yaml --config wrong_plugin.yaml \
  --host "unix:$dir/a.sock" --host "unix:$dir/b.sock"
golden diff_hosts "${pods[@]}" --diff-host "unix:$dir/a.sock" --diff-host "unix:$dir/b.sock"
golden diff_hosts_lack_a_plugin "${pods[@]}" --diff-host "unix:$dir/a.sock"

# On a terminal: colors and its width. `script` gives the program one; its lines end with \r\n. Standard error goes
# elsewhere, so that no line of progress is shown on a slow machine.
terminal() { # NAME SETTING...
  local name=$1
  shift
  script -qec "stty cols 72; env $* '$bin/outboard' simulate --cluster cluster.yaml --pods pods.yaml --config config.yaml 2>'$dir/err'" /dev/null </dev/null |
    tr -d '\r' >"$dir/out"
  check "$name"
}
terminal terminal NO_COLOR=
terminal terminal_no_color NO_COLOR=1
exit $failed
