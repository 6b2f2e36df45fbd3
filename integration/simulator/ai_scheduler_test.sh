#!/usr/bin/env bash
# A day of deploy/examples/day with deploy/examples/ai-scheduler.yaml: gangs, serving, a sweep and urgent work on the
# nodes of deploy/examples/nodes.yaml. After each step no pod waits that would fit, no gang is split, and no member of
# a gang was evicted alone. Then a PodGroup of each API.
# Usage: ai_scheduler_test.sh OUTBOARD
set -euo pipefail
outboard=$1
examples=$PWD/deploy/examples
day=$examples/day
config=$examples/ai-scheduler.yaml
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
gangs=(finetune pretrain)

fail() {
  echo "FAILED: $1"
  cut -c 1-600 "$dir/out.json"
  failed=1
}
ok() { echo "ok: $1"; }

# $dir/pods/NAME.yaml is a pod of the day, $dir/placed/NAME holds its node, $dir/gpus has lines NODE GPUS.
mkdir "$dir/pods" "$dir/placed"
split_pods() { # FILE...
  awk -v dir="$dir/pods" 'function out() { if (name != "") printf "%s", text >(dir "/" name ".yaml"); text = name = "" }
    FNR == 1 || /^---$/ { out(); if ($0 == "---") next } /^  name: / { name = $2 } { text = text $0 "\n" } END { out() }' "$@"
}
split_pods "$day"/{sweep,serving,pod-group,ddp,spot-batch,urgent}.yaml
grep -h 'kind: PodGroup' "$day"/*.yaml >"$dir/groups.yaml"
sed -nE 's/.*kind: Node, metadata: \{name: ([a-z0-9-]+).*nvidia.com\/gpu: "([0-9]+)".*/\1 \2/p' "$examples/nodes.yaml" >"$dir/gpus"

gpus_of() { sed -nE 's/.*nvidia.com\/gpu: "([0-9]+)".*/\1/p' "$dir/pods/$1.yaml" | grep . || echo 0; }
is_placed() { [[ -f $dir/placed/$1 ]]; }

# free NODE: its GPUs without those of placed pods.
free() {
  local left pod
  left=$(sed -n "s/^$1 //p" "$dir/gpus")
  for pod in "$dir"/placed/*; do
    [[ ! -f $pod || $(<"$pod") != "$1" ]] || left=$((left - $(gpus_of "$(basename "$pod")")))
  done
  echo "$left"
}

# play POD...: simulates these pods beside the placed ones until all has settled, and records who has a node then.
play() {
  local pod victim
  { cat "$examples/nodes.yaml" "$day/priority-classes.yaml"; echo ---; cat "$dir/groups.yaml"; } >"$dir/cluster.yaml"
  for pod in "$dir"/placed/*; do
    [[ -f $pod ]] || continue
    { echo ---; sed "s/^spec:/&\n  nodeName: $(<"$pod")/" "$dir/pods/$(basename "$pod").yaml"; } >>"$dir/cluster.yaml"
  done
  : >"$dir/pods.yaml"
  for pod in "$@"; do { echo ---; cat "$dir/pods/$pod.yaml"; } >>"$dir/pods.yaml"; done
  "$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$config" --until-settled -o json \
    >"$dir/out.json" 2>"$dir/log" || { cat "$dir/log"; exit 1; }
  while IFS=' ' read -r pod result node; do
    [[ $result != scheduled ]] || echo "$node" >"$dir/placed/$pod"
    [[ $result != preempted ]] || rm -f "$dir/placed/$pod"
  done < <(sed -nE 's/^\{"pod":"default\/([^"]*)","result":"([^"]*)","node":"([^"]*)".*/\1 \2 \3/p' "$dir/out.json")
  victims=$(sed -nE 's/.*"victims":\[([^]]+)\].*/\1/p' "$dir/out.json" | tr ',' '\n' | sed -E 's/"default\/(.*)"/\1/' | sort -u)
  for victim in $victims; do rm -f "$dir/placed/$victim"; done
}

# settled WHAT POD...: what holds after every step; PODs are those of the day so far.
settled() {
  local what=$1 gang pod node need room broken=
  shift
  for gang in "${gangs[@]}"; do
    is_placed "$gang-0" && ! is_placed "$gang-1" && broken+=" $gang is split;"
    is_placed "$gang-1" && ! is_placed "$gang-0" && broken+=" $gang is split;"
  done
  for pod in "$@"; do
    is_placed "$pod" && continue
    need=$(gpus_of "$pod")
    if [[ $need == 0 ]]; then
      broken+=" $pod waits, and needs no GPU;"
      continue
    fi
    room=0 # How many pods like this one fit, on any model of GPU.
    while read -r node _; do room=$((room + $(free "$node") / need)); done <"$dir/gpus"
    case $pod in
      finetune-* | pretrain-*) [[ $room -lt 2 ]] || broken+=" $pod waits, but its gang would fit;" ;;
      *) [[ $room == 0 ]] || broken+=" $pod waits, but would fit;" ;;
    esac
  done
  [[ -z $broken ]] && ok "$what: no split gang, no pod waits that would fit" || fail "$what:$broken"
}

# expect WHAT VALUE WANTED
expect() { [[ $2 == "$3" ]] && ok "$1" || fail "$1: \"$2\", not \"$3\""; }

