#!/usr/bin/env bash
# build.sh FOLDER [--save] [--check [FLAG…]]: builds the images outboard-shim, outboard-host, outboard-claims-host and
# outboard-node-probe at the version of VERSION, prints their sizes and writes their package lists (SPDX) into FOLDER. --save also
# saves the images there; --check then runs check.sh. Needs a Docker daemon; called by `./dev images`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
into=$1
shift
save=
if [[ ${1:-} == --save ]]; then
  save=yes
  shift
fi
mkdir -p "$into"

# BuildKit is part of the client up to Docker 20, and of buildx later; one of them is enough.
builder=docker
if ! docker buildx version >/dev/null 2>&1 && [[ -x /usr/bin/docker ]]; then builder=/usr/bin/docker; fi

base=debian:bookworm-slim
if ! docker image inspect "$base" >/dev/null 2>&1 && ! docker pull --quiet "$base" >/dev/null 2>&1; then
  # Like the registry's image: without documentation, with security updates.
  id=$(docker create --network=none outboard-guide-base sh -c 'rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /var/cache/apt/* /var/lib/apt/lists/* /var/log/* &&
    mirror=$(sed -n "s|^deb \([^ ]*\)/debian/* .*|\1|p" /etc/apt/sources.list | head -n 1) &&
    [ -n "$mirror" ] && for suite in "debian bookworm" "debian bookworm-updates" "debian-security bookworm-security"; do echo "deb $mirror/$suite main"; done >/etc/apt/sources.list')
  docker start --attach "$id"
  docker export "$id" | docker import --change 'CMD ["bash"]' - "$base" >/dev/null
  docker rm "$id" >/dev/null
fi

version=$(cat VERSION)
# Certificate authorities trusted by this machine, for a network behind a TLS proxy.
authorities=()
[[ ! -f /etc/ssl/certs/ca-certificates.crt ]] || authorities=(--secret "id=authorities,src=/etc/ssl/certs/ca-certificates.crt")
for name in shim host claims-host node-probe; do
  image=outboard-$name:$version
  dockerfile=Dockerfile.$name
  [[ $name != claims-host ]] || dockerfile=plugins/dynamic_resources/host/Dockerfile
  DOCKER_BUILDKIT=1 "$builder" build --network=host --build-arg "JOBS=${OUTBOARD_JOBS:-$(nproc)}" --build-arg "OUTBOARD_VERSION=$version" "${authorities[@]}" \
    --progress=plain --file "$dockerfile" --tag "$image" . >"$into/outboard-$name.log" 2>&1 || { tail -n 30 "$into/outboard-$name.log" >&2; exit 1; }
  "$here/sbom.sh" "$image" >"$into/outboard-$name.spdx.json"
  if [[ -n $save ]]; then docker save "$image" | gzip -1 >"$into/outboard-$name.tar.gz"; fi
  printf '%s: %s MB, %s packages in %s\n' "$image" "$(($(docker image inspect --format '{{.Size}}' "$image") / 1000000))" \
    "$(grep -c '"versionInfo"' "$into/outboard-$name.spdx.json")" "$into/outboard-$name.spdx.json"
done

if [[ ${1:-} == --check ]]; then "$here/check.sh" "${@:2}"; fi
