#!/usr/bin/env bash
# Builds the host and starts it: ./run.sh --listen unix:/run/outboard/hosts/power@{instance}.sock
# BUILD_ONLY=1 only builds, into build/examples/go/power-domains.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/contract.sh"
program=$here/../../../build/examples/go/power-domains
(cd "$here" && go build -o "$program" .)
[[ -z ${BUILD_ONLY:-} ]] || exit 0
exec "$program" "$@"
