#!/usr/bin/env bash
# Checks that the compiler does not make: include directions, sizes, READMEs, paths. `hygiene_test.sh [CHECK…]`, all by default.
#
# Prints a line for each fault; exits with 1 if there is any. OUTBOARD_ROOT selects another tree (see hygiene_self_test.sh).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "${OUTBOARD_ROOT:-$here/../..}"

faults=0
fault() { printf '%s\n' "$*"; faults=$((faults + 1)); }
# Source files: no build output, no hidden files.
sources() { find . \( -name build -o -name '.?*' \) -prune -o -type f \( "$@" \) -print | sed 's,^\./,,' | sort; }
# Folders of all rooms.
rooms() { find cli shim plugin_host plugins proto integration sdk -mindepth 1 -maxdepth 1 -type d ! -name testdata 2>/dev/null | sort; }
is_contract_folder() { [[ $1 == proto/outboard ]]; }

# The two processes share only the contract; plugins include only the SDK; the command line uses the shim's libraries, not the reverse.
check_includes() {
  local file what allowed
  while IFS=: read -r file what; do
    allowed=1
    case $file in
      shim/*) [[ $what == plugin_host/* || $what == plugins/* || $what == node_probe/* ]] && allowed=0 ;;
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
      # A program beside shim and host: the shim's API client, and the formats that plugins read.
      node_probe/*)
        case $what in
          shim/kube/* | shim/clock.h | shim/config/flag_table.h | plugin_host/sdk/*) ;;
          shim/config/testing/*) [[ $file == *_test.cc ]] || allowed=0 ;;
          shim/* | plugin_host/* | plugins/*) allowed=0 ;;
        esac
        ;;
      # Tests of the host may use real plugins.
      plugin_host/*_test.cc) [[ $what == shim/* ]] && allowed=0 ;;
      plugin_host/*)
        case $what in
          plugins/builtin_plugins.h) ;;
          shim/* | plugins/*) allowed=0 ;;
        esac
        ;;
      cli/* | proto/*) [[ $what == plugin_host/* || $what == plugins/* ]] && allowed=0 ;;
    esac
    # The fake host's test runs the shim's client against it; other files in proto/ must not include a process.
    [[ $file == proto/* && $file != proto/testing/*_test.cc && $what == shim/* ]] && allowed=0
    [[ $what == cli/* && $file != cli/* && $file != integration/* ]] && allowed=0
    [[ $what == node_probe/* && $file != node_probe/* ]] && allowed=0
    [[ $allowed == 1 ]] || fault "$file: must not include $what"
  done < <(sources -name '*.cc' -o -name '*.h' | xargs --no-run-if-empty grep -HoE '^#include "(cli|shim|plugin_host|plugins|proto|node_probe)/[^"]*"' /dev/null |
    sed -E 's/#include "([^"]*)"/\1/')
}

# A plugin may include only the SDK, so the SDK must not include the host.
check_sdk() {
  local line
  while read -r line; do fault "${line%%:*}: the SDK must not include ${line#*include }"; done < <(
    grep -rnE '^#include "plugin_host/(cache|runtime|reload|services)/|^#include <grpc' plugin_host/sdk --exclude-dir=testing --exclude='*_test.cc' 2>/dev/null || true)
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
    ((lines <= 80)) || fault "$room/README.md: $lines lines, more than 80"
    ((lines >= 3)) || fault "$room/README.md: fewer than 3 lines"
  done
}

check_sizes() {
  local file lines limit
  while read -r lines file; do
    case $file in
      *_test.cc | *_test.go) limit=900 ;;
      *.h) limit=250 ;;
      *) limit=600 ;;
    esac
    ((lines <= limit)) || fault "$file: $lines lines, more than $limit"
  done < <(sources -name '*.cc' -o -name '*.h' -o -name '*.go' | xargs --no-run-if-empty wc -l /dev/null | awk '$2 != "total" && $2 != "/dev/null"')
}

# Absolute paths of one machine do not exist elsewhere.
check_paths() {
  local line
  while read -r line; do fault "$line: a path of one machine"; done < <(
    sources ! -name hygiene_test.sh ! -name hygiene_self_test.sh ! -name '*.sum' | xargs --no-run-if-empty grep -InE '(^|[^A-Za-z0-9_.-])/(root|home|work|Users)/[A-Za-z0-9_.]' /dev/null | cut -d: -f1,2 || true)
}

# Build output does not belong into the repository.
check_binaries() {
  local file
  while read -r file; do fault "$file: binary file"; done < <(sources -true | LC_ALL=C xargs --no-run-if-empty grep -lPa '\x00' /dev/null || true)
}

# A room has a name of the domain.
check_names() {
  local folder
  while read -r folder; do fault "$folder: not a noun of the domain"; done < <(
    find . \( -name build -o -name '.?*' \) -prune -o -type d \( -name common -o -name util -o -name utils -o -name core -o -name helpers -o -name misc \) -print)
  local line
  while read -r line; do fault "$line: LOG(FATAL) outside main.cc"; done < <(
    sources -name '*.cc' ! -name main.cc | xargs --no-run-if-empty grep -nE 'LOG\(FATAL\)' /dev/null | cut -d: -f1,2 || true)
}

# The table of rooms in docs/architecture.md (rows that begin with | `folder/`) names every room exactly once and no other folder.
check_rooms_table() {
  local named there line
  # shellcheck disable=SC2016
  named=$(sed -nE 's/^\| `([a-z_/0-9]+)\/` \|.*/\1/p' docs/architecture.md | sort)
  there=$({ rooms; for folder in cli shim plugin_host plugins proto logging node_probe integration deploy; do [[ -d $folder ]] && echo "$folder"; done; } | sort |
    grep -vE '^plugins/|^proto/outboard$' || true)
  while read -r line; do fault "docs/architecture.md: its table names $line/, which does not exist"; done < <(comm -23 <(echo "$named") <(echo "$there"))
  while read -r line; do fault "docs/architecture.md: its table does not name $line/"; done < <(comm -13 <(echo "$named") <(echo "$there"))
  local plugin
  for plugin in plugins/*/; do
    plugin=$(basename "$plugin")
    grep -qE "\`$plugin\`" plugins/README.md 2>/dev/null || fault "plugins/README.md: does not name \`$plugin\`"
  done
}

# The shim waits on the clock of shim/clock.h, which cannot be set. Wall time is for what is written, for times of others, and for gRPC's calls:
# in the files named here. absl's timed waits sleep until a wall time, whatever they are given.
check_clocks() {
  local file line
  while IFS=: read -r file line _; do
    case $file in
      shim/clock.h | shim/bind/api_writer.h | shim/bind/event_recorder.h | shim/bind/pod_evictor.h | shim/diagnostics/attempt_log.cc | shim/hosts/grpc_calls.cc | \
        shim/hosts/host_connector.cc | shim/hosts/host_registry.cc | shim/hosts/readiness_watch.cc | shim/http/serving_certificate.cc | shim/kube/exec_credentials.cc | \
        shim/leader/lease_elector.cc | shim/reload/config_status.h | shim/scheduler/host_calls.cc | shim/shim_control.cc) ;;
      *) fault "$file:$line: absl::Now; waits use SteadyNow (shim/clock.h)" ;;
    esac
  done < <(shim_lines 'absl::Now\b')
  while IFS=: read -r file line _; do
    [[ $file == shim/clock.h ]] || fault "$file:$line: a wait until a wall time; use SteadyCondition"
  done < <(shim_lines '\b(Await|Wait|WaitForNotification)With(Timeout|Deadline)\b')
}
# shim_lines PATTERN: FILE:LINE:… of the shim's production files.
shim_lines() {
  sources -path './shim/*' \( -name '*.cc' -o -name '*.h' \) ! -path '*/testing/*' ! -name '*_test.cc' ! -name '*_benchmark.cc' | xargs --no-run-if-empty grep -nE "$1" /dev/null || true
}

# Names that were replaced stay replaced, in code, docs, flags, metrics and logs: old_names.txt.
check_old_names() {
  local list=$here/old_names.txt pattern files line all
  [[ -f integration/hygiene/old_names.txt ]] && list=integration/hygiene/old_names.txt
  all=$(sources ! -name old_names.txt ! -name hygiene_self_test.sh ! -name CHANGELOG.md)
  while IFS=$'\t' read -r pattern files _; do
    [[ -z $pattern || $pattern == \#* ]] && continue
    while read -r line; do fault "$line: an old name, see old_names.txt: $pattern"; done < <(
      { grep -E "$files" <<<"$all" || true; } |
        xargs --no-run-if-empty grep -InE -- "$pattern" /dev/null | cut -d: -f1,2 || true)
  done <"$list"
}

# Words of the project's former private English (dialect.txt) do not come back.
check_dialect() {
  local line
  while read -r line; do fault "$line"; done < <("$here/dialect.sh" | sed -E 's/^([^:]*:[0-9]+):.*/\1: a word of dialect.txt/')
}

