#!/usr/bin/env bash
# heap_test.sh PROGRAM…: each one has jemalloc as its heap, with the settings of outboard_uses_jemalloc
# (CMakeLists.txt). Without them nothing fails, but memory grows for weeks.
set -euo pipefail
failed=0
for program in "$@"; do
  # The statistics that jemalloc prints at the end.
  settings=$(MALLOC_CONF=stats_print:true "$program" --version 2>&1 >/dev/null)
  for setting in 'opt.narenas: 2' 'opt.background_thread: true'; do
    if ! grep -qF "$setting" <<<"$settings"; then
      echo "FAILED: $program: its heap is without \"$setting\""
      failed=1
    fi
  done
done
exit "$failed"
