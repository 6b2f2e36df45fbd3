#!/usr/bin/env bash
# A gang of 8 with 7 places: none is placed. With 8 places: all at once. The same with PodGroups. And GPUAware on a
# mixed cluster.
# Usage: gang_test.sh OUTBOARD
set -euo pipefail
outboard=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

node() { # NAME GPUS LABELS
  cat <<YAML
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {kubernetes.io/hostname: $1${3:+, $3}}}
status: {allocatable: {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "$2"}}
---
YAML
}
pod() { # NAME GPUS [LABELS] [ANNOTATIONS]
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {$3}, annotations: {$4}}
spec:
  schedulerName: gpu
  containers: [{name: main, image: train, resources: {requests: {cpu: "1"}, limits: {nvidia.com/gpu: "$2"}}}]
---
YAML
}
cat > "$dir/config.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: outboard-scheduler}
profiles:
- schedulerName: gpu
  plugins:
    multiPoint: {enabled: [{name: GPUAware, weight: 5}, {name: AtomicReplicaCoordinator}]}
    filter: {enabled: [{name: GPUAware}]}
YAML
simulate() { "$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$dir/config.yaml" -o json 2>"$dir/log"; }

# expect WHAT COUNT PATTERN: lines of out.json that match.
expect() {
  local count
  count=$(grep -cE "$3" "$dir/out.json" || true)
  if [[ $count == "$2" ]]; then
    echo "ok: $1"
  else
    echo "FAILED: $1: $count lines instead of $2 match $3"
    cat "$dir/out.json"
    failed=1
  fi
}

for i in 0 1 2 3 4 5 6 7; do pod "worker-$i" 1 'job-name: train' 'outboard/min-replicas: "8"'; done > "$dir/pods.yaml"
{ node a 4 'gpu-memory-gb: "80"'; node b 3 'gpu-memory-gb: "80"'; } > "$dir/cluster.yaml"
simulate > "$dir/out.json"
expect "7 places: 8 pods are reported" 8 '"pod":"default/worker-'
expect "7 places: none is placed" 0 '"result":"scheduled"'
expect "7 places: all get the reason" 8 '"message":"0/2 nodes are available: gang ."train.": 7 of 8 members fit; 2 insufficient GPU: need 1, available 0\. no new claims to deallocate, preemption: the group does not fit even if all pods of lower priority are evicted\."'

{ node a 4 'gpu-memory-gb: "80"'; node b 4 'gpu-memory-gb: "80"'; } > "$dir/cluster.yaml"
simulate > "$dir/out.json"
expect "8 places: all are placed" 8 '"result":"scheduled"'
expect "8 places: four on each node" 4 '"node":"b"'

# The same 8 in a group of each API with objects: labels, annotations and fields name the group, its object has the
# size.
cp "$dir/config.yaml" "$dir/jobs.yaml"
cat >> "$dir/config.yaml" <<'YAML'
  pluginConfig:
  - {name: NotServed, args: {served: [spec.schedulingGroup]}}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
customResources:
- {resource: podgroups.v1alpha2.scheduling.k8s.io}
- {resource: podgroups.v1alpha1.scheduling.x-k8s.io}
- {resource: podgroups.v1beta1.scheduling.volcano.sh}
- {resource: podgroups.v2alpha2.scheduling.run.ai}
YAML
pod_group() { # API_VERSION SPEC
  printf 'apiVersion: %s\nkind: PodGroup\nmetadata: {name: train, namespace: default}\nspec: %s\n---\n' "$1" "$2"
}
# gang WHAT API_VERSION SPEC LABELS ANNOTATIONS [FIELD]
gang() {
  local i
  for i in 0 1 2 3 4 5 6 7; do pod "worker-$i" 1 "$4" "$5" | sed "s/^spec:/&${6:+\n  $6}/"; done > "$dir/pods.yaml"
  { node a 4 'gpu-memory-gb: "80"'; node b 3 'gpu-memory-gb: "80"'; pod_group "$2" "$3"; } > "$dir/cluster.yaml"
  simulate > "$dir/out.json"
  expect "$1, 7 places: none is placed" 0 '"result":"scheduled"'
  expect "$1, 7 places: all get the reason" 8 'gang ."train.": 7 of 8 members fit; 2 insufficient GPU: need 1, available 0'
  { node a 4 'gpu-memory-gb: "80"'; node b 4 'gpu-memory-gb: "80"'; pod_group "$2" "$3"; } > "$dir/cluster.yaml"
  simulate > "$dir/out.json"
  expect "$1, 8 places: all are placed" 8 '"result":"scheduled"'
}
gang scheduler-plugins scheduling.x-k8s.io/v1alpha1 '{minMember: 8}' 'scheduling.x-k8s.io/pod-group: train' ''
gang Volcano scheduling.volcano.sh/v1beta1 '{minMember: 8, queue: default}' '' 'scheduling.k8s.io/group-name: train'
gang KAI scheduling.run.ai/v2alpha2 '{minMember: 8, queue: default}' '' 'pod-group-name: train'
gang Kubernetes scheduling.k8s.io/v1alpha2 '{schedulingPolicy: {gang: {minCount: 8}}}' '' '' 'schedulingGroup: {podGroupName: train}'
{ node a 4 'gpu-memory-gb: "80"'; node b 4 'gpu-memory-gb: "80"'; pod_group scheduling.x-k8s.io/v1alpha1 '{minMember: 9}'; } > "$dir/cluster.yaml"
for i in 0 1 2 3 4 5 6 7; do pod "worker-$i" 1 'scheduling.x-k8s.io/pod-group: train' ''; done > "$dir/pods.yaml"
simulate > "$dir/out.json"
expect "9 wanted, 8 exist: none is tried" 8 'gang ..train..: fewer than 9 members exist'
{ node a 4 'gpu-memory-gb: "80"'; node b 4 'gpu-memory-gb: "80"'; } > "$dir/cluster.yaml"
simulate > "$dir/out.json"
expect "no PodGroup: each says so" 8 'PodGroup not found'