# A room's README names every group of production files in it, so that a reader finds the way without opening them.
check_room_files() {
  local room file stem
  while read -r room; do
    [[ -f $room/README.md ]] || continue
    while read -r file; do
      stem=$(basename "${file%.*}")
      grep -qE "(^|[^a-z0-9_])${stem}([^a-z0-9_]|\$)" "$room/README.md" || fault "$room/README.md: does not name $stem"
    done < <(find "$room" -maxdepth 1 -type f \( -name '*.cc' -o -name '*.h' \) ! -name '*_test.cc' ! -name '*_fuzzer.cc' | sort)
  done < <({ [[ ! -d node_probe ]] || echo node_probe; find shim cli plugin_host -mindepth 1 -type d ! -name testdata ! -name testing 2>/dev/null; } | sort)
}

# A room that needs more production files than a reader can keep apart says so in its README ("Why so many files").
check_room_sizes() {
  local room count
  while read -r room; do
    count=$(find "$room" -maxdepth 1 -type f \( -name '*.cc' -o -name '*.h' \) ! -name '*_test.cc' ! -name '*_fuzzer.cc' ! -name '*_benchmark.cc' | wc -l)
    ((count <= 30)) || grep -qi 'why so many files' "$room/README.md" 2>/dev/null || fault "$room: $count production files, more than 30, and its README does not say why"
  done < <(find shim cli plugin_host plugins proto sdk -type d ! -name testdata 2>/dev/null | sort)
}

