#!/usr/bin/env bash
# check.sh [FLAG…]: runs the images of build.sh with the Docker daemon, beside a real control plane. Flags are the
# test's, such as -images.swaps 50. Called by `./dev images --check`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
OUTBOARD_IMAGES=$(cat VERSION)
export OUTBOARD_IMAGES
cd integration
go run ./control_plane/cmd/build-tools
go test -count=1 -v -timeout 60m ./images -args "$@"
