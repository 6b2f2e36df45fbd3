package controlplane

import (
	"net"
	"slices"
)

// ServiceAddresses are the addresses of Services.
const ServiceAddresses = "10.0.0.0/24"

// nodeAPIPort is the usual port, which the shipped NetworkPolicies allow.
const nodeAPIPort = 6443

// kubernetesAddress is that of the Service `kubernetes`, always the first.
const kubernetesAddress = "10.0.0.1"

// address is where the API server listens.
func (c *ControlPlane) address() net.IP {
	if c.options.NodeAddress != nil {
		return c.options.NodeAddress
	}
	return net.IPv4(127, 0, 0, 1)
}

// furtherAddresses are those of the API server's certificate besides 127.0.0.1.
func (c *ControlPlane) furtherAddresses() []net.IP {
	if c.options.NodeAddress == nil {
		return nil
	}
	return []net.IP{c.options.NodeAddress, net.ParseIP(kubernetesAddress)}
}

// networkFlags are those flags of the API server that depend on NodeAddress. With it, a certificate for requests to
// kubelets is written, too.
func (c *ControlPlane) networkFlags() ([]string, error) {
	flags := []string{"--bind-address=" + c.address().String(), "--advertise-address=" + c.address().String()}
	if c.options.NodeAddress == nil {
		return append(flags, "--endpoint-reconciler-type=none", "--authorization-mode=RBAC"), nil
	}
	certificate, key, err := c.authority.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return nil, err
	}
	if err := writeSecrets(c.Dir, map[string][]byte{"kubelet-client.crt": certificate, "kubelet-client.key": key}); err != nil {
		return nil, err
	}
	return slices.Concat(flags, []string{
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--kubelet-client-certificate=" + c.file("kubelet-client.crt"), "--kubelet-client-key=" + c.file("kubelet-client.key"),
		"--kubelet-certificate-authority=" + c.file("ca.crt"),
		// By host name, a kubelet could only be reached with DNS.
		"--kubelet-preferred-address-types=InternalIP",
		// This machine routes the addresses of pods, but not those of Services.
		"--enable-aggregator-routing=true",
	}), nil
}

// WriteNodeCertificate writes ca.crt, kubelet.crt and kubelet.key into the folder: a kubelet's serving certificate, and
// the authority of its clients.
func (c *ControlPlane) WriteNodeCertificate(dir string, address net.IP) error {
	certificate, key, err := c.authority.server(address)
	if err != nil {
		return err
	}
	return writeSecrets(dir, map[string][]byte{"ca.crt": c.authority.pem, "kubelet.crt": certificate, "kubelet.key": key})
}
