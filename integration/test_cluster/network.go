package testcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	controlplane "outboard.dev/integration/control_plane"
)

// The network: a bridge in a namespace of its own connects this machine and the nodes, each in its namespace. Nodes and
// this machine have routes to the pods of each node. Nothing leads out of the machine, and the machine's packet filters
// see none of it.
type network struct {
	slot   *slot
	bridge *controlplane.Process // keeps the bridge's namespace
}

func startNetwork(ctx context.Context, s *slot) (*network, error) {
	bridge, err := controlplane.StartInNamespaces(syscall.CLONE_NEWNET, s.folder(), "bridge", "sleep", "infinity")
	if err != nil {
		return nil, err
	}
	n := &network{s, bridge}
	if err := ip(ctx, bridge.PID(),
		"link set lo up",
		"link add bridge type bridge",
		"link set bridge up",
		fmt.Sprintf("link add name machine type veth peer name %s netns %d", s.link(), os.Getpid()),
		"link set machine master bridge up"); err != nil {
		return n, err
	}
	return n, ip(ctx, 0, fmt.Sprintf("address add %s/24 dev %s", s.machine(), s.link()), fmt.Sprintf("link set %s up", s.link()))
}

// connect connects the namespace of a node's process; of as many nodes as the cluster has.
func (n *network) connect(ctx context.Context, pid, index, nodes int) error {
	port := fmt.Sprintf("node-%d", index)
	if err := ip(ctx, n.bridge.PID(),
		fmt.Sprintf("link add name %s type veth peer name eth0 netns %d", port, pid),
		fmt.Sprintf("link set %s master bridge up", port)); err != nil {
		return err
	}
	own := []string{
		"link set lo up",
		fmt.Sprintf("address add %s/24 dev eth0", n.slot.node(index)),
		"link set eth0 up",
		// To Services, whose addresses kube-proxy translates after the route is known.
		fmt.Sprintf("route add %s dev eth0", controlplane.ServiceAddresses),
	}
	for other := 1; other <= nodes; other++ {
		if other != index {
			own = append(own, n.podRoute(other))
		}
	}
	if err := ip(ctx, pid, own...); err != nil {
		return err
	}
	return ip(ctx, 0, n.podRoute(index))
}

func (n *network) podRoute(node int) string {
	return fmt.Sprintf("route add %s via %s", n.slot.subnet(node), n.slot.node(node))
}

// ReachService lets this machine connect to a Service's address: kube-proxy of the first node translates it, because none
// runs here.
func (c *Cluster) ReachService(ctx context.Context, address string) error {
	return ip(ctx, 0, fmt.Sprintf("route replace %s via %s", address, c.slot.node(1)))
}

// ip runs commands of ip(8) in the network namespace of a process; 0 is this machine's namespace.
func ip(ctx context.Context, pid int, commands ...string) error {
	for _, command := range commands {
		words := append([]string{"ip"}, strings.Fields(command)...)
		if pid != 0 {
			words = append([]string{"nsenter", "--target", strconv.Itoa(pid), "--net"}, words...)
		}
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
	}
	return nil
}

// deleteLink deletes the machine's interface, if it is still there: the kernel deletes it some time after its other end.
func (s *slot) deleteLink() error {
	path := filepath.Join("/sys/class/net", s.link())
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	err := ip(context.Background(), 0, "link delete "+s.link())
	if _, gone := os.Stat(path); gone != nil {
		return nil
	}
	return err
}
