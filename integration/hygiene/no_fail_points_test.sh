#!/usr/bin/env bash
# no_fail_points_test.sh OUTBOARD-SHIM [WITH-FAIL-POINTS]: the program that is shipped has no fail points (shim/fail_point.h), by which a variable
# of the environment could stop it. With a second program, which was built with them, also that this test would find them.
set -euo pipefail
has() { LC_ALL=C grep -qa OUTBOARD_FAIL_POINT "$1"; }
if has "$1"; then
  echo "FAILED: $1 was built with fail points"
  exit 1
fi
[[ $# -lt 2 ]] || has "$2" || { echo "FAILED: $2 has no fail points"; exit 1; }
