#!/usr/bin/env bash
# `outboard simulate` with a second host that serves device claims; replaces the program in comparisons. Usage:
# claims_host.sh simulate FLAGS...
# OUTBOARD is the program, with outboard-host beside it; CLAIMS_HOST is outboard-claims-host
# (plugins/dynamic_resources/host/run.sh builds it).
set -euo pipefail
outboard=${OUTBOARD:?the outboard program}
claims_host=${CLAIMS_HOST:-$(dirname "$0")/../../build/claims/outboard-claims-host}
dir=$(mktemp -d)
hosts=()
trap 'kill "${hosts[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
# The configuration says what the host may read and write.
arguments=() config=
while (($#)); do
  if [[ $1 == --config ]]; then
    config=$2
    shift 2
  else
    arguments+=("$1")
    shift
  fi
done
if [[ -n $config ]]; then
  cat "$config"
else
  printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'
fi >"$dir/config.yaml"
cat >>"$dir/config.yaml" <<'YAML'
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
customResources:
- {resource: resourceclaims.v1.resource.k8s.io, verbs: [create, delete, patch, patchStatus]}
- {resource: resourceslices.v1.resource.k8s.io}
- {resource: deviceclasses.v1.resource.k8s.io}
YAML
"$claims_host" --listen "unix:$dir/claims.sock" 2>"$dir/claims.log" & hosts+=($!)
"$(dirname "$outboard")/outboard-host" --listen "unix:$dir/plugins.sock" 2>"$dir/plugins.log" & hosts+=($!)
status=0
"$outboard" "${arguments[@]}" --config "$dir/config.yaml" --host "unix:$dir/claims.sock" --host "unix:$dir/plugins.sock" || status=$?
if [[ $status != 0 ]]; then
  tail -n 5 "$dir/claims.log" "$dir/plugins.log" >&2
fi
exit "$status"
