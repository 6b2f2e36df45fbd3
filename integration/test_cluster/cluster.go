package testcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	controlplane "outboard.dev/integration/control_plane"
)

// Options selects the parts of a cluster. A control plane with kube-controller-manager and kube-scheduler is always included.
type Options struct {
	// Nodes with kubelets, 1 to 7; zero: 2.
	Nodes int
	// Images are archives of `docker save` that every node has at the start.
	Images []string
	// FakeNodes are further nodes, played by KWOK. They have the label and the taint FakeNode, so that only pods that
	// tolerate it are placed there, and run nothing.
	FakeNodes int
	// DNS gives pods a DNS, CoreDNS, whose first build takes minutes. Without it pods resolve no names.
	DNS bool
	// ControlPlane has further options; its KWOK options are ignored.
	ControlPlane controlplane.Options
}

// Cluster is a running cluster. Not safe for concurrent use, except for the client functions.
type Cluster struct {
	*controlplane.ControlPlane
	Nodes []*Node

	options Options
	tools   *controlplane.NodeTools
	slot    *slot
	network *network
	dns     *controlplane.Process // nil without Options.DNS
}

// startTimeout is the time for all nodes to become Ready; long, because the machine may be busy.
const startTimeout = 5 * time.Minute

// Start runs a cluster and returns when its nodes are Ready. The caller must Close it. Fails at once if the machine lacks
// something (Missing).
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	if options.Nodes == 0 {
		options.Nodes = 2
	}
	if options.Nodes < 0 || options.Nodes > mostNodes {
		return nil, fmt.Errorf("%d nodes: want 1 to %d", options.Nodes, mostNodes)
	}
	if options.ControlPlane.Progress == nil {
		options.ControlPlane.Progress = func(string, ...any) {}
	}
	c := &Cluster{options: options}
	if c.tools, err = controlplane.BuildNodeTools(ctx, options.ControlPlane.Progress); err != nil {
		return nil, err
	}
	if c.slot, err = takeSlot(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w%s", err, c.keepLogs())
			c.Close()
		}
	}()
	if c.network, err = startNetwork(ctx, c.slot); err != nil {
		return nil, err
	}
	if err := c.startControlPlane(ctx); err != nil {
		return nil, err
	}
	if options.DNS {
		if err := c.startDNS(ctx); err != nil {
			return nil, err
		}
	}
	// After the programs are built.
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.startNodes(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Cluster) startControlPlane(ctx context.Context) (err error) {
	options := c.options.ControlPlane
	options.ControllerManager, options.Pinned = true, true
	options.NodeAddress = c.slot.machine().AsSlice()
	options.KWOK, options.KWOKNodes = c.options.FakeNodes > 0, FakeNode+"=true"
	if c.ControlPlane, err = controlplane.Start(ctx, options); err != nil {
		return err
	}
	_, err = c.StartKubeScheduler(ctx, controlplane.SchedulerConfig{})
	return err
}

func (c *Cluster) startNodes(ctx context.Context) error {
	pause, err := buildPauseImage(ctx, c.slot.folder())
	if err != nil {
		return err
	}
	for index := 1; index <= c.options.Nodes; index++ {
		node, err := c.startNode(ctx, index)
		if node != nil {
			c.Nodes = append(c.Nodes, node)
		}
		if err != nil {
			return fmt.Errorf("node %d: %w", index, err)
		}
	}
	if err := c.LoadImages(ctx, append([]string{pause}, c.options.Images...)...); err != nil {
		return err
	}
	for _, node := range c.Nodes {
		if err := node.StartKubelet(); err != nil {
			return err
		}
	}
	if err := c.createFakeNodes(ctx); err != nil {
		return err
	}
	for _, node := range c.Nodes {
		if err := node.Kubelet.WaitUntil(ctx, "node not Ready", func(ctx context.Context) error { return c.ready(ctx, node.Name) }); err != nil {
			return err
		}
	}
	return nil
}

// ready returns nil if the node is Ready and pods may be placed there.
func (c *Cluster) ready(ctx context.Context, name string) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("%s has the taint %s", name, node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("%s is not Ready: %s", name, condition.Message)
		}
	}
	return nil
}

// Kubectl runs the machine's kubectl as the administrator and returns its output.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.AdminKubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// Close ends everything and removes all that the cluster has on the machine. A second call does nothing.
func (c *Cluster) Close() error {
	if c.slot == nil {
		return nil
	}
	for _, node := range c.Nodes {
		node.stop()
	}
	if c.dns != nil {
		c.dns.Kill()
	}
	if c.ControlPlane != nil {
		c.Stop()
	}
	if c.network != nil {
		c.network.bridge.Kill()
	}
	// The last processes of a killed namespace may still be ending.
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		last = c.slot.clear()
		return last == nil, nil
	})
	if err != nil {
		err = last
	}
	c.slot.release()
	c.slot = nil
	return err
}
