#!/usr/bin/env bash
# A pod that fits nowhere preempts pods of lower priority. They are gone for the pods after it, and it stays nominated
# to its node.
# Usage: preemption_test.sh OUTBOARD
set -euo pipefail
outboard=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

pod() { # NAME CPU PRIORITY [NODE] [MORE OF THE SPEC]
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  priority: $3
  ${4:+nodeName: $4}
  ${5:-}
  containers: [{name: main, image: app, resources: {requests: {cpu: "$2"}}}]
---
YAML
}
for node in n1 n2; do
  cat <<YAML
apiVersion: v1
kind: Node
metadata: {name: $node}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
YAML
done > "$dir/cluster.yaml"
{ pod old 2 1 n1; pod young 2 5 n1; pod lesser 2 1 n2; pod peer 2 100 n2; } >> "$dir/cluster.yaml"
# By priority: first takes n1 or n2; the others see the result.
{ pod first 2 100; pod second 2 50; pod third 2 10; pod modest 2 9 "" "preemptionPolicy: Never"; pod least 1 0; } > "$dir/pods.yaml"
"$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" -o json > "$dir/out.json" 2> "$dir/log"

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
message='0/2 nodes are available: 2 Insufficient cpu\.'
expect "a pod preempts: the pod of lowest priority is evicted, the first node wins the tie" \
  '"pod":"default/first","result":"preempting","node":"","message":"'"$message"'".*"nominatedNode":"n1","victims":\["default/old"\]'
expect "the nominated node of the first counts as taken" \
  '"pod":"default/second".*"message":"'"$message"'".*"nominatedNode":"n2","victims":\["default/lesser"\]'
expect "then a pod of higher priority is evicted" '"pod":"default/third".*"nominatedNode":"n1","victims":\["default/young"\]'
expect "a pod that may not preempt has a message" \
  '"pod":"default/modest".*"message":"'"$message"' no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never\.".*"nominatedNode":"","victims":\[\]'
expect "no victim for the lowest priority" \
  '"pod":"default/least".*"message":"'"$message"' no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod\.".*"victims":\[\]'
exit $failed
