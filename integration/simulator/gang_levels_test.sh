#!/usr/bin/env bash
# A gang that names no topology, with AtomicReplicaCoordinator's preferredLevels: under one leaf switch on one model of
# GPUs if it fits, else on one model, else anywhere.
# Usage: gang_levels_test.sh OUTBOARD
set -euo pipefail
outboard=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

node() { # NAME MODEL LEAF [CPUS]
  local gpus='' labels=''
  if [[ -n $2 ]]; then
    gpus=', nvidia.com/gpu: "8"'
    labels=", model: $2, leaf: $3, gpu-memory-gb: \"$([[ $2 == h100 ]] && echo 80 || echo 40)\""
  fi
  cat <<YAML
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {kubernetes.io/hostname: $1$labels}}
status: {allocatable: {cpu: "${4:-64}", memory: 256Gi, pods: "110"$gpus}}
---
YAML
}
gang() { # MEMBERS [GPUS]
  local i
  for ((i = 0; i < $1; i++)); do
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: worker-$i, labels: {job-name: train}, annotations: {outboard/min-replicas: "$1"}}
spec:
  schedulerName: gpu
  containers: [{name: main, image: train, resources: {requests: {cpu: "8"}${2:+, limits: {nvidia.com/gpu: "$2"\}}}}]
---
YAML
  done >"$dir/pods.yaml"
}
config() { # ARGS
  cat >"$dir/config.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: gpu
  plugins: {multiPoint: {enabled: [{name: GPUAware, weight: 5}, {name: AtomicReplicaCoordinator}]}}
  pluginConfig: [{name: AtomicReplicaCoordinator, args: {$1}}]
YAML
}
# expect WHAT NODES: the nodes of the members, sorted.
expect() {
  local nodes
  "$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$dir/config.yaml" -o json >"$dir/out.json" 2>"$dir/log" ||
    cat "$dir/log"
  nodes=$(sed -nE 's/.*"result":"scheduled","node":"([^"]*)".*/\1/p' "$dir/out.json" | sort | tr '\n' ' ')
  if [[ $nodes == "$2 " ]]; then
    echo "ok: $1"
  else
    echo "FAILED: $1: on $nodes instead of $2"
    cut -c 1-600 "$dir/out.json"
    failed=1
  fi
}
levels='preferredLevels: ["leaf,model", model]'

# One of the better machines is taken: there the gang would be on two models, under two switches.
{
  node h-1 h100 leaf-1
  node h-2 h100 leaf-1
  node a-1 a100 leaf-2
  node a-2 a100 leaf-2
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: runs}
spec: {nodeName: h-1, containers: [{name: main, image: chat, resources: {limits: {nvidia.com/gpu: "8"}}}]}
---
YAML
} >"$dir/cluster.yaml"
gang 2 8
config ''
expect "without levels each member has its best node" "a-1 h-2"
config "$levels"
expect "the leaf and model with room for both" "a-1 a-2"
gang 3 8
expect "no model has room for all: anywhere" "a-1 a-2 h-2"

# Both leaves fit; the one with the better machines also has more room.
{ for name in h-1 h-2 h-3; do node $name h100 leaf-1; done; node a-1 a100 leaf-2; node a-2 a100 leaf-2; } >"$dir/cluster.yaml"
gang 2 8
expect "of several, the one with the best node" "h-1 h-2"

# Under each switch there are both models.
{ node h-1 h100 leaf-1; node a-1 a100 leaf-1; node h-2 h100 leaf-2; node a-2 a100 leaf-2; } >"$dir/cluster.yaml"
expect "one model is better than one switch with two" "h-1 h-2"

# Labels of GPUs do not draw a gang without GPUs.
{ node h-1 h100 leaf-1; node h-2 h100 leaf-1; node cpu '' '' 640; } >"$dir/cluster.yaml"
gang 2
expect "a gang without GPUs" "cpu cpu"
exit $failed
