# shellcheck shell=bash
# What of others is in the programs. Sourced by assemble.sh and notice_test.sh; needs Debian's dpkg-query.

# linked_libraries PROGRAM…: a line `NAME PATH` for each shared library that they load.
linked_libraries() {
  local program
  for program in "$@"; do
    env -u LD_LIBRARY_PATH ldd "$program"
  done | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u
}

# is_of_glibc NAME: whether every Linux with glibc has this library. The loader finds it there and nowhere else.
is_of_glibc() {
  case $1 in
    ld-linux* | libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.* | libutil.so.* | libanl.so.*) return 0 ;;
  esac
  return 1
}

# package_of FILE: the installed Debian package that has it. Debian 12 lists some libraries below /lib, which is a link.
package_of() {
  local file
  file=$(realpath "$1")
  { dpkg-query --search "$file" 2>/dev/null || dpkg-query --search "${file#/usr}"; } | head -n 1 | cut -d : -f 1
}

# linked_packages PROGRAM…: the Debian packages of their libraries.
linked_packages() {
  local path
  linked_libraries "$@" | while read -r _ path; do package_of "$path"; done | sort -u
}

# source_packages: reads Debian packages; prints the source packages that they are built from.
source_packages() { xargs --no-run-if-empty dpkg-query --show --showformat='${source:Package}\n' | sort -u; }

# header_packages FILE: the packages with headers that the list build_packages of ./dev (FILE) names.
header_packages() { sed -n '/^build_packages=(/,/)/p' "$1" | tr ' ()' '\n' | grep -E -- '-dev$' | sort -u; }

# go_modules GO.MOD: the modules that it requires, without ours.
go_modules() { awk '$1 ~ /\./ && $2 ~ /^v[0-9]/ { print $1 }' "$1" | grep -v '^outboard\.dev/' | sort -u; }
