#!/usr/bin/env bash
# The manifests that users come with, and those of our READMEs: each on a cluster with room and on one without.
# Usage: manifests_test.sh OUTBOARD
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
outboard=$1
given=integration/simulator/manifests
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

node() { # NAME ALLOCATABLE [LABELS]
  printf 'apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {kubernetes.io/hostname: %s%s}}\n' "$1" "$1" "${3:+, $3}"
  printf 'status: {allocatable: {pods: "110", %s}}\n---\n' "$2"
}
pod() { # NAME SCHEDULER RESOURCES [LABELS] [ANNOTATIONS] [NODE]
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {%s}, annotations: {%s}}\n' "$1" "${4:-}" "${5:-}"
  printf 'spec:\n  schedulerName: %s\n%s' "$2" "${6:+  nodeName: $6
}"
  printf '  containers: [{name: main, image: example.com/app, resources: {%s}}]\n---\n' "$3"
}
# simulate WHAT CONFIG: cluster.yaml and pods.yaml, each pod once, and until nothing changes any more.
simulate() {
  local how flags
  what=$1
  for how in once settled; do
    flags=()
    [[ $how == once ]] || flags=(--until-settled)
    "$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$2" -o json \
      "${flags[@]}" >"$dir/$how.json" 2>"$dir/log" || true
    expect_in "$how" 0 "errors" '"result":"error"'
  done
}
expect_in() { # once|settled COUNT WHAT PATTERN: so many pods match, in any of their attempts
  local count
  count=$({ grep -E "$4" "$dir/$1.json" | grep -o '^{"pod":"[^"]*"' || true; } | sort -u | wc -l)
  if [[ $count == "$2" && -s $dir/$1.json ]]; then
    echo "ok: $what, $1: $2 $3"
  else
    echo "FAILED: $what, $1: $count $3 instead of $2: $4"
    cat "$dir/log" "$dir/$1.json"
    failed=1
  fi
}
expect() { # COUNT WHAT PATTERN: in both runs
  expect_in once "$@"
  expect_in settled "$@"
}
goes() { expect 1 "$1 on $2" "\"pod\":\"default/$1\",\"result\":\"scheduled\",\"node\":\"$2\""; }
waits() { expect 1 "$1 waits" "\"pod\":\"default/$1\",\"result\":\"unschedulable\".*$2"; }

# Three pods of eight GPUs on two nodes: none is bound, and a pod without a gang is. On three nodes all are.
gang() { # CONFIG SCHEDULER NODES
  local i
  for ((i = 1; i <= $3; i++)); do node "gpu-$i" 'cpu: "64", nvidia.com/gpu: "8"' 'gpu-interconnect: nvlink'; done >"$dir/cluster.yaml"
  {
    for i in 0 1 2; do pod "train-$i" "$2" 'limits: {nvidia.com/gpu: 8}' 'job-name: train' 'min-replicas: "3"'; done
    pod plain "$2" 'requests: {cpu: "1"}'
  } >"$dir/pods.yaml"
  simulate "$1, $3 nodes" "$1"
  expect 1 "plain pod placed" '"pod":"default/plain","result":"scheduled"'
  expect "$(($3 == 3 ? 3 : 0))" "members placed" '"pod":"default/train-[0-2]","result":"scheduled"'
}
gang "$given/ai-scheduler-profile.yaml" ai-scheduler 2
expect_in once 2 "members wait for the third" 'train-[01].*(released its place|timeout)'
gang "$given/ai-scheduler-profile.yaml" ai-scheduler 3
# The same profile where the plugin is enabled at other points too, and everywhere: planned in one pass.
awk '{ print } /^    permit:/ { print "    preFilter: {enabled: [{name: AtomicReplicaCoordinator}]}" }' \
  "$given/ai-scheduler-profile.yaml" >"$dir/planned.yaml"
gang "$dir/planned.yaml" ai-scheduler 2
expect 3 "members with the number that fits" 'gang ..train..: 2 of 3 members fit'
gang "$dir/planned.yaml" ai-scheduler 3
# Three of eight pods of a job exist: they wait without places, and the others are placed.
for i in 0 1 2; do
  pod "part-$i" ai-scheduler 'limits: {nvidia.com/gpu: 8}' 'job-name: part' 'min-replicas: "8"'
