package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"outboard.dev/integration/bench/checker"
	controlplane "outboard.dev/integration/control_plane"
)

var sharedRounds = flag.Int("two-schedulers.rounds", 1, "number of times that the two schedulers fill the nodes")

const (
	ourScheduler = "outboard-scheduler"
	sharedNodes  = 500
	// Of one CPU each: 2,000 fit; the last 200 of both compete for the last places and then wait.
	sharedPods = 1100 // of each scheduler
)

// kube-scheduler and Outboard place pods on the same nodes until these are full. Each sees the other's binds only
// through its watch. So a bind may overcommit a node if it cannot have seen the other's bind; if it has, or should
// have, it must not.
func TestTwoSchedulersShareNodes(t *testing.T) {
	t.Parallel()
	_, overcommits := shareNodes(t, controlplane.ForTest(t, controlplane.Options{Audit: true}), "")
	if len(overcommits) == 0 {
		return
	}
	ages := []time.Duration{}
	for _, over := range overcommits {
		ages = append(ages, over.age)
	}
	slices.Sort(ages)
	early := slices.IndexFunc(ages, func(age time.Duration) bool { return age > 0 })
	if early < 0 {
		early = len(ages)
	}
	most := ages[len(ages)-1]
	t.Logf("our overcommitting binds: %d arrived before the other's bind there was answered, the others at most %v after that (median of all: %v)", early, most, ages[len(ages)/2])
	if most > visibleAfter {
		t.Errorf("our bind overcommitted a node %v after the other's bind there was answered: the shim must have seen it", most)
	}
}

// The same, but the API server asks Outboard before it applies a bind of kube-scheduler: no bind of either
// overcommits a node.
func TestTwoSchedulersShareNodesByAdmission(t *testing.T) {
	t.Parallel()
	c := controlplane.ForTest(t, controlplane.Options{Audit: true})
	address := controlplane.FreeAddress(t)
	admitBindings(t, c, address, admissionregistrationv1.Fail) // On a busy machine a late answer must not admit a bind here.
	shim := fmt.Sprintf("extender: {address: %q, profile: %s, schedulerNames: [], admitsBindings: true, tls: {certFile: %q, keyFile: %q}}",
		address, ourScheduler, filepath.Join(c.Dir, "server.crt"), filepath.Join(c.Dir, "server.key"))
	report, overcommits := shareNodes(t, c, shim)
	if report.Overcommitted > 0 {
		t.Errorf("%d overcommitted nodes", report.Overcommitted)
	}
	for _, over := range overcommits {
		t.Errorf("%s on %s, %v after the other's last bind there was answered", over.pod, over.node, over.age)
	}
}

// admitBindings registers the shipped webhook at an address that serves the control plane's certificate.
func admitBindings(t *testing.T, c *controlplane.ControlPlane, address string, policy admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kustomize/components/binding-webhook/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var webhooks admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &webhooks); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	webhook := &webhooks.Webhooks[0]
	url := "https://" + address + *webhook.ClientConfig.Service.Path
	webhook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority}
	webhook.FailurePolicy = &policy
	// kube-scheduler is the only other scheduler here.
	webhook.MatchConditions[0].Expression = `request.userInfo.username == "system:kube-scheduler"`
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &webhooks, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// shareNodes lets both schedulers fill the nodes, and returns the report and our binds that overcommitted a node.
func shareNodes(t *testing.T, c *controlplane.ControlPlane, shim string) (report *checker.Report, overcommits []overcommit) {
	t.Helper()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.CreateFakeNodes(t.Context(), client, sharedNodes); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartKubeScheduler(t.Context(), controlplane.SchedulerConfig{}); err != nil {
		t.Fatal(err)
	}
	outboard, err := c.StartOutboard(t.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: "profiles: [{schedulerName: " + ourScheduler + "}]"}, Shim: shim,
	})
	if err != nil {
		t.Fatal(err)
	}
	for round := range *sharedRounds {
		if round > 0 {
			if err := client.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
				metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		fillTogether(t, client, round)
		t.Logf("round %d: nodes full after %.1f s", round+1, time.Since(begin).Seconds())
	}
	t.Run("a pod that the kubelet rejects frees its room", func(t *testing.T) { testRejectedByKubelet(t, client) })

	report, err = checker.Check(t.Context(), c.EtcdURL, client)
	if err != nil {
		t.Fatal(err)
	}
	report.Examples = nil // Mostly waiting pods, as expected.
	t.Log(report)
	if faults := report.BoundTwice + report.UnknownNode + report.HistoryDiffers + report.EventWrongNode + report.EventOfUnbound; faults > 0 {
		t.Errorf("%d faults", faults)
	}
	overcommits = overcommitsByUs(t, c, report)
	metrics, err := outboard.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range metrics["outboard_binds_total"].GetMetric() {
		t.Logf("%v of our binds ended as %s", metric.GetCounter().GetValue(), metric.GetLabel()[0].GetValue())
	}
	for _, metric := range metrics["outboard_bindings_denied_total"].GetMetric() {
		t.Logf("%v binds of kube-scheduler were denied", metric.GetCounter().GetValue())
	}
	for _, metric := range metrics["outboard_extender_request_duration_seconds"].GetMetric() {
		histogram := metric.GetHistogram()
		t.Logf("%v: %d requests, %.2f ms each", metric.GetLabel(), histogram.GetSampleCount(), histogram.GetSampleSum()/float64(histogram.GetSampleCount())*1000)
	}
	return report, overcommits
}

