package deploy_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// The leader writes slices that the API server accepts, for both families, with the rights of the component, all of
// which it uses; and writes a slice again that was deleted. Not parallel: the shim inherits POD_IPS.
func TestTheLeadersService(t *testing.T) {
	t.Setenv("POD_IPS", "192.0.2.7,fd00::7")
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c := newClusterOf(t, controlplane.Options{Audit: true})
	all := kustomized(t, "beside-kube-scheduler")
	c.bring(all)
	_, port, _ := strings.Cut(controlplane.FreeAddress(t), ":")
	c.startShim(bin, all, func(_, shim map[string]any) {
		extender := shim["extender"].(map[string]any)
		extender["address"] = "[::]:" + port
		extender["tls"] = map[string]any{"certFile": filepath.Join(c.Dir, "server.crt"), "keyFile": filepath.Join(c.Dir, "server.key")}
	})
	slices := c.client.DiscoveryV1().EndpointSlices(namespace)
	leads := func(name, address string) func() error {
		return func() error {
			slice, err := slices.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if slice.Labels[discoveryv1.LabelServiceName] != "outboard-leader" || len(slice.Endpoints) != 1 || slice.Endpoints[0].Addresses[0] != address ||
				*slice.Ports[0].Name != "extender" || fmt.Sprint(*slice.Ports[0].Port) != port {
				return fmt.Errorf("%s does not lead to %s: %v", name, address, slice)
			}
			return nil
		}
	}
	c.eventually(leads("outboard-leader-ipv4", "192.0.2.7"))
	c.eventually(leads("outboard-leader-ipv6", "fd00::7"))
	// An update, as by the next leader, of what has another endpoint.
	for name, address := range map[string]string{"outboard-leader-ipv4": "192.0.2.8", "outboard-leader-ipv6": "fd00::8"} {
		slice, err := slices.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		slice.Endpoints[0].Addresses[0] = address
		if _, err := slices.Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.eventually(leads("outboard-leader-ipv4", "192.0.2.7"))
	c.eventually(leads("outboard-leader-ipv6", "fd00::7"))
	if err := slices.Delete(t.Context(), "outboard-leader-ipv4", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually(leads("outboard-leader-ipv4", "192.0.2.7"))
	ours := 0
	for _, r := range c.granted(all) {
		if r.resource == "endpointslices" {
			ours++
			if !c.used()[r] {
				t.Errorf("granted, but not used: %v", r)
			}
		}
	}
	if ours != 5 {
		t.Errorf("%d rights to slices, want create, and get and update of two", ours)
	}
}

// fakeKubectl keeps Secrets as files, and the webhook's patch.
const fakeKubectl = `#!/usr/bin/env bash
set -euo pipefail
case "$*" in
  "get secret outboard-webhook-authority "*"-o name") [[ ! -e $STORE/ca.crt ]] || echo secret/outboard-webhook-authority ;;
  "get secret outboard-webhook-authority "*tls*crt*) base64 <"$STORE/ca.crt" ;;
  "get secret outboard-webhook-authority "*tls*key*) base64 <"$STORE/ca.key" ;;
  "create secret tls outboard-webhook-authority "*) cp ca.crt ca.key "$STORE" ;;
  "create secret tls outboard-webhook-tls "*) cp tls.crt tls.key "$STORE" ;;
  "apply -f -") cat >"$STORE/applied" ;;
  "patch validatingwebhookconfiguration outboard-bindings.elsewhere "*) printf '%s' "${@: -1}" >"$STORE/patch" ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac
`

// The script makes an authority once, and each time a certificate of it for the leader's Service.
func TestTheWebhooksCertificate(t *testing.T) {
	t.Parallel()
	programs, store := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte(fakeKubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func() (authority []byte, serial string) {
		command := exec.CommandContext(t.Context(), path(t, "deploy/kustomize/components/binding-webhook/certificate.sh"), "elsewhere")
		command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "STORE="+store)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var patches []struct{ Op, Path, Value string }
		text, err := os.ReadFile(filepath.Join(store, "patch"))
		if err == nil {
			err = json.Unmarshal(text, &patches)
		}
		if err != nil || len(patches) != 1 || patches[0].Path != "/webhooks/0/clientConfig/caBundle" {
			t.Fatalf("the webhook's patch: %v %s", err, text)
		}
		if authority, err = base64.StdEncoding.DecodeString(patches[0].Value); err != nil {
			t.Fatal(err)
		}
		text, err = os.ReadFile(filepath.Join(store, "tls.crt"))
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := parsedCertificate(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifies(text, authority, x509.ExtKeyUsageServerAuth, "outboard-leader.elsewhere.svc"); err != nil {
			t.Error(err)
		}
		return authority, certificate.SerialNumber.String()
	}
	authority, first := run()
	again, second := run()
	if string(again) != string(authority) {
		t.Error("the second run has another authority, which running shims' certificates are not of")
	}
	if first == second {
		t.Error("the second run issued no other certificate")
	}
}
