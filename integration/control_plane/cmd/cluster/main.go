// Command cluster runs a real control plane with fake nodes and a scheduler attached, until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

// The default plugins, and a place for one more. A lease outlasts a machine that is busy for a while.
const profile = `
leaderElection: {leaseDuration: 60s, renewDeadline: 50s}
profiles:
- schedulerName: outboard-scheduler
  plugins:
    multiPoint: {enabled: []}
`

// The address that `outboard` asks without --server.
const defaultServing = "127.0.0.1:10269"

var (
	nodes     = flag.Int("nodes", 5, "number of fake nodes")
	scheduler = flag.String("scheduler", "outboard", "the secondary scheduler: outboard, kube-scheduler or none")
	duration  = flag.Duration("for", 0, "end after this time; 0 means at Ctrl-C")
	smoke     = flag.Bool("smoke", false, "create a Deployment, wait until its pods are Running, and end")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "cluster: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func run(ctx context.Context) (err error) {
	begin := time.Now()
	if *scheduler == "outboard" {
		if _, err := controlplane.OutboardDirectory(); err != nil {
			say("%v\nStarting the cluster without Outboard; pods with schedulerName outboard-scheduler stay Pending.", err)
			*scheduler = "none"
		}
	}
	say("starting etcd, kube-apiserver, kube-controller-manager and KWOK …")
	c, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true, KWOK: true, Progress: say})
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			c.Stop()
			return
		}
		if kept, keepErr := c.StopKeepingLogs(); keepErr == nil {
			say("logs of all processes: %s", kept)
		}
	}()
	client, err := c.Client()
	if err != nil {
		return err
	}
	if err := controlplane.CreateFakeNodes(ctx, client, *nodes); err != nil {
		return err
	}
	outboard, err := startScheduler(ctx, c)
	if err != nil {
		return err
	}
	if err := waitForNodes(ctx, client); err != nil {
		return err
	}
	say("%d nodes Ready after %.0f s.", *nodes, time.Since(begin).Seconds())
	if *smoke {
		return runSmoke(ctx, client)
	}
	printHints(c, outboard)
	if outboard != nil {
		go keepRunning(ctx, "outboard-shim", func() *controlplane.Process { return outboard.Shim }, outboard.StartShim)
		go keepRunning(ctx, "outboard-host", func() *controlplane.Process { return outboard.Host }, outboard.StartHost)
	}
	if *duration > 0 {
		limited, cancel := context.WithTimeout(ctx, *duration)
		defer cancel()
		ctx = limited
	}
	<-ctx.Done()
	say("stopping …")
	return nil
}

// startScheduler returns Outboard, or nil if another scheduler is wanted.
func startScheduler(ctx context.Context, c *controlplane.ControlPlane) (*controlplane.Outboard, error) {
	config := controlplane.SchedulerConfig{Text: profile, LeaderElect: true}
	switch *scheduler {
	case "outboard":
		options := controlplane.OutboardOptions{Config: config, SocketDirectory: true}
		if free, err := net.Listen("tcp", defaultServing); err == nil {
			free.Close()
			options.ServingAddress = defaultServing
		}
		o, err := c.StartOutboard(ctx, options)
		if err != nil {
			return nil, err
		}
		say("Outboard is attached as outboard-scheduler (shim %d, host %d, %s/metrics).", o.Shim.PID(), o.Host.PID(), o.URL())
		return o, nil
	case "kube-scheduler":
		if _, err := c.StartKubeScheduler(ctx, config); err != nil {
			return nil, err
		}
		say("kube-scheduler is attached as outboard-scheduler.")
	case "none":
	default:
		return nil, fmt.Errorf("--scheduler=%s: not outboard, kube-scheduler or none", *scheduler)
	}
	return nil, nil
}

// keepRunning starts a program again that has ended, as a kubelet does: a shim ends when it cannot renew its lease, for
// example on a machine with too much to do.
func keepRunning(ctx context.Context, name string, process func() *controlplane.Process, start func() error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-process().Exited():
		}
		// Ctrl-C reaches the program, too.
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		say("%s has ended; starting it again. The end of its log:\n%s", name, process().LogTail())
		if err := start(); err != nil {
			say("%s: %v", name, err)
			return
		}
	}
}

// waitForNodes waits until KWOK has made the nodes Ready and a controller has removed their taint.
func waitForNodes(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready := 0
		for _, node := range list.Items {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
					ready++
				}
			}
		}
		return ready == *nodes, nil
	})
}

func poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, done)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("not done within a minute")
	}
	return err
}

// printHints says what to do in a second shell. The variables are those of plugins/README.md.
func printHints(c *controlplane.ControlPlane, outboard *controlplane.Outboard) {
	say(`
In another shell, with kubectl and jq (Debian: apt-get install kubernetes-client jq):
  export KUBECONFIG=%s`, c.AdminKubeconfig)
	if outboard != nil {
		say(`  export PATH=%s:$PATH
  export SHIM=%s HOST=default
  export HOSTS=%s
  export CONFIG=%s`, directory(), strings.TrimPrefix(outboard.URL(), "http://"), outboard.SocketDirectory(), outboard.ConfigFile())
	}
	say(`
Things to try:
  kubectl get nodes -L topology.kubernetes.io/zone
  kubectl create deployment hello --image=hello --replicas=10 --dry-run=client -o json |
    jq '.spec.template.spec.schedulerName = "outboard-scheduler"' | kubectl apply -f -
  kubectl get pods -o wide
  kubectl get events --field-selector reason=Scheduled
  kubectl describe pod -l app=hello        # after: kubectl get nodes -o name | xargs kubectl cordon; kubectl scale deployment hello --replicas=20`)
	if outboard != nil {
		say(`  outboard queue --server $SHIM            # which pods wait, and why
  outboard explain default/POD --server $SHIM
  outboard hosts --server $SHIM
A plugin host of your own creates its socket in $HOSTS; enable its plugins in $CONFIG, which the shim reads again:
docs/first-plugin.md, "In a cluster".`)
	}
	say(`
Logs of all processes: %s/*.log
Ctrl-C ends everything and removes it.`, c.Dir)
}

// directory returns the folder of the programs of ./dev build, which startScheduler has found.
func directory() string {
	dir, err := controlplane.OutboardDirectory()
	if err != nil {
		return ""
	}
	return dir
}

func runSmoke(ctx context.Context, client kubernetes.Interface) error {
	const name, replicas = "smoke", 10
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SchedulerName: "outboard-scheduler",
					Containers: []corev1.Container{{
						Name: "main", Image: "example.com/" + name,
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
						}},
					}},
				},
			},
		},
	}
	if _, err := client.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	begin, running := time.Now(), 0
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return false, err
		}
		running = 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == replicas, nil
	})
	if err != nil {
		return fmt.Errorf("smoke: %d of %d pods are Running: %w", running, replicas, err)
	}
	say("smoke: %d of %d pods are Running, %.1f s after their Deployment was created.", running, replicas,
		time.Since(begin).Seconds())
	return nil
}
