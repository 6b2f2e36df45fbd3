package testcluster

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"

	controlplane "outboard.dev/integration/control_plane"
)

// PoliciesVersion is that of kube-router, which enforces NetworkPolicies.
const PoliciesVersion = "v2.1.0"

const policiesHealth = "20244" // kube-router's port, of each node's namespace

// EnforcePolicies runs kube-router on each node, as a firewall only, and returns when all enforce NetworkPolicies. The
// cluster's own network ignores them.
func (c *Cluster) EnforcePolicies(ctx context.Context) error {
	for _, program := range []string{"ipset", "iptables-save", "iptables-restore"} { // Debian packages ipset and iptables.
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	program, err := controlplane.InstallTool(ctx, "kube-router-"+PoliciesVersion,
		"github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@"+PoliciesVersion, c.options.ControlPlane.Progress)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, node := range c.Nodes {
		process, err := node.start("kube-router", program, "--run-firewall", "--run-router=false", "--run-service-proxy=false",
			"--kubeconfig="+c.AdminKubeconfig, "--hostname-override="+node.Name, "--service-cluster-ip-range="+controlplane.ServiceAddresses,
			"--health-port="+policiesHealth)
		if err != nil {
			return err
		}
		node.others = append(node.others, process)
		if err := process.WaitUntil(ctx, "is not healthy", controlplane.HTTPOK(fmt.Sprintf("http://%s:%s/healthz", node.Address, policiesHealth))); err != nil {
			return err
		}
	}
	return nil
}

// Connect opens a TCP connection from a pod's network to an address, and closes it.
func (c *Cluster) Connect(ctx context.Context, from *corev1.Pod, address string, port int) error {
	for _, node := range c.Nodes {
		if node.Name != from.Spec.NodeName {
			continue
		}
		pid, err := node.processOf(ctx, from)
		if err != nil {
			return err
		}
		command := fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", address, port)
		if out, err := node.Command(ctx, "nsenter", "--target", pid, "--net", "--", "timeout", "3", "bash", "-c", command).CombinedOutput(); err != nil {
			return fmt.Errorf("%s/%s: %w: %s", from.Namespace, from.Name, err, out)
		}
		return nil
	}
	return fmt.Errorf("%s/%s is on unknown node %q", from.Namespace, from.Name, from.Spec.NodeName)
}

// processOf returns a process of a pod, as the node numbers it.
func (n *Node) processOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	ids, err := n.Command(ctx, "ctr", "--namespace", "k8s.io", "containers", "list", "--quiet",
		fmt.Sprintf("labels.\"io.kubernetes.pod.uid\"==%s", pod.UID)).Output()
	if err != nil {
		return "", err
	}
	tasks, err := n.Command(ctx, "ctr", "--namespace", "k8s.io", "tasks", "list").Output()
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(tasks), "\n") {
		if words := strings.Fields(line); len(words) == 3 && words[2] == "RUNNING" && strings.Contains(string(ids), words[0]) {
			return words[1], nil
		}
	}
	return "", fmt.Errorf("%s/%s has no running container on %s", pod.Namespace, pod.Name, n.Name)
}
