#!/usr/bin/env bash
# Generates the contract's code and starts the host: ./run.sh --listen unix:/run/outboard/hosts/budget@{instance}.sock
# Needs python3 and python3-venv. BUILD_ONLY=1 only generates, into build/examples/plain_python; SKIP_BUILD=1 only starts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=$root/build/examples/plain_python
if [[ -z ${SKIP_BUILD:-} ]]; then
  mkdir -p "$out"
  if ! "$out/venv/bin/python" -c 'import grpc_tools' 2>/dev/null; then
    python3 -m venv "$out/venv"
    "$out/venv/bin/pip" install --quiet grpcio==1.67.1 grpcio-tools==1.67.1
  fi
  cd "$root"
  "$out/venv/bin/python" -m grpc_tools.protoc -I proto --python_out="$out" --grpc_python_out="$out" \
    proto/outboard/handshake/v1/*.proto proto/outboard/v1beta1/*.proto proto/call_errors/rpc_status.proto
fi
[[ -z ${BUILD_ONLY:-} ]] || exit 0
PYTHONPATH=$out exec "$out/venv/bin/python" "$here/host.py" "$@"
