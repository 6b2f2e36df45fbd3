#!/usr/bin/env bash
# context_test.sh: what the Dockerfiles copy exists and reaches Docker: .dockerignore, or the one beside the Dockerfile.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# let_through PATH LIST: whether the list names the path or a folder above it.
let_through() {
  local path=$1
  while [[ $path != . ]]; do
    grep -qxF "!$path" "$2" && return
    path=$(dirname "$path")
  done
  return 1
}

failed=0 copied=0
for file in Dockerfile.* plugins/dynamic_resources/host/Dockerfile; do
  list=.dockerignore
  [[ ! -e $file.dockerignore ]] || list=$file.dockerignore
  while read -ra paths; do
    for path in "${paths[@]}"; do
      copied=$((copied + 1))
      [[ -e $path ]] || { echo "FAILED: $file copies $path, which does not exist"; failed=1; }
      let_through "$path" "$list" || { echo "FAILED: $file copies $path, which $list leaves out"; failed=1; }
    done
  done < <(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' "$file")
done
[[ $copied -gt 15 ]] || { echo "FAILED: only $copied sources found"; failed=1; }
if let_through no-such-folder/file .dockerignore; then echo "FAILED: every path is let through"; failed=1; fi
exit "$failed"
