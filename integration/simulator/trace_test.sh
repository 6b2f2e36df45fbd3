#!/usr/bin/env bash
# Jobs on the clock of a trace, with the real queue, cycle and host: exact times, reproducible output, plugins that
# use the time, gangs, preemption, and invalid input. Usage: trace_test.sh OUTBOARD
set -euo pipefail
outboard=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

node() { # NAME GPUS
  printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {kubernetes.io/hostname: %s}}\n' "$1" "$1"
  printf 'status: {allocatable: {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "%d"}}\n' "$2"
}
# play FLAGS...: cluster.yaml and trace.jsonl.
play() { timeout 120 "$outboard" simulate --cluster "$dir/cluster.yaml" --trace "$dir/trace.jsonl" -o json "$@" >"$dir/out.json" 2>"$dir/log" || { cat "$dir/log"; exit 1; }; }
# expect WHAT PATTERN: one line of out.json matches.
expect() {
  local count
  count=$(grep -cE "$2" "$dir/out.json" || true)
  if [[ $count == 1 ]]; then
    echo "ok: $1"
  else
    echo "FAILED: $1: $count lines instead of 1 match $2"
    cat "$dir/out.json" "$dir/log"
    failed=1
  fi
}
# refuse WHAT MESSAGE FLAGS...
refuse() {
  local what=$1 message=$2 status=0
  shift 2
  "$outboard" simulate --cluster "$dir/cluster.yaml" "$@" >"$dir/out.json" 2>"$dir/log" || status=$?
  if [[ $status == 2 ]] && grep -qF -- "$message" "$dir/log"; then
    echo "ok: $what"
  else
    echo "FAILED: $what: exit code $status"
    cat "$dir/log"
    failed=1
  fi
}

node a 2 >"$dir/cluster.yaml"
cat >"$dir/trace.jsonl" <<'JSON'
{"job": "first", "arrival": 0, "run": 100.5, "gpus": 2}
{"job": "second", "arrival": 10, "run": 50, "gpus": 1}
{"job": "third", "arrival": 100.5, "run": 3600, "gpus": 2}
{"job": "huge", "arrival": 0, "run": 1, "gpus": 3}
JSON
play
expect "the end of a pod makes room at the same instant" '"job":"default/second".*"bound":100.5,"ended":150.5,"queueSeconds":90.5'
expect "two hours later, on to the next" '"job":"default/third".*"bound":150.5,"ended":3750.5,"queueSeconds":50.0'
expect "a pod that fits nowhere waits to the end" '"job":"default/huge","class":"default","state":"unscheduled".*"podsWaiting":1'
# 201 + 50 + 7200 GPU-seconds of 2 x 4350: ten minutes pass without use.
expect "GPU use" '^\{"summary":\{"from":0.0,"to":4350.0,"gpu":0.856437,.*"makespan":3750.5'
play --to 100.5
if [[ -s $dir/log ]]; then echo "FAILED: a simulation logs without -v"; cat "$dir/log"; failed=1; fi
play --to 100.5 -v
grep -q "^I[0-9]" "$dir/log" || { echo "FAILED: -v shows no log"; failed=1; }
expect "GPU use until then" '"summary":\{"from":0.0,"to":100.5,"gpu":1.0,'

cat >"$dir/trace.jsonl" <<'JSON'
{"shape": "low", "gpus": 2, "run": 100, "checkpointEvery": 30}
{"job": "low", "shape": "low", "arrival": 0}
{"job": "high", "arrival": 70, "run": 10, "gpus": 1, "priority": 1000}
JSON
play
expect "the pod of higher priority is placed at once" '"job":"default/high".*"bound":70.0,"ended":80.0'
expect "work since the checkpoint is lost and repeated" '"job":"default/low".*"bound":0.0,"ended":120.0,.*"preempted":1,"gpuSecondsLost":20.0'

# A gang of 4 with 2 places beside another job: it waits at Permit for at most 30 s, and holds nothing after that.
cat >"$dir/config.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: AtomicReplicaCoordinator}]}}
YAML
{ node a 2; node b 2; } >"$dir/cluster.yaml"
cat >"$dir/trace.jsonl" <<'JSON'
{"job": "other", "arrival": 0, "run": 300, "gpus": 2}
{"job": "gang", "arrival": 1, "run": 60, "gpus": 1, "replicas": 4, "gang": true}
{"job": "small", "arrival": 100, "run": 50, "gpus": 2}
JSON
play --config "$dir/config.yaml"
expect "a gang begins as a whole" '"job":"default/gang".*"bound":300.0,"ended":360.0.*"gpuSecondsIdle":0.0'
expect "and holds nothing until then" '"job":"default/small".*"bound":100.0,"ended":150.0'
play
expect "without the plugin half of it holds GPUs without progress" '"job":"default/gang".*"gpuSecondsIdle":[1-9]'

