#!/usr/bin/env bash
# with_docker.sh COMMAND…: runs COMMAND with DOCKER_HOST set to a new daemon that has the image outboard-guide-base,
# an empty Debian 12. Needs root. OUTBOARD_DOCKER_DATA names a folder that keeps the daemon's data for later runs.
set -euo pipefail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/outboard/guide
mkdir -p "$cache"
base=$cache/bookworm.tar
if [[ ! -f $base ]]; then
  fresh=$(mktemp -d)
  debootstrap --variant=minbase bookworm "$fresh/root" "${OUTBOARD_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$cache/debootstrap.log" ||
    { tail -n 20 "$cache/debootstrap.log" >&2; exit 1; }
  tar -C "$fresh/root" -cf "$base.draft" . && mv "$base.draft" "$base"
  rm -rf "$fresh"
fi

dir=$(mktemp -d)
daemon=
finish() {
  if [[ -n $daemon ]]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
  fi
  # Network mounts that the daemon leaves behind.
  umount "$dir/exec/netns/default" 2>/dev/null || true
  rm -rf "$dir" || true
}
trap finish EXIT
# vfs works on any file system; it copies the whole image for each step of a Dockerfile.
driver=vfs
mkdir "$dir/lower" "$dir/upper" "$dir/work" "$dir/merged"
if mount -t overlay overlay -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" "$dir/merged" 2>/dev/null; then
  umount "$dir/merged"
  driver=overlay2
fi
# No bridge and no rules: containers share the machine's network.
dockerd --data-root "${OUTBOARD_DOCKER_DATA:-$dir/data}" --exec-root "$dir/exec" --host "unix://$dir/docker.sock" --pidfile "$dir/pid" --iptables=false --bridge=none \
  --storage-driver=$driver >"$dir/log" 2>&1 &
daemon=$!
export DOCKER_HOST=unix://$dir/docker.sock
for ((i = 0; i < 300; i++)); do
  docker version >/dev/null 2>&1 && break
  kill -0 "$daemon" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
  sleep 0.1
done
docker image inspect outboard-guide-base >/dev/null 2>&1 || docker import "$base" outboard-guide-base >/dev/null
"$@"
