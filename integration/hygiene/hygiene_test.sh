#!/usr/bin/env bash
# What the compiler does not check: who includes whom, sizes, READMEs, paths. `hygiene_test.sh [CHECK…]`, all by default.
#
# Prints a line for each fault and ends with 1 if there was one. OUTBOARD_ROOT names another tree to look at (see hygiene_self_test.sh).
set -euo pipefail
cd "${OUTBOARD_ROOT:-$(dirname "${BASH_SOURCE[0]}")/../..}"

faults=0
fault() { printf '%s\n' "$*"; faults=$((faults + 1)); }
# Nothing that is built or hidden.
sources() { find . \( -name build -o -name '.?*' \) -prune -o -type f \( "$@" \) -print | sed 's,^\./,,' | sort; }
# Folders of all rooms.
rooms() { find shim plugin_host plugins proto integration sdk -mindepth 1 -maxdepth 1 -type d ! -name testdata 2>/dev/null | sort; }
is_contract_folder() { [[ $1 == proto/outboard ]]; }

# Two processes share only the contract; plugins know the SDK alone.
check_includes() {
  local file what allowed
  while IFS=: read -r file what; do
    allowed=1
    case $file in
      shim/*) [[ $what == plugin_host/* || $what == plugins/* ]] && allowed=0 ;;
      plugins/builtin_plugins.* | plugins/builtin_plugins_test.cc | plugins/signatures_test.cc | plugins/absurd_* | plugins/plans_* | plugins/batches_test.cc | plugins/session_age_test.cc | plugins/*_plans_test.cc) [[ $what == shim/* ]] && allowed=0 ;;
      plugins/*)
        local plugin=${file#plugins/}
        plugin=plugins/${plugin%%/*}/
        case $what in
          plugin_host/sdk/* | proto/* | "$plugin"*) ;;
          # Tests may compare a plugin with another one, by its descriptor.
          plugins/builtin_plugins.h) [[ $file == *_test.cc ]] || allowed=0 ;;
          shim/* | plugin_host/* | plugins/*) allowed=0 ;;
        esac
        ;;
      # Tests may run the host with real plugins.
      plugin_host/*_test.cc) [[ $what == shim/* ]] && allowed=0 ;;
      plugin_host/*)
        case $what in
          plugins/builtin_plugins.h) ;;
          shim/* | plugins/*) allowed=0 ;;
        esac
        ;;
      proto/*) [[ $what == plugin_host/* || $what == plugins/* ]] && allowed=0 ;;
    esac
    # The fake host's test drives the shim's client against it; nothing else in proto/ may know a process.
    [[ $file == proto/* && $file != proto/testing/*_test.cc && $what == shim/* ]] && allowed=0
    [[ $allowed == 1 ]] || fault "$file: must not include $what"
  done < <(sources -name '*.cc' -o -name '*.h' | xargs --no-run-if-empty grep -HoE '^#include "(shim|plugin_host|plugins|proto)/[^"]*"' /dev/null |
    sed -E 's/#include "([^"]*)"/\1/')
}

# The SDK is all that a plugin may include, so it must stand alone.
check_sdk() {
  local line
  while read -r line; do fault "${line%%:*}: the SDK must not include ${line#*include }"; done < <(
    grep -rnE '^#include "plugin_host/(mirror|runtime|reload|services)/|^#include <grpc' plugin_host/sdk --exclude-dir=testing --exclude='*_test.cc' 2>/dev/null || true)
}

check_readmes() {
  local room lines
  for room in $(rooms); do
    is_contract_folder "$room" && continue
    if [[ ! -s $room/README.md ]]; then
      fault "$room: has no README.md"
      continue
    fi
    lines=$(wc -l <"$room/README.md")
    ((lines <= 80)) || fault "$room/README.md: $lines lines; a room is told in 80"
    ((lines >= 3)) || fault "$room/README.md: says next to nothing"
  done
}

check_sizes() {
  local file lines limit
  while read -r lines file; do
    case $file in
      *_test.cc | *_test.go) limit=900 ;;
      *.h) limit=300 ;;
      *) limit=600 ;;
    esac
    ((lines <= limit)) || fault "$file: $lines lines, more than $limit"
  done < <(sources -name '*.cc' -o -name '*.h' -o -name '*.go' | xargs --no-run-if-empty wc -l /dev/null | awk '$2 != "total" && $2 != "/dev/null"')
}

# Nobody else has our machines' folders.
check_paths() {
  local line
  while read -r line; do fault "$line: a path of one machine"; done < <(
    sources ! -name hygiene_test.sh ! -name hygiene_self_test.sh ! -name '*.sum' | xargs --no-run-if-empty grep -InE '(^|[^A-Za-z0-9_.-])/(root|home|work|Users)/[A-Za-z0-9_.]' /dev/null | cut -d: -f1,2 || true)
}

# What is built is built, and not kept.
check_binaries() {
  local file
  while read -r file; do fault "$file: is no text"; done < <(sources -true | LC_ALL=C xargs --no-run-if-empty grep -lPa '\x00' /dev/null || true)
}

# A room is named after what it is about.
check_names() {
  local folder
  while read -r folder; do fault "$folder: not a noun of the domain"; done < <(
    find . \( -name build -o -name '.?*' \) -prune -o -type d \( -name common -o -name util -o -name utils -o -name core -o -name helpers -o -name misc \) -print)
  local line
  while read -r line; do fault "$line: LOG(FATAL) outside main.cc"; done < <(
    sources -name '*.cc' ! -name main.cc | xargs --no-run-if-empty grep -nE 'LOG\(FATAL\)' /dev/null | cut -d: -f1,2 || true)
}

# README.md's table of rooms (rows that begin with | `folder/`) names every room once, and nothing else.
check_rooms_table() {
  local named there line
  # shellcheck disable=SC2016
  named=$(sed -nE 's/^\| `([a-z_/0-9]+)\/` \|.*/\1/p' README.md | sort)
  there=$({ rooms; for folder in shim plugin_host plugins proto integration deploy; do [[ -d $folder ]] && echo "$folder"; done; } | sort |
    grep -vE '^plugins/|^proto/outboard$' || true)
  while read -r line; do fault "README.md: its table names $line/, which does not exist"; done < <(comm -23 <(echo "$named") <(echo "$there"))
  while read -r line; do fault "README.md: its table does not name $line/"; done < <(comm -13 <(echo "$named") <(echo "$there"))
  local plugin
  for plugin in plugins/*/; do
    plugin=$(basename "$plugin")
    grep -qE "\`$plugin\`" plugins/README.md 2>/dev/null || fault "plugins/README.md: does not name \`$plugin\`"
  done
}

all=(includes sdk readmes sizes paths binaries names rooms_table)
for check in "${@:-${all[@]}}"; do
  "check_$check"
done
if ((faults > 0)); then
  echo "$faults faults"
  exit 1
fi
