#!/usr/bin/env bash
# The plugin of the README, as it stands there, decides beside the built-in ones. Usage: plugin_test.sh FOLDER-WITH-OUTBOARD
set -euo pipefail
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/outboard/python-1.67.1
if [[ ! -x $venv/bin/python ]] || ! "$venv/bin/python" -c 'import grpc, grpc_tools' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet grpcio==1.67.1 grpcio-tools==1.67.1
fi
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

# shellcheck disable=SC2016
sed -n '/^```python$/,/^```$/p' "$here/README.md" | sed '1d;$d' >"$dir/cheap_nodes.py"
PYTHONPATH=$here "$venv/bin/python" "$dir/cheap_nodes.py" --listen "unix:$dir/python.sock" 2>"$dir/python.log" &
pids+=($!)
for points in every permit; do
  PYTHONPATH=$here "$venv/bin/python" "$here/testdata/every_point.py" $points --listen "unix:$dir/$points.sock" 2>"$dir/$points.log" &
  pids+=($!)
done
printf 'type,price\nsmall,1\nlarge,3\n' >"$dir/prices.csv"
for plugin in template=templates/python/example_plugin.py price_table=examples/price_table/price_table.py; do
  name=${plugin%%=*}
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "$venv/bin/python" "$here/../${plugin#*=}" --listen "unix:$dir/$name.sock" 2>"$dir/$name.log" &
  pids+=($!)
done
"$bin/outboard-host" --listen "unix:$dir/builtin.sock" 2>"$dir/builtin.log" &
pids+=($!)
for node in a:price=70 b:price=10 c:colour=red; do
  label=${node#*:}
  cat <<YAML
apiVersion: v1
kind: Node
metadata:
  name: ${node%%:*}
  labels: {${label%%=*}: "${label#*=}"}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
YAML
done >"$dir/cluster.yaml"
cat >"$dir/pods.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "1"}}}]}
YAML
cat >"$dir/config.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: CheapNodes, weight: 20}]}}
YAML
# It waits for hosts that are not there yet.
"$bin/outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$dir/config.yaml" \
  --host "unix:$dir/builtin.sock" --host "unix:$dir/python.sock" -o json >"$dir/out.json" 2>"$dir/log" || {
  cat "$dir/log" "$dir/python.log"
  exit 1
}
for want in '"node":"b"' '"c":{"code":"Unschedulable","plugin":"CheapNodes","reasons":["node(s) had no price"]}' '"CheapNodes":1800'; do
  if ! grep -qF "$want" "$dir/out.json"; then
    echo "FAILED: no $want in"
    cat "$dir/out.json" "$dir/python.log"
    exit 1
  fi
done
# The template and the example, on their own.
for folder in templates/python examples/price_table; do
  (cd "$here/../$folder" && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "$venv/bin/python" -m unittest --quiet ./*_test.py)
done
# conformance HOST FLAGS...: the package keeps the contract, whatever its plugins do.
conformance() {
  local host=$1
  shift
  for _ in $(seq 100); do
    [[ ! -S $dir/$host.sock ]] || break
    sleep 0.1
  done
  if ! "$bin/outboard" conformance --host "unix:$dir/$host.sock" "$@" >"$dir/conformance" 2>&1; then
    echo "FAILED: the package does not keep the contract ($host)"
    cat "$dir/conformance" "$dir/$host.log"
    exit 1
  fi
  echo "$host: $(tail -n 1 "$dir/conformance")"
}
conformance python --node-label price=10
conformance every
conformance permit
conformance template --node-label example-plugin/price=3 --plugin ExamplePlugin --args '{"maxPrice": 5}'
conformance price_table --node-label node.kubernetes.io/instance-type=small --plugin PriceTable --args "{\"file\": \"$dir/prices.csv\"}"
echo "ok: a plugin in Python beside the built-in ones"