morning=(trial-{0..5} chat-{0,1} pretrain-{0,1} finetune-{0,1} convert-{0..2})
play "${morning[@]}"
settled morning "${morning[@]}"
expect "morning: nothing is evicted" "$victims" ""
expect "the PodGroup has both A100 nodes" "$(sort "$dir"/placed/pretrain-* | tr '\n' ' ')" "a100-1 a100-2 "
expect "the Job's gang has an NVLink island each" "$(cat "$dir"/placed/finetune-* | tr '\n' ' ')" "v100 v100 "
expect "serving is where NVSwitch is" "$(cat "$dir"/placed/chat-* | tr '\n' ' ')" "h100 h100 "
expect "the sweep fills the small GPUs, and waits for more" "$(cat "$dir"/placed/trial-* | tr '\n' ' ')" "t4 t4 t4 t4 "
expect "batch work has spot nodes" "$(cat "$dir"/placed/convert-* | grep -cE 'cpu-spot|a100-2')" 3

play hotfix trial-{4,5}
settled "urgent work" "${morning[@]}" hotfix
expect "urgent work: a replica of the service is evicted" "${victims%-*}" chat
expect "urgent work has its place" "$(cat "$dir"/placed/hotfix)" h100
evicted=$victims

# Urgent work for the GPUs of a gang, which has no checkpoint: the gang stays.
sed 's/name: hotfix/name: recall/; s/labels: {/&accelerator.sched.io\/gpu-model: Tesla-V100-SXM2-32GB, /' "$dir/pods/hotfix.yaml" >"$dir/pods/recall.yaml"
play recall
expect "a gang without a checkpoint is not evicted" "$victims" ""
grep -q 'Training pods that are spared: 2 without checkpointing' "$dir/out.json" || fail "urgent work does not say why it waits"
settled "urgent work that waits" trial-{4,5} recall

# With a recent checkpoint the gang leaves, as a whole, and other pods get the rest of its room.
for pod in finetune-0 finetune-1; do
  sed -i "s/annotations: {/&outboard\/checkpointing: \"true\", outboard\/last-checkpoint-time: \"$(date -u +%FT%TZ)\", /" "$dir/pods/$pod.yaml"
done
play recall trial-{4,5}
expect "a gang with a checkpoint leaves as a whole" "$(tr '\n' ' ' <<<"$victims")" "finetune-0 finetune-1 "
expect "urgent work and trials have its room" "$(cat "$dir"/placed/{recall,trial-4,trial-5} | tr '\n' ' ')" "v100 v100 v100 "
settled "the gang has left" "${morning[@]}" hotfix recall

# Controllers create the evicted pods again. Once urgent work has ended, the service returns; one member of the gang
# would fit beside the trials, but not both.
rm "$dir/placed/hotfix" "$dir/placed/recall"
play "$evicted" finetune-{0,1}
expect "evening: trials stay" "$victims" ""
expect "evening: the service is complete again" "$(cat "$dir"/placed/chat-* | tr '\n' ' ')" "h100 h100 "
expect "evening: the gang waits for both places" "$(is_placed finetune-0 || is_placed finetune-1 || echo waits)" waits
settled evening "${morning[@]}"
rm "$dir"/placed/trial-{4,5}
play finetune-{0,1}
settled night "${morning[@]}"
expect "night: the gang is back" "$(cat "$dir"/placed/finetune-* | tr '\n' ' ')" "v100 v100 "

# A PodGroup of each API: three members on the two A100 nodes are none, two are both.
rm -f "$dir"/placed/*
group() { # API_VERSION SPEC
  echo "{apiVersion: $1, kind: PodGroup, metadata: {name: pretrain, namespace: default}, spec: $2}" >"$dir/groups.yaml"
}
placed() { find "$dir/placed" -type f -printf '%f\n' | sort | paste -sd' '; }
dialect() { # WHAT API_VERSION SPEC-WITH-N LABEL-OR-ANNOTATION [FIELD]
  local i
  for i in 0 1 2; do
    sed -E "s/name: pretrain-0/name: pretrain-$i/; s/scheduling.x-k8s.io\/pod-group: pretrain, //; s/^  labels: \{/  annotations: {${4#label }}\n&/;
      s/^spec:/&${5:+\n  $5}/" "$dir/template.yaml" >"$dir/pods/pretrain-$i.yaml"
    [[ $4 != label* ]] || sed -i '/^  annotations:/d; s/^  labels: {/&'"${4#label }"', /' "$dir/pods/pretrain-$i.yaml"
  done
  group "$2" "${3//N/3}"
  play pretrain-{0..2}
  expect "$1: three members, two places" "$(placed)" ""
  group "$2" "${3//N/2}"
  play pretrain-{0,1}
  expect "$1: two members, two places" "$(placed)" "pretrain-0 pretrain-1"
  rm -f "$dir"/placed/*
}
cp "$dir/pods/pretrain-0.yaml" "$dir/template.yaml"
dialect scheduler-plugins scheduling.x-k8s.io/v1alpha1 '{minMember: N}' 'label scheduling.x-k8s.io\/pod-group: pretrain'
dialect Kubernetes scheduling.k8s.io/v1alpha2 '{schedulingPolicy: {gang: {minCount: N}}}' '' 'schedulingGroup: {podGroupName: pretrain}'
dialect Volcano scheduling.volcano.sh/v1beta1 '{minMember: N, queue: default}' 'scheduling.k8s.io\/group-name: pretrain'
dialect KAI scheduling.run.ai/v2alpha2 '{minMember: N, queue: default}' 'pod-group-name: pretrain'
exit $failed
