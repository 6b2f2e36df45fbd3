#!/usr/bin/env bash
# Creates the package's test environment if it is missing, and prints the path of its Python. grpcio-status reads errors as
# clients in Python do; the package does not need it.
set -euo pipefail
venv=${XDG_CACHE_HOME:-$HOME/.cache}/outboard/python-1.67.1
if [[ ! -x $venv/bin/python ]] || ! "$venv/bin/python" -c 'import grpc, grpc_status, grpc_tools, mypy' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet grpcio==1.67.1 grpcio-tools==1.67.1 grpcio-status==1.67.1 mypy==1.13.0 >&2
fi
echo "$venv/bin/python"
