#!/usr/bin/env bash
# What `outboard simulate` says about files that it cannot use, to the letter, and what it makes of manifests as people
# write them: without a status, with classes, from a pipe.
# Usage: input_errors_test.sh OUTBOARD
set -euo pipefail
outboard=$(realpath "$1")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failed=0

# refused WHAT EXPECTED-STDERR ARGUMENTS...: exit code 2, nothing on standard output.
refused() {
  local what=$1 expected=$2 status=0
  shift 2
  "$outboard" simulate "$@" >out 2>err || status=$?
  if [[ $status == 2 && ! -s out ]] && diff <(echo "$expected") err; then
    echo "ok: $what"
  else
    echo "FAILED: $what: exit code $status"
    cat out
    failed=1
  fi
}

# answers WHAT EXPECTED ARGUMENTS...: pods with result and node, one a line; nothing on standard error.
answers() {
  local what=$1 expected=$2
  shift 2
  "$outboard" simulate "$@" -o json >out 2>err || { echo "FAILED: $what: exit code $?"; failed=1; }
  if diff <(echo "$expected") <(sed -E 's/^\{"pod":"([^"]*)","result":"([^"]*)","node":"([^"]*)".*/\1 \2 \3/' out) &&
    [[ ! -s err ]]; then
    echo "ok: $what"
  else
    echo "FAILED: $what"
    cat out err
    failed=1
  fi
}

node() { # NAME [CPU]
  printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {kubernetes.io/hostname: %s}}\n' "$1" "$1"
  printf 'status: {allocatable: {cpu: "%s", memory: 8Gi, pods: "110"}}\n' "${2:-4}"
}
pod() { # NAME [MORE OF THE SPEC]
  printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n' "$1"
  printf 'spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]%s}\n' "${2:+, $2}"
}
node n1 >nodes.yaml
pod web >web.yaml
touch empty.yaml
echo '# nothing yet' >comments.yaml
mkdir -p folder none
node n2 >folder/b.yaml
node n3 >folder/a.yml

refused "an empty file" "outboard simulate: empty.yaml: is empty" --cluster nodes.yaml --pods empty.yaml
refused "a file of comments" "outboard simulate: comments.yaml: contains no Kubernetes object, only comments" \
  --cluster nodes.yaml --pods comments.yaml
refused "a folder without manifests" "outboard simulate: none: a directory without *.yaml, *.yml or *.json" \
  --cluster none --pods web.yaml
refused "no file" "outboard simulate: nodes.yml: No such file or directory" --cluster nodes.yml --pods web.yaml
refused "no pod" "outboard simulate: no Pod in --pods folder" --cluster nodes.yaml --pods folder
refused "standard input twice" \
  "outboard simulate: -: standard input can be read only once; give it to --cluster or to --pods" \
  --cluster - --pods - <nodes.yaml
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n' >config.yaml
message="outboard simulate: config.yaml:2:7: kind: KubeSchedulerConfiguration is a configuration, not a manifest;"
refused "a configuration as a manifest" "$message give its file as --config" \
  --cluster nodes.yaml --pods config.yaml
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n' >deployment.yaml
refused "a deployment" \
  "warning: deployment.yaml:3:18: Deployment web: no pods are created from it; give Pods
outboard simulate: no Pod in --pods deployment.yaml" --cluster nodes.yaml --pods deployment.yaml
{
  printf 'apiVersion: v2\nkind: Pod\nmetadata: {name: a}\n'
  pod b "nodeSelektor: {disk: ssd}, priorityClassName: high"
  pod b "priority: low"
} >bad.yaml
refused "all mistakes of all files" \
  "warning: bad.yaml:8:68: spec.nodeSelektor: unknown field, ignored; did you mean nodeSelector?
outboard simulate: the manifests have errors:
nodes.yml: No such file or directory
bad.yaml:1:13: apiVersion: v2 has no kind Pod; use v1
bad.yaml:8:114: spec.priorityClassName: no PriorityClass with name high was found
bad.yaml:13:78: spec.priority: must be an integer, not a string" --cluster nodes.yml --pods bad.yaml
pod typo "nodeSelektor: {disk: ssd}" >typo.yaml
refused "an unknown field with --strict" \
  "outboard simulate: typo.yaml:5:68: spec.nodeSelektor: unknown field; did you mean nodeSelector?" \
  --cluster nodes.yaml --pods typo.yaml --strict
printf 'apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n' >tab.yaml
refused "a tab" "outboard simulate: tab.yaml:4:1: a tab in the indentation; YAML allows only spaces there" \
  --cluster nodes.yaml --pods tab.yaml
printf '\xff\xfea\0' >utf16.yaml
refused "UTF-16" "outboard simulate: utf16.yaml:1:1: is UTF-16; save it as UTF-8" --cluster nodes.yaml --pods utf16.yaml

# warned WHAT EXPECTED-STDERR ARGUMENTS...: the simulation goes on.
warned() {
  local what=$1 expected=$2
  shift 2
  if "$outboard" simulate "$@" >out 2>err && diff <(echo "$expected") err; then
    echo "ok: $what"
  else
    echo "FAILED: $what"
    failed=1
  fi
}
warned "an unknown field" \
  "warning: typo.yaml:5:68: spec.nodeSelektor: unknown field, ignored; did you mean nodeSelector?" \
  --cluster nodes.yaml --pods typo.yaml
printf 'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n' >list.yaml
printf -- '- {apiVersion: a.io/v1, kind: Job, metadata: {name: %s}}\n' a b >>list.yaml
warned "objects that are not read" \
  "warning: list.yaml: skipped, because scheduling does not read these kinds: Secret (1)
warning: list.yaml:5:53: skipped, because customResources of the configuration do not name it: Job of a.io/v1 (2)" \
  --cluster nodes.yaml list.yaml --pods web.yaml

answers "a folder" "default/web scheduled n3" --cluster folder --pods web.yaml
answers "a pipe" "default/web scheduled n1" --cluster - --pods web.yaml <nodes.yaml
answers "pods from a pipe" "default/web scheduled n1" --cluster nodes.yaml --pods - <web.yaml

# Only one of both pods fits: the one of the class with the higher value.
{
  pod modest
  pod important "priorityClassName: high"
} >pods.yaml
printf 'apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n' >classes.yaml
answers "classes of priority" "default/important scheduled n1
default/modest unschedulable " --cluster nodes.yaml classes.yaml --pods pods.yaml
answers "classes behind their pods" "default/important scheduled n1
default/modest unschedulable " --cluster nodes.yaml --pods pods.yaml classes.yaml

# A volume and a claim without a status. The volume is on n3.
{
  node n1
  node n3
  cat <<'YAML'
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 10Gi}
  storageClassName: local
  local: {path: /disk}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n3]}]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: local
  resources: {requests: {storage: 5Gi}}
YAML
} >volumes.yaml
pod db "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]" >db.yaml
answers "a volume without a status" "default/db scheduled n3" --cluster volumes.yaml --pods db.yaml
exit $failed
