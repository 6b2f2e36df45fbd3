#!/usr/bin/env bash
# Runs the package's tests and type checks. Then runs the README's plugin, unchanged, beside the built-in ones, with and
# without a cluster cache.
# Usage: plugin_test.sh FOLDER-WITH-OUTBOARD
set -euo pipefail
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/environment.sh")
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

cd "$here"
PYTHONPATH=$here "$python" -m unittest discover -s tests
"$python" -m mypy --strict --ignore-missing-imports --cache-dir "$dir/mypy" outboard_plugin

# shellcheck disable=SC2016
sed -n '/^```python$/,/^```$/p' "$here/README.md" | sed '1d;$d' >"$dir/cheap_nodes.py"
sed 's/^serve(CheapNodes())$/serve(CheapNodes(), inline_nodes=True)/' "$dir/cheap_nodes.py" >"$dir/cheap_inline.py"
for name in nodes inline; do
  PYTHONPATH=$here "$python" "$dir/cheap_$name.py" --listen "unix:$dir/$name.sock" 2>"$dir/$name.log" &
  pids+=($!)
done
for points in every every_inline permit columns; do
  PYTHONPATH=$here "$python" "$here/testdata/every_point.py" $points --listen "unix:$dir/$points.sock" 2>"$dir/$points.log" &
  pids+=($!)
done
printf 'type,price\nsmall,1\nlarge,3\n' >"$dir/prices.csv"
for plugin in template=templates/python/example_plugin.py price_table=examples/price_table/price_table.py; do
  name=${plugin%%=*}
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "$python" "$here/../${plugin#*=}" --listen "unix:$dir/$name.sock" 2>"$dir/$name.log" &
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
for name in nodes inline; do
  # simulate waits until the hosts exist.
  "$bin/outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$dir/config.yaml" \
    --host "unix:$dir/builtin.sock" --host "unix:$dir/$name.sock" -o json >"$dir/out.json" 2>"$dir/log" || {
    cat "$dir/log" "$dir/$name.log"
    exit 1
  }
  for want in '"node":"b"' '"c":{"code":"Unschedulable","plugin":"CheapNodes","reasons":["node(s) had no price"]}' '"CheapNodes":1800'; do
    if ! grep -qF "$want" "$dir/out.json"; then
      echo "FAILED: no $want in"
      cat "$dir/out.json" "$dir/$name.log"
      exit 1
    fi
  done
done
grep -q 'nodes come with each call' "$dir/inline.log" || { echo "FAILED: the second host has a cluster cache"; exit 1; }
# The tests of the template and the example.
for folder in templates/python examples/price_table; do
  (cd "$here/../$folder" && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "$python" -m unittest --quiet ./*_test.py)
done
# conformance HOST FLAGS...: the package conforms to the contract with any plugins, with and without a cluster cache.
conformance() {
  local host=$1
  shift
  for _ in $(seq 100); do
    [[ ! -S $dir/$host.sock ]] || break
    sleep 0.1
  done
  if ! "$bin/outboard" conformance --host "unix:$dir/$host.sock" "$@" >"$dir/conformance" 2>&1; then
    echo "FAILED: the package does not conform to the contract ($host)"
    cat "$dir/conformance" "$dir/$host.log"
    exit 1
  fi
  echo "$host: $(tail -n 1 "$dir/conformance")"
}
conformance nodes --node-label price=10
conformance inline --node-label price=10
conformance every
conformance every_inline
conformance permit
conformance columns
grep -q 'nodes come with each call, in columns' "$dir/columns.log" || { echo "FAILED: the host does not ask for columns"; exit 1; }
conformance template --plugin ExamplePlugin --args '{"required": false}'
conformance price_table --node-label node.kubernetes.io/instance-type=small --plugin PriceTable --args "{\"file\": \"$dir/prices.csv\"}"
echo "ok: a plugin in Python beside the built-in ones, with and without a cluster cache"
