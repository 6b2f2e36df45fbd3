#!/usr/bin/env bash
# The command against our own host: all cases pass, the report is XML, exit codes are as told. Usage: command_test.sh FOLDER-WITH-OUTBOARD
set -euo pipefail
bin=$1
dir=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill "$pid"; rm -rf "$dir"' EXIT
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

status 2 --host "unix:$dir/nobody.sock"
status 2 --host "unix:$dir/nobody.sock" --only 'NoSuchService/*'
status 0 --list
grep -q '^FilterService/well-formed: ' "$dir/out" || fail "--list names no cases"

mkfifo "$dir/log"
GLOG_minloglevel=0 "$bin/outboard-host" --listen "unix:$dir/host.sock" 2>"$dir/log" &
pid=$!
# It listens once it says so.
while read -r line; do
  echo "$line" >>"$dir/host.log"
  [[ $line != *"listens on"* ]] || break
done <"$dir/log" || fail "the host does not start"
cat "$dir/log" >>"$dir/host.log" &

status 0 --host "unix:$dir/host.sock" --junit "$dir/junit.xml"
tail -n 1 "$dir/out"
tail -n 1 "$dir/out" | grep -qE '^[0-9]+ passed, 0 failed, 0 skipped$' || fail "not all cases passed"
python3 -c '
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
assert suite.get("failures") == "0" and int(suite.get("tests")) == len(suite.findall("testcase")) > 70, suite.attrib
' "$dir/junit.xml" || fail "the report is not as it should be"
# Half of the plugins, and arguments.
status 0 --host "unix:$dir/host.sock" --only '*/well-formed' --plugin NodeResourcesFit --args '{"scoringStrategy": {"type": "MostAllocated"}}' --plugin NodeName
grep -q '^4 passed, 0 failed' "$dir/out" || fail "not these cases"
status 2 --host "unix:$dir/host.sock" --plugin NoSuchPlugin
status 2 --host "unix:$dir/host.sock" --plugin NodeResourcesFit --args '{'
echo "ok: our own host keeps the contract"
