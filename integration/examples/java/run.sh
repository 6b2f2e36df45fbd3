#!/usr/bin/env bash
# Builds the host and starts it: ./run.sh --listen unix:/run/outboard/hosts/licences@{instance}.sock
# Needs JDK 17 and Maven (Debian: openjdk-17-jdk-headless, maven). BUILD_ONLY=1 only builds, into build/examples/java; SKIP_BUILD=1 only starts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$here/../../../build/examples/java
[[ -n ${SKIP_BUILD:-} ]] || mvn --quiet --batch-mode --file "$here/pom.xml" -DskipTests package
[[ -z ${BUILD_ONLY:-} ]] || exit 0
# Only this user may connect.
umask 077
exec java -XX:+UseSerialGC -Xmx256m -cp "$out/licences-1.jar:$out/lib/*" example.Main "$@"
