package deploy_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	controlplane "outboard.dev/integration/control_plane"
)

// publishedCRDs are the CustomResourceDefinitions of other projects that a platform has, from these projects.
var publishedCRDs = []struct{ module, version, file string }{
	{"sigs.k8s.io/scheduler-plugins", "v0.34.7", "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"},
	{"github.com/k8stopologyawareschedwg/noderesourcetopology-api", "v0.1.2", "manifests/crd.yaml"},
	{"sigs.k8s.io/jobset", "v0.11.0", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
	{"github.com/kubeflow/trainer/v2", "v2.1.0", "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"},
}

func (c *cluster) applyPublishedCRDs() {
	c.Helper()
	for _, crd := range publishedCRDs {
		text, err := controlplane.Published(c.Context(), crd.module, crd.version, crd.file)
		if err != nil {
			c.Fatal(err)
		}
		c.applyAll(text)
	}
	groups := c.dynamic.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"})
	c.eventually(func() error {
		_, err := groups.List(c.Context(), metav1.ListOptions{})
		return err
	})
}

// life is what happened to a pod, as a watch saw it.
type life struct {
	job                        string
	bound                      time.Time
	node                       string
	preempted, ended, isMember bool
}

// day is a day of a platform on one control plane.
type day struct {
	*cluster
	scheduler string
	nodes     map[string]platformNode
	// With the plugins for AI work:
	gangs       map[string]int // members, by job; empty: each pod for itself
	knowsNVLink bool           // else parallel pods may be anywhere

	mutex sync.Mutex
	lives map[types.UID]*life
}

// follow records the pods' lives until the test ends.
func (d *day) follow() {
	d.Helper()
	watch, err := d.client.CoreV1().Pods("default").Watch(d.Context(), metav1.ListOptions{})
	if err != nil {
		d.Fatal(err)
	}
	done := make(chan struct{})
	d.Cleanup(func() { watch.Stop(); <-done })
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if pod, is := event.Object.(*corev1.Pod); is {
				d.saw(pod)
			}
		}
	}()
}

func (d *day) saw(pod *corev1.Pod) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	of := d.lives[pod.UID]
	if of == nil {
		job := pod.Labels["job-name"]
		of = &life{job: job, isMember: d.gangs[job] > 0}
		d.lives[pod.UID] = of
	}
	if pod.Spec.NodeName != "" && of.bound.IsZero() {
		of.bound, of.node = time.Now(), pod.Spec.NodeName
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Reason == corev1.PodReasonPreemptionByScheduler {
			of.preempted = true
		}
	}
	of.ended = of.ended || pod.Status.Phase == corev1.PodSucceeded
}

func gpus(pod *corev1.Pod) int64 {
	amount := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
	return amount.Value()
}

// isParallel: its GPUs exchange data at each step.
func isParallel(pod *corev1.Pod) bool {
	main := pod.Spec.Containers[0]
	words := slices.Concat(main.Command, main.Args)
	return gpus(pod) > 1 && (slices.Contains(words, "torchrun") || slices.Contains(words, "--tensor-parallel-size"))
}

// suits: its GPUs can exchange data as fast as the pod needs.
func (d *day) suits(node *corev1.Node, pod *corev1.Pod) bool {
	return !d.knowsNVLink || !isParallel(pod) || d.nodes[node.Name].nvlink
}

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// room returns how many pods like this one would fit beside the others.
func (d *day) room(like *corev1.Pod, nodes []corev1.Node, pods []corev1.Pod) int64 {
	rooms := int64(0)
	for _, node := range nodes {
		if node.Spec.Unschedulable || len(node.Spec.Taints) > 0 || !d.suits(&node, like) {
			continue
		}
		free := node.Status.Allocatable.DeepCopy()
		for _, pod := range pods {
			if pod.Spec.NodeName != node.Name || isOver(&pod) {
				continue
			}
			for name, amount := range pod.Spec.Containers[0].Resources.Requests {
				left := free[name]
				left.Sub(amount)
				free[name] = left
			}
		}
		here := int64(1 << 30)
		for name, amount := range like.Spec.Containers[0].Resources.Requests {
			left := free[name]
			here = min(here, max(0, left.MilliValue()/amount.MilliValue()))
		}
		rooms += here
	}
	return rooms
}

