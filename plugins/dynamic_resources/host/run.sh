#!/usr/bin/env bash
# Builds the host and starts it: ./run.sh --listen unix:/run/outboard/hosts/claims@{instance}.sock
# BUILD_ONLY=1 only builds, into build/claims/outboard-claims-host.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
program=$root/build/claims/outboard-claims-host
"$root/integration/examples/go/contract.sh" "$root/build/claims/contract"
(cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${OUTBOARD_VERSION:-dev}" -o "$program" .)
[[ -z ${BUILD_ONLY:-} ]] || exit 0
exec "$program" "$@"