# Paths in the documents for readers of the code exist: everything in backticks that begins with a top-level folder. Globs and {h,cc} are allowed.
check_paths_in_docs() {
  local file folders path word expanded
  folders=$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' ! -name build -printf '%f\n' | paste -sd '|')
  for file in README.md CONTRIBUTING.md docs/*.md docs/operations/*.md; do
    [[ -f $file ]] || continue
    # shellcheck disable=SC2016
    while read -r path; do
      expanded=("$path")
      # Only these characters: nothing that eval could run.
      [[ $path =~ ^[A-Za-z0-9_./*{},-]+$ ]] && eval "expanded=($path)"
      for word in "${expanded[@]}"; do
        [[ -e $word ]] || fault "$file: names $word, which does not exist"
      done
    done < <(awk '/^ *```/ { fenced = !fenced; next } !fenced' "$file" | awk -v RS= '{ gsub(/\n */, " "); print }' |
      grep -oE '`[^`]+`' | tr -d '`' | cut -d ' ' -f 1 | { grep -E "^($folders)/" || true; } | sort -u)
  done
}

# Relative links of all documents lead to files that exist, and #anchors to headings of them.
check_links() {
  local file target path anchor
  while IFS=$'\t' read -r file target; do
    path=${target%%#*}
    anchor=
    [[ $target == *'#'* ]] && anchor=${target#*#}
    if [[ -n $path ]]; then path=$(dirname "$file")/$path; else path=$file; fi
    if [[ ! -e $path ]]; then
      fault "$file: links to $target, which does not exist"
    elif [[ -n $anchor ]] && ! anchors "$path" | grep -qxF -- "$anchor"; then
      fault "$file: links to $target, which has no such heading"
    fi
  done < <(sources -name '*.md' | while read -r file; do
    outside_fences "$file" | { grep -oE '\]\([^)[:space:]]+\)' || true; } | sed -E 's/^\]\((.*)\)$/\1/' | { grep -vE '^(https?|mailto):' || true; } |
      sed "s,^,$file\t,"
  done)
}
outside_fences() { awk '/^ *```/ { fenced = !fenced; next } !fenced' "$1"; }
# The anchors of a document's headings, as hosting services make them.
anchors() { outside_fences "$1" | sed -nE 's/^#+ +(.*)$/\1/p' | sed -E 's/\[([^]]*)\]\([^)]*\)/\1/g; s/[^A-Za-z0-9 _-]//g; s/ /-/g' | tr '[:upper:]' '[:lower:]'; }

# Prose of the documents for users is at most 120 characters wide; tables, links alone on a line and code are not prose.
check_prose() {
  local line
  while read -r line; do fault "$line: more than 120 characters"; done < <(
    for file in README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md docs/operations/*.md; do
      [[ -f $file ]] || continue
      # shellcheck disable=SC2016
      LC_ALL=C.UTF-8 awk -v file="$file" '/^ *```/ { fenced = !fenced } !fenced && !/^\|/ && length($0) > 120 { print file ":" NR }' "$file"
    done)
  # The first page fits one look: 8 kB.
  [[ ! -f README.md || $(wc -c <README.md) -le 8192 ]] || fault "README.md: more than 8 kB"
}

# A code block after a line `<!-- quotes: FILE -->` is a part of that file, line by line.
check_quotes() {
  local file line
  while read -r file; do
    while read -r line; do fault "$line"; done < <(awk -v file="$file" '
      /^```/ {
        if (inside) {
          whole = "\n"
          while ((getline row < path) > 0) whole = whole row "\n"
          close(path)
          if (text == "" || !index(whole, "\n" text)) print file ":" begin ": not a part of " path
          inside = 0
        } else if (mark ~ /^<!-- quotes: .+ -->$/) {
          path = substr(mark, 14, length(mark) - 17)
          inside = 1; text = ""; begin = NR
        }
        mark = ""
        next
      }
      inside { text = text $0 "\n"; next }
      NF { mark = $0 }' "$file")
  done < <(sources -name '*.md')
}

# Tests that SECURITY.md names exist: `SUITE.TEST` of GoogleTest in backticks.
check_security_tests() {
  local name
  [[ -f SECURITY.md ]] || return 0
  while read -r name; do
    sources -name '*_test.cc' | xargs --no-run-if-empty grep -qE "^TEST(_F)?\\(${name%.*}, ${name#*.}\\)" || fault "SECURITY.md: no test $name"
  done < <({ grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9]*`' SECURITY.md || true; } | tr -d '`' | sort -u)
}

# The table of faults has the rows 1 to 42. Each names tests in its fourth column, in backticks, and all exist: a function TestX of Go, SUITE.TEST
# of GoogleTest, or the path of a script. Rows without a test are listed in a line below the table, and only they.
check_fault_tests() {
  local table=integration/faults/matrix.md rows row named go cpp untested
  [[ -f $table ]] || return 0
  rows=$(sed -nE 's/^\| ([0-9]+) \|.*/\1/p' "$table")
  [[ $rows == "$(seq 42)" ]] || fault "$table: its rows are not 1 to 42: $(tr '\n' ' ' <<<"$rows")"
  untested=$(sed -nE 's/^Rows without a test: (.*)\.$/, \1,/p' "$table")
  go=$(sources -name '*_test.go' | xargs --no-run-if-empty sed -nE 's/^func (Test[A-Za-z0-9_]*)\(t .*/\1/p' | sort -u)
  # A long name stands on a line of its own.
  cpp=$(sources -name '*_test.cc' | xargs --no-run-if-empty cat | tr '\n' ' ' | { grep -oE '\bTEST(_F|_P)?\([A-Za-z0-9_]+, +[A-Za-z0-9_]+\)' || true; } |
    sed -E 's/^TEST(_F|_P)?\(//; s/, +/./; s/\)$//' | sort -u)
  while IFS=$'\t' read -r row named; do
    local name count=0
    while read -r name; do
      [[ -n $name ]] || continue
      count=$((count + 1))
      case $name in
        */*) [[ -x $name ]] || fault "$table: row $row: no script $name" ;;
        *.*) grep -qxF -- "$name" <<<"$cpp" || fault "$table: row $row: no test $name" ;;
        *) grep -qxF -- "$name" <<<"$go" || fault "$table: row $row: no test $name" ;;
      esac
    done < <({ grep -oE '`[^`]+`' <<<"$named" || true; } | tr -d '`')
    if [[ $untested == *", $row,"* ]]; then
      ((count == 0)) || fault "$table: row $row names a test, and is listed as a row without"
    else
      ((count > 0)) || fault "$table: row $row names no test"
    fi
  done < <(awk -F ' *[|] *' -v OFS='\t' '/^\| [0-9]+ \|/ { print $2, $5 }' "$table")
}

all=(includes sdk readmes sizes paths binaries names rooms_table clocks old_names dialect room_files room_sizes paths_in_docs links quotes prose security_tests fault_tests)
for check in "${@:-${all[@]}}"; do
  "check_$check"
done
if ((faults > 0)); then
  echo "$faults faults"
  exit 1
fi
