#!/usr/bin/env bash
# Runs the conformance kit against the built host. Usage: conformance_test.sh FOLDER-WITH-OUTBOARD [ARGUMENT OF THE KIT…]
set -euo pipefail
bin=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
dir=$(mktemp -d)
"$root/build/claims/outboard-claims-host" --listen "unix:$dir/claims@{instance}.sock" 2>"$dir/log" &
host=$!
trap 'kill "$host" 2>/dev/null || true; rm -rf "$dir"' EXIT
sockets=()
for ((i = 0; i < 100; ++i)); do
  sockets=("$dir"/claims@*.sock)
  [[ ! -S ${sockets[0]} ]] || break
  sleep 0.1
done
"$bin/outboard" conformance --host "unix:${sockets[0]}" "$@" || {
  cat "$dir/log"
  exit 1
}
# A graceful exit after SIGTERM has code 0.
kill -TERM "$host"
wait "$host"
