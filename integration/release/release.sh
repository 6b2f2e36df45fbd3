# shellcheck shell=bash disable=SC2154
# What `./dev release` does. Sourced by dev, whose functions it uses.

# run_release --dry-run [--out FOLDER] [--no-images]
run_release() {
  local dry='' out='' images=1
  while [[ $# -gt 0 ]]; do
    case $1 in
      --dry-run) dry=1 ;;
      --out) [[ $# -gt 1 ]] || usage "release: --out needs a folder"; out=$2; shift ;;
      --out=*) out=${1#--out=} ;;
      --no-images) images='' ;;
      *) usage "release: unexpected argument \"$1\"; it accepts --dry-run, --out FOLDER and --no-images" ;;
    esac
    shift
  done
  [[ -n $dry ]] || usage "release: it makes the files of a release and publishes nothing; say --dry-run"
  local version
  version=$(cat VERSION)
  out=$(realpath -m "${out:-$build/release-files/$version}")
  check_release_tree "$version"
  [[ ! -e $out || -z $(ls -A "$out") ]] || die "release: $out is not empty"
  # shellcheck source=integration/release/assemble.sh disable=SC1091
  . integration/release/assemble.sh
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  notes "$version" CHANGELOG.md >/dev/null || die "release: nothing to say about $version"
  need_go
  verb_package
  mkdir -p "$out"
  say "writing the files of $version into $out"
  cp "$build/package/outboard-$version-linux-$(uname -m).tar.gz" "$out/"
  cli_archive "$version" "$build/release/bin" "$out"
  check_cli_archive "$out/outboard-cli-$version-linux-$(uname -m).tar.gz"
  cli_packages "$build/release/bin" | integration/images/spdx.sh outboard-cli "$version" >"$out/outboard-cli-$version.spdx.json"
  chart_archive "$version" deploy/chart/outboard "$out"
  claims_modules >"$build/modules"
  licence_archive "$version" "$out" "$build/modules" "${programs[@]/#/$build/release/bin/}"
  [[ -z $images ]] || release_images "$version" "$out"
  release_notes "$version" "$out" >"$out/notes.md"
  checksums "$out"
  cat "$out/sha256sums.txt"
  say "nothing was published; $(du -sh "$out" | cut -f 1) in $out"
}

# check_release_tree VERSION: a release is made of a commit, and a tag names its version.
check_release_tree() {
  local changed tag
  changed=$(git status --porcelain)
  [[ -z $changed ]] || die "release: the working tree has changes; commit or remove them:
$changed"
  tag=$(git tag --points-at HEAD --list 'v*')
  [[ -z $tag || $tag == "v$1" ]] || die "release: HEAD has the tag $tag, but VERSION is $1"
}

# claims_modules: the modules of the host for claims, with the folders of their sources.
claims_modules() {
  integration/examples/go/contract.sh "$build/claims/contract" >&2
  (
    cd plugins/dynamic_resources/host || exit
    go mod download
    go_modules go.mod | xargs go list -m -f '{{.Path}} {{.Dir}}'
  )
  printf 'std %s\n' "$(go env GOROOT)"
}

# release_images VERSION OUT: images, with the digests of their manifests in images.txt.
release_images() {
  local name
  say "building the images"
  need_packages python3
  # Docker's own archives have the times of this build.
  mkdir -p "$build/images"
  rm -f "$build"/images/*.tar.gz
  OUTBOARD_SAVE_IMAGES=1 verb_images
  for name in outboard-shim outboard-host outboard-claims-host outboard-node-probe; do
    python3 integration/release/oci_image.py "$build/images/$name.tar.gz" "$name" "$1" "$2/$name-$1.oci.tar" >>"$2/images.txt"
    cp "$build/images/$name.spdx.json" "$2/$name-$1.spdx.json"
  done
}

# release_notes VERSION OUT
release_notes() {
  printf '# Outboard %s\n\n' "$1"
  notes "$1" CHANGELOG.md
  [[ ! -f $2/images.txt ]] || printf '\n## Images\n\n```text\n%s\n```\n' "$(cat "$2/images.txt")"
  printf '\n## Files\n\nMade of commit %s. sha256sums.txt has their digests. What a version promises: docs/versions.md.\n' "$(git rev-parse HEAD)"
}