done >>"$dir/pods.yaml"
simulate "an incomplete job" "$dir/planned.yaml"
expect 3 "members without a place" 'gang ..part..: 3 of 8 members exist'
expect 3 "members placed" '"pod":"default/train-[0-2]","result":"scheduled"'
# Without permit a part of a gang would be bound: refused, with file, line and reason.
sed 's/^    permit:/    reserve:/' "$given/ai-scheduler-profile.yaml" >"$dir/refused.yaml"
if "$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$dir/refused.yaml" >/dev/null 2>"$dir/log"; then
  echo "FAILED: a profile without permit is not refused"
  failed=1
fi
line=$(grep -n '^    reserve:' "$dir/refused.yaml" | cut -d: -f1)
if grep -q "refused.yaml:$line:[0-9]*: profiles\[0\].plugins.reserve.enabled\[0\]: must be enabled at permit" "$dir/log"; then
  echo "ok: refused with line $line"
else
  echo "FAILED: refused without line $line"
  cat "$dir/log"
  failed=1
fi

# Four GPUs where they are free, and a Job's pod on the cheapest node that has room.
documents() { # FILE NAME: the document of this name
  awk -v name="$2" 'BEGIN { RS = "---\n"; ORS = "---\n" } index($0, "name: " name)' "$1"
}
two_profiles() { # GPUS-TAKEN CPUS-OF-THE-CHEAP-NODE
  {
    node small 'cpu: "64", memory: 256Gi, nvidia.com/gpu: "2"' 'gpu-memory-gb: "80", node-cost-per-hour: "5"'
    node large 'cpu: "64", memory: 256Gi, nvidia.com/gpu: "8"' 'gpu-memory-gb: "80", node-cost-per-hour: "20"'
    node cheap "cpu: \"$2\", memory: 256Gi" 'node-cost-per-hour: "0.5"'
    pod taken other "limits: {nvidia.com/gpu: $1}" '' '' large
  } >"$dir/cluster.yaml"
  {
    documents "$given/pods.yaml" ml-training
    # As the Job controller creates it.
    pod batch-processing-x7k2p cost-optimized-scheduler 'requests: {memory: 2Gi, cpu: "1"}' 'job-name: batch-processing'
  } >"$dir/pods.yaml"
  simulate "gpu-and-cost-profiles.yaml, $1 GPUs taken, $2 CPUs on the cheap node" "$given/gpu-and-cost-profiles.yaml"
}
two_profiles 4 64
goes ml-training large
goes batch-processing-x7k2p cheap
two_profiles 5 0
waits ml-training 'Insufficient nvidia.com/gpu'
goes batch-processing-x7k2p small

# Pods that name a GPU model or a kind of workload, for the default profile with these plugins.
cat >"$dir/labels.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: GPUModelMatch, weight: 10}, {name: WorkloadTypeFilter}]}}
YAML
labelled() { # A100 WITH-ROOM
  {
    node v100 'cpu: "1", nvidia.com/gpu: "8"' 'nvidia.com/gpu.product: Tesla-V100-SXM2-32GB, nvidia.com/gpu.numa: "0"'
    if [[ $1 == with ]]; then
      node a100-numa-1 'cpu: "1", nvidia.com/gpu: "8"' 'nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.numa: "1"'
      node a100-numa-0 'cpu: "1", nvidia.com/gpu: "8"' 'nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.numa: "0"'
      node cpus 'cpu: "4"'
    fi
  } >"$dir/cluster.yaml"
  for name in training-pod-1 cpu-workload gpu-workload; do documents "$given/pods.yaml" "$name"; done >"$dir/pods.yaml"
  simulate "pods.yaml $1 room" "$dir/labels.yaml"
}
labelled with
goes training-pod-1 a100-numa-0
goes cpu-workload cpus
expect 1 "gpu-workload on a node with GPUs" '"pod":"default/gpu-workload","result":"scheduled","node":"[av]1'
labelled without
waits training-pod-1 ''
waits cpu-workload ''
goes gpu-workload v100

