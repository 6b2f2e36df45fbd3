package testcluster

import (
	"context"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func TestNamesOfServices(t *testing.T) {
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "team", Labels: labels}
	}
	endpoint := func(address, host string, ready bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{address}, Hostname: ptr.To(host), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready)},
		}
	}
	client := fake.NewClientset(
		&corev1.Service{ObjectMeta: meta("web", nil), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.7"}},
		&corev1.Service{ObjectMeta: meta("hosts", nil), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  meta("hosts-1", map[string]string{discoveryv1.LabelServiceName: "hosts"}),
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{endpoint("198.18.2.3", "host-1", true), endpoint("198.18.1.3", "host-0", true), endpoint("198.18.1.9", "host-2", false)},
		},
	)
	d, err := startDNS(t.Context(), client, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer d.stop()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", d.connection.LocalAddr().String())
	}}
	for name, want := range map[string]string{
		"web.team.svc.cluster.local.":            "10.0.0.7",
		"WEB.team.svc.cluster.local.":            "10.0.0.7",
		"hosts.team.svc.cluster.local.":          "198.18.1.3 198.18.2.3",
		"host-1.hosts.team.svc.cluster.local.":   "198.18.2.3",
		"host-2.hosts.team.svc.cluster.local.":   "no such host",
		"host-1.web.team.svc.cluster.local.":     "no such host",
		"web.other.svc.cluster.local.":           "no such host",
		"web.team.":                              "no such host",
		"a.b.hosts.team.svc.cluster.local.":      "no such host",
		"team.svc.cluster.local.":                "no such host",
		"host-0.hosts.team.svc.other-zone.test.": "no such host",
	} {
		addresses, err := resolver.LookupNetIP(t.Context(), "ip4", name)
		got := []string{}
		for _, address := range addresses {
			got = append(got, address.Unmap().String())
		}
		if err != nil {
			if got = []string{err.Error()}; !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
			continue
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}
