package testcluster

// dnsAddress is where pods find DNS; empty without.
func (c *Cluster) dnsAddress() string {
	if !c.options.DNS {
		return ""
	}
	return c.slot.machine().String()
}