# Volcano's job: four pods of one GPU, all or nothing.
cat >"$dir/volcano.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: volcano
  plugins: {multiPoint: {enabled: [{name: AtomicReplicaCoordinator}]}}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
customResources: [{resource: podgroups.v1beta1.scheduling.volcano.sh}]
YAML
volcano() { # GPUS
  min=$(sed -n 's/^ *minAvailable: //p' "$given/volcano-job.yaml")
  {
    node gpus "cpu: \"8\", nvidia.com/gpu: \"$1\""
    printf 'apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n'
    printf 'metadata: {name: distributed-training, namespace: default}\nspec: {minMember: %s, queue: default}\n' "$min"
  } >"$dir/cluster.yaml"
  for i in 0 1 2 3; do
    pod "distributed-training-trainer-$i" volcano 'limits: {nvidia.com/gpu: 1}' 'volcano.sh/job-name: distributed-training' \
      'scheduling.k8s.io/group-name: distributed-training, volcano.sh/task-spec: trainer'
  done >"$dir/pods.yaml"
  simulate "volcano-job.yaml, $1 GPUs" "$dir/volcano.yaml"
}
volcano 3
expect 0 "pods placed" '"result":"scheduled"'
expect 4 "pods with the number that fits" 'gang ..distributed-training..: 3 of 4 members fit'
volcano 4
expect 4 "pods placed" '"result":"scheduled"'

# A configuration of kube-scheduler's that calls extenders is refused, and says where.
if "$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$given/extender-policy.yaml" >/dev/null 2>"$dir/log" ||
  ! grep -q "extender-policy.yaml:[0-9]*:[0-9]*: extenders: " "$dir/log"; then
  echo "FAILED: extender-policy.yaml is not refused with file and line"
  cat "$dir/log"
  failed=1
fi

# The example of a README, by kind of document: the configuration, the cluster, the pods to place.
readme() { # FILE
  awk -v dir="$dir" 'BEGIN { RS = "---\n" }
    /kind: KubeSchedulerConfiguration|kind: ShimConfiguration/ { print $0 "---" >dir "/config.yaml"; next }
    /kind: Pod,|kind: Pod$/ && !/nodeName:/ { print $0 "---" >dir "/pods.yaml"; next }
    { print $0 "---" >dir "/cluster.yaml" }' < <(sed -n '/^```yaml$/,/^```$/{/^```/d;p}' "$1")
}
readme plugins/training_job_placement/README.md
simulate "TrainingJobPlacement's README" "$dir/config.yaml"
goes llama-1 n3
goes pinned-0 n4
goes llama-2 n1
sed -i 's/cpu: "2"/cpu: "1"/' "$dir/cluster.yaml"
simulate "TrainingJobPlacement's README without room" "$dir/config.yaml"
for name in llama-1 pinned-0 llama-2; do waits $name 'Insufficient cpu'; done

# The Job of AtomicReplicaCoordinator's README: eight pods of eight GPUs.
rm "$dir"/*.yaml
readme plugins/atomic_replica_coordinator/README.md
[[ $(sed -n 's/.*outboard\/min-replicas: "\([0-9]*\)".*/\1/p' "$dir/cluster.yaml") == 8 ]] || failed=1
job() { # NODES
  for ((i = 0; i < 8; i++)); do
    pod "train-$i" gang-scheduler 'limits: {nvidia.com/gpu: 8}' 'job-name: train' 'outboard/min-replicas: "8"'
  done >"$dir/pods.yaml"
  for ((i = 0; i < $1; i++)); do node "n$i" 'cpu: "8", nvidia.com/gpu: "8"'; done >"$dir/cluster.yaml"
  simulate "AtomicReplicaCoordinator's README, $1 nodes" "$dir/config.yaml"
}
job 7
expect 0 "pods placed" '"result":"scheduled"'
job 8
expect 8 "pods placed" '"result":"scheduled"'
exit $failed
