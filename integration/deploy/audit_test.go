package deploy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/scenarios"
)

// right is a right that an account has, or has used.
type right struct{ verb, group, resource, name string }

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	return text
}

// unusedRights are granted but not used by the scenarios here, each with its reason.
var unusedRights = map[string]string{
	"get pods":                           "only after a bind whose answer was lost, to resolve it (shim/bind/api_writer_test.cc loses answers)",
	"get resourceclaims.resource.k8s.io": "only after a write whose answer was lost, as for a pod",
	"get trainingjobplacements.accelerator.sched.io": "as for a claim",
	"get staticipreservations.accelerator.sched.io":  "as for a claim",
	"get podgroups.scheduling.k8s.io":                "as for a claim",
	"get podgroups.scheduling.x-k8s.io":              "as for a claim",
	"update podgroups/status.scheduling.k8s.io":      "this API server serves no PodGroups; integration/scenarios/gangs writes their status",
	"update podgroups/status.scheduling.x-k8s.io":    "as above",
	"delete resourceclaims.resource.k8s.io":          "only of a claim for extended resources whose pod lost its node before it was bound (integration/faults has such claims)",
	"patch resourceclaims/binding.resource.k8s.io":   "the API server checks this right when a status is patched; no request uses this resource",
}

// playedScenarios are scenarios of integration/scenarios that need more rights than placing a pod.
var playedScenarios = []string{"01-fits", "31-series", "33-claims-wake", "40-preemption", "43-preemption-awaits-victims"}

const keeper = `
schedulerName: keeper
plugins: {multiPoint: {enabled: [{name: TrainingJobPlacement, weight: 100}, {name: StaticIP}]}}
pluginConfig:
- {name: TrainingJobPlacement, args: {levels: [fabric], retention: 1s}}
- {name: StaticIP, args: {releaseAfter: 1s, scaledDownAfter: 1s}}
`

// Every right of the shipped roles is used, and no request of the shim is denied, by the API server's audit log. The
// server streams no initial events, so the informers list, too.
func TestGrantedRightsAreUsed(t *testing.T) {
	t.Parallel()
	bin, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	// Claims are created from templates; objects of a job that does not exist stay.
	c := newClusterOf(t, controlplane.Options{Audit: true, FeatureGates: "WatchList=false", Controllers: []string{"resourceclaim-controller"}})
	if err := c.ApplyCustomResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := kustomized(t, "ai-scheduler")
	c.bring(all)
	serving := c.startShim(bin, all, func(scheduler, _ map[string]any) {
		text, err := scenarios.Configuration()
		var played, kept map[string]any
		if err == nil {
			err = yaml.Unmarshal([]byte(text), &played)
		}
		if err == nil {
			err = yaml.Unmarshal([]byte(keeper), &kept)
		}
		if err != nil {
			t.Fatal(err)
		}
		scheduler["profiles"] = append(played["profiles"].([]any), kept)
	})
	c.eventually(func() error {
		if status, text := c.page(serving+"/readyz", ""); status != http.StatusOK {
			return fmt.Errorf("not ready: %s", text)
		}
		return nil
	})
	c.page(serving+"/metrics", c.token("default", "prometheus"))
	c.playScenarios()
	c.claimVolumes()
	c.claimed("default-scheduler")
	c.keepObjects()

	granted := c.granted(all)
	c.eventually(func() error { // The last deletions are asynchronous.
		if left := c.unused(granted); len(left) > 0 {
			return fmt.Errorf("granted, but neither used nor explained: %q", left)
		}
		return nil
	})
	used := c.used()
	lines := []string{}
	for _, r := range granted {
		state := "used"
		if !used[r] {
			state = "not used: " + unusedRights[r.String()]
		}
		lines = append(lines, fmt.Sprintf("%-60s %s", r, state))
	}
	t.Logf("%d rights granted, used by %d requests; the audit log denies none\n%s", len(granted), c.requests(), strings.Join(lines, "\n"))
	for name := range unusedRights {
		if !slices.ContainsFunc(granted, func(r right) bool { return r.String() == name }) {
			t.Errorf("%q is explained but not granted", name)
		}
	}
}

