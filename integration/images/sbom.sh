#!/usr/bin/env bash
# sbom.sh IMAGE: prints the contents of an image as SPDX 2.3 in JSON: itself, and every Debian package with its
# version.
set -euo pipefail
image=$1
docker run --rm --network=none --entrypoint dpkg-query "$image" --show --showformat '${Package}\t${Version}\t${Architecture}\n' |
  "$(dirname "${BASH_SOURCE[0]}")/spdx.sh" "${image%%:*}" "${image#*:}"
