#!/usr/bin/env bash
# affected_test.sh BUILD-FOLDER: what `./dev check` builds and runs after a change, asked of the real build graph.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$1
failed=0

# expect FILE WANTED UNWANTED: the answer for FILE has the line WANTED and does not have UNWANTED.
expect() {
  local file=$1 wanted=$2 unwanted=$3 answer
  answer=$(python3 integration/affected/affected.py "$build" "$file")
  grep -qx "$wanted" <<<"$answer" || { echo "$file: no line \"$wanted\" among $(wc -l <<<"$answer")"; failed=1; }
  ! grep -qx "$unwanted" <<<"$answer" || { echo "$file: an unwanted line \"$unwanted\""; failed=1; }
}

expect plugins/gpu_packing/gpu_packing.cc "program bin/outboard-host" "program bin/outboard-shim"
expect plugins/gpu_packing/gpu_packing.cc "test plugins/gpu_packing/gpu_packing_test" "test shim/queue/scheduling_queue_test"
expect shim/queue/scheduling_queue.cc "program bin/outboard-shim" "program bin/outboard-host"
expect shim/queue/scheduling_queue.cc "test shim/queue/scheduling_queue_test" "test plugins/gpu_packing/gpu_packing_test"
# A contract file reaches everything through generated code.
expect proto/outboard/v1beta1/types.proto "program bin/outboard-shim" "nothing"
expect proto/outboard/v1beta1/types.proto "program bin/outboard-host" "nothing"
expect proto/outboard/v1beta1/types.proto "test shim/queue/scheduling_queue_test" "nothing"
# A header, and a file that nothing is built from.
expect shim/queue/scheduling_queue.h "test shim/scheduler/scheduler_test" "program bin/outboard-host"
expect README.md "" "program .*"
exit "$failed"
