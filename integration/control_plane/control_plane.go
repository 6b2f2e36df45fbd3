package controlplane

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

//go:embed manifests/outboard-access.yaml
var outboardAccess string

// OutboardUser is the user that Outboard's kubeconfig names.
const OutboardUser = "outboard-scheduler"

// Options selects the parts of a control plane. etcd and kube-apiserver are always included.
type Options struct {
	// ControllerManager runs kube-controller-manager, and enables the admission plugins that need it (ServiceAccount;
	// TaintNodesByCondition, which taints a new node until a controller has seen it Ready).
	ControllerManager bool
	// Controllers, if not empty, are the only controllers of kube-controller-manager that run; admission plugins that
	// need others are off.
	Controllers []string
	// KWOK plays the kubelet of every node, or of the nodes that KWOKNodes, a label selector, selects.
	KWOK      bool
	KWOKNodes string
	// KWOKStages is a file with Stages of KWOK. Empty: KWOK's own, by which pods of a Job have succeeded as soon as they
	// run.
	KWOKStages string
	// TokenUsers get a token instead of a client certificate, besides those of SpareCores.
	TokenUsers []string
	// SpareCores leaves the cores to schedulers, which elsewhere do not share them with etcd and the API server:
	// these two run at a lower priority and collect garbage still less often. Clients use a token as in a cluster,
	// because the API server verifies the signature of a client certificate for each request.
	SpareCores bool
	// SpareMemory is for clusters of 100,000 pods and more: etcd and the API server collect garbage more often than by Go's
	// default, the data are on disk, and etcd forgets its history, so that no check can read it.
	SpareMemory bool
	// PodGroups makes the API server serve scheduling.k8s.io/v1alpha2 and keep spec.schedulingGroup of pods.
	PodGroups bool
	// FeatureGates are set for the API server: "A=true,B=false".
	FeatureGates string
	// Audit makes the API server log every request, for AuditLog.
	Audit bool
	// Pinned uses Kubernetes' programs of the pinned release, regardless of OUTBOARD_KUBERNETES.
	Pinned bool
	// NodeAddress, if set, is where the API server listens (port 6443) instead of at 127.0.0.1, so that kubelets and pods
	// reach it: an address of this machine that no other control plane has. A kubelet then has the rights of its own node
	// alone (Kubeconfig with the group system:nodes), the Service `kubernetes` leads to the API server, and webhooks are
	// called at their pods.
	NodeAddress net.IP
	// StrictTokens makes service account tokens expire at their expiration time; otherwise the API server accepts
	// them for a year.
	StrictTokens bool
	// Progress receives progress messages; nil drops them.
	Progress func(format string, args ...any)
}

// ControlPlane is a running control plane. Not safe for concurrent use, except for the client functions and the starts
// of processes.
type ControlPlane struct {
	Dir             string // all files of the control plane
	EtcdURL         string
	URL             string
	AdminKubeconfig string

	tools     *Tools
	options   Options
	authority *authority
	// Authorities of the API server's certificate: its issuer (at first the cluster's), and the other one.
	serving, otherServing *authority
	tokens                map[string]string // by user; other users have a certificate
	mutex                 sync.Mutex        // guards processes
	processes             []*Process        // in start order
	etcd, apiServer       *Process
	etcdPeerURL           string
	apiPort               int
	servers               int // the first of processes: etcd and what Options selects
}

// startTimeout is the time for a program to become ready; long, because the machine may be busy.
const startTimeout = 3 * time.Minute

// Start runs a control plane and returns when it is ready. The caller must Stop it.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if options.Progress == nil {
		options.Progress = func(string, ...any) {}
	}
	tools, err := BuildTools(ctx, options.Pinned, options.Progress)
	if err != nil {
		return nil, err
	}
	// A free port may be taken before its server starts. That is rare, and a retry is enough.
	for try := 1; ; try++ {
		c, err := start(ctx, tools, options)
		if err == nil || try == 3 || !strings.Contains(err.Error(), "address already in use") {
			return c, err
		}
	}
}

