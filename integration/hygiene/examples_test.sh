#!/usr/bin/env bash
# deploy/examples shows what its comments promise: `examples_test.sh OUTBOARD-PROGRAM`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
outboard=$1
answers=$("$outboard" simulate --cluster deploy/examples/cluster.yaml --pods deploy/examples/pods.yaml \
  --config deploy/examples/config.yaml -o json)
failed=0

expect() { # COUNT WHAT PATTERN
  local count
  count=$(grep -cE "$3" <<<"$answers" || true)
  if [[ $count != "$1" ]]; then
    echo "FAILED: $2: $count, not $1"
    failed=1
  fi
}

pods=$(grep -c '^kind: Pod$' deploy/examples/pods.yaml)
expect "$pods" "answers" '^\{"pod":"'
expect 3 "plain pods placed on machines without GPUs" '"pod":"default/(web-1|web-2|report)","result":"scheduled","node":"cpu-[12]"'
expect 2 "single GPU pods placed on the machine with the most free GPUs" '"pod":"research/(finetune|embedding)","result":"scheduled","node":"gpu-a100-2"'
expect 8 "members of the gang of eight placed" '"pod":"research/train-8-[0-7]","result":"scheduled"'
expect 0 "pods placed on cards of 4 GB" '"node":"gpu-small"'
expect 1 "reasons of small cards" '"pod":"research/finetune".*"insufficient GPU memory: need 8GB, available 4GB"'
expect 3 "members of the gang that does not fit, not placed" '"pod":"research/train-3-[0-2]","result":"unschedulable","node":""'
expect 1 "pods that ask for too many GPUs" '"pod":"research/needs-16","result":"unschedulable".*insufficient GPU: need 16, available 8'
expect 1 "pods without the toleration" '"pod":"research/no-toleration","result":"unschedulable".*had untolerated taint'
expect 1 "pods for a zone that does not exist" '"pod":"default/zone-c","result":"unschedulable".*didn.t match Pod.s node affinity/selector'
expect 1 "pods whose claims are not there" '"pod":"default/database","result":"unschedulable".*persistentvolumeclaim ..data.. not found'
expect 1 "gated pods" '"pod":"default/gated","result":"unschedulable".*waiting for scheduling gates'
# The gang alone, on the same cluster with a given number of free GPUs: all members are placed, or none.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk 'BEGIN { RS = "---\n"; ORS = "---\n" } /name: train-8-/' deploy/examples/pods.yaml >"$folder/gang.yaml"

take() { # NODE GPUS
  printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: taken-%s, namespace: other}\nspec:\n  nodeName: %s\n' "$1" "$1"
  printf '  containers:\n  - name: main\n    resources: {limits: {nvidia.com/gpu: "%d"}}\nstatus: {phase: Running}\n' "$2"
}

gang_of_eight() { # PLACES MEMBERS-PLACED
  # The cluster has 4 V100, 6 and 8 A100 and 2 H100 free.
  { cat deploy/examples/cluster.yaml; take gpu-v100 4; take gpu-a100-1 6; take gpu-a100-2 $((10 - $1)); } >"$folder/cluster.yaml"
  answers=$("$outboard" simulate --cluster "$folder/cluster.yaml" --pods "$folder/gang.yaml" --config deploy/examples/config.yaml -o json)
  expect 8 "answers for the gang with $1 places" '^\{"pod":"research/train-8-'
  expect "$2" "members of the gang placed on $1 places" '"result":"scheduled"'
}
gang_of_eight 7 0
gang_of_eight 8 8

# Every workload goes where its annotation says, with the configuration of its scheduler.
# Configurations of the examples and of the documents are valid, also their plugins' arguments, and cause no warning.
awk -v folder="$folder" '
  /^```yaml$/ { block = ""; inside = 1; next }
  /^```$/ && inside {
    inside = 0
    if (block ~ /kind: KubeSchedulerConfiguration/) printf "%s", block >(folder "/document-" ++count ".yaml")
  }
  inside { block = block $0 "\n" }' README.md docs/*.md docs/operations/*.md
shopt -s nullglob
for config in deploy/examples/{config,ai-scheduler,two-profiles,extender/outboard,extender/outboard-binds}.yaml sdk/templates/cpp/config.yaml "$folder"/document-*.yaml; do
  # ExamplePlugin is in none of our hosts.
  [[ $config == sdk/* ]] && flags=(--without-hosts) || flags=()
  said=$("$outboard" config "$config" "${flags[@]}" 2>&1 >/dev/null) || { echo "FAILED: outboard config $config"; failed=1; }
  [[ -z $said ]] || { echo "FAILED: outboard config $config says: $said"; failed=1; }
done
for workload in deploy/examples/workloads/*.yaml; do
  scheduler=$(sed -n 's/^  schedulerName: //p' "$workload" | head -n 1)
  config=$(grep -lE "^- schedulerName: $scheduler\$" deploy/examples/ai-scheduler.yaml deploy/examples/two-profiles.yaml)
  answers=$("$outboard" simulate --cluster deploy/examples/nodes.yaml --pods "$workload" --config "$config" -o json)
  expect "$(grep -c '^kind: Pod$' "$workload")" "answers for $workload" '^\{"pod":"default/'
  while IFS=$'\t' read -r pod goes_to; do
    case $goes_to in
      pending:*) expect 1 "$workload: $pod is $goes_to" "\"pod\":\"default/$pod\",\"result\":\"unschedulable\",\"node\":\"\",\"message\":\"[^\"]*${goes_to#pending: }" ;;
      *) expect 1 "$workload: $pod goes to $goes_to" "\"pod\":\"default/$pod\",\"result\":\"scheduled\",\"node\":\"$goes_to\"" ;;
    esac
  done < <(awk '/^  name: / { pod = $2 } sub(/.*example\/goes-to: "?/, "") { sub(/"?}?$/, ""); print pod "\t" $0 }' "$workload")
done
[[ $failed == 0 ]] || { echo "$answers"; exit 1; }
