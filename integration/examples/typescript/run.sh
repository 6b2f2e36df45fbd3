#!/usr/bin/env bash
# Builds the host and starts it: ./run.sh --listen unix:/run/outboard/hosts/hardware@{instance}.sock
# Needs Node 18 or later and npm (Debian: nodejs, npm). BUILD_ONLY=1 only builds, into build/examples/typescript; SKIP_BUILD=1 only starts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=$root/build/examples/typescript
if [[ -z ${SKIP_BUILD:-} ]]; then
  mkdir -p "$out"
  rm -rf "$out"/{src,proto,dist}
  cp -r "$root/proto" "$here"/{package.json,package-lock.json,tsconfig.json,src} "$out"
  cd "$out"
  # The packages stay until their versions change.
  if ! cmp --silent package-lock.json node_modules/installed; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/installed
  fi
  npm run --silent build
fi
[[ -z ${BUILD_ONLY:-} ]] || exit 0
exec node "$out/dist/host.js" "$@"
