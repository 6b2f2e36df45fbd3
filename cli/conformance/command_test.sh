#!/usr/bin/env bash
# The command against our own host: all cases pass, the report is XML, exit codes are as told. Usage: command_test.sh FOLDER-WITH-OUTBOARD
# OBJECT..., which are those of the template and the example: they keep it beside the built-in plugins, and alone.
set -euo pipefail
bin=$1
dir=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() {
  echo "FAILED: $*"
  cat "$dir/out" "$dir/host.log" 2>/dev/null || true
  exit 1
}
status() { # WANTED ARGUMENTS...
  local wanted=$1 got=0
  shift
  "$bin/outboard" conformance "$@" >"$dir/out" 2>&1 || got=$?
  [[ $got == "$wanted" ]] || fail "outboard conformance $* ended with $got, not $wanted"
}

status 2 --host "unix:$dir/missing.sock"
status 2 --host "unix:$dir/missing.sock" --only 'NoSuchService/*'
status 0 --list
grep -q '^FilterService/well-formed: ' "$dir/out" || fail "--list names no cases"

mkdir "$dir/plugins"
cp "${@:2}" "$dir/plugins"
(cd "$dir/plugins" && sha256sum ./*.so >SHA256SUMS)
GLOG_minloglevel=0 "$bin/outboard-host" --plugin-dir "$dir/plugins" --listen "unix:$dir/main@{instance}.sock" 2>"$dir/host.log" &
pid=$!
host=
until [[ -n $host ]]; do
  kill -0 "$pid" || fail "the host does not start"
  host=$(find "$dir" -name 'main@*.sock')
  [[ -n $host ]] || sleep 0.05
done

status 0 --host "unix:$host" --junit "$dir/junit.xml"
tail -n 1 "$dir/out"
# GPULoad cannot be configured without the address of a Prometheus; the kit says so, and tries the others.
tail -n 1 "$dir/out" | grep -qE '^[0-9]+ passed, 0 failed, 13 skipped$' || fail "not all cases passed"
for skipped in 'plugin GPULoad' ack-every-version post-bind; do
  grep -qE " $skipped +skipped" "$dir/out" || fail "another case than $skipped was skipped"
done
python3 -c '
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
assert suite.get("failures") == "0" and int(suite.get("tests")) == len(suite.findall("testcase")) > 70, suite.attrib
' "$dir/junit.xml" || fail "the report is not as it should be"
# Half of the plugins, and arguments.
status 0 --host "unix:$host" --only '*/well-formed' --plugin NodeResourcesFit --args '{"scoringStrategy": {"type": "MostAllocated"}}' --plugin NodeName
grep -q '^5 passed, 0 failed' "$dir/out" || fail "not these cases"
# The template's plugin on its own, on nodes that it likes.
status 0 --host "unix:$host" --plugin ExamplePlugin --args '{"maxPrice": 5}' --node-label example-plugin/price=3
tail -n 1 "$dir/out"
status 2 --host "unix:$host" --plugin NoSuchPlugin
status 2 --host "unix:$host" --plugin NodeResourcesFit --args '{'
echo "ok: our own host keeps the contract"
