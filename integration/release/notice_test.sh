#!/usr/bin/env bash
# notice_test.sh PROGRAM…: NOTICE names every component of others that the programs contain, and no other one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. integration/release/components.sh
command -v dpkg-query >/dev/null || { echo "skipped: no Debian packages here"; exit 0; }
failed=0

# names SECTION FILE: the components of the section whose heading begins so.
names() { awk -v heading="== $1" 'index($0, "== ") == 1 { inside = index($0, heading) == 1 } inside && /^[^ ]+: / { sub(/: .*/, ""); print }' "$2" | sort; }

# compare NAMED USED: prints the difference of two sorted files; fails if there is one.
compare() {
  comm -13 "$1" "$2" | sed 's/^/NOTICE: missing: /' | grep . && return 1
  comm -23 "$1" "$2" | sed 's/^/NOTICE: not used any more: /' | grep . && return 1
  return 0
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
names 'Debian 12' NOTICE >"$dir/debian"
names 'Go modules' NOTICE >"$dir/go"
{ linked_packages "$@" && header_packages dev; } | source_packages >"$dir/debian-used"
{ go_modules plugins/dynamic_resources/host/go.mod && echo std; } | sort >"$dir/go-used"
[[ $(wc -l <"$dir/debian-used") -gt 20 && $(wc -l <"$dir/go-used") -gt 20 ]] || { echo "FAILED: too few components were found"; exit 1; }
compare "$dir/debian" "$dir/debian-used" || failed=1
compare "$dir/go" "$dir/go-used" || failed=1

# The comparison itself: of a component that NOTICE lacks, and of an unused one.
{ cat "$dir/go-used" && echo zz.example/new; } >"$dir/more"
[[ $(compare "$dir/go" "$dir/more" || true) == 'NOTICE: missing: zz.example/new' ]] || { echo "FAILED: a new module is not reported"; failed=1; }
sed 1d "$dir/go-used" >"$dir/fewer"
[[ $(compare "$dir/go" "$dir/fewer" || true) == 'NOTICE: not used any more: cel.dev/expr' ]] || { echo "FAILED: a module that is gone is not reported"; failed=1; }
exit "$failed"