# Backfill reserves room for a gang from the time at which it will fit; jobs that end before run there meanwhile.
cat >"$dir/trace.jsonl" <<'JSON'
{"job": "long", "arrival": 0, "run": 100, "gpus": 2, "annotations": {"outboard/run-seconds": "100"}}
{"job": "half", "arrival": 0, "run": 200, "gpus": 1, "annotations": {"outboard/run-seconds": "200"}}
{"job": "gang", "arrival": 1, "run": 60, "gpus": 2, "replicas": 2, "gang": true, "annotations": {"outboard/run-seconds": "60"}}
{"job": "short", "arrival": 2, "run": 50, "gpus": 1, "annotations": {"outboard/run-seconds": "50"}}
{"job": "endless", "arrival": 3, "run": 300, "gpus": 1, "annotations": {"outboard/run-seconds": "300"}}
JSON
play --config "$dir/config.yaml"
expect "without Backfill any pod that fits goes first" '"job":"default/endless".*"bound":52.0,'
expect "and the gang waits for it" '"job":"default/gang".*"bound":352.0,'
sed -i 's/{name: AtomicReplicaCoordinator}/{name: AtomicReplicaCoordinator}, {name: Backfill}/' "$dir/config.yaml"
play --config "$dir/config.yaml"
expect "with it the gang begins as soon as all others could be over" '"job":"default/gang".*"bound":200.0,"ended":260.0'
expect "a job that ends before then fills the gap" '"job":"default/short".*"bound":2.0,'
expect "a longer job comes after it" '"job":"default/endless".*"bound":260.0,'
play --config "$dir/config.yaml" --most-waiting 2
expect "the simulation ends when too many pods wait" '"summary":\{"from":0.0,"to":3.0,'

# CostOptimized uses the trace's clock, which begins at midnight: it releases the pod when its hours begin.
cat >"$dir/cheap.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: CostOptimized}]}}
  pluginConfig:
  - name: CostOptimized
    args: {windows: [{from: "22:00", to: "06:00", factor: 0.5}]}
YAML
echo '{"job": "patient", "arrival": 21601, "run": 60, "gpus": 1, "annotations": {"outboard/run-after-cheap-hours": "true"}}' >"$dir/trace.jsonl"
play --config "$dir/cheap.yaml" --until 86400
expect "a pod waits for its hour on the clock of the trace" '"job":"default/patient".*"arrival":21601.0,"bound":79200.0,"ended":79260.0'

"$outboard" generate-workload --nodes 4 --hours 2 --load 1.2 --seed 7 --cluster "$dir/cluster.yaml" --trace "$dir/trace.jsonl"
play
cp "$dir/out.json" "$dir/once.json"
play
if cmp "$dir/once.json" "$dir/out.json"; then echo "ok: identical twice: $(wc -l <"$dir/out.json") lines"; else failed=1; fi
expect "it ends" '^\{"summary"'
play --config "$dir/config.yaml"
cp "$dir/out.json" "$dir/once.json"
play --config "$dir/config.yaml"
if cmp "$dir/once.json" "$dir/out.json"; then echo "ok: identical twice, with gangs and Backfill"; else failed=1; fi
cp "$dir/config.yaml" "$dir/backfill.yaml"
sed -i 's/, {name: Backfill}//' "$dir/config.yaml"
# Many waiting pods: first in little room for six hours, then with room reserved for the first in line.
"$outboard" generate-workload --nodes 4 --hours 6 --load 1.5 --seed 8 --cluster "$dir/cluster.yaml" --trace "$dir/trace.jsonl"
for config in config backfill; do
  play --config "$dir/$config.yaml"
  cp "$dir/out.json" "$dir/once.json"
  play --config "$dir/$config.yaml" --equivalence-cache
  if cmp "$dir/once.json" "$dir/out.json"; then echo "ok: identical with the equivalence cache, $config"; else failed=1; fi
done

echo '{"job": "a", "arrival": 0, "cpu": "many"}' >"$dir/bad.jsonl"
refuse "a bad quantity" "bad.jsonl:1: cpu: " --trace "$dir/bad.jsonl"
echo '{"job": "a", "arrival": 0, "schedulerName": "unknown"}' >"$dir/bad.jsonl"
refuse "an unknown scheduler" 'job default/a names scheduler "unknown"' --trace "$dir/bad.jsonl"
refuse "a missing file" "nowhere.jsonl: No such file or directory" --trace "$dir/nowhere.jsonl"
refuse "pods beside a trace" "--pods and --trace exclude each other" --trace "$dir/trace.jsonl" --pods "$dir/bad.jsonl"
refuse "a window without a trace" "--until requires --trace" --pods "$dir/bad.jsonl" --until 5
refuse "an invalid time" '--until must be a number of seconds, not "soon"' --trace "$dir/trace.jsonl" --until soon
"$outboard" simulate --help trace | grep -q checkpointEvery || { echo "FAILED: the help does not describe the format"; failed=1; }
exit $failed
