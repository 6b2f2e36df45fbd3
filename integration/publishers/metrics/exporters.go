// Package metrics writes what dcgm-exporter, OpenCost and Karpenter expose, and runs Prometheus. None of the exporters
// can be run here (dcgm-exporter needs DCGM's library and its module is not served; neither is OpenCost's; Karpenter
// needs a cloud), so the names and the order of labels are as read in their sources: dcgm-exporter 4.5.3-4.8.2 and its
// commit d5e5f51 (2026-05-12), OpenCost's commit 5f65333 (2024-10-24), karpenter-provider-aws' commit 112b9b3.
package metrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// DCGM is dcgm-exporter on one node.
type DCGM struct {
	// Up to 4.5.3 the label of the node is "Hostname", later "hostname".
	HostnameLabel string
	Hostname      string
	GPUs          []GPU
	OldNamespace  bool // --use-old-namespace
}

// GPU is a GPU, or a MIG device of one.
type GPU struct {
	Model string
	// MIG: profile and instance; empty: a whole GPU.
	Profile, Instance string
	Index             int
	// The part of the time that it is busy: the profiling metric, and DCGM_FI_DEV_GPU_UTIL; negative: not exposed.
	Active, Util float64
	// In MiB.
	Used, Free int
	XID        int
	// The pod that has it; empty: none.
	Namespace, Pod, Container string
}

// field is a metric of etc/default-counters.csv that plugins read.
type field struct {
	name, kind, help string
	value            func(GPU) (string, bool)
}

func fixed(value float64) (string, bool) { return fmt.Sprintf("%f", value), value >= 0 }
func whole(value int) (string, bool)     { return fmt.Sprint(value), true }

var fields = []field{
	{"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", func(g GPU) (string, bool) { return fmt.Sprint(int(100*g.Util + 0.5)), g.Util >= 0 }},
	{"DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", func(g GPU) (string, bool) { return whole(g.XID) }},
	{"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", func(g GPU) (string, bool) { return whole(g.Free) }},
	{"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", func(g GPU) (string, bool) { return whole(g.Used) }},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.", func(g GPU) (string, bool) { return fixed(g.Active) }},
}

// labels are in the order of the exporter's template: fixed ones, labels from label counters, then attributes by name.
func (d DCGM) labels(g GPU, metric string) string {
	uuid, namespace, pod, container := "UUID", "namespace", "pod", "container"
	if d.OldNamespace {
		uuid, namespace, pod, container = "uuid", "pod_namespace", "pod_name", "container_name"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "gpu=\"%d\",%s=\"GPU-%08x-0000-4000-8000-%012x\",pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=%q",
		g.Index, uuid, g.Index, g.Index, g.Index, g.Index, g.Model)
	if g.Profile != "" {
		fmt.Fprintf(&out, ",GPU_I_PROFILE=%q,GPU_I_ID=%q", g.Profile, g.Instance)
	}
	fmt.Fprintf(&out, ",%s=%q,DCGM_FI_DRIVER_VERSION=\"580.95.05\"", d.HostnameLabel, d.Hostname)
	attributes := map[string]string{}
	if metric == "DCGM_FI_DEV_XID_ERRORS" {
		attributes["err_code"], attributes["err_msg"] = fmt.Sprint(g.XID), errorText(g.XID)
	}
	if g.Pod != "" {
		attributes[namespace], attributes[pod], attributes[container] = g.Namespace, g.Pod, g.Container
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		fmt.Fprintf(&out, ",%s=%q", name, attributes[name])
	}
	return out.String()
}

func errorText(xid int) string {
	switch xid {
	case 0:
		return "No Error"
	case 79:
		return "GPU has fallen off the bus"
	}
	return "Unknown Error"
}

// Write writes the text that Prometheus scrapes.
func (d DCGM) Write(w io.Writer) {
	for _, field := range fields {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", field.name, field.help, field.name, field.kind)
		for _, gpu := range d.GPUs {
			if value, exposed := field.value(gpu); exposed {
				fmt.Fprintf(w, "%s{%s} %s\n", field.name, d.labels(gpu, field.name), value)
			}
		}
	}
}

// Price is a node as OpenCost prices it; costs are in dollars per hour.
type Price struct {
	Node, InstanceType, Region, ProviderID, Arch string
	// Of one CPU, of one GB of memory, of one GPU.
	CPU, RAM, GPU float64
	// Of the whole node.
	Total float64
	GPUs  int
	Spot  bool
}

// WriteOpenCost writes the metrics of nodes. OpenCost's own label `instance` is the node too.
func WriteOpenCost(w io.Writer, prices []Price) {
	spot := map[bool]float64{true: 1}
	for _, metric := range []struct {
		name, help string
		value      func(Price) float64
	}{
		{"node_cpu_hourly_cost", "hourly cost for each cpu on this node", func(p Price) float64 { return p.CPU }},
		{"node_ram_hourly_cost", "hourly cost for each gb of ram on this node", func(p Price) float64 { return p.RAM }},
		{"node_gpu_hourly_cost", "hourly cost for each gpu on this node", func(p Price) float64 { return p.GPU }},
		{"node_gpu_count", "count of gpu on this node", func(p Price) float64 { return float64(p.GPUs) }},
		{"kubecost_node_is_spot", "Cloud provider info about node preemptibility", func(p Price) float64 { return spot[p.Spot] }},
		{"node_total_hourly_cost", "Total node cost per hour", func(p Price) float64 { return p.Total }},
	} {
		fmt.Fprintf(w, "# HELP %s %s %s\n# TYPE %s gauge\n", metric.name, metric.name, metric.help, metric.name)
		for _, p := range prices {
			fmt.Fprintf(w, "%s{arch=%q,instance=%q,instance_type=%q,node=%q,provider_id=%q,region=%q} %v\n",
				metric.name, p.Arch, p.Node, p.InstanceType, p.Node, p.ProviderID, p.Region, metric.value(p))
		}
	}
}

// Offering is an instance type that Karpenter can order; the price is in dollars per hour.
type Offering struct {
	InstanceType, CapacityType, Zone string
	// 0: Karpenter knows none. Of reserved capacity: a ten-millionth of the on-demand price.
	Price float64
}

// WriteKarpenter writes the prices of Karpenter on AWS.
func WriteKarpenter(w io.Writer, offerings []Offering) {
	const metric = "karpenter_cloudprovider_instance_type_offering_price_estimate"
	fmt.Fprintf(w, "# HELP %s Instance type offering estimated hourly price used when making informed decisions on node cost calculation, based on instance type, capacity type, and zone.\n# TYPE %s gauge\n", metric, metric)
	for _, o := range offerings {
		fmt.Fprintf(w, "%s{capacity_type=%q,instance_type=%q,zone=%q} %v\n", metric, o.CapacityType, o.InstanceType, o.Zone, o.Price)
	}
}
