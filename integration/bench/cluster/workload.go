package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

// A workload is a kind of pods and the activity around them. The shapes are those of Kubernetes' scheduler_perf.
type workload struct {
	about string
	// Pods that exist before, unmeasured: the contender schedules them, or they are created on the nodes in turn
	// before it starts.
	initial        int
	initialOnNodes bool
	// Number of measured pods without --pods.
	measured int
	// Number of nodes without --nodes; 0: the default of --nodes.
	nodes int
	// Pods have device claims; `taken` devices are allocated to other claims; see claims.go.
	claims bool
	taken  func(devices int) int
	// Size of a batch of measured pods, which are deleted when all have a node; 0: all are created as fast as
	// possible, and stay.
	atATime int
	// Returns the i-th pod, initial or measured.
	initialPod, measuredPod func(i int) *corev1.Pod
	// Number of pods that each measured pod must preempt.
	victims int
	// Runs while pods are measured, until the context ends. Returns its error.
	meanwhile func(ctx context.Context, client kubernetes.Interface) error
}

// extraNamespace holds pods that no figure counts: they come and go, or never get a node.
const extraNamespace = "bench-extra"

var workloads = map[string]workload{
	"basic": {
		about:   "pods that ask for CPU and memory only",
		initial: 200, measured: 10000, initialPod: plain, measuredPod: plain,
	},
	"zone-spread": {
		about:   "hard topology spread over three zones, maxSkew 5",
		initial: 5000, measured: 5000, initialPod: plain,
		measuredPod: with("spread", func(spec *corev1.PodSpec) {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "spread"}},
			}}
		}),
	},
	"pod-affinity": {
		about:   "required pod affinity to its own kind, by zone",
		initial: 1000, measured: 4000, initialPod: requiredAffinity, measuredPod: requiredAffinity,
	},
	"pod-anti-affinity": {
		about:   "required anti-affinity to its own kind, by hostname",
		initial: 1000, measured: 2000, initialPod: requiredAntiAffinity, measuredPod: requiredAntiAffinity,
	},
	"preferred-affinity": {
		about:   "preferred pod affinity to its own kind, by hostname",
		initial: 5000, measured: 5000, initialPod: preferredAffinity, measuredPod: preferredAffinity,
	},
	"preferred-anti-affinity": {
		about:   "preferred anti-affinity to its own kind, by hostname",
		initial: 5000, measured: 5000, initialPod: preferredAntiAffinity, measuredPod: preferredAntiAffinity,
	},
	"mixed": {
		about:   "plain pods among 5,000 others: plain, and the four kinds of affinity",
		initial: 5000, measured: 5000, measuredPod: plain,
		initialPod: func(i int) *corev1.Pod {
			kinds := []func(int) *corev1.Pod{plain, requiredAffinity, requiredAntiAffinity, preferredAffinity, preferredAntiAffinity}
			return kinds[i%len(kinds)](i)
		},
	},
	"unschedulable": {
		about:   "plain pods, and five times a second one of higher priority that fits nowhere",
		initial: 200, measured: 10000, initialPod: plain, measuredPod: plain,
		meanwhile: every(200*time.Millisecond, func(ctx context.Context, client kubernetes.Interface, i int) error {
			pod := plain(i)
			pod.Name = fmt.Sprintf("too-large-%05d", i)
			pod.Spec.Priority, pod.Spec.PriorityClassName = nil, importantClass
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9")
			_, err := client.CoreV1().Pods(extraNamespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		}),
	},
	"preemption": {
		about:   "pods that need 3 CPUs, on nodes that less important pods of 900m have filled",
		initial: 20000, initialOnNodes: true, measured: 5000, victims: 3,
		initialPod: asking("900m", func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(0)) }),
		measuredPod: asking("3", func(pod *corev1.Pod) {
			pod.Spec.Priority, pod.Spec.PriorityClassName = nil, importantClass
		}),
	},
	"churn": {
		about:   "plain pods, while once a second a node, a pod and a service come and go",
		initial: 200, measured: 10000, initialPod: plain, measuredPod: plain,
		meanwhile: every(time.Second, churn),
	},
}

const importantClass = "bench-important"

func plain(int) *corev1.Pod { return benchPod("") }

// with makes pods with the label `kind`.
func with(kind string, edit func(*corev1.PodSpec)) func(int) *corev1.Pod {
	return func(int) *corev1.Pod {
		pod := benchPod("")
		pod.Labels["kind"] = kind
		edit(&pod.Spec)
		return pod
	}
}

// asking makes pods that request this much CPU.
func asking(cpu string, edit func(*corev1.Pod)) func(int) *corev1.Pod {
	return func(int) *corev1.Pod {
		pod := benchPod("")
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		edit(pod)
		return pod
	}
}

func ownKind(kind, topologyKey string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		TopologyKey:   topologyKey,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kind": kind}},
	}
}

var (
	requiredAffinity = with("near", func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{ownKind("near", corev1.LabelTopologyZone)},
		}}
	})
	requiredAntiAffinity = with("apart", func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{ownKind("apart", corev1.LabelHostname)},
		}}
	})
	preferredAffinity = with("rather-near", func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 1, PodAffinityTerm: ownKind("rather-near", corev1.LabelHostname)},
			},
		}}
	})
	preferredAntiAffinity = with("rather-apart", func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 1, PodAffinityTerm: ownKind("rather-apart", corev1.LabelHostname)},
			},
		}}
	})
)

// every calls do periodically until the context ends.
func every(period time.Duration, do func(context.Context, kubernetes.Interface, int) error,
) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			if err := do(ctx, client, i); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

func churn(ctx context.Context, client kubernetes.Interface, i int) error {
	node := controlplane.FakeNode(0)
	node.Name = fmt.Sprintf("churn-%05d", i)
	node.Labels[corev1.LabelHostname] = node.Name
	// Unschedulable, because the node will be deleted.
	node.Spec.Unschedulable = true
	pod := plain(i)
	pod.Name = node.Name
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("9")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": node.Name},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := client.CoreV1().Pods(extraNamespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := client.CoreV1().Services(extraNamespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	if i == 0 {
		return nil
	}
	before := fmt.Sprintf("churn-%05d", i-1)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := client.CoreV1().Services(extraNamespace).Delete(ctx, before, now); err != nil {
		return err
	}
	if err := client.CoreV1().Pods(extraNamespace).Delete(ctx, before, now); err != nil {
		return err
	}
	return client.CoreV1().Nodes().Delete(ctx, before, now)
}

// chosenWorkloads returns the workloads of --workload, in its order; `all` in the order of their names.
func chosenWorkloads(flag string) ([]string, error) {
	if flag == "all" {
		return slices.Sorted(maps.Keys(workloads)), nil
	}
	names := strings.Split(flag, ",")
	for _, name := range names {
		if _, ok := workloads[name]; !ok {
			return nil, fmt.Errorf("--workload: unknown %q; use %s, or all", name,
				strings.Join(slices.Sorted(maps.Keys(workloads)), ", "))
		}
	}
	return names, nil
}
