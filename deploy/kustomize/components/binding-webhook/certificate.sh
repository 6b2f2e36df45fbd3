#!/usr/bin/env bash
# A certificate for the webhook of binds where cert-manager does not run. Usage: certificate.sh [NAMESPACE]
# The first run makes an authority for the webhook alone (ten years; Secret outboard-webhook-authority). Each run issues
# a certificate of it for a year (Secret outboard-webhook-tls), which shims use within two minutes without a restart,
# and enters the authority in the ValidatingWebhookConfiguration outboard-bindings.NAMESPACE. Run it again
# before the year ends.
# Needs openssl, and kubectl with rights to Secrets of the namespace and to the webhook.
set -euo pipefail
namespace=${1:-outboard-system}
service=outboard-leader.$namespace.svc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 077
cd "$work"

authority=(kubectl get secret outboard-webhook-authority -n "$namespace" --ignore-not-found -o)
if [[ -n $("${authority[@]}" name) ]]; then
  "${authority[@]}" 'jsonpath={.data.tls\.crt}' | base64 -d >ca.crt
  "${authority[@]}" 'jsonpath={.data.tls\.key}' | base64 -d >ca.key
else
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=outboard-webhook-authority \
    -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.crt 2>openssl.log || { cat openssl.log >&2; exit 1; }
  kubectl create secret tls outboard-webhook-authority -n "$namespace" --cert=ca.crt --key=ca.key
fi

openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=outboard-leader -keyout tls.key -out tls.csr \
  2>openssl.log || { cat openssl.log >&2; exit 1; }
printf 'subjectAltName=DNS:%s\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\nbasicConstraints=critical,CA:FALSE\n' \
  "$service" >extensions
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile extensions -out tls.crt \
  2>openssl.log || { cat openssl.log >&2; exit 1; }
kubectl create secret tls outboard-webhook-tls -n "$namespace" --cert=tls.crt --key=tls.key --dry-run=client -o yaml |
  kubectl apply -f -
kubectl patch validatingwebhookconfiguration "outboard-bindings.$namespace" --type=json \
  -p "[{\"op\": \"add\", \"path\": \"/webhooks/0/clientConfig/caBundle\", \"value\": \"$(base64 -w0 <ca.crt)\"}]"
