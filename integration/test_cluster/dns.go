package testcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	controlplane "outboard.dev/integration/control_plane"
)

// CoreDNSVersion is that of the cluster's DNS.
const CoreDNSVersion = "v1.14.7"

// startDNS starts CoreDNS on this machine, at the address where the API server is, and returns when it resolves a Service.
// Pods of all nodes ask it; it knows the cluster's names only.
func (c *Cluster) startDNS(ctx context.Context) error {
	program, err := controlplane.InstallTool(ctx, "coredns-"+CoreDNSVersion, "github.com/coredns/coredns@"+CoreDNSVersion, c.options.ControlPlane.Progress)
	if err != nil {
		return err
	}
	address := c.slot.machine().String()
	corefile := filepath.Join(c.slot.folder(), "Corefile")
	if err := os.WriteFile(corefile, fmt.Appendf(nil, `cluster.local {
	bind %[1]s
	errors
	kubernetes {
		kubeconfig %[2]s
	}
}
. {
	bind %[1]s
	template ANY ANY {
		rcode NXDOMAIN
	}
}
`, address, c.AdminKubeconfig), 0o644); err != nil {
		return err
	}
	if c.dns, err = controlplane.StartProcess(c.slot.folder(), "coredns", program, "-conf", corefile); err != nil {
		return err
	}
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, "53"))
	}}
	return c.dns.WaitUntil(ctx, "does not resolve", func(ctx context.Context) error {
		_, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
		return err
	})
}
