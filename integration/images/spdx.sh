#!/usr/bin/env bash
# spdx.sh NAME VERSION [ID]: reads lines `PACKAGE <tab> VERSION <tab> ARCHITECTURE` of Debian packages and prints SPDX 2.3 in
# JSON: the thing NAME, which contains them. ID makes the document's namespace unique; without it a digest of the lines
# does. Its time is SOURCE_DATE_EPOCH if that is set, so that the same packages give the same bytes.
set -euo pipefail
rows=$(cat)
id=${3:-$(sha256sum <<<"$rows" | cut -c 1-64)}
awk -F '\t' -v name="$1" -v version="$2" -v id="$id" -v created="$(date --utc --date="@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)" '
    function package(spdx, name, version, reference) {
      printf "%s\n    {\"SPDXID\": \"%s\", \"name\": \"%s\", \"versionInfo\": \"%s\", \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false%s}",
        (count++ ? "," : ""), spdx, name, version, reference
    }
    BEGIN {
      printf "{\n  \"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\", \"SPDXID\": \"SPDXRef-DOCUMENT\", \"name\": \"%s:%s\",\n", name, version
      printf "  \"documentNamespace\": \"https://outboard.dev/spdx/%s:%s/%s\",\n", name, version, id
      printf "  \"creationInfo\": {\"created\": \"%s\", \"creators\": [\"Tool: outboard-sbom\"]},\n  \"packages\": [", created
      package("SPDXRef-image", name, version, "")
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
    }' <<<"$rows"
