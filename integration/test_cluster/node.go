package testcluster

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"text/template"
	"time"

	controlplane "outboard.dev/integration/control_plane"
)

//go:embed node
var nodeFiles embed.FS

// Node is a node with a kubelet. A test may kill and restart its programs.
type Node struct {
	Name    string
	Address net.IP
	// The first process of the node's namespaces: its end ends all that runs on the node.
	Init *controlplane.Process
	// Programs of the node. Kill ends one alone; containers go on.
	Containerd, Kubelet, KubeProxy *controlplane.Process
	others                         []*controlplane.Process

	dir   string
	tools *controlplane.NodeTools
}

// startNode starts the index-th node and its programs, but not its kubelet: images come first.
func (c *Cluster) startNode(ctx context.Context, index int) (*Node, error) {
	n, err := openNode(ctx, c.network, index, c.options.Nodes)
	if err != nil {
		return n, err
	}
	n.tools = c.tools
	if err := n.writeFiles(c, index); err != nil {
		return n, err
	}
	if err := n.StartContainerd(ctx); err != nil {
		return n, err
	}
	return n, n.StartKubeProxy()
}

// openNode creates the index-th node of so many: its folder, control group, namespaces and network, without programs. Also
// with an error, a node that is not nil is to be stopped.
func openNode(ctx context.Context, network *network, index, nodes int) (*Node, error) {
	s := network.slot
	name := fmt.Sprintf("node-%d", index)
	n := &Node{Name: name, Address: s.node(index).AsSlice(), dir: filepath.Join(s.folder(), name)}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, err
	}
	if err := s.createControlGroup(name); err != nil {
		return nil, fmt.Errorf("control group of %s: %w", name, err)
	}
	if err := n.writeFile("init.sh", "init.sh", nil); err != nil {
		return nil, err
	}
	var err error
	const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS
	n.Init, err = controlplane.StartInNamespaces(namespaces, n.dir, "init", "bash", filepath.Join(n.dir, "init.sh"), n.dir, name)
	if err != nil {
		return nil, err
	}
	if err := n.Init.WaitUntil(ctx, "not ready", func(context.Context) error {
		_, err := os.Stat(filepath.Join(n.dir, "ready"))
		return err
	}); err != nil {
		return n, err
	}
	return n, network.connect(ctx, n.Init.PID(), index, nodes)
}

// settings are what the configurations of node/ contain.
type settings struct {
	Name, Folder, NetworkPlugins, PauseImage, ControlGroup, Pods string
	DNS                                                          string // empty: none
}

// writeFiles writes configurations and credentials.
func (n *Node) writeFiles(c *Cluster, index int) error {
	values := &settings{
		Name: n.Name, Folder: n.dir, NetworkPlugins: n.tools.NetworkPlugins, PauseImage: PauseImage,
		ControlGroup: c.slot.name() + "/" + n.Name, Pods: c.slot.subnet(index).String(),
	}
	if c.options.DNS {
		values.DNS = c.slot.machine().String()
	}
	for source, target := range map[string]string{
		"containerd.toml": "containerd.toml", "kubelet.yaml": "kubelet.yaml", "kube-proxy.yaml": "kube-proxy.yaml",
		"network.conflist": "network/pods.conflist",
	} {
		if err := n.writeFile(source, target, values); err != nil {
			return err
		}
	}
	for name, user := range map[string][]string{
		"kubelet.kubeconfig": {"system:node:" + n.Name, "system:nodes"}, "kube-proxy.kubeconfig": {"system:kube-proxy"},
	} {
		kubeconfig, err := c.Kubeconfig(user[0], user[1:]...)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(kubeconfig)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(n.dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return c.WriteNodeCertificate(n.dir, n.Address)
}

// writeFile writes a file of node/ into the node's folder; as it is, without values.
func (n *Node) writeFile(source, target string, values *settings) error {
	data, err := nodeFiles.ReadFile("node/" + source)
	if err != nil {
		return err
	}
	if values != nil {
		text, err := template.New(source).Parse(string(data))
		if err != nil {
			return err
		}
		var filled bytes.Buffer
		if err := text.Execute(&filled, values); err != nil {
			return err
		}
		data = filled.Bytes()
	}
	path := filepath.Join(n.dir, target)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// inside are the words before a command that runs in the node's namespaces.
func (n *Node) inside() []string {
	return []string{"--target", strconv.Itoa(n.Init.PID()), "--mount", "--uts", "--net", "--pid", "--"}
}

// Command returns a command that runs on the node, such as `crictl` or `nft`.
func (n *Node) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append(append(n.inside(), program), args...)...)
}

func (n *Node) start(name, program string, args ...string) (*controlplane.Process, error) {
	return controlplane.StartProcess(n.dir, name, "nsenter", append(append(n.inside(), program), args...)...)
}

// StartContainerd starts or restarts containerd and returns when it answers.
func (n *Node) StartContainerd(ctx context.Context) (err error) {
	if n.Containerd, err = n.start("containerd", "containerd", "--config", filepath.Join(n.dir, "containerd.toml")); err != nil {
		return err
	}
	return n.Containerd.WaitUntil(ctx, "does not answer", func(ctx context.Context) error {
		if out, err := n.Command(ctx, "ctr", "version").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// StartKubelet starts or restarts the kubelet.
func (n *Node) StartKubelet() (err error) {
	n.Kubelet, err = n.start("kubelet", n.tools.Kubelet,
		"--config="+filepath.Join(n.dir, "kubelet.yaml"), "--kubeconfig="+filepath.Join(n.dir, "kubelet.kubeconfig"),
		"--hostname-override="+n.Name, "--node-ip="+n.Address.String())
	return err
}

// StartKubeProxy starts or restarts kube-proxy.
func (n *Node) StartKubeProxy() (err error) {
	n.KubeProxy, err = n.start("kube-proxy", n.tools.KubeProxy, "--config="+filepath.Join(n.dir, "kube-proxy.yaml"))
	return err
}

// stop ends the node. Its pods get no grace.
func (n *Node) stop() {
	if n.Init == nil {
		return
	}
	n.Init.Kill()
	for _, p := range append([]*controlplane.Process{n.Containerd, n.Kubelet, n.KubeProxy}, n.others...) {
		if p == nil {
			continue
		}
		select {
		case <-p.Exited():
		case <-time.After(10 * time.Second):
			p.Kill()
		}
	}
}
