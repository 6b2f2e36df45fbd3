package objects_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplane "outboard.dev/integration/control_plane"
)

const poolManifest = `{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: a},
spec: {cidr: 10.9.0.0/24, ranges: [10.9.0.1-10.9.0.64], nodeSelector: {rack: r0}, releasePolicy: OnScaleDown}}`

func TestKeptObjects(t *testing.T) {
	c := newCluster(t)
	t.Run("WithoutCRDs", func(t *testing.T) { withoutCRDs(c.with(t)) })
	if t.Failed() {
		return // The other tests need its CRDs.
	}
	t.Run("ForeignEdits", func(t *testing.T) { foreignEdits(c.with(t)) })
	t.Run("WithoutCustomResources", func(t *testing.T) { withoutCustomResources(c.with(t)) })
	t.Run("TwoSchedulersShareAPool", func(t *testing.T) { twoSchedulersShareAPool(c.with(t)) })
	t.Run("TheLeaderIsKilled", func(t *testing.T) { theLeaderIsKilled(c.with(t)) })
	t.Run("KilledAtRandomMoments", func(t *testing.T) { killedAtRandomMoments(c.with(t)) })
}

// Without the CRDs pods that need them wait with a reason, and other pods are scheduled; after the CRDs are applied
// everything works.
func withoutCRDs(c *cluster) {
	o := c.start(controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: profiles(scheduler)}})
	defer c.clear()
	c.create(newPod("plain", scheduler, nil, nil, nil))
	c.create(newPod("llama-0", scheduler, map[string]string{"training-job-id": "llama"}, nil, nil))
	c.create(c.staticPod("db-0", scheduler, c.statefulSet("db")))
	c.awaitBound("plain", "llama-0")
	c.awaitMessage("db-0", "no StaticIPPool exists")
	c.await("a warning", func() string {
		for _, resource := range controlplane.CustomResources() {
			if !strings.Contains(c.logOf(o.Shim), resource.Resource+".accelerator.sched.io: the API server does not serve this resource (404") {
				return "none about " + resource.Resource
			}
		}
		return ""
	})
	if err := c.ApplyCustomResources(c.Context()); err != nil {
		c.Fatal(err)
	}
	c.apply(poolManifest)
	c.awaitBound("db-0")
	c.awaitReservation("10-9-0-1", func(r reservation) string {
		if r.Status.Phase != "InUse" || r.Spec.Owner.Pod != "db-0" || r.Spec.Owner.StatefulSet != "db" {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
	c.awaitPlacement("llama", func(p placement) string {
		if p.Status.Pods != 1 || p.Status.Placements[0].Pod != "llama-0" {
			return fmt.Sprintf("%+v", p.Status)
		}
		return ""
	})
}

// Users' edits of the objects are applied, or rejected with a message.
func foreignEdits(c *cluster) {
	c.start(controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: profiles(scheduler)}})
	defer c.clear()
	c.apply(poolManifest)
	set := c.statefulSet("db")

	// An IP that a user reserved beforehand, even an IP that the plugin does not assign by itself.
	c.apply(`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPReservation, metadata: {name: 10-9-0-200},
spec: {ip: 10.9.0.200, pool: a, owner: {namespace: default, pod: db-1}}}`)
	c.create(c.staticPod("db-0", scheduler, set))
	c.create(c.staticPod("db-1", scheduler, set))
	c.awaitBound("db-0", "db-1")
	inUseBy := func(pod string) func(reservation) string {
		return func(r reservation) string {
			if accepted, _ := conditionOf(r.Status.Conditions, "Accepted"); r.Status.Phase != "InUse" || r.Spec.Owner.Pod != pod || accepted != "True" {
				return fmt.Sprintf("%+v %+v", r.Spec, r.Status)
			}
			return ""
		}
	}
	c.awaitReservation("10-9-0-1", inUseBy("db-0"))
	c.awaitReservation("10-9-0-200", inUseBy("db-1"))

	refused := func(part string) func(reservation) string {
		return func(r reservation) string {
			if accepted, message := conditionOf(r.Status.Conditions, "Accepted"); accepted != "False" || !strings.Contains(message, part) {
				return fmt.Sprintf("%+v", r.Status)
			}
			return ""
		}
	}
	// Outside its pool; a second one for a pod.
	c.apply(`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPReservation, metadata: {name: 10-8-0-1},
spec: {ip: 10.8.0.1, pool: a, owner: {namespace: default, pod: db-5}}}`)
	c.awaitReservation("10-8-0-1", refused("10.8.0.1 is outside of StaticIPPool \"a\""))
	c.apply(`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPReservation, metadata: {name: 10-9-0-201},
spec: {ip: 10.9.0.201, pool: a, owner: {namespace: default, pod: db-0}}}`)
	c.awaitReservation("10-9-0-201", refused("pod default/db-0 already has 10.9.0.1"))

	// The API server itself rejects invalid objects.
	for _, wrong := range []string{
		`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPReservation, metadata: {name: 10-9-0-77}, spec: {ip: 10.9.0.78}}`,
		`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPReservation, metadata: {name: 10-9-0-999}, spec: {ip: 10.9.0.999}}`,
		`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: b}, spec: {cidr: 10.9.0.1/24}}`,
		`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: b}, spec: {cidr: 10.9.0.0/24, releasePolicy: Later}}`,
		`{apiVersion: accelerator.sched.io/v1alpha1, kind: TrainingJobPlacement, metadata: {name: x, namespace: default}, spec: {jobID: ""}}`,
	} {
		if err := c.Apply(c.Context(), wrong); err == nil {
			c.Errorf("accepted: %s", wrong)
		}
	}
	if err := c.patch(reservations, "", "10-9-0-1", `{"spec":{"ip":"10.9.0.9"}}`); err == nil {
		c.Error("the API server accepted a change of the IP")
	}

	// A reduced pool keeps its reservations, and assigns no more.
	if err := c.patch(pools, "", "a", `{"spec":{"ranges":["10.9.0.40"]}}`); err != nil {
		c.Fatal(err)
	}
	// When the later pool is known, the change of this one is known, too.
	c.apply(`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: later}, spec: {cidr: 10.10.0.1/32}}`)
	probe := c.staticPod("probe", scheduler, nil)
	probe.Annotations["outboard/static-ip"] = "later"
	c.create(probe)
	c.awaitBound("probe")
	c.create(c.staticPod("db-2", scheduler, set))
	c.awaitBound("db-2")
	c.awaitReservation("10-9-0-40", inUseBy("db-2"))
	c.awaitReservation("10-9-0-1", inUseBy("db-0"))
	c.create(c.staticPod("db-3", scheduler, set))
	c.awaitMessage("db-3", "no free static IP in a pool that node can serve")

	// A deleted reservation stays while its pod runs, then the IP is free.
	if err := c.objects.Resource(reservations).Delete(c.Context(), "10-9-0-40", metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	c.awaitReservation("10-9-0-40", func(r reservation) string {
		if pending, _ := conditionOf(r.Status.Conditions, "DeletionPending"); pending != "True" {
			return fmt.Sprintf("%+v", r.Status)
		}
		return ""
	})
	c.delete("db-2")
	c.awaitBound("db-3")
	c.awaitReservation("10-9-0-40", inUseBy("db-3"))

	// A reservation whose deletion is forced while its pod runs is recreated.
	if err := c.patch(reservations, "", "10-9-0-1", `{"metadata":{"finalizers":null}}`); err != nil {
		c.Fatal(err)
	}
	before, err := c.objects.Resource(reservations).Get(c.Context(), "10-9-0-1", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if err := c.objects.Resource(reservations).Delete(c.Context(), "10-9-0-1", metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	c.awaitReservation("10-9-0-1", func(r reservation) string {
		if r.UID == before.GetUID() {
			return "it is still the old object"
		}
		return inUseBy("db-0")(r)
	})

	// An IP assigned to another pod while its pod runs belongs to that pod afterwards.
	if err := c.patch(reservations, "", "10-9-0-1", `{"spec":{"owner":{"pod":"db-9"}}}`); err != nil {
		c.Fatal(err)
	}
	c.create(c.staticPod("db-9", scheduler, set))
	c.awaitReservation("10-9-0-1", refused("pod default/db-0 uses the IP"))
	c.awaitMessage("db-9", "reserved IP 10.9.0.1 is still used by pod default/db-0")
	c.delete("db-0")
	c.awaitBound("db-9")
	c.awaitReservation("10-9-0-1", inUseBy("db-9"))

	// An edited status is corrected, and the object says so.
	if err := c.patch(reservations, "", "10-9-0-1", `{"status":{"phase":"Held","podUID":"unknown"}}`, "status"); err != nil {
		c.Fatal(err)
	}
	c.awaitReservation("10-9-0-1", inUseBy("db-9"))
	c.create(newPod("llama-0", scheduler, map[string]string{"training-job-id": "llama"}, nil, nil))
	c.awaitBound("llama-0")
	healthy := func(p placement) string {
		if p.Status.Pods != 1 || len(p.Status.Placements) != 1 || p.Status.Placements[0].Pod != "llama-0" {
			return fmt.Sprintf("%+v", p.Status)
		}
		return ""
	}
	c.awaitPlacement("llama", healthy)
	if err := c.patch(placements, namespace, "llama", `{"status":{"placements":[{"pod":"x","node":"n7"}]}}`, "status"); err != nil {
		c.Fatal(err)
	}
	c.awaitPlacement("llama", func(p placement) string {
		if edited, _ := conditionOf(p.Status.Conditions, "StatusEdited"); edited != "True" {
			return fmt.Sprintf("%+v", p.Status)
		}
		return healthy(p)
	})

	// A domain that a user pins is kept; an invalid one is rejected, with a condition.
	if err := c.patch(placements, namespace, "llama", `{"spec":{"domain":{"level":"fabric","value":"f3"}}}`); err != nil {
		c.Fatal(err)
	}
	honoured := func(want, part string) func(placement) string {
		return func(p placement) string {
			if got, message := conditionOf(p.Status.Conditions, "DomainHonoured"); got != want || !strings.Contains(message, part) {
				return fmt.Sprintf("%+v", p.Status)
			}
			return ""
		}
	}
	c.awaitPlacement("llama", honoured("True", "fabric=f3"))
	c.create(newPod("llama-1", scheduler, map[string]string{"training-job-id": "llama"}, nil, nil))
	c.awaitBound("llama-1")
	c.awaitPlacement("llama", func(p placement) string {
		if len(p.Status.Placements) != 2 || p.Status.Placements[1].Domains["fabric"] != "f3" {
			return fmt.Sprintf("%+v", p.Status)
		}
		return ""
	})
	if err := c.patch(placements, namespace, "llama", `{"spec":{"domain":{"level":"colour","value":"red"}}}`); err != nil {
		c.Fatal(err)
	}
	c.awaitPlacement("llama", honoured("False", "is none of fabric, rack"))
	if err := c.patch(placements, namespace, "llama", `{"spec":{"jobID":"other"}}`); err == nil {
		c.Error("the API server accepted a change of the job")
	}

	// A deleted object is recreated.
	if err := c.objects.Resource(placements).Namespace(namespace).Delete(c.Context(), "llama", metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
	c.awaitPlacement("llama", func(p placement) string {
		if p.Status.Pods != 2 || p.Spec.Domain.Level != "" {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
}

// The error names the missing configuration.
func withoutCustomResources(c *cluster) {
	defer c.clear()
	ctx := c.Context()
	o, err := c.StartOutboard(ctx, controlplane.OutboardOptions{Config: controlplane.SchedulerConfig{Text: profiles(scheduler)}})
	if o != nil {
		defer o.Stop()
	}
	if err == nil {
		c.await("the shim ends", func() string {
			select {
			case <-o.Shim.Exited():
				return ""
			default:
				return "it is still running"
			}
		})
	}
	log := c.logOf(o.Shim)
	for _, part := range []string{
		"plugin StaticIP needs a custom resource that customResources does not allow; add to it: {resource: staticippools.v1alpha1.accelerator.sched.io",
		"{resource: staticipreservations.v1alpha1.accelerator.sched.io, verbs: [create, update, updateStatus, delete]}",
		"{resource: trainingjobplacements.v1alpha1.accelerator.sched.io, verbs: [create, update, updateStatus, delete]}",
	} {
		if !strings.Contains(log, part) {
			c.Errorf("missing in the log: %q\n%s", part, o.Shim.LogTail())
		}
	}
}

// Two schedulers, each with a host, without a lease, assign IPs from one pool that is exactly large enough, at the
// same time.
func twoSchedulersShareAPool(c *cluster) {
	defer c.clear()
	const each = 30
	for _, name := range []string{"left", "right"} {
		c.start(controlplane.OutboardOptions{Name: "-" + name, Config: controlplane.SchedulerConfig{Text: profiles(name)}})
	}
	c.apply(fmt.Sprintf(`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: a},
spec: {cidr: 10.9.0.0/24, ranges: [10.9.0.1-10.9.0.%d]}}`, 2*each))
	var names []string
	if err := controlplane.InParallel(c.Context(), 20, 2*each, func(_ context.Context, i int) error {
		name := []string{"left", "right"}[i%2]
		_, err := c.client.CoreV1().Pods(namespace).Create(c.Context(), c.staticPod(fmt.Sprintf("%s-%d", name, i/2), name, nil), metav1.CreateOptions{})
		return err
	}); err != nil {
		c.Fatal(err)
	}
	for i := range 2 * each {
		names = append(names, fmt.Sprintf("%s-%d", []string{"left", "right"}[i%2], i/2))
	}
	c.awaitBound(names...)
	c.await("every pod has one IP", func() string { return faults(c, pods(c), nil) })
}

// The standby, which always has a synced host, continues where the leader was killed.
func theLeaderIsKilled(c *cluster) {
	defer c.clear()
	config := controlplane.SchedulerConfig{LeaderElect: true, Text: profiles(scheduler) + `
leaderElection: {leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms}
`}
	first := c.start(controlplane.OutboardOptions{Name: "-first", Config: config})
	c.apply(poolManifest)
	set := c.statefulSet("db")
	c.create(c.staticPod("db-0", scheduler, set))
	c.awaitBound("db-0")
	c.start(controlplane.OutboardOptions{Name: "-second", Config: config})
	const all, atKill = 40, 20
	for i := 1; i < all; i++ {
		if i == atKill {
			first.Shim.Kill()
		}
		c.create(c.staticPod(fmt.Sprintf("db-%d", i), scheduler, set))
	}
	began := time.Now()
	for i := range all {
		c.awaitBound(fmt.Sprintf("db-%d", i))
	}
	c.Logf("all were bound %.1f s after the leader was killed", time.Since(began).Seconds())
	c.await("every pod has one IP", func() string { return faults(c, pods(c), nil) })
}
