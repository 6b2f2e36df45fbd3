#!/usr/bin/env bash
# Creates each fault that hygiene_test.sh looks for in a small correct tree, and expects a report of it.
set -euo pipefail
test=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/hygiene_test.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

fresh() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{cli/inspect,docs,shim/queue,plugin_host/sdk,plugins/a,plugins/b,proto/lint}
  local room
  for room in cli/inspect shim/queue plugin_host/sdk plugins/a plugins/b proto/lint; do printf '# %s\n\nText.\nMore.\n' "$room" >"$tree/$room/README.md"; done
  # shellcheck disable=SC2016
  printf '| `cli/` | x |\n| `cli/inspect/` | x |\n| `shim/` | x |\n| `shim/queue/` | x |\n| `plugin_host/` | x |\n| `plugin_host/sdk/` | x |\n| `plugins/` | x |\n| `proto/` | x |\n| `proto/lint/` | x |\n' >"$tree/docs/architecture.md"
  # shellcheck disable=SC2016
  printf '`a` and `b`\n' >"$tree/plugins/README.md"
  # shellcheck disable=SC2016
  echo '| `q` | x |' >>"$tree/shim/queue/README.md"
  echo '#include "proto/a.h"' >"$tree/shim/queue/q.cc"
  echo '#include "plugin_host/sdk/plugin.h"' >"$tree/plugins/a/a.cc"
}

expect() { # CHECK WORDS
  local out
  if out=$(OUTBOARD_ROOT=$tree "$test" "$1" 2>&1); then
    echo "FAILED: $1 does not report: $2"
    failed=1
  elif ! grep -qF "$2" <<<"$out"; then
    printf 'FAILED: %s reports something other than: %s\n%s\n' "$1" "$2" "$out"
    failed=1
  fi
}

accepts() { # CHECK WHAT
  OUTBOARD_ROOT=$tree "$test" "$1" || { echo "FAILED: $1 reports $2"; failed=1; }
}

fresh
OUTBOARD_ROOT=$tree "$test" || { echo "FAILED: reports faults in a correct tree"; failed=1; }

fresh
echo 'TEST_F(QueueTest, Holds) {' >"$tree/shim/queue/q_test.cc"
# shellcheck disable=SC2016
echo 'Held by `QueueTest.Holds`.' >"$tree/SECURITY.md"
accepts security_tests 'a test that exists'
# shellcheck disable=SC2016
echo 'Held by `QueueTest.Waits`.' >"$tree/SECURITY.md"
expect security_tests 'SECURITY.md: no test QueueTest.Waits'

# All rows name a test of Go, but the second and third, which are given.
table() { # TESTS OF ROW 2, TESTS OF ROW 3
  fresh
  mkdir -p "$tree/integration/faults"
  printf '# faults\n\nText.\n' >"$tree/integration/faults/README.md"
  printf 'package faults\n\nfunc TestKill(t *testing.T) {}\n' >"$tree/integration/faults/kill_test.go"
  printf 'TEST_F(QueueTest,\n       Holds) {\n' >"$tree/shim/queue/q_test.cc"
  local row tests
  for row in $(seq 42); do
    # shellcheck disable=SC2016
    tests='`TestKill`'
    [[ $row != 2 ]] || tests=$1
    [[ $row != 3 ]] || tests=$2
    # shellcheck disable=SC2016
    printf '| %d | `a` | `b` | %s | `c` |\n' "$row" "$tests"
  done >"$tree/integration/faults/matrix.md"
}
# shellcheck disable=SC2016
table '`TestKill` and `QueueTest.Holds`' '`shim/run.sh`'
touch "$tree/shim/run.sh"
chmod +x "$tree/shim/run.sh"
accepts fault_tests 'tests that exist'
# shellcheck disable=SC2016
table '`TestLive`' '`TestKill`'; expect fault_tests 'row 2: no test TestLive'
# shellcheck disable=SC2016
table '`TestKill`' '`QueueTest.Waits`'; expect fault_tests 'row 3: no test QueueTest.Waits'
# shellcheck disable=SC2016
table '`TestKill`' '`shim/away.sh`'; expect fault_tests 'row 3: no script shim/away.sh'
# shellcheck disable=SC2016
table 'none yet' '`TestKill`'; expect fault_tests 'row 2 names no test'
echo 'Rows without a test: 2.' >>"$tree/integration/faults/matrix.md"; accepts fault_tests 'a row that is listed as one without a test'
echo 'Rows without a test: 2, 12.' >>"$tree/integration/faults/matrix.md"; expect fault_tests 'row 12 names a test, and is listed as a row without'
# shellcheck disable=SC2016
table '`TestKill`' '`TestKill`'; sed -i '/^| 7 |/d' "$tree/integration/faults/matrix.md"; expect fault_tests 'its rows are not 1 to 42'

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
include plugins/a/x.cc plugin_host/cache/cluster_cache.h
include plugins/a/x.cc shim/queue/q.h
include proto/lint/x.cc shim/queue/q.h
include proto/lint/x.cc plugin_host/sdk/plugin.h
include shim/queue/x_test.cc cli/command_line.h
include shim/main.cc cli/command_line.h
include plugin_host/sdk/x_test.cc cli/command_line.h
include plugins/a/x.cc cli/command_line.h
include proto/lint/x.cc cli/command_line.h
include cli/inspect/x.cc plugin_host/sdk/plugin.h
include cli/main_test.cc plugins/a/a.h
include shim/queue/x.cc node_probe/flags.h
include plugins/a/x.cc node_probe/flags.h
include node_probe/x.cc shim/queue/q.h
include node_probe/x.cc plugin_host/cache/cluster_cache.h
include node_probe/x.cc plugins/a/a.h
fresh; mkdir "$tree/node_probe"; echo '#include "shim/kube/api_client.h"' >"$tree/node_probe/x.cc"; accepts includes "node_probe/ that includes the API client"
fresh; echo '#include "shim/queue/q.h"' >"$tree/cli/inspect/x.cc"; accepts includes "cli/ that includes shim/"

