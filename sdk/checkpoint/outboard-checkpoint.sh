#!/bin/sh
# Tells the scheduler that this pod has written a checkpoint: patches the annotation outboard/last-checkpoint-time of the
# pod in which it runs. Needs curl, or else kubectl. Exits with 1 if the API server refuses.
# Usage: outboard-checkpoint.sh [TIME]    TIME: such as 2026-01-31T22:00:00Z; without it: now
set -eu
account=${OUTBOARD_ACCOUNT:-/var/run/secrets/kubernetes.io/serviceaccount}
time=${1:-$(date -u +%Y-%m-%dT%H:%M:%SZ)}
case $time in
*[!0-9TZ:.+-]* | '') echo "outboard-checkpoint: not a time such as 2026-01-31T22:00:00Z: $time" >&2 && exit 2 ;;
esac
pod=${POD_NAME:-$(hostname)}
namespace=${POD_NAMESPACE:-$(cat "$account/namespace")}
patch="{\"metadata\":{\"annotations\":{\"outboard/checkpointing\":\"true\",\"outboard/last-checkpoint-time\":\"$time\"}}}"
if command -v curl >/dev/null; then
  host=${KUBERNETES_SERVICE_HOST:?not in a pod}
  case $host in *:*) host="[$host]" ;; esac
  server=${OUTBOARD_API_SERVER:-https://$host:${KUBERNETES_SERVICE_PORT_HTTPS:-443}}
  # The header comes from a file: arguments of a process are visible to others.
  printf 'Authorization: Bearer %s\n' "$(cat "$account/token")" |
    curl --fail-with-body --silent --show-error --max-time 10 --noproxy '*' --cacert "$account/ca.crt" --request PATCH \
      --header @- --header 'Content-Type: application/merge-patch+json' --data "$patch" --output /dev/null \
      "$server/api/v1/namespaces/$namespace/pods/$pod" ||
    { echo "outboard-checkpoint: the checkpoint of $namespace/$pod was not reported" >&2 && exit 1; }
else
  kubectl patch pod "$pod" --namespace "$namespace" --type merge --patch "$patch" >/dev/null
fi