func start(ctx context.Context, tools *Tools, options Options) (_ *ControlPlane, err error) {
	dir, err := temporaryDirectory(options.SpareMemory)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{Dir: dir, tools: tools, options: options}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if options.NodeAddress != nil {
		ports[2] = nodeAPIPort
	}
	c.EtcdURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	c.URL = fmt.Sprintf("https://%s:%d", c.address(), ports[2])
	if c.authority, err = newAuthority(); err != nil {
		return nil, err
	}
	c.serving = c.authority
	if c.otherServing, err = newAuthority(); err != nil {
		return nil, err
	}
	if err := c.authority.writeServerFiles(dir, c.furtherAddresses()...); err != nil {
		return nil, err
	}
	if options.SpareCores || options.TokenUsers != nil {
		if err := c.writeTokens(); err != nil {
			return nil, err
		}
	}
	if c.AdminKubeconfig, err = c.Kubeconfig("admin", "system:masters"); err != nil {
		return nil, err
	}
	c.etcdPeerURL = fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	if err := c.StartEtcd(); err != nil {
		return nil, err
	}
	c.apiPort = ports[2]
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	if err := c.Apply(ctx, outboardAccess); err != nil {
		return nil, err
	}
	if options.ControllerManager || options.Controllers != nil {
		if err := c.startControllerManager(ctx); err != nil {
			return nil, err
		}
	}
	if options.KWOK {
		if err := c.startKWOK(ctx); err != nil {
			return nil, err
		}
	}
	c.servers = len(c.processes)
	return c, nil
}

// temporaryDirectory prefers memory to disk, unless `onDisk`, and removes the folders of killed runs.
func temporaryDirectory(onDisk bool) (string, error) {
	const prefix = "outboard-cp-"
	base := os.TempDir()
	var shm syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &shm); err == nil && !onDisk && shm.Bavail*uint64(shm.Bsize) >= 2<<30 {
		base = "/dev/shm"
	}
	old, _ := filepath.Glob(filepath.Join(base, prefix+"*"))
	for _, dir := range old {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil && base == "/dev/shm" {
		dir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	}
	return dir, err
}

// StartProcess runs a program that ends with the control plane at the latest. Its output goes to NAME.log.
func (c *ControlPlane) StartProcess(name, program string, args ...string) (*Process, error) {
	p, err := StartProcess(c.Dir, name, program, args...)
	if err == nil {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.processes = append(c.processes, p)
	}
	return p, err
}

// startServer is StartProcess for etcd and the API server. Less garbage collection and larger stacks of goroutines save
// a fifth of their CPU time.
func (c *ControlPlane) startServer(name, program string, args ...string) (*Process, error) {
	if c.options.SpareCores {
		return c.StartProcess(name, "env", append([]string{"GOGC=400", "GODEBUG=adaptivestackstart=1", "nice", "-n", "10", program}, args...)...)
	}
	garbage := "GOGC=200"
	if c.options.SpareMemory {
		garbage = "GOGC=40"
	}
	return c.StartProcess(name, "env", append([]string{garbage, "GODEBUG=adaptivestackstart=1", program}, args...)...)
}

// Etcd returns etcd's process.
func (c *ControlPlane) Etcd() *Process { return c.etcd }

// StartEtcd starts etcd, again if it has ended. It has all that it had answered for: data are in the kernel's hands.
func (c *ControlPlane) StartEtcd() (err error) {
	c.etcd, err = c.startServer("etcd", c.tools.Etcd,
		"--name=default",
		"--data-dir="+filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls="+c.EtcdURL, "--advertise-client-urls="+c.EtcdURL,
		"--listen-peer-urls="+c.etcdPeerURL, "--initial-advertise-peer-urls="+c.etcdPeerURL,
		"--initial-cluster=default="+c.etcdPeerURL,
		"--unsafe-no-fsync", "--quota-backend-bytes=4294967296", "--log-level=warn")
	return err
}

