#!/usr/bin/env bash
# Hosts in other languages, built from the contract alone, work beside the built-in plugins. Usage: examples_test.sh
# FOLDER-WITH-OUTBOARD LANGUAGE...
# Languages: go, java, plain_python, typescript. With Go and Java, one more scenario uses both hosts.
set -euo pipefail
bin=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

start() { # NAME COMMAND...
  local name=$1
  shift
  "$@" --listen "unix:$dir/$name.sock" 2>"$dir/$name.log" &
  pids+=($!)
  local i
  for ((i = 0; i < 300; ++i)); do
    [[ ! -S $dir/$name.sock ]] || return 0
    sleep 0.1
  done
  cat "$dir/$name.log"
  echo "FAILED: host $name does not listen"
  exit 1
}
start builtin "$bin/outboard-host"
for language in "$@"; do
  BUILD_ONLY=1 "$here/$language/run.sh"
  [[ $language != go ]] || (cd "$here/go" && go test ./...)
  SKIP_BUILD=1 start "$language" "$here/$language/run.sh"
done

# Four nodes: "a" is under maintenance, "b" has no free licence, "c" has none at all. By price "c" is the best. "a" has the oldest hardware.
node() { # NAME DOMAIN PRICE LICENCES GENERATION ANNOTATION
  cat <<YAML
apiVersion: v1
kind: Node
metadata:
  name: $1
  labels: {example.com/power-domain: $2, example.com/price: "$3", example.com/hardware-generation: "$5"}
  annotations: {example.com/licences: "$4"${6:+, $6}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
YAML
}
pod() { # NAME LABELS [NODE]
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: default, labels: {$2}}
spec: {${3:+nodeName: $3, }containers: [{name: main, image: app, resources: {requests: {cpu: 100m, memory: 100Mi}}}]}
---
YAML
}
{
  node a east 10 1 1 'example.com/maintenance-window: "2000-01-01T00:00:00Z/2100-01-01T00:00:00Z"'
  node b east 50 1 2
  node c west 20 0 3 'example.com/maintenance-window: "2000-01-01T00:00:00Z/2000-01-02T00:00:00Z"'
  node d west 60 1 4
  pod cad-1 'app: cad, example.com/needs-licence: ""' b
} >"$dir/cluster.yaml"
{
  pod web-1 'app: web, example.com/needs-licence: ""'
  pod web-2 'app: web'
  pod thrifty-1 'app: thrifty, example.com/max-price: "15"'
  pod render-1 'app: render, example.com/min-hardware-generation: "3"'
} >"$dir/pods.yaml"

failed=0
# simulate PLUGINS LANGUAGE...: places the pods with these plugins beside the default ones.
simulate() {
  local plugins=$1 hosts=(--host "unix:$dir/builtin.sock") language
  shift
  for language in "$@"; do hosts+=(--host "unix:$dir/$language.sock"); done
  cat >"$dir/config.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [$plugins]}}
YAML
  "$bin/outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$dir/config.yaml" "${hosts[@]}" -o json \
    >"$dir/out.json" 2>"$dir/log" || {
    cat "$dir/log" "$dir"/*.log
    exit 1
  }
}
expect() { # WHAT TEXT
  if ! grep -qF "$2" "$dir/out.json"; then
    echo "FAILED: $1: no $2"
    cat "$dir/out.json" "$dir"/*.log
    failed=1
  fi
}
for language in "$@"; do
  case $language in
    go)
      simulate '{name: PowerDomains, weight: 50}' go
      expect "the other domain is preferred" '{"pod":"default/web-2","result":"scheduled","node":"b"'
      expect "maintenance" '"a":{"code":"UnschedulableAndUnresolvable","plugin":"PowerDomains","reasons":["node(s) were under maintenance"]}'
      ;;
    java)
      simulate '{name: Licences, weight: 50}' java
      expect "the cheapest with a licence" '{"pod":"default/web-1","result":"scheduled","node":"a"'
      expect "all licences in use" '"b":{"code":"Unschedulable","plugin":"Licences","reasons":["node(s) had no free licence"]}'
      expect "no licences at all" '"c":{"code":"UnschedulableAndUnresolvable","plugin":"Licences","reasons":["node(s) had no free licence"]}'
      expect "the cheapest of all" '{"pod":"default/web-2","result":"scheduled","node":"a"'
      ;;
    plain_python)
      simulate '{name: Budget}, {name: CheapNodes, weight: 50}' plain_python
      expect "the cheapest of all" '{"pod":"default/web-2","result":"scheduled","node":"a"'
      expect "the only node that is cheap enough" '{"pod":"default/thrifty-1","result":"scheduled","node":"a"'
      expect "too expensive" '"b":{"code":"UnschedulableAndUnresolvable","plugin":"Budget","reasons":["node(s) were too expensive"]}'
      ;;
    typescript)
      simulate '{name: HardwareGeneration, weight: 50}' typescript
      expect "the oldest of all" '{"pod":"default/web-2","result":"scheduled","node":"a"'
      expect "the oldest that is new enough" '{"pod":"default/render-1","result":"scheduled","node":"c"'
      expect "too old" '"b":{"code":"UnschedulableAndUnresolvable","plugin":"HardwareGeneration","reasons":["node(s) had too old hardware"]}'
      ;;
    *)
      echo "no example in $language"
      exit 1
      ;;
  esac
done
if [[ " $* " == *" go "* && " $* " == *" java "* ]]; then
  simulate '{name: PowerDomains, weight: 50}, {name: Licences}' go java
  expect "the node that both accept" '{"pod":"default/web-1","result":"scheduled","node":"d"'
  expect "the preference of one host" '{"pod":"default/web-2","result":"scheduled","node":"b"'
fi
# A client in Java reads the errors of the hosts that look for the session before they look at the request.
if [[ " $* " == *" java "* ]]; then
  declare -A plugins=([go]=PowerDomains [java]=Licences [typescript]=HardwareGeneration)
  built=$here/../../build/examples/java
  for language in "$@"; do
    [[ -n ${plugins[$language]:-} ]] || continue
    timeout 60 java -cp "$built/test-classes:$built/licences-1.jar:$built/lib/*" example.ErrorsOfTheContract \
      "unix:$dir/$language.sock" "${plugins[$language]}" >"$dir/errors" 2>&1 || {
      echo "FAILED: a client in Java reads the errors of the host in $language"
      cat "$dir/errors"
      failed=1
    }
  done
fi
# The hosts also keep the contract.
for language in "$@"; do
  "$bin/outboard" conformance --host "unix:$dir/$language.sock" --node-label example.com/power-domain=east --node-label example.com/price=10 \
    --node-label example.com/hardware-generation=3 \
    >"$dir/conformance" 2>&1 || {
    echo "FAILED: the conformance kit, against the host in $language"
    awk '/^[^ ]/ { shown = / FAILED / } shown' "$dir/conformance"
    failed=1
  }
  echo "$language: $(tail -n 1 "$dir/conformance")"
done
[[ $failed == 0 ]] || exit 1
echo "ok: hosts in $* beside the built-in one"
