#!/usr/bin/env bash
# Records again what real publishers of GPU facts write, into recorded/. `git diff` then shows what an update changed.
# --ldflags only prints the linker's flags that the topology updater needs. Needs Go, and Prometheus (see ../test_tiers.sh).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Node Feature Discovery's own build sets this prefix to where the container mounts the host's files.
ldflags='-X sigs.k8s.io/node-feature-discovery/pkg/utils/hostpath.pathPrefix=host/'
if [[ ${1:-} == --ldflags ]]; then
  printf '%s\n' "$ldflags"
  exit
fi
export UPDATE_GOLDEN=1
for publisher in gpu_feature_discovery topology_updater metrics; do
  (cd "$here/$publisher" && go test -count=1 -ldflags "$ldflags" ./...)
done