// APIServer returns the API server's process.
func (c *ControlPlane) APIServer() *Process { return c.apiServer }

// StartAPIServer starts the API server, again if it has ended, and returns when it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) (err error) {
	if c.apiServer, err = c.startAPIServer(c.apiPort); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.apiServer.WaitUntil(ctx, "not ready", c.apiReady)
}

func (c *ControlPlane) startAPIServer(port int) (*Process, error) {
	disabled := ""
	if !c.options.ControllerManager || c.options.Controllers != nil {
		disabled = "ServiceAccount,TaintNodesByCondition"
	}
	tokens := ""
	if c.tokens != nil {
		tokens = c.file("tokens.csv")
	}
	audit := []string{}
	if c.options.Audit {
		if err := os.WriteFile(c.file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
		audit = []string{"--audit-policy-file=" + c.file("audit-policy.yaml"), "--audit-log-path=" + c.file("audit.json"),
			"--audit-log-maxsize=100000"} // Megabytes: never rotate.
	}
	compaction := "0" // The checks read the history from revision 1.
	if c.options.SpareMemory {
		compaction = "1m"
	}
	gates, versions := c.options.FeatureGates, ""
	if c.options.PodGroups {
		gates, versions = strings.Trim(gates+",GenericWorkload=true", ","), "scheduling.k8s.io/v1alpha2=true"
	}
	network, err := c.networkFlags()
	if err != nil {
		return nil, err
	}
	return c.startServer("kube-apiserver", c.tools.APIServer, append(slices.Concat(audit, network),
		"--feature-gates="+gates, "--runtime-config="+versions,
		"--etcd-servers="+c.EtcdURL,
		"--etcd-compaction-interval="+compaction,
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+c.file("server.crt"), "--tls-private-key-file="+c.file("server.key"),
		"--client-ca-file="+c.file("ca.crt"), "--token-auth-file="+tokens,
		// No authenticating proxy is used, but other components log errors permanently without a CA for it.
		"--requestheader-client-ca-file="+c.file("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-extend-token-expiration="+strconv.FormatBool(!c.options.StrictTokens),
		"--service-account-key-file="+c.file("sa.pub"), "--service-account-signing-key-file="+c.file("sa.key"),
		"--service-cluster-ip-range="+ServiceAddresses,
		"--disable-admission-plugins="+disabled,
		"--profiling=false")...)
}

func (c *ControlPlane) apiReady(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	kubeconfig, err := c.Kubeconfig("system:kube-controller-manager", "system:masters")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	grace := []string{}
	if c.options.KWOK {
		// KWOK updates the status of a node every 55 s, which is more than the default. The pods of a node that counts as
		// not ready stay not ready: KWOK does not update their status again.
		grace = []string{"--node-monitor-grace-period=10m"}
	}
	p, err := c.StartProcess("kube-controller-manager", c.tools.ControllerManager, append(grace,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(ports[0]), "--cert-dir="+c.Dir,
		"--root-ca-file="+c.file("ca.crt"), "--service-account-private-key-file="+c.file("sa.key"),
		"--controllers="+cmp.Or(strings.Join(c.options.Controllers, ","), "*"),
		"--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=1000", "--profiling=false")...)
	if err != nil {
		return err
	}
	if err := p.WaitUntil(ctx, "not healthy", HTTPOK(fmt.Sprintf("https://127.0.0.1:%d/healthz", ports[0]))); err != nil || c.options.Controllers != nil {
		return err
	}
	// Pods can be created when the namespace has its service account.
	return p.WaitUntil(ctx, "no default service account", func(ctx context.Context) error {
		client, err := c.Client()
		if err != nil {
			return err
		}
		_, err = client.CoreV1().ServiceAccounts("default").Get(ctx, "default", getOptions)
		return err
	})
}

func (c *ControlPlane) startKWOK(ctx context.Context) error {
	kubeconfig, err := c.Kubeconfig("kwok", "system:masters")
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	stages := c.options.KWOKStages
	if stages == "" {
		stages = os.DevNull // Ignores the configuration of this machine's user.
	}
	p, err := c.StartProcess("kwok", c.tools.KWOK,
		"--kubeconfig="+kubeconfig, "--manage-all-nodes="+strconv.FormatBool(c.options.KWOKNodes == ""),
		"--manage-nodes-with-label-selector="+c.options.KWOKNodes, "--server-address="+address,
		"--config="+stages)
	if err != nil {
		return err
	}
	return p.WaitUntil(ctx, "not healthy", HTTPOK("http://"+address+"/healthz"))
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.Dir, name) }

// LetSchedule gives another user the rights and the API priority of OutboardUser.
func (c *ControlPlane) LetSchedule(ctx context.Context, user string) error {
	return c.Apply(ctx, strings.ReplaceAll(outboardAccess, "name: "+OutboardUser, "name: "+user))
}

// Kubeconfig writes a kubeconfig for a user and returns its path.
func (c *ControlPlane) Kubeconfig(user string, groups ...string) (string, error) {
	path := c.file("kubeconfig-" + strings.ReplaceAll(user, ":", "-"))
	return path, c.authority.writeKubeconfig(path, slices.Concat(c.serving.pem, c.otherServing.pem), c.URL, c.tokens[user], user, groups...)
}

// kubeconfigThrough is Kubeconfig for a client that reaches the API server at another address; the name distinguishes
// several ones of a user.
func (c *ControlPlane) kubeconfigThrough(server, name, user string) (string, error) {
	path := c.file("kubeconfig-" + strings.ReplaceAll(user, ":", "-") + "-through" + name)
	return path, c.authority.writeKubeconfig(path, slices.Concat(c.serving.pem, c.otherServing.pem), server, c.tokens[user], user)
}

// Proxied returns what a proxy before the API server needs: a TLS configuration as a client that is this user, and a
// certificate that clients of the API server accept at 127.0.0.1 and at further addresses.
func (c *ControlPlane) Proxied(user string, addresses ...net.IP) (*tls.Config, tls.Certificate, error) {
	certificate, key, err := c.authority.client(user)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	client, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.serving.certificate)
	roots.AddCert(c.otherServing.certificate)
	if certificate, key, err = c.serving.server(addresses...); err != nil {
		return nil, tls.Certificate{}, err
	}
	server, err := tls.X509KeyPair(certificate, key)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{client}}, server, err
}

