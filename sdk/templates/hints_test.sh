#!/usr/bin/env bash
# Without Outboard's package the templates fail, and say where it comes from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

expect() { # WHAT WORDS COMMAND...
  local what=$1 words=$2 said
  shift 2
  if said=$("$@" 2>&1); then
    echo "FAILED: $what: no error"
    failed=1
  elif ! tr -s ' \n' ' ' <<<"$said" | grep -qF "$words"; then
    printf 'FAILED: %s: no "%s" in\n%s\n' "$what" "$words" "$said"
    failed=1
  fi
}
# shellcheck disable=SC2016
expect "C++" '`./dev package` in Outboard'"'"'s repository writes build/package/outboard-VERSION-linux-ARCH.tar.gz; unpack it, and configure with -DCMAKE_PREFIX_PATH=FOLDER' \
  cmake -S cpp -B "$dir/build"
expect "Python" "No module named 'outboard_plugin': outboard_plugin is in Outboard's package, the other modules are those of requirements.txt; README.md says how to install both" \
  env -u PYTHONPATH PYTHONDONTWRITEBYTECODE=1 python3 python/example_plugin.py --listen unix:none.sock
for language in cpp python; do
  # The check of the Dockerfile, in an empty folder.
  check=$(grep -o '{ echo "No outboard-.*exit 1; }' "$language/Dockerfile")
  expect "$language/Dockerfile" "No outboard-VERSION-linux-ARCH.tar.gz in this folder; README.md says where it comes from" bash -c "test -e '$dir'/outboard-*.tar.gz || $check"
done
exit "$failed"
