#!/usr/bin/env bash
# `outboard simulate` with the plugins of a profile on two hosts; replaces the program in comparisons. Usage:
# two_hosts.sh simulate FLAGS...
# OUTBOARD is the program, with outboard-host beside it. SPLIT lists the plugins of the first host (default: those
# that count pods).
set -euo pipefail
outboard=${OUTBOARD:?the outboard program}
split=${SPLIT:-NodePorts,NodeAffinity,PodTopologySpread,InterPodAffinity,NodeResourcesBalancedAllocation,VolumeRestrictions}
dir=$(mktemp -d)
hosts=()
trap 'kill "${hosts[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
host="$(dirname "$outboard")/outboard-host"
"$host" --listen "unix:$dir/1.sock" --plugins "$split" 2>"$dir/1.log" & hosts+=($!)
"$host" --listen "unix:$dir/2.sock" --plugins "-${split//,/,-}" 2>"$dir/2.log" & hosts+=($!)
"$outboard" "$@" --host "unix:$dir/1.sock" --host "unix:$dir/2.sock"