# Volcano's tiers are labels: the group gets the closest domain in which all fit, and none above the highest allowed
# one.
tiers() { # WHAT SPEC PODS
  {
    for name in a b c d; do node $name 4 "gpu-memory-gb: \"80\", clique: c-$name, rack: r-$([[ $name < c ]] && echo 1 || echo 2)"; done
    pod_group scheduling.volcano.sh/v1beta1 "{minMember: $3, networkTopology: $2}"
  } > "$dir/cluster.yaml"
  for ((i = 0; i < $3; i++)); do pod "worker-$i" 1 '' 'scheduling.k8s.io/group-name: train'; done > "$dir/pods.yaml"
  simulate > "$dir/out.json"
}
tiers hard '{mode: hard, highestTierAllowed: 2}' 4
expect "no tiers in the args: a hard one is not ignored" 4 'gang ..train..: spec.networkTopology.highestTierAllowed: tier ..2.. is none of topologyTiers'
tiers soft '{mode: soft, highestTierAllowed: 2}' 4
expect "no tiers in the args: a soft one is" 4 '"result":"scheduled"'
sed -i 's/^  pluginConfig:/&\n  - {name: AtomicReplicaCoordinator, args: {topologyTiers: [{tier: 1, label: clique}, {tier: 2, tierName: rack, label: rack}]}}/' "$dir/config.yaml"
tiers hard '{mode: hard, highestTierAllowed: 2}' 4
expect "tiers: four fit in one clique" 4 "\"node\":\"$(sed -n 's/.*"pod":"default\/worker-0","result":"scheduled","node":"\([a-d]\)".*/\1/p' "$dir/out.json")\""
tiers hard '{mode: hard, highestTierName: rack}' 8
expect "tiers: eight fit in one rack" 8 "\"result\":\"scheduled\",\"node\":\"[$(grep -q '"result":"scheduled","node":"[ab]"' "$dir/out.json" && echo ab || echo cd)]\""
tiers hard '{mode: hard, highestTierAllowed: 2}' 9
expect "tiers: nine fit in no rack" 9 'gang ..train..: 8 of 9 members fit; largest rack with room: r-'
tiers soft '{mode: soft, highestTierAllowed: 2}' 9
expect "tiers: softly they go beyond" 9 '"result":"scheduled"'
mv "$dir/jobs.yaml" "$dir/config.yaml"

{
  node cpu 0
  node small 4 'gpu-memory-gb: "4"'
  node v100 4 'gpu-memory-gb: "16", gpu-generation: v100'
  node a100 4 'gpu-memory-gb: "80", gpu-generation: a100, gpu-interconnect: nvlink'
  node h100 2 'gpu-memory-gb: "80", gpu-generation: h100'
} > "$dir/cluster.yaml"
{ pod one 1 '' ''; pod huge 8 '' ''; } > "$dir/pods.yaml"
simulate > "$dir/out.json"
expect "mixed: the A100 with NVLink wins" 1 '"pod":"default/one","result":"scheduled","node":"a100"'
expect "mixed: no GPU says so" 1 '"pod":"default/one".*"cpu":\{"code":"[A-Za-z]*","plugin":"GPUAware","reasons":\["insufficient GPU: need 1, available 0"\]'
expect "mixed: 4 GB say so" 1 '"pod":"default/one".*insufficient GPU memory: need 8GB, available 4GB'
expect "mixed: three kinds are scored" 1 '"pod":"default/one".*"scores":\{"a100".*"h100".*"v100"'
expect "mixed: eight GPUs are nowhere" 1 '"pod":"default/huge","result":"unschedulable".*insufficient GPU: need 8, available 4'
exit $failed
