#!/usr/bin/env bash
# Commits every fault that hygiene_test.sh looks for, one by one, in a small tree that is in order, and expects to see it found.
set -euo pipefail
test=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/hygiene_test.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

fresh() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{shim/queue,plugin_host/sdk,plugins/a,plugins/b,proto/lint}
  local room
  for room in shim/queue plugin_host/sdk plugins/a plugins/b proto/lint; do printf '# %s\n\nText.\nMore.\n' "$room" >"$tree/$room/README.md"; done
  # shellcheck disable=SC2016
  printf '| `shim/` | x |\n| `shim/queue/` | x |\n| `plugin_host/` | x |\n| `plugin_host/sdk/` | x |\n| `plugins/` | x |\n| `proto/` | x |\n| `proto/lint/` | x |\n' >"$tree/README.md"
  # shellcheck disable=SC2016
  printf '`a` and `b`\n' >"$tree/plugins/README.md"
  echo '#include "proto/a.h"' >"$tree/shim/queue/q.cc"
  echo '#include "plugin_host/sdk/plugin.h"' >"$tree/plugins/a/a.cc"
}

expect() { # CHECK WORDS
  local out
  if out=$(OUTBOARD_ROOT=$tree "$test" "$1" 2>&1); then
    echo "FAILED: $1 does not see: $2"
    failed=1
  elif ! grep -qF "$2" <<<"$out"; then
    printf 'FAILED: %s says something else than: %s\n%s\n' "$1" "$2" "$out"
    failed=1
  fi
}

fresh
OUTBOARD_ROOT=$tree "$test" || { echo "FAILED: finds faults where there are none"; failed=1; }

include() { # FILE HEADER
  fresh
  mkdir -p "$tree/$(dirname "$1")"
  echo "#include \"$2\"" >"$tree/$1"
  expect includes "$1: must not include $2"
}
include shim/queue/x.cc plugin_host/sdk/plugin.h
include shim/queue/x.h plugins/a/a.h
include plugin_host/sdk/x.cc shim/queue/q.h
include plugin_host/sdk/x.cc plugins/a/a.h
include plugins/a/x.cc plugins/b/b.h
include plugins/a/x.cc plugins/builtin_plugins.h
include plugins/a/x.cc plugin_host/mirror/mirror.h
include plugins/a/x.cc shim/queue/q.h
include proto/lint/x.cc shim/queue/q.h
include proto/lint/x.cc plugin_host/sdk/plugin.h

fresh; echo '#include "plugin_host/mirror/mirror.h"' >"$tree/plugin_host/sdk/x.h"; expect sdk 'plugin_host/sdk/x.h: the SDK must not include'
fresh; rm "$tree/shim/queue/README.md"; expect readmes 'shim/queue: has no README.md'
fresh; seq 100 >"$tree/plugins/a/README.md"; expect readmes 'plugins/a/README.md: 100 lines'
fresh; seq 301 >"$tree/shim/queue/x.h"; expect sizes 'shim/queue/x.h: 301 lines'
fresh; seq 601 >"$tree/shim/queue/x.cc"; expect sizes 'shim/queue/x.cc: 601 lines'
fresh; seq 901 >"$tree/shim/queue/x_test.cc"; expect sizes 'shim/queue/x_test.cc: 901 lines'
fresh; echo 'see /home/me/notes' >"$tree/shim/queue/x.md"; expect paths 'shim/queue/x.md:1: a path of one machine'
fresh; printf 'ELF\0' >"$tree/plugins/a/a.test"; expect binaries 'plugins/a/a.test: is no text'
fresh; mkdir "$tree/shim/util"; expect names 'shim/util: not a noun of the domain'
fresh; echo 'LOG(FATAL) << 1;' >"$tree/shim/queue/x.cc"; expect names 'shim/queue/x.cc:1: LOG(FATAL) outside main.cc'
fresh; mkdir "$tree/shim/bind"; expect rooms_table 'does not name shim/bind/'
fresh; rm -r "$tree/shim/queue"; expect rooms_table 'names shim/queue/, which does not exist'
fresh; mkdir "$tree/plugins/c"; expect rooms_table 'plugins/README.md: does not name'

exit "$failed"
