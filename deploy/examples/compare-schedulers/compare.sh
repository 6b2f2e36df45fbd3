#!/usr/bin/env bash
# Gives the same Jobs to kube-scheduler and then to Outboard, on the same nodes, and prints what each did with them.
# Usage: compare.sh [--quiet SECONDS] [--at-most SECONDS]
#   --quiet    a scheduler is done if no pod got a node for so long (45; Outboard waits 30 s for the pods of a gang)
#   --at-most  or after this time (300)
# Needs kubectl with rights to create namespaces and Jobs, and an installation of deploy/kustomize/ai-scheduler. The
# namespaces compare-kube-scheduler and compare-outboard are deleted at the end. Other work on the same nodes falsifies
# the result.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
quiet=45 at_most=300
while [[ $# -gt 0 ]]; do
  case $1 in
    --quiet) quiet=$2 ;;
    --at-most) at_most=$2 ;;
    *)
      echo "unknown argument: $1; usage: compare.sh [--quiet SECONDS] [--at-most SECONDS]" >&2
      exit 2
      ;;
  esac
  shift 2
done

# jobs NAMESPACE: lines `job NAME KIND WORKERS`. pods NAMESPACE: lines `pod JOB NODE GPUS`, NODE <none> if it waits.
jobs() { kubectl get jobs -n "$1" --no-headers -o custom-columns='NAME:.metadata.name,KIND:.metadata.labels.compare,WORKERS:.spec.parallelism' | sed 's/^/job /'; }
pods() {
  kubectl get pods -n "$1" --no-headers \
    -o custom-columns='JOB:.metadata.labels.job-name,NODE:.spec.nodeName,GPUS:.spec.containers[0].resources.limits.nvidia\.com/gpu' | sed 's/^/pod /'
}

await_quiet() { # NAMESPACE
  local before='' now start=$SECONDS changed=$SECONDS
  while ((SECONDS - changed < quiet && SECONDS - start < at_most)); do
    now=$(pods "$1" | sort)
    [[ $now == "$before" ]] || changed=$SECONDS
    before=$now
    sleep 1
  done
}

row() { # NAMESPACE
  { jobs "$1"; pods "$1"; } | awk -v name="${1#compare-}" '
    $1 == "job" { kind[$2] = $3; workers[$2] = $4 }
    $1 == "pod" { all++; if ($3 != "<none>") { placed++; has[$2]++; gpus[$2] += $4 } }
    END {
      for (job in kind) if (kind[job] == "gang") {
        if (has[job] >= workers[job]) complete++
        else if (has[job] > 0) { split_gangs++; idle += gpus[job] }
        else waiting++
      }
      for (job in gpus) used += gpus[job]
      printf "%-16s %7s %9d %6d %8d %10d %10d\n", name, placed + 0 "/" all + 0, complete, split_gangs, waiting, used, idle
    }'
}

created=()
clean_up() { for name in "${created[@]}"; do kubectl delete namespace "$name" --wait --ignore-not-found >/dev/null; done; }
trap clean_up EXIT
rows=()
for scheduler in kube-scheduler outboard; do
  namespace=compare-$scheduler
  created=("$namespace")
  kubectl apply -k "$here/$scheduler" >/dev/null
  await_quiet "$namespace"
  rows+=("$(row "$namespace")")
  clean_up # The next scheduler gets the same free nodes.
  created=()
done
printf '%-16s %7s %9s %6s %8s %10s %10s\n' '' '' gangs '' '' 'GPUs held' 'of these in'
printf '%-16s %7s %9s %6s %8s %10s %10s\n' scheduler pods complete split waiting 'by pods' 'split gangs'
printf '%s\n' "${rows[@]}"