fresh; echo '#include "plugin_host/cache/cluster_cache.h"' >"$tree/plugin_host/sdk/x.h"; expect sdk 'plugin_host/sdk/x.h: the SDK must not include'
fresh; rm "$tree/shim/queue/README.md"; expect readmes 'shim/queue: has no README.md'
fresh; seq 100 >"$tree/plugins/a/README.md"; expect readmes 'plugins/a/README.md: 100 lines'
fresh; seq 251 >"$tree/shim/queue/x.h"; expect sizes 'shim/queue/x.h: 251 lines'
fresh; seq 601 >"$tree/shim/queue/x.cc"; expect sizes 'shim/queue/x.cc: 601 lines'
fresh; seq 901 >"$tree/shim/queue/x_test.cc"; expect sizes 'shim/queue/x_test.cc: 901 lines'
fresh; echo 'see /home/me/notes' >"$tree/shim/queue/x.md"; expect paths 'shim/queue/x.md:1: a path of one machine'
fresh; printf 'ELF\0' >"$tree/plugins/a/a.test"; expect binaries 'plugins/a/a.test: binary file'
fresh; mkdir "$tree/shim/util"; expect names 'shim/util: not a noun of the domain'
fresh; echo 'LOG(FATAL) << 1;' >"$tree/shim/queue/x.cc"; expect names 'shim/queue/x.cc:1: LOG(FATAL) outside main.cc'
fresh; mkdir "$tree/shim/bind"; expect rooms_table 'does not name shim/bind/'
fresh; rm -r "$tree/shim/queue"; expect rooms_table 'names shim/queue/, which does not exist'
fresh; mkdir "$tree/plugins/c"; expect rooms_table 'plugins/README.md: does not name'

fresh; echo 'absl::Time now = absl::Now();' >"$tree/shim/queue/x.cc"; expect clocks 'shim/queue/x.cc:1: absl::Now'
fresh; echo 'mutex.AwaitWithTimeout(condition, pause);' >"$tree/shim/queue/x.h"; expect clocks 'shim/queue/x.h:1: a wait until a wall time'
fresh; echo 'absl::Time now = absl::Now();' >"$tree/shim/queue/x_test.cc"; accepts clocks 'a test'

# The list beside the script, then one of the tree.
fresh; echo 'class FrontDesk;' >"$tree/shim/queue/x.h"; expect old_names 'shim/queue/x.h:1: an old name, see old_names.txt: FrontDesk'
own_list() { fresh; mkdir -p "$tree/integration/hygiene"; printf '# a comment\n\\bTurn\\(\t^shim/\t# RunOnce\n' >"$tree/integration/hygiene/old_names.txt"; }
own_list; echo 'void Turn();' >"$tree/shim/queue/x.h"; expect old_names 'shim/queue/x.h:1: an old name'
own_list; echo 'void Turn();' >"$tree/plugins/a/x.h"; accepts old_names 'a name outside of the files of its row'

