#!/usr/bin/env bash
# Prints docs/commands.md from the help texts of the programs. `commands_page.sh BIN --write` writes it; `--check` compares.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$1
page=docs/commands.md

help_of() { # TITLE COMMAND...
  printf '\n## %s\n\n```text\n' "$1"
  shift
  "$bin/$1" "${@:2}" --help
  printf '```\n'
}

render() {
  cat <<'TEXT'
# Commands

The help text of every program and verb. A test holds this page against the programs;
`integration/hygiene/commands_page.sh build/release/bin --write` writes it again.
TEXT
  help_of outboard-shim outboard-shim
  help_of outboard-host outboard-host
  help_of outboard-node-probe outboard-node-probe
  help_of outboard outboard
  local verb
  # The verbs are those that `outboard --help` lists; `new` and `plugin` have verbs of their own.
  for verb in $("$bin/outboard" --help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on && /^  [a-z]/ { print $1 }'); do
    case $verb in
      version | help) ;;
      new) help_of "outboard new plugin" outboard new plugin ;;
      plugin) help_of "outboard plugin" outboard plugin ;;
      *) help_of "outboard $verb" outboard "$verb" ;;
    esac
  done
}

case ${2:---check} in
  --write) render >"$page" ;;
  --check)
    diff -u "$page" <(render) || {
      echo "$page differs from the programs: integration/hygiene/commands_page.sh ${bin} --write"
      exit 1
    }
    ;;
  *) echo "usage: commands_page.sh BIN [--check|--write]" >&2; exit 2 ;;
esac
