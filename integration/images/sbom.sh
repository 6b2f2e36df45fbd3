#!/usr/bin/env bash
# sbom.sh IMAGE: prints the contents of an image as SPDX 2.3 in JSON: itself, and every Debian package with its
# version.
set -euo pipefail
image=$1
docker run --rm --network=none --entrypoint dpkg-query "$image" --show --showformat '${Package}\t${Version}\t${Architecture}\n' |
  awk -F '\t' -v image="$image" -v id="$(docker image inspect --format '{{.Id}}' "$image")" -v created="$(date --utc +%Y-%m-%dT%H:%M:%SZ)" '
    function package(spdx, name, version, reference) {
      printf "%s\n    {\"SPDXID\": \"%s\", \"name\": \"%s\", \"versionInfo\": \"%s\", \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false%s}",
        (count++ ? "," : ""), spdx, name, version, reference
    }
    BEGIN {
      colon = index(image, ":")
      name = substr(image, 1, colon - 1)
      printf "{\n  \"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\", \"SPDXID\": \"SPDXRef-DOCUMENT\", \"name\": \"%s\",\n", image
      printf "  \"documentNamespace\": \"https://outboard.dev/spdx/%s/%s\",\n", image, id
      printf "  \"creationInfo\": {\"created\": \"%s\", \"creators\": [\"Tool: outboard-sbom\"]},\n  \"packages\": [", created
      package("SPDXRef-image", name, substr(image, colon + 1), "")
    }
    {
      spdx = "SPDXRef-deb-" $1
      gsub(/[^A-Za-z0-9.-]/, "-", spdx)
      purl = $1 "@" $2
      gsub(/\+/, "%2B", purl)
      gsub(/:/, "%3A", purl)
      package(spdx, $1, $2, sprintf(", \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"pkg:deb/debian/%s?arch=%s&distro=debian-12\"}]", purl, $3))
      contained[++packages] = spdx
    }
    END {
      printf "\n  ],\n  \"relationships\": [\n    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-image\"}"
      for (i = 1; i <= packages; i++)
        printf ",\n    {\"spdxElementId\": \"SPDXRef-image\", \"relationshipType\": \"CONTAINS\", \"relatedSpdxElement\": \"%s\"}", contained[i]
      printf "\n  ]\n}\n"
    }'