func (c *cluster) playScenarios() {
	c.Helper()
	stories, err := scenarios.Load()
	if err != nil {
		c.Fatal(err)
	}
	stage, err := scenarios.NewStage(c.Context(), c.ControlPlane)
	if err != nil {
		c.Fatal(err)
	}
	played := 0
	for _, story := range stories {
		if !slices.Contains(playedScenarios, story.Name) {
			continue
		}
		played++
		ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
		transcript, err := stage.Play(ctx, story)
		cancel()
		if err != nil {
			c.Fatalf("%s: %v\n%s", story.Name, err, strings.Join(transcript, "\n"))
		}
	}
	if played != len(playedScenarios) {
		c.Fatalf("%d of %q are there", played, playedScenarios)
	}
}

func (c *cluster) applyAll(manifests ...string) {
	c.Helper()
	for _, manifest := range manifests {
		if err := c.Apply(c.Context(), manifest); err != nil {
			c.Fatal(err)
		}
	}
}

// claimVolumes makes the shim write the selection of a volume, and of a node for a volume that is still to be
// created.
func (c *cluster) claimVolumes() {
	c.Helper()
	pod := func(name, claim string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default}, spec: {schedulerName: default-scheduler,
containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: %s}}]}}`, name, claim)
	}
	claim := func(name, class string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s, namespace: default},
spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: 1Gi}}}}`, name, class)
	}
	c.applyAll(`{apiVersion: v1, kind: Node, metadata: {name: volumes}, status: {capacity: &n {cpu: "8", memory: 8Gi, pods: "110"}, allocatable: *n}}`,
		`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: there}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}`,
		`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: made}, provisioner: example.com/p, volumeBindingMode: WaitForFirstConsumer}`,
		`{apiVersion: v1, kind: PersistentVolume, metadata: {name: there}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: there, hostPath: {path: /tmp}}}`,
		claim("there", "there"), claim("made", "made"))
	// In place of the volume controller, which does not run here.
	available := []byte(`{"status":{"phase":"Available"}}`)
	if _, err := c.client.CoreV1().PersistentVolumes().Patch(c.Context(), "there", types.MergePatchType, available, metav1.PatchOptions{}, "status"); err != nil {
		c.Fatal(err)
	}
	c.applyAll(pod("there", "there"), pod("made", "made"))
	c.eventually(func() error {
		volume, err := c.client.CoreV1().PersistentVolumes().Get(c.Context(), "there", metav1.GetOptions{})
		if err == nil && volume.Spec.ClaimRef == nil {
			err = fmt.Errorf("the volume has no claim")
		}
		return err
	})
	c.eventually(func() error {
		claim, err := c.client.CoreV1().PersistentVolumeClaims("default").Get(c.Context(), "made", metav1.GetOptions{})
		if err == nil && claim.Annotations["volume.kubernetes.io/selected-node"] != "volumes" {
			err = fmt.Errorf("the claim's annotations are %v", claim.Annotations)
		}
		return err
	})
}