fresh; echo '// Nobody waits.' >"$tree/shim/queue/x.h"; expect dialect 'shim/queue/x.h:1: a word of dialect.txt'
fresh; echo 'TEST(Queue, BeginsAnew) {' >"$tree/shim/queue/x.h"; expect dialect 'shim/queue/x.h:1: a word of dialect.txt'
fresh; echo 'A wait is no attempt.' >"$tree/plugins/a/x.md"; expect dialect 'plugins/a/x.md:1: a word of dialect.txt'
fresh; echo 'There is no clock here; a wait is no longer counted.' >"$tree/plugins/a/x.md"; accepts dialect 'plain uses'

fresh; echo >"$tree/shim/queue/heap.cc"; expect room_files 'shim/queue/README.md: does not name heap'
fresh; echo >"$tree/cli/inspect/hosts_command.h"; expect room_files 'cli/inspect/README.md: does not name hosts_command'
fresh; echo >"$tree/shim/queue/heap_test.cc"; accepts room_files 'a test'

many() { fresh; local i; for i in $(seq 30); do echo >"$tree/shim/queue/x$i.cc"; done; }
many; expect room_sizes 'shim/queue: 31 production files, more than 30'
many; printf '## Why so many files\n\nBecause.\n' >>"$tree/shim/queue/README.md"; accepts room_sizes 'a room that says why'
many; mv "$tree/shim/queue/x1.cc" "$tree/shim/queue/x1_test.cc"; accepts room_sizes 'a test'

# shellcheck disable=SC2016
in_docs() { fresh; printf 'See `%s`.\n' "$1" >"$tree/$2"; }
in_docs shim/queue/heap.h docs/a.md; expect paths_in_docs 'docs/a.md: names shim/queue/heap.h, which does not exist'
in_docs 'shim/*/*.py' CONTRIBUTING.md; expect paths_in_docs 'CONTRIBUTING.md: names shim/*/*.py, which does not exist'
in_docs 'shim/queue/q.{h,cc}' README.md; expect paths_in_docs 'README.md: names shim/queue/q.h, which does not exist'
in_docs 'shim/q;x' docs/a.md; expect paths_in_docs 'docs/a.md: names shim/q;x, which does not exist'
in_docs 'shim/*/q.cc' docs/a.md; accepts paths_in_docs 'a glob'
in_docs 'other/q.cc' docs/a.md; accepts paths_in_docs 'a path that does not begin with a folder of the repository'
in_docs shim docs/a.md
# shellcheck disable=SC2016
printf '```\n`shim/x`\n```\n' >>"$tree/docs/a.md"; accepts paths_in_docs 'a fenced block'

# shellcheck disable=SC2016
linked() { fresh; printf '# One\n\n[x](%s)\n\n## The second (and `last`) part\n' "$1" >"$tree/docs/a.md"; }
linked b.md; expect links 'docs/a.md: links to b.md, which does not exist'
linked ../shim/queue/README.md; accepts links 'a file'
linked architecture.md#pods; expect links 'docs/a.md: links to architecture.md#pods, which has no such heading'
linked '#the-second-and-last-part'; accepts links 'a heading of the same document'
linked https://example.com/x; accepts links 'another site'
fresh
# shellcheck disable=SC2016
printf '```\n[x](nowhere.md)\n```\n' >"$tree/docs/a.md"; accepts links 'a fenced block'

quoting() { # LINES
  fresh
  printf 'one\n  two\nthree\n' >"$tree/shim/queue/q.txt"
  # shellcheck disable=SC2016
  printf '<!-- quotes: %s -->\n```text\n%b```\n' shim/queue/q.txt "$1" >"$tree/docs/a.md"
}
quoting '  two\nthree\n'; accepts quotes 'a part of the file'
quoting 'two\n'; expect quotes 'docs/a.md:2: not a part of shim/queue/q.txt'
quoting 'one\nthree\n'; expect quotes 'docs/a.md:2: not a part of shim/queue/q.txt'
quoting ''; expect quotes 'docs/a.md:2: not a part of shim/queue/q.txt'
quoting 'one\n'; rm "$tree/shim/queue/q.txt"; expect quotes 'docs/a.md:2: not a part of shim/queue/q.txt'

fresh; printf '%0121d\n' 0 >"$tree/docs/a.md"; expect prose 'docs/a.md:1: more than 120 characters'
fresh; printf '| %0121d |\n' 0 >"$tree/docs/a.md"; accepts prose 'a table'
fresh; seq 3000 >"$tree/README.md"; expect prose 'README.md: more than 8 kB'

exit "$failed"
