# shellcheck shell=bash
# The files of a release, from programs and sources that exist. Sourced by release.sh and assemble_test.sh.
#
# The same input gives the same bytes: names are sorted, times are SOURCE_DATE_EPOCH (seconds, of the commit), owners
# and modes do not depend on the machine.
# shellcheck source=integration/release/components.sh disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/components.sh"

# pack FOLDER ARCHIVE: a .tar.gz (or .tgz) of the folder, under its own name.
pack() {
  tar -C "$(dirname "$1")" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
    --format=gnu -cf - "$(basename "$1")" | gzip --best --no-name >"$2"
}

# needed_glibc FILE…: the lowest version of glibc with which they run, such as 2.36.
needed_glibc() { readelf --version-info --wide "$@" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1 | cut -d _ -f 2; }

# cli_archive VERSION BIN OUT: the command line with all libraries except glibc's: outboard-cli-VERSION-linux-ARCH.tar.gz.
# BIN has outboard and outboard-host, which find libraries in ../lib first (their rpath).
cli_archive() {
  local name work program library path
  name=outboard-cli-$1-linux-$(uname -m)
  work=$(mktemp -d)
  mkdir -p "$work/$name/bin" "$work/$name/lib"
  for program in outboard outboard-host; do
    strip -o "$work/$name/bin/$program" "$2/$program" || return 1
  done
  while read -r library path; do
    is_of_glibc "$library" || cp --dereference "$path" "$work/$name/lib/$library" || return 1
  done < <(linked_libraries "$2/outboard" "$2/outboard-host")
  cp LICENSE NOTICE "$work/$name/"
  cat >"$work/$name/README" <<TEXT
outboard $1, for Linux on $(uname -m) with glibc $(needed_glibc "$work/$name"/bin/* "$work/$name"/lib/*) or newer.

Unpack it anywhere and run bin/outboard; bin/outboard-host is for its commands simulate and explain node. The libraries
in lib/ are Debian 12's: fetch a newer archive when Debian publishes corrections of them.
TEXT
  pack "$work/$name" "$3/$name.tar.gz"
  rm -rf "$work"
}

# check_cli_archive ARCHIVE: its programs find every library in it or in glibc; where this machine allows it, they run in
# a folder that has nothing else.
check_cli_archive() {
  local work folder program library path root
  work=$(mktemp -d)
  tar -C "$work" -xzf "$1"
  folder=$(echo "$work"/*)
  root=$work/root
  mkdir "$root"
  cp -R "$folder" "$root/cli"
  for program in outboard outboard-host; do
    while read -r library path; do
      if is_of_glibc "$library"; then
        cp --parents --dereference "$path" "$root"
      elif [[ $(realpath "$path") != "$folder"/lib/* ]]; then
        echo "$1: $program loads $library from $path" >&2
        return 1
      fi
    done < <(linked_libraries "$folder/bin/$program")
    path=$(readelf --program-headers "$folder/bin/$program" | sed -n 's/.*program interpreter: \(.*\)]/\1/p')
    cp --parents --dereference "$path" "$root"
  done
  # The loader needs /proc to find its program's folder.
  mkdir "$root/proc"
  if ! unshare --map-root-user --mount bash -c 'mount --rbind /proc "$1/proc" && chroot "$1" /cli/bin/outboard version' alone "$root" >"$work/version" 2>"$work/why"; then
    if unshare --map-root-user --mount mount --rbind /proc "$root/proc" 2>/dev/null; then
      echo "$1: outboard does not run with glibc alone: $(cat "$work/why")" >&2
      return 1
    fi
    echo "not run alone: no user namespaces here" >&2
  fi
  rm -rf "$work"
}

# chart_archive VERSION CHART OUT: outboard-VERSION.tgz, as `helm package` names it. CHART is a folder of tracked files.
chart_archive() {
  local work
  grep -qx "version: $1" "$2/Chart.yaml" && grep -qx "appVersion: $1" "$2/Chart.yaml" || { echo "$2/Chart.yaml is not of version $1" >&2; return 1; }
  work=$(mktemp -d)
  mkdir "$work/outboard"
  (cd "$2" && git ls-files -z | xargs -0 cp --parents --recursive --dereference --target-directory="$work/outboard")
  pack "$work/outboard" "$3/outboard-$1.tgz"
  rm -rf "$work"
}

# licence_archive VERSION OUT MODULES PROGRAM…: outboard-VERSION-licenses.tar.gz, the texts of all that NOTICE names.
# MODULES has lines `MODULE FOLDER`, the Go modules' sources.
licence_archive() {
  local name=outboard-$1-licenses out=$2 modules=$3 work package module folder
  shift 3
  work=$(mktemp -d)
  mkdir -p "$work/$name/debian" "$work/$name/go"
  cp LICENSE NOTICE "$work/$name/"
  for package in $({ linked_packages "$@" && header_packages dev; } | sort -u); do
    cp --dereference "/usr/share/doc/$package/copyright" "$work/$name/debian/$package" || return 1
  done
  while read -r module folder; do
    mkdir -p "$work/$name/go/$module"
    find "$folder" -maxdepth 1 -type f \( -iname 'LICEN[CS]E*' -o -iname 'COPYING*' -o -iname 'NOTICE*' \) -exec cp --target-directory="$work/$name/go/$module" {} +
    [[ -n $(ls "$work/$name/go/$module") ]] || { echo "$module: no licence in $folder" >&2; return 1; }
  done <"$modules"
  pack "$work/$name" "$out/$name.tar.gz"
  rm -rf "$work"
}

# notes VERSION CHANGELOG: the section of that version, without its heading.
notes() {
  awk -v version="$1" '
    /^## / { inside = 0; for (i = 2; i <= NF; ++i) { word = $i; gsub(/[()]/, "", word); if (word == version) inside = found = 1 } next }
    inside && (started || NF > 0) { started = 1; print }
    END { exit !found }' "$2" || { echo "$2 has no section for $1" >&2; return 1; }
}

# checksums FOLDER: sha256sums.txt of all other files there.
# shellcheck disable=SC2094 # It does not list itself.
checksums() { (cd "$1" && find . -maxdepth 1 -type f ! -name sha256sums.txt -printf '%f\n' | LC_ALL=C sort | xargs sha256sum >sha256sums.txt); }

# cli_packages BIN: the Debian packages in the archive of the command line, as spdx.sh reads them.
cli_packages() {
  linked_packages "$1/outboard" "$1/outboard-host" | xargs dpkg-query --show --showformat '${Package}\t${Version}\t${Architecture}\n' | grep -v '^libc6\b'
}
