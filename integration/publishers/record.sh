#!/usr/bin/env bash
# Records again what real publishers of facts about nodes write, into recorded/. `git diff` then shows what an update changed.
# Needs Go, and Prometheus (see ../test_tiers.sh).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export UPDATE_GOLDEN=1
for publisher in gpu_feature_discovery node_feature_discovery metrics; do
  (cd "$here/$publisher" && go test -count=1 ./...)
done