// fillTogether creates the pods of both schedulers in turn, and waits until nothing changes.
func fillTogether(t *testing.T, client kubernetes.Interface, round int) {
	t.Helper()
	if err := createForBoth(t.Context(), client, round); err != nil {
		t.Fatal(err)
	}
	waitUntilFull(t, client)
}

func createForBoth(ctx context.Context, client kubernetes.Interface, round int) error {
	return controlplane.InParallel(ctx, 30, 2*sharedPods, func(ctx context.Context, i int) error {
		scheduler := []string{corev1.DefaultSchedulerName, ourScheduler}[i%2]
		_, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%02d-%05d", round, i)},
			Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{
				Name: "main", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}}},
		}, metav1.CreateOptions{})
		return err
	})
}

// waitUntilFull waits until the nodes are full and nothing changes.
func waitUntilFull(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	const quiet = 3 * time.Second
	waitForBound(t.Context(), t, client, sharedNodes*podsOnANode)
	last, lastChange := 0, time.Now()
	for time.Since(lastChange) < quiet {
		if bound := countBound(t.Context(), t, client); bound != last {
			last, lastChange = bound, time.Now()
		}
		time.Sleep(200 * time.Millisecond) // Poll interval.
	}
}

// An overcommit is our bind that took a node over its allocatable, in etcd's order.
type overcommit struct {
	pod, node string
	age       time.Duration // time from the answer to the other's last bind on the node until ours arrived, by the API server's clock
}

// overcommitsByUs logs whose binds overcommitted nodes, and returns ours.
func overcommitsByUs(t *testing.T, c *controlplane.ControlPlane, report *checker.Report) (found []overcommit) {
	t.Helper()
	log, err := c.FollowAudit()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := log.Next()
	if err != nil {
		t.Fatal(err)
	}
	binds := map[string]controlplane.AuditEvent{} // by namespace/name
	ours := 0
	for _, event := range events {
		if object := event.ObjectRef; object != nil && object.Subresource == "binding" && event.ResponseStatus.Code == 201 {
			binds[object.Namespace+"/"+object.Name] = event
			if event.User.Username == controlplane.OutboardUser {
				ours++
			}
		}
	}
	others := 0
	for _, over := range report.Overcommits {
		if over.Scheduler != ourScheduler {
			others++
			continue
		}
		var newest time.Time
		for _, pod := range over.Beside {
			if bind := binds[pod]; bind.User.Username != controlplane.OutboardUser && bind.Answered.After(newest) {
				newest = bind.Answered
			}
		}
		found = append(found, overcommit{over.Pod, over.Node, binds[over.Pod].Received.Sub(newest)})
	}
	loadAverage, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d binds by us, %d by kube-scheduler; overcommitting binds: %d by us, %d by kube-scheduler; load averages %s", ours, len(binds)-ours,
		len(found), others, strings.TrimSpace(string(loadAverage)))
	return found
}

// visibleAfter is the time for the API server to send a bind to its watchers, for the shim to read it, and for a bind
// sent before that to arrive, on an overloaded machine.
const visibleAfter = 5 * time.Second

// testRejectedByKubelet plays a kubelet that rejects a pod for lack of room, as on an overcommitted node: the pod has
// failed, and a waiting pod gets its room.
func testRejectedByKubelet(t *testing.T, client kubernetes.Interface) {
	pods := client.CoreV1().Pods(namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var rejected, waiting *corev1.Pod
	onNode := map[string]int{}
	for i := range list.Items {
		onNode[list.Items[i].Spec.NodeName]++
	}
	for i := range list.Items {
		pod := &list.Items[i]
		switch {
		case pod.Spec.NodeName != "" && onNode[pod.Spec.NodeName] == podsOnANode:
			rejected = pod
		case pod.Spec.NodeName == "" && pod.Spec.SchedulerName == ourScheduler:
			waiting = pod
		case pod.Spec.NodeName == "": // Only one may wait for the room.
			if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rejected == nil || waiting == nil {
		t.Fatal("none of our pods waits, or no node is exactly full")
	}
	before := countBound(t.Context(), t, client)
	patch := `{"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected: Node didn't have enough resource: cpu"}}`
	if _, err := pods.Patch(t.Context(), rejected.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	waitForBound(t.Context(), t, client, before+1)
	after, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + rejected.Spec.NodeName})
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Items) != podsOnANode+1 { // The failed pod still exists.
		t.Errorf("%d pods on %s, want %d and the rejected one", len(after.Items), rejected.Spec.NodeName, podsOnANode)
	}
	t.Logf("a waiting pod got the room of the rejected pod %.2f s later", time.Since(begin).Seconds())
}
