package main

import (
	"fmt"
	"strings"
	"time"

	pb "outboard.dev/contract/v1beta1"
)

const (
	pluginName = "PowerDomains"
	// The node label with the name of the power domain.
	domainLabel = "example.com/power-domain"
	// The node annotation with the time of the next maintenance: START/END, both RFC 3339.
	windowAnnotation = "example.com/maintenance-window"
)

// info describes the plugin to the shim.
func info() *pb.PluginInfo {
	node := func(actions ...pb.ClusterEvent_Action) *pb.ClusterEvent {
		return &pb.ClusterEvent{Resource: "Node", Actions: actions}
	}
	return &pb.PluginInfo{
		Name:            pluginName,
		ExtensionPoints: []pb.ExtensionPoint{pb.ExtensionPoint_EXTENSION_POINT_FILTER, pb.ExtensionPoint_EXTENSION_POINT_SCORE},
		NeededFields:    []string{"Node.metadata.annotations['" + windowAnnotation + "']"},
		WakeUpEvents:    []*pb.ClusterEvent{node(pb.ClusterEvent_ACTION_ADD, pb.ClusterEvent_ACTION_UPDATE_NODE_ANNOTATION)},
	}
}

// checkMaintenance returns a rejection while a maintenance window of the node is open, otherwise nil. The end of a
// window is not a cluster event; a waiting pod is retried at the next event, or at the scheduler's flush every five
// minutes.
func checkMaintenance(node *pb.Node, now time.Time) (*pb.PluginStatus, error) {
	window, declared := node.GetAnnotations()[windowAnnotation]
	if !declared {
		return nil, nil
	}
	begin, end, found := strings.Cut(window, "/")
	if !found {
		return nil, fmt.Errorf("node %s: %s is %q, not START/END", node.GetName(), windowAnnotation, window)
	}
	from, err := time.Parse(time.RFC3339, begin)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.GetName(), err)
	}
	until, err := time.Parse(time.RFC3339, end)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.GetName(), err)
	}
	if now.Before(from) || !now.Before(until) {
		return nil, nil
	}
	return &pb.PluginStatus{
		Plugin: pluginName, Code: pb.Code_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, Reasons: []string{"node(s) were under maintenance"},
	}, nil
}

// scores prefers domains with few pods of the same app: 100 for the domain with the fewest among the given nodes, 0
// for the one with the most.
func scores(m *clusterCache, pod *pb.Pod, slots []uint32) []byte {
	inDomain := map[string]int{}
	app, hasApp := pod.GetLabels()["app"]
	if hasApp {
		for _, other := range m.pods {
			slot, placed := m.place(other)
			if placed && other.GetNamespace() == pod.GetNamespace() && other.GetLabels()["app"] == app {
				inDomain[m.nodes[slot].GetLabels()[domainLabel]]++
			}
		}
	}
	fewest, most := -1, 0
	for _, slot := range slots {
		count := inDomain[m.nodes[slot].GetLabels()[domainLabel]]
		if fewest < 0 || count < fewest {
			fewest = count
		}
		most = max(most, count)
	}
	packed := make([]byte, len(slots))
	for i, slot := range slots {
		packed[i] = 100
		if most > fewest {
			packed[i] = byte(100 * (most - inDomain[m.nodes[slot].GetLabels()[domainLabel]]) / (most - fewest))
		}
	}
	return packed
}
