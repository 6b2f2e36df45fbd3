#!/usr/bin/env bash
# CMake accepts the options that users and tests build with, in a folder that it has not seen. `./dev run` builds without tests: what only
# the tests' folders look for (a package, a target) is missing there.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
configure() { # NAME OPTION…
  local name=$1
  shift
  cmake -S "$root" -B "$dir/$name" -G Ninja "$@" >"$dir/log" 2>&1 && return
  echo "cmake $*: "
  cat "$dir/log"
  failed=1
}
configure product -DOUTBOARD_BUILD_TESTS=OFF
configure shim -DOUTBOARD_BUILD_TESTS=OFF -DOUTBOARD_BUILD_HOST=OFF -DOUTBOARD_FAIL_POINTS=ON
configure host -DOUTBOARD_BUILD_TESTS=OFF -DOUTBOARD_BUILD_SHIM=OFF
configure tests -DOUTBOARD_BUILD_TESTS=ON -DOUTBOARD_UNITY=OFF -DOUTBOARD_PRECOMPILE=OFF
exit $failed
