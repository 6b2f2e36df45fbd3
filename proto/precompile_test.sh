#!/usr/bin/env bash
# precompile_test.sh: two clones share a compiler cache and an old precompiled header; each must get its own headers.
set -euo pipefail
command -v ccache >/dev/null || { echo "precompile_test: skipped: no ccache"; exit 0; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DIR=$work/cache CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

# compile CLONE TEXT: TEXT becomes the clone's header, which is then precompiled as CMake does it.
compile() {
  mkdir -p "$work/$1"
  cd "$work/$1"
  echo "$2" >contract.h
  printf '#pragma GCC system_header\n#include "contract.h"\n' >pch.hxx
  echo >pch.hxx.cxx
  CCACHE_BASEDIR=$PWD "$here/precompile.sh" ccache g++ -fpch-preprocess -x c++-header -include "$PWD/pch.hxx" -o pch.hxx.gch -c "$PWD/pch.hxx.cxx"
}
# declares CLONE NAME: whether the clone's precompiled header declares NAME.
declares() {
  cd "$work/$1"
  echo "int main() { return $2(); }" | g++ -Winvalid-pch -Werror -include "$PWD/pch.hxx" -x c++ -fsyntax-only - 2>/dev/null
}

for clone in one other; do compile "$clone" 'inline int before() { return 0; }'; done
cmp "$work/one/pch.hxx.gch" "$work/other/pch.hxx.gch" || { echo "precompile_test: the clones do not share the cache"; exit 1; }
compile one 'inline int between() { return 0; }'
compile other 'inline int after() { return 0; }'
# The header itself is gone, so that only the precompiled one can answer.
rm "$work"/*/contract.h
declares one between || { echo "precompile_test: failed: the first clone's header is not its own"; exit 1; }
declares other after || { echo "precompile_test: failed: the second clone got another clone's header"; exit 1; }
if declares other between; then echo "precompile_test: failed: the second clone has the first one's header"; exit 1; fi
echo "precompile_test: passed"
