package devices

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func claim(name, node, device string, consumers ...types.UID) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)}}
	if device != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "d", Pool: node, Device: device}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}},
		}
	}
	for _, uid := range consumers {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
	}
	return c
}

func pod(name, node string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
	for _, claim := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
	}
	return p
}

func fromTemplate(p *corev1.Pod, name, made string) *corev1.Pod {
	template := "t"
	p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &template})
	if made != "" {
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: name, ResourceClaimName: &made})
	}
	return p
}

func asking(p *corev1.Pod, name corev1.ResourceName) *corev1.Pod {
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse("1")}}}}
	return p
}

// Each fault is committed once, and the report has exactly that one.
func TestEveryFaultOfTheHistoryIsFound(t *testing.T) {
	shared, admin, share, yes := claim("shared", "n", "x"), claim("admin", "n", "x"), types.UID("s"), true
	shared.Status.Allocation.Devices.Results[0].ShareID = &share
	admin.Status.Allocation.Devices.Results[0].AdminAccess = &yes
	for name, test := range map[string]struct {
		play func(r *replay)
		want Report
	}{
		"nothing wrong": {func(r *replay) {
			r.claimIs("ns/a", claim("a", "n", ""), 1)
			r.claimIs("ns/a", claim("a", "n", "x", "p"), 2)
			r.podIs(pod("p", "n", "a"), 3)
			r.claimIs("ns/a", claim("a", "n", "x"), 4)
			r.claimIs("ns/a", nil, 5)
			r.claimIs("ns/b", claim("b", "n", "x", "q"), 6)
			r.podIs(pod("q", "n", "b"), 7)
		}, Report{Allocations: 2, AtOnce: 1, Binds: 2}},
		"shared and looked at": {func(r *replay) {
			r.claimIs("ns/a", claim("a", "n", "x"), 1)
			r.claimIs("ns/shared", shared, 2)
			r.claimIs("ns/admin", admin, 3)
		}, Report{Allocations: 3, AtOnce: 1}},
		"twice": {func(r *replay) {
			r.claimIs("ns/a", claim("a", "n", "x"), 1)
			r.claimIs("ns/b", claim("b", "n", "x"), 2)
		}, Report{Allocations: 2, AtOnce: 1, AllocatedTwice: 1}},
		"not reserved": {func(r *replay) {
			r.claimIs("ns/a", claim("a", "n", "x", "q"), 1)
			r.podIs(pod("p", "n", "a"), 2)
		}, Report{Allocations: 1, AtOnce: 1, Binds: 1, BoundWithout: 1}},
		"not allocated yet": {func(r *replay) {
			r.podIs(fromTemplate(pod("p", "n"), "c", "a"), 1)
			r.claimIs("ns/a", claim("a", "n", "x", "p"), 2)
		}, Report{Allocations: 1, AtOnce: 1, Binds: 1, BoundWithout: 1}},
		"not made yet":              {func(r *replay) { r.podIs(fromTemplate(pod("p", "n"), "c", ""), 1) }, Report{Binds: 1, BoundWithout: 1}},
		"extended, without a claim": {func(r *replay) { r.podIs(asking(pod("p", "n"), "example.com/gpu"), 1) }, Report{Binds: 1, BoundWithout: 1}},
		"elsewhere": {func(r *replay) {
			r.claimIs("ns/a", claim("a", "m", "x", "p"), 1)
			r.podIs(pod("p", "n", "a"), 2)
		}, Report{Allocations: 1, AtOnce: 1, Binds: 1, BoundElsewhere: 1}},
		"pending": {func(r *replay) { r.podIs(pod("p", "", "a"), 1) }, Report{}},
	} {
		r := newReplay([]corev1.ResourceName{"example.com/gpu"})
		test.play(r)
		if r.report.Faults() > 0 && len(r.report.Examples) == 0 {
			t.Errorf("%s: a fault without an example", name)
		}
		r.report.Examples = nil
		if got, want := r.report.String(), test.want.String(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestEveryFaultOfThePresentIsFound(t *testing.T) {
	yes := true
	orphan := claim("orphan", "n", "z")
	orphan.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "gone", UID: "gone", Controller: &yes}}
	client := fake.NewClientset(
		claim("good", "n", "x", "p"), pod("p", "n", "good"),
		pod("lost", "n", "no-such-claim"), pod("pending", "", "no-such-claim"),
		claim("empty", "n", ""), pod("unallocated", "n", "empty"),
		claim("other", "n", "y", "gone"), pod("unreserved", "n", "other"),
		orphan)
	report, err := Now(context.Background(), client)
	if err != nil {
		t.Fatal(err)
	}
	if report.Lost != 3 || report.Left != 2 || report.Faults() != 5 {
		t.Error(report)
	}
}