// ClientCertificate signs a certificate for a user that expires after `life`.
func (c *ControlPlane) ClientCertificate(user string, life time.Duration, groups ...string) (certificate, key []byte, err error) {
	template := certificateTemplate(user, groups...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.NotAfter = time.Now().Add(life)
	return c.authority.sign(template)
}

// writeTokens creates tokens for the users with the most requests.
func (c *ControlPlane) writeTokens() error {
	c.tokens = map[string]string{"admin": rand.Text()}
	lines := fmt.Sprintf("%s,admin,admin,system:masters\n", c.tokens["admin"])
	for _, user := range append([]string{OutboardUser}, c.options.TokenUsers...) {
		c.tokens[user] = rand.Text()
		lines += fmt.Sprintf("%s,%s,%s\n", c.tokens[user], user, user)
	}
	return os.WriteFile(c.file("tokens.csv"), []byte(lines), 0o600)
}

// RESTConfig returns the administrator's, without a client-side limit and with protobuf.
func (c *ControlPlane) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// ServingAuthorities returns, in PEM, the authority of the API server's certificate, and the authority that
// ReplaceServingAuthority switches to. Kubeconfigs trust both.
func (c *ControlPlane) ServingAuthorities() (current, other []byte) {
	return c.serving.pem, c.otherServing.pem
}

// ReplaceServingAuthority switches the running API server to a certificate of the other authority, and returns when
// it serves that. Connections stay open.
func (c *ControlPlane) ReplaceServingAuthority(ctx context.Context) error {
	if err := c.otherServing.writeServing(c.Dir, c.furtherAddresses()...); err != nil {
		return err
	}
	c.serving, c.otherServing = c.otherServing, c.serving
	roots := x509.NewCertPool()
	roots.AddCert(c.serving.certificate)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots}}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		connection, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(c.URL, "https://"))
		if err != nil {
			return false, nil
		}
		return true, connection.Close()
	})
}