// keepObjects makes plugins write objects of both kinds, change them, and delete them.
func (c *cluster) keepObjects() {
	c.Helper()
	pod := func(name, metadata string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default, %s}, spec: {schedulerName: keeper, nodeSelector: {fabric: f0},
containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}}`, name, metadata)
	}
	c.applyAll(`{apiVersion: v1, kind: Node, metadata: {name: keeper, labels: {fabric: f0}}, status: {capacity: &n {cpu: "8", memory: 8Gi, pods: "110"}, allocatable: *n}}`,
		`{apiVersion: accelerator.sched.io/v1alpha1, kind: StaticIPPool, metadata: {name: a}, spec: {cidr: 10.9.0.0/24, releasePolicy: OnDelete}}`)
	names := []string{}
	placements := c.dynamic.Resource(controlplane.CustomResources()[0]).Namespace("default")
	// The second pod of a job changes the object of the first: its owner also becomes the object's.
	for i, owner := range []string{"", `, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: job, uid: 1d4f7c0e-0000-4000-8000-000000000001, controller: true}]`} {
		job, address := fmt.Sprintf("job-%d", i), fmt.Sprintf("address-%d", i)
		names = append(names, job, address)
		c.applyAll(pod(job, "labels: {training-job-id: job}"+owner), pod(address, `annotations: {outboard/static-ip: "true"}`))
		c.eventually(func() error { return c.bound(address) })
		c.eventually(func() error {
			object, err := placements.Get(c.Context(), "job", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if pods, _, _ := unstructured.NestedInt64(object.Object, "status", "pods"); pods != int64(i+1) || len(object.GetOwnerReferences()) != i {
				return fmt.Errorf("the object has %d pods, %d owners", pods, len(object.GetOwnerReferences()))
			}
			return nil
		})
	}
	for _, name := range names {
		if err := c.client.CoreV1().Pods("default").Delete(c.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			c.Fatal(err)
		}
	}
}

// granted returns the rights of the shim's account by the installation's roles and bindings.
func (c *cluster) granted(all []*unstructured.Unstructured) []right {
	c.Helper()
	roles := map[string][]rbacv1.PolicyRule{}
	bound := map[string]bool{}
	for _, object := range all {
		switch object.GetKind() {
		case "ClusterRole", "Role":
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				c.Fatal(err)
			}
			roles[object.GetKind()+" "+role.Name] = role.Rules
		case "ClusterRoleBinding", "RoleBinding":
			var binding rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
				c.Fatal(err)
			}
			if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == "outboard-shim" }) {
				bound[binding.RoleRef.Kind+" "+binding.RoleRef.Name] = true
			}
		}
	}
	rights := map[right]bool{}
	for name := range bound {
		rules, ours := roles[name]
		if !ours {
			role, err := c.client.RbacV1().ClusterRoles().Get(c.Context(), strings.TrimPrefix(name, "ClusterRole "), metav1.GetOptions{})
			if err != nil {
				c.Fatal(err)
			}
			rules = role.Rules
		}
		for _, rule := range rules {
			for _, verb := range rule.Verbs {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						names := rule.ResourceNames
						if len(names) == 0 {
							names = []string{""}
						}
						for _, name := range names {
							rights[right{verb, group, resource, name}] = true
						}
					}
				}
			}
		}
	}
	if len(rights) < 30 {
		c.Fatalf("only %d rights: %v", len(rights), rights)
	}
	return slices.SortedFunc(maps.Keys(rights), func(a, b right) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	})
}

func (c *cluster) audited() []controlplane.AuditEvent {
	c.Helper()
	events, err := c.AuditLog("system:serviceaccount:" + namespace + ":outboard-shim")
	if err != nil {
		c.Fatal(err)
	}
	return events
}

func (c *cluster) requests() int { return len(c.audited()) }

// used returns the rights used by the shim's requests, each with and without the object's name. A denied request is a
// fault.
func (c *cluster) used() map[right]bool {
	c.Helper()
	used := map[right]bool{}
	for _, event := range c.audited() {
		if event.ResponseStatus.Code == http.StatusForbidden || event.Annotations["authorization.k8s.io/decision"] == "forbid" {
			text, _ := json.Marshal(event)
			c.Errorf("denied: %s", text)
		}
		object := event.ObjectRef
		if object == nil {
			continue
		}
		resource := object.Resource
		if object.Subresource != "" {
			resource += "/" + object.Subresource
		}
		used[right{event.Verb, object.APIGroup, resource, ""}] = true
		used[right{event.Verb, object.APIGroup, resource, object.Name}] = true
	}
	return used
}

// unused returns the rights of `granted` that are neither used nor explained.
func (c *cluster) unused(granted []right) []string {
	c.Helper()
	used, left := c.used(), []string{}
	for _, r := range granted {
		if !used[r] && unusedRights[r.String()] == "" {
			left = append(left, r.String())
		}
	}
	return left
}