// wrong says what must not be once the scheduler is at rest: a gang of which a part runs, a pod that waits though it
// would fit, a parallel pod on a machine without NVLink.
func (d *day) wrong() error {
	nodes, err := d.client.CoreV1().Nodes().List(d.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := d.client.CoreV1().Pods("default").List(d.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	running, waiting := map[string]int{}, map[string][]corev1.Pod{}
	ended := map[string]int{}
	for _, pod := range pods.Items {
		job := pod.Labels["job-name"]
		switch {
		case isOver(&pod):
			ended[job]++
		case pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName == "":
			waiting[job] = append(waiting[job], pod)
		default:
			running[job]++
			if !d.suits(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}, &pod) {
				return fmt.Errorf("%s is on %s, whose GPUs NVLink does not connect", pod.Name, pod.Spec.NodeName)
			}
		}
	}
	for gang, members := range d.gangs {
		if n := running[gang] + ended[gang]; 0 < n && n < members {
			return fmt.Errorf("%d of %d members of %s run", n, members, gang)
		}
		if len(waiting[gang]) >= members {
			if room := d.room(&waiting[gang][0], nodes.Items, pods.Items); room >= int64(members) {
				return fmt.Errorf("%s waits, and there is room for %d", gang, room)
			}
		}
	}
	for job, pods2 := range waiting {
		for _, pod := range pods2 {
			if room := d.room(&pod, nodes.Items, pods.Items); d.gangs[job] == 0 && room > 0 {
				return fmt.Errorf("%s waits, and there is room for %d", pod.Name, room)
			}
		}
	}
	return nil
}

// settled waits until nothing is wrong.
func (d *day) settled(what string) {
	d.Helper()
	d.eventually(func() error {
		if err := d.wrong(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// begins applies a file of the day, and waits until as many pods as named run.
func (d *day) begins(file string, want map[string]int) {
	d.Helper()
	text := read(d, "integration/deploy/testdata/platform_day/"+file)
	d.applyAll(strings.ReplaceAll(text, "schedulerName: ai-scheduler", "schedulerName: "+d.scheduler))
	d.run(file, want)
}

// run waits until as many pods run, by the value of label job-name or app.
func (d *day) run(what string, want map[string]int) {
	d.Helper()
	d.eventually(func() error {
		where := d.where()
		for name, n := range want {
			if len(where[name]) != n {
				return fmt.Errorf("%s: %d of %d pods of %s run; %s", what, len(where[name]), n, name, d.messages(name))
			}
		}
		return nil
	})
}

// where returns the nodes of running pods by job or app, sorted.
func (d *day) where() map[string][]string {
	d.Helper()
	pods, err := d.client.CoreV1().Pods("default").List(d.Context(), metav1.ListOptions{})
	if err != nil {
		d.Fatal(err)
	}
	at := map[string][]string{}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" && !isOver(&pod) && pod.DeletionTimestamp == nil {
			name := pod.Labels["job-name"] + pod.Labels["app"]
			at[name] = append(at[name], pod.Spec.NodeName)
		}
	}
	for _, nodes := range at {
		slices.Sort(nodes)
	}
	return at
}

// messages returns why pods of a job wait, one of each.
func (d *day) messages(job string) []string {
	d.Helper()
	pods, err := d.client.CoreV1().Pods("default").List(d.Context(), metav1.ListOptions{})
	if err != nil {
		d.Fatal(err)
	}
	all := map[string]bool{}
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if pod.Labels["job-name"]+pod.Labels["app"] == job && condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				all[condition.Reason+": "+condition.Message] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// waits requires that pods of a job wait, and say why.
func (d *day) waits(job, why string) {
	d.Helper()
	d.eventually(func() error {
		for _, message := range d.messages(job) {
			if regexp.MustCompile(why).MatchString(message) {
				return nil
			}
		}
		return fmt.Errorf("%s: no message matches %q: %q", job, why, d.messages(job))
	})
}

// ends lets the pods of a job succeed.
func (d *day) ends(job string) {
	d.Helper()
	pods, err := d.client.CoreV1().Pods("default").List(d.Context(), metav1.ListOptions{LabelSelector: "job-name=" + job})
	if err != nil {
		d.Fatal(err)
	}
	for _, pod := range pods.Items {
		ends := []byte(`{"metadata":{"annotations":{"example/ends":""}}}`)
		if _, err := d.client.CoreV1().Pods("default").Patch(d.Context(), pod.Name, types.MergePatchType, ends, metav1.PatchOptions{}); err != nil {
			d.Fatal(err)
		}
	}
	d.run("the end of "+job, map[string]int{job: 0})
}

// leaves drains a node and removes it, as an autoscaler does.
func (d *day) leaves(name string) {
	d.Helper()
	cordon := []byte(`{"spec":{"unschedulable":true}}`)
	if _, err := d.client.CoreV1().Nodes().Patch(d.Context(), name, types.MergePatchType, cordon, metav1.PatchOptions{}); err != nil {
		d.Fatal(err)
	}
	pods, err := d.client.CoreV1().Pods("default").List(d.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		d.Fatal(err)
	}
	for _, pod := range pods.Items {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
		if err := d.client.CoreV1().Pods("default").EvictV1(d.Context(), eviction); err != nil {
			d.Fatal(err)
		}
	}
	d.eventually(func() error {
		left, err := d.client.CoreV1().Pods("default").List(d.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%s still has %d pods", name, len(left.Items))
		}
		return err
	})
	if err := d.client.CoreV1().Nodes().Delete(d.Context(), name, metav1.DeleteOptions{}); err != nil {
		d.Fatal(err)
	}
}

// together is how long the binds of a gang's members may be apart: they are let go at once, and then bound one by one.
const together = 5 * time.Second

// history checks the pods' lives: a gang starts together, and no member is evicted alone.
func (d *day) history() {
	d.Helper()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for gang, members := range d.gangs {
		var bound []time.Time
		preempted := 0
		for _, of := range d.lives {
			if of.job != gang {
				continue
			}
			if !of.bound.IsZero() {
				bound = append(bound, of.bound)
			}
			if of.preempted {
				preempted++
			}
		}
		if preempted%members != 0 {
			d.Errorf("%s: %d pods were evicted, in gangs of %d", gang, preempted, members)
		}
		if len(bound)%members != 0 {
			d.Errorf("%s: %d pods were bound, in gangs of %d", gang, len(bound), members)
			continue
		}
		slices.SortFunc(bound, time.Time.Compare)
		for start := range slices.Chunk(bound, members) {
			if apart := start[members-1].Sub(start[0]); apart > together {
				d.Errorf("%s: members were bound %v apart", gang, apart)
			}
		}
		d.Logf("%s: %d pods bound, %d evicted", gang, len(bound), preempted)
	}
}

// install applies the manifests of an installation, nodes that carry only what other components publish, and starts
// the programs as the installation's pods would.
func install(t *testing.T, installation, scheduler string) *day {
	t.Helper()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	c := newClusterOf(t, controlplane.Options{ControllerManager: true, KWOK: true,
		KWOKStages: path(t, filepath.FromSlash("integration/deploy/testdata/platform_day/kubelet.yaml"))})
	c.applyPublishedCRDs()
	if err := c.ApplyCustomResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := kustomized(t, installation)
	c.bring(all)
	c.applyAll(read(t, "deploy/examples/day/priority-classes.yaml"))
	d := &day{cluster: c, scheduler: scheduler, nodes: maps.Clone(platformNodes), lives: map[types.UID]*life{}}
	t.Log(facts(platformNodes))
	d.join(platformNodes)
	d.eventually(func() error { // Untainted once the controllers have seen them Ready.
		nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		for _, node := range nodes.Items {
			if len(node.Spec.Taints) > 0 {
				err = fmt.Errorf("node %s has taints %v", node.Name, node.Spec.Taints)
			}
		}
		return err
	})
	c.startShim(bin, all, nil)
	return d
}

// A day of an AI platform on the shipped installation `ai-scheduler`, with real controllers.
func TestADayOfAPlatform(t *testing.T) {
	t.Parallel()
	playADay(t, "ai-scheduler")
}

// The same day with the plugin host as a process of its own, over TCP with mutual TLS.
func TestADayOverMutualTLS(t *testing.T) {
	t.Parallel()
	playADay(t, "ai-scheduler-mtls")
}

func playADay(t *testing.T, installation string) {
	t.Helper()
	d := install(t, installation, "ai-scheduler")
	d.gangs, d.knowsNVLink = map[string]int{"ddp": 2, "pretrain": 2, "large": 3}, true
	d.follow()

	d.begins("serving.yaml", map[string]int{"chat": 2})
	d.begins("training.yaml", map[string]int{"ddp": 2, "pretrain": 2})
	d.begins("sweep.yaml", map[string]int{"sweep": 6, "convert": 3})
	d.settled("morning")
	morning := d.where()
	t.Logf("morning: %v", morning)
	for _, node := range morning["convert"] {
		if slices.Contains([]string{"pcie-1", "pcie-2", "l40s-1"}, node) {
			t.Errorf("batch work without GPUs is on %s, whose GPUs are free: %v", node, morning["convert"])
		}
	}
	for _, node := range morning["sweep"] {
		if d.nodes[node].nvlink {
			t.Errorf("a trial with one GPU is on %s, though cards without NVLink are free: %v", node, morning["sweep"])
		}
	}

	d.begins("large.yaml", map[string]int{"large": 0})
	d.waits("large", `^Unschedulable: 0/9 nodes are available: gang "large": 0 of 3 members fit; 9 Node lacks 8 GPUs in unified NVLink island`)
	d.settled("noon")

	d.begins("urgent.yaml", map[string]int{"hotfix": 1})
	d.settled("urgent work")
	if at := d.where(); len(at["ddp"]) != 2 || len(at["pretrain"]) != 2 {
		t.Errorf("urgent work took a gang's place: %v", at)
	}
	d.waits("chat", `Training pods that are spared: 4 without checkpointing`)

	d.ends("hotfix")
	d.run("after urgent work", map[string]int{"chat": 2})
	leaving := d.where()["sweep"][0]
	d.leaves(leaving)
	d.run(leaving+" has left", map[string]int{"sweep": 6})
	d.settled(leaving + " has left")

	maps.Copy(d.nodes, laterNodes)
	d.join(laterNodes)
	d.run("nodes have come", map[string]int{"large": 3})
	d.settled("evening")
	d.underOneSwitch("large")
	for _, job := range []string{"large", "ddp", "pretrain", "sweep", "convert"} {
		d.ends(job)
	}
	d.settled("night")
	d.groupHasRun("pretrain")
	d.history()
}

// The same day on `sidecar`, which has kube-scheduler's plugins only: nothing waits that fits.
func TestTheSameDayWithoutPluginsForAI(t *testing.T) {
	t.Parallel()
	d := install(t, "sidecar", "outboard-scheduler")
	d.begins("serving.yaml", map[string]int{"chat": 2})
	d.begins("training.yaml", nil)
	d.begins("sweep.yaml", map[string]int{"convert": 3})
	d.settled("morning")
	d.begins("large.yaml", nil)
	d.settled("noon")
	d.begins("urgent.yaml", map[string]int{"hotfix": 1})
	d.settled("urgent work")
	d.ends("hotfix")
	d.settled("after urgent work")
	maps.Copy(d.nodes, laterNodes)
	d.join(laterNodes)
	d.run("nodes have come", map[string]int{"chat": 2, "ddp": 2, "pretrain": 2, "large": 3, "sweep": 6})
	d.settled("evening")
}

// underOneSwitch: the members of a gang are under the same leaf switch.
func (d *day) underOneSwitch(gang string) {
	d.Helper()
	switches, nodes := map[string]bool{}, d.where()[gang]
	for _, node := range nodes {
		switches[d.nodes[node].labels["fabric.topograph.run/tier-0"]] = true
	}
	if len(switches) != 1 {
		d.Errorf("%s is under %d switches: %v", gang, len(switches), nodes)
	}
}

// groupHasRun: the PodGroup's status tells that its number was bound. Later phases are those of scheduler-plugins' own
// controller.
func (d *day) groupHasRun(name string) {
	d.Helper()
	groups := d.dynamic.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}).Namespace("default")
	d.eventually(func() error {
		group, err := groups.Get(d.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		phase, _, err := unstructured.NestedString(group.Object, "status", "phase")
		if err == nil && phase != "Scheduling" {
			err = fmt.Errorf("PodGroup %s: status %v", name, group.Object["status"])
		}
		return err
	})
}
