#!/usr/bin/env bash
# Plugins as shared objects in a running host. Usage: plugin_directory_test.sh OUTBOARD OBJECT, the object of
# sdk/examples/maintenance_window.
set -euo pipefail
outboard=$1 object=$2
dir=$(mktemp -d)
host=
finish() {
  if [[ -n $host ]]; then
    kill "$host" 2>/dev/null || true
    wait "$host" 2>/dev/null || true
  fi
  rm -rf "$dir"
}
trap finish EXIT
mkdir "$dir/plugins" "$dir/sockets"

fail() {
  echo "FAILED: $*"
  cat "$dir/host.log"
  exit 1
}
# await WHAT COMMAND…: retries until the command succeeds, for at most 20 s.
await() {
  local what=$1 until=$((SECONDS + 20))
  shift
  until "$@"; do
    [[ $SECONDS -lt $until ]] || fail "$what"
    sleep 0.05
  done
}
logged() { grep -qF "$1" "$dir/host.log"; }
sockets() { find "$dir/sockets" -type s | wc -l; }
has_sockets() { [[ $(sockets) == "$1" ]]; }
newest() { find "$dir/sockets" -type s -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2; }

"$(dirname "$outboard")/outboard-host" --plugin-dir "$dir/plugins" --listen "unix:$dir/sockets/main@{instance}.sock" 2>"$dir/host.log" &
host=$!
await "the host listens" has_sockets 1

# A file that is not in the manifest, then one with a different digest: rejected, nothing changes.
cp "$object" "$dir/plugins/maintenance_window.so"
await "a stray object is rejected" logged 'refused, nothing has changed: maintenance_window.so: it is not in SHA256SUMS'
sha256sum /dev/null | sed 's,/dev/null,maintenance_window.so,' >"$dir/plugins/SHA256SUMS"
await "a different digest is rejected" logged 'maintenance_window.so: its sha256 is'
has_sockets 1 || fail "a rejected set has an instance"

# By hand, as in a Dockerfile: loaded, beside the first instance.
(cd "$dir/plugins" && sha256sum ./*.so >SHA256SUMS)
await "the object is loaded" logged 'with maintenance_window.so@'
# The first instance has no connection: it ends.
await "the first instance ends" has_sockets 1

cat >"$dir/config.yaml" <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: MaintenanceWindow}]}}
YAML
cat >"$dir/cluster.yaml" <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: closed, annotations: {outboard.dev/maintenance: "2000-01-01T00:00:00Z/2999-01-01T00:00:00Z"}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: open}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
YAML
cat >"$dir/pods.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec: {containers: [{name: main, image: app}]}
YAML
"$outboard" simulate --cluster "$dir/cluster.yaml" --pods "$dir/pods.yaml" --config "$dir/config.yaml" --host "unix:$(newest)" -o json >"$dir/out.json" 2>>"$dir/host.log" ||
  fail "the simulation"
grep -qF '"closed":{"code":"UnschedulableAndUnresolvable","plugin":"MaintenanceWindow"' "$dir/out.json" || fail "the plugin has not decided: $(cat "$dir/out.json")"

# Removed by the command; the command rejects a file that is not an object.
"$outboard" plugin remove maintenance_window.so --into "$dir/plugins" >"$dir/out" || fail "outboard plugin remove"
grep -q 'holds no plugins' "$dir/out" || fail "outboard plugin remove printed: $(cat "$dir/out")"
await "another instance, without it" has_sockets 2
if "$outboard" plugin install "$0" --into "$dir/plugins" 2>"$dir/out"; then fail "a script was accepted as an object"; fi
grep -q 'ends with .so' "$dir/out" || fail "outboard plugin install printed: $(cat "$dir/out")"

kill "$host"
wait "$host" || fail "the host did not end with 0"
host=
has_sockets 0 || fail "sockets are left"
echo "ok: objects are loaded, rejected, and removed"
