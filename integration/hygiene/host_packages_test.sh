#!/usr/bin/env bash
# host_packages_test.sh PROGRAM DOCKERFILE…: the packages that the Dockerfiles install have every library that the
# program needs. `./dev test guide` and `./dev images` build and run the images.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
host=$1
shift
command -v dpkg-query >/dev/null || { echo "skipped: no Debian packages here"; exit 0; }

# The Debian packages of the libraries that the program names itself.
needed=()
while read -r library; do
  path=$(ldd "$host" | awk -v name="$library" '$1 == name { print $3 }')
  [[ -n $path ]] || continue # the program loader
  package=$(dpkg-query --search "$path" "$(realpath "$path")" 2>/dev/null | head -n 1 | cut -d : -f 1 || true)
  needed+=("$package")
done < <(readelf --dynamic "$host" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[[ ${#needed[@]} -gt 5 ]] || { echo "FAILED: $host needs only ${needed[*]:-nothing}"; exit 1; }

# closure PACKAGE...: these and all that they depend on. debian:bookworm-slim has libc6 and libstdc++6.
closure() {
  local all=("$@" libc6 libstdc++6 libgcc-s1) i
  local -A seen=()
  for ((i = 0; i < ${#all[@]}; i++)); do
    [[ -z ${seen[${all[i]}]:-} ]] || continue
    seen[${all[i]}]=1
    while read -r name; do [[ -z $name ]] || all+=("$name"); done < <(
      { dpkg-query --show --showformat='${Depends},${Pre-Depends}\n' "${all[i]}" 2>/dev/null || true; } | tr ',|' '\n' | sed 's/^ *//; s/[ :].*//' | sort -u)
  done
  printf '%s\n' "${!seen[@]}"
}

failed=0
for file in "$@"; do
  # The last stage, with continued lines joined.
  mapfile -t named < <(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$file" | tac | sed '/^FROM /q' |
    grep -o 'no-install-recommends [^&]*' | tr ' ' '\n' | sed '/^no-install-recommends$/d; /^$/d')
  has=$(closure "${named[@]}")
  for package in "${needed[@]}"; do
    grep -qxF "$package" <<<"$has" || { echo "FAILED: $file installs nothing that has $package, which $(basename "$host") needs"; failed=1; }
  done
done
exit "$failed"