// Client returns the administrator's client. It uses protobuf.
func (c *ControlPlane) Client() (kubernetes.Interface, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return kubernetes.NewForConfig(config)
}

// Dynamic returns the administrator's client for objects of any kind.
func (c *ControlPlane) Dynamic() (dynamic.Interface, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// CPU returns the CPU time of this program and the running processes of the control plane.
func (c *ControlPlane) CPU() (time.Duration, error) {
	own, err := ProcessUsage(os.Getpid())
	if err != nil {
		return 0, err
	}
	total := own.CPU
	for _, p := range c.processes {
		usage, err := p.Usage()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.Name, err)
		}
		total += usage.CPU
	}
	return total, nil
}

// ProcessCPU returns the CPU time of each process of the control plane, by name.
func (c *ControlPlane) ProcessCPU() (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	for _, p := range c.processes {
		usage, err := p.Usage()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		used[p.Name] += usage.CPU
	}
	return used, nil
}

// StopAPIServer kills the API server for the rest of the test.
func (c *ControlPlane) StopAPIServer() {
	c.apiServer.Kill()
}

// Stop ends all processes and removes the directory. A second call does nothing.
func (c *ControlPlane) Stop() {
	c.stopProcesses()
	os.RemoveAll(c.Dir)
}

// StopKeepingLogs is Stop, but moves the logs and configurations to a directory, which it returns.
func (c *ControlPlane) StopKeepingLogs() (string, error) {
	c.stopProcesses()
	defer os.RemoveAll(c.Dir)
	kept, err := os.MkdirTemp("", "outboard-logs-")
	if err != nil {
		return "", err
	}
	for _, pattern := range []string{"*.log", "*.yaml"} {
		files, _ := filepath.Glob(filepath.Join(c.Dir, pattern))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(filepath.Join(kept, filepath.Base(file)), data, 0o644)
			}
			if err != nil {
				return kept, err
			}
		}
	}
	return kept, nil
}

// LogTails returns the ends of the logs of schedulers and hosts, and says which of them have ended: where only a test's
// output is kept, nothing else tells why it failed.
func (c *ControlPlane) LogTails() string {
	c.mutex.Lock()
	processes := slices.Clone(c.processes[c.servers:])
	c.mutex.Unlock()
	var text strings.Builder
	for i, p := range processes {
		if slices.ContainsFunc(processes[i+1:], func(next *Process) bool { return next.LogPath == p.LogPath }) {
			continue // It was started again, with the same log.
		}
		state := "running"
		if p.HasEnded() {
			state = fmt.Sprint("ended: ", p.Err())
		}
		fmt.Fprintf(&text, "%s (%s):\n%s\n", p.Name, state, p.LogTail())
	}
	return text.String()
}

// stopProcesses ends schedulers and hosts gracefully, in reverse start order. Then it kills the servers, whose data is
// deleted anyway: etcd needs a second to end by itself.
func (c *ControlPlane) stopProcesses() {
	for i := len(c.processes) - 1; i >= c.servers; i-- {
		c.processes[i].Stop(10 * time.Second)
	}
	for i := c.servers - 1; i >= 0; i-- {
		c.processes[i].Kill()
	}
	c.processes, c.servers = nil, 0
}
