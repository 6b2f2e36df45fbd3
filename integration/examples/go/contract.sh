#!/usr/bin/env bash
# Generates Go from the contract into its own module: contract.sh [FOLDER], by default build/examples/go/contract, to
# which go.mod points. The generators, pinned by go.mod, are built beside it. Needs protoc (Debian: protobuf-compiler)
# and Go.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=${1:-$root/build/examples/go/contract}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cat >"$out/go.mod" <<'MOD'
module outboard.dev/contract

go 1.26.0

require (
	google.golang.org/grpc v1.79.3
	google.golang.org/protobuf v1.36.11
)
MOD
cd "$here"
tools=$(dirname "$out")/tools
mkdir -p "$tools"
go build -o "$tools/" google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
options=(--go_out="$out" --go-grpc_out="$out" --go_opt=module=outboard.dev/contract --go-grpc_opt=module=outboard.dev/contract)
cd "$root/proto"
rm -rf "$out"/*.pb.go "$out/v1beta1" "$out/handshake"
PATH=$tools:$PATH protoc -I . "${options[@]}" outboard/v1beta1/*.proto outboard/handshake/v1/*.proto
