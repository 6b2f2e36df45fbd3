#!/usr/bin/env bash
# The plugins of a profile on two hosts decide as on one, byte by byte: the examples, and preemption with different
# victims of each host.
# Usage: two_hosts_test.sh OUTBOARD
set -euo pipefail
export OUTBOARD=$1
here=$(cd "$(dirname "$0")" && pwd)
examples=$here/../../deploy/examples
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# same WHAT FLAGS...: both print the same, and the output is not empty.
same() {
  local what=$1
  shift
  "$OUTBOARD" simulate "$@" -o json > "$dir/one.json" 2> "$dir/one.log"
  "$here/two_hosts.sh" simulate "$@" -o json > "$dir/two.json" 2> "$dir/two.log"
  if [[ -s $dir/one.json ]] && cmp "$dir/one.json" "$dir/two.json"; then
    echo "ok: $what: $(wc -l < "$dir/one.json") pods"
  else
    echo "FAILED: $what"
    diff "$dir/one.json" "$dir/two.json" | head -20
    cat "$dir/two.log"
    failed=1
  fi
}
pod() { # NAME CPU PRIORITY PORT [NODE]
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {app: $1}}
spec:
  priority: $3
  ${5:+nodeName: $5}
  containers: [{name: main, image: app, ports: [{containerPort: 80, hostPort: $4}], resources: {requests: {cpu: "$2"}}}]
---
YAML
}
for node in n1 n2 n3; do
  cat <<YAML
apiVersion: v1
kind: Node
metadata: {name: $node}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
YAML
done > "$dir/cluster.yaml"
# On n1 CPU is short, on n2 the port is in use, on n3 both, by different pods.
{ pod big 3 1 81 n1; pod port 1 2 80 n2; pod large 3 1 82 n3; pod taken 1 1 80 n3; } >> "$dir/cluster.yaml"
{ pod first 2 100 80; pod second 2 90 80; pod third 2 80 80; pod fourth 2 70 80; pod least 2 0 80; } > "$dir/pods.yaml"

# One host places a gang in one pass, several hosts place its members one by one: gangs are compared separately.
sed -e '/^      - name: AtomicReplicaCoordinator/d' -e '/^  - name: AtomicReplicaCoordinator/,+2d' "$examples/config.yaml" > "$dir/config.yaml"
same "the examples" --cluster "$examples/cluster.yaml" --pods "$examples/pods.yaml" --config "$dir/config.yaml"
for split in "" AtomicReplicaCoordinator,SchedulingGates; do
  SPLIT=$split "$here/two_hosts.sh" simulate --cluster "$examples/cluster.yaml" --pods "$examples/pods.yaml" --config "$examples/config.yaml" -o json \
    > "$dir/two.json" 2> "$dir/two.log"
  if [[ $(grep -c '"pod":"research/train-8-[0-7]","result":"scheduled"' "$dir/two.json") == 8 ]] &&
    ! grep -q '"pod":"research/train-3-[0-2]","result":"scheduled"' "$dir/two.json"; then
    echo "ok: gangs on two hosts${split:+, $split on one}"
  else
    echo "FAILED: gangs on two hosts"
    cat "$dir/two.json" "$dir/two.log"
    failed=1
  fi
done
same "preemption" --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml"
grep -q '"victims":\["default/large","default/taken"\]\|"victims":\["default/taken","default/large"\]' "$dir/two.json" ||
  { echo "FAILED: no preemption needed victims of both hosts"; cat "$dir/two.json"; failed=1; }
SPLIT=DefaultPreemption,NodeResourcesFit,PrioritySort same "preemption, ports on the other host" --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml"
SPLIT=DefaultPreemption same "preemption on a host without filters" --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml"
exit $failed
