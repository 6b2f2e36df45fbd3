#!/usr/bin/env bash
# Tests assemble.sh and release.sh on small inputs: two programs with a library of their own, a chart, a changelog.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0 checks=0
expect() { # expect WHAT WANTED GOT
  checks=$((checks + 1))
  [[ $2 == "$3" ]] && return
  failures=$((failures + 1))
  printf 'FAILED: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"
}
# fails WHAT MESSAGE COMMAND…: the command fails, and says so.
fails() {
  local what=$1 message=$2 said
  shift 2
  if said=$("$@" 2>&1); then expect "$what" "a failure" "$said"; else expect "$what" found "$(grep -qF -- "$message" <<<"$said" && echo found || echo "$said")"; fi
}
export SOURCE_DATE_EPOCH=1700000000
cd "$root"
. integration/release/assemble.sh

# A folder twice, with other times and modes.
mkdir -p "$dir/one/pack/sub" "$dir/two/pack/sub"
for side in one two; do
  echo text >"$dir/$side/pack/sub/file"
  printf '#!/bin/sh\n' >"$dir/$side/pack/run"
  chmod +x "$dir/$side/pack/run"
done
chmod 600 "$dir/two/pack/sub/file"
touch -d 2001-01-01 "$dir/two/pack/run"
pack "$dir/one/pack" "$dir/one.tar.gz"
pack "$dir/two/pack" "$dir/two.tar.gz"
expect "the same content gives the same bytes" same "$(cmp "$dir/one.tar.gz" "$dir/two.tar.gz" && echo same)"
expect "names and modes" "drwxr-xr-x pack/,-rwxr-xr-x pack/run,drwxr-xr-x pack/sub/,-rw-r--r-- pack/sub/file," \
  "$(tar -tvzf "$dir/one.tar.gz" | awk '{ printf "%s %s,", $1, $6 }')"

# The archive of the command line: programs that need a library of this folder, which needs another one.
mkdir -p "$dir/lib" "$dir/bin" "$dir/out"
echo 'int inner() { return 7; }' | g++ -x c++ - -shared -fPIC -o "$dir/lib/libinner.so"
echo 'int inner(); int outer() { return inner(); }' | g++ -x c++ - -shared -fPIC -o "$dir/lib/libouter.so" -L"$dir/lib" -linner
# program NAME RPATH: prints "outboard 9.9.9".
program() {
  printf '#include <cstdio>\nint outer();\nint main() { std::printf("outboard 9.9.%%d\\n", outer() + 2); }\n' |
    g++ -x c++ - -o "$dir/bin/$1" -L"$dir/lib" -louter "-Wl,-rpath-link,$dir/lib,-rpath,$2,--disable-new-dtags"
}
program outboard "\$ORIGIN/../lib"
program outboard-host "\$ORIGIN/../lib"
cli_archive 9.9.9 "$dir/bin" "$dir/out"
archive=$dir/out/outboard-cli-9.9.9-linux-$(uname -m).tar.gz
expect "what the archive has" "LICENSE NOTICE README bin/outboard bin/outboard-host libinner.so libouter.so" \
  "$(tar -tzf "$archive" | sed -n 's,^[^/]*/,,; s,^lib/\(libouter\|libinner\),\1,p; /^lib/d; /[^/]$/p' | sort -u | paste -sd' ')"
expect "no library of glibc" "" "$(tar -tzf "$archive" | grep -E '/libc\.so|ld-linux' || true)"
rm "$dir/lib/libinner.so" "$dir/lib/libouter.so" # as on a machine without them
check_cli_archive "$archive" || expect "it is complete" complete incomplete
mkdir "$dir/unpacked"
tar -C "$dir/unpacked" -xzf "$archive"
unpacked=("$dir"/unpacked/*)
expect "it runs elsewhere" "outboard 9.9.9" "$("${unpacked[0]}/bin/outboard")"
rm "$dir"/unpacked/*/lib/libinner.so
pack "$dir"/unpacked/* "$dir/incomplete.tar.gz"
fails "a library is missing in the archive" "does not run with glibc alone" check_cli_archive "$dir/incomplete.tar.gz"

# A program whose rpath leads to the machine's folder.
mkdir "$dir/unpacked/other"
tar -C "$dir/unpacked/other" -xzf "$archive"
cp "$dir"/unpacked/other/*/lib/libinner.so "$dir"/unpacked/other/*/lib/libouter.so "$dir/lib/"
program outboard "$dir/lib"
rm "$archive"
cli_archive 9.9.9 "$dir/bin" "$dir/out"
fails "a library of the machine is used" "outboard loads libinner.so from $dir/lib" check_cli_archive "$archive"

# Chart and notes.
chart_archive "$(cat VERSION)" deploy/chart/outboard "$dir/out"
expect "the chart's files" "$(git ls-files deploy/chart/outboard | xargs -I{} find -L {} -type f | sed 's,^deploy/chart/,,' | LC_ALL=C sort)" \
  "$(tar -tzf "$dir/out/outboard-$(cat VERSION).tgz" | grep -v '/$' | LC_ALL=C sort)"
fails "a chart of another version" "is not of version 9.9.9" chart_archive 9.9.9 deploy/chart/outboard "$dir/out"
cat >"$dir/CHANGELOG.md" <<'TEXT'
# Changelog

## 0.10.0 (2026-02-01)

Ten.

### Fixed

- One thing.

## 0.1.0

One.
TEXT
expect "the notes of a version" $'Ten.\n\n### Fixed\n\n- One thing.' "$(notes 0.10.0 "$dir/CHANGELOG.md")"
expect "the notes of the last section" One. "$(notes 0.1.0 "$dir/CHANGELOG.md")"
fails "a version without notes" "has no section for 0.2.0" notes 0.2.0 "$dir/CHANGELOG.md"
expect "this version has notes" yes "$([[ -n $(notes "$(cat VERSION)" CHANGELOG.md) ]] && echo yes)"

mkdir "$dir/files"
echo a >"$dir/files/a"
echo b >"$dir/files/b"
checksums "$dir/files"
expect "checksums" "a: OK b: OK" "$(cd "$dir/files" && sha256sum --check sha256sums.txt | paste -sd' ')"

# What ./dev release refuses before it builds anything.
git clone -q --no-hardlinks . "$dir/clone"
cp dev "$dir/clone/"
cp -R integration/release "$dir/clone/integration/"
cp VERSION "$dir/clone/"
cd "$dir/clone"
export OUTBOARD_INSTALL=0
fails "without --dry-run" "say --dry-run" ./dev release
git config user.email test@example.com
git config user.name test
echo more >>README.md
fails "a dirty tree" "the working tree has changes" ./dev release --dry-run
git add --all
git commit -qm change
git tag v9.9.9
fails "a tag of another version" "HEAD has the tag v9.9.9, but VERSION is" ./dev release --dry-run
git tag -d v9.9.9 >/dev/null
mkdir -p "$dir/full/x"
fails "a folder with files" "is not empty" ./dev release --dry-run --out "$dir/full"

echo "$checks checks, $failures failed"
[[ $failures == 0 ]]
