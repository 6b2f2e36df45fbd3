// Package devices checks the allocation of devices afterwards, from etcd's history and the API alone. It shares no
// code with any scheduler or allocator: it adds up the claims' statuses.
package devices

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"outboard.dev/integration/bench/history"
)

// Report counts the findings. The first five numbers describe; the others are faults and must be zero.
type Report struct {
	Claims      int `json:"claims"`      // claims in the history
	Allocations int `json:"allocations"` // times that a claim was allocated
	Devices     int `json:"devices"`     // different devices that were ever allocated
	AtOnce      int `json:"atOnce"`      // most devices that were allocated at one revision
	Binds       int `json:"binds"`       // pods with claims that were bound

	AllocatedTwice int      `json:"allocatedTwice"` // allocations of a device that another claim held
	BoundWithout   int      `json:"boundWithout"`   // binds of a pod before each of its claims was allocated and reserved for it
	BoundElsewhere int      `json:"boundElsewhere"` // binds to a node other than that of a claim's allocation
	Lost           int      `json:"lost"`           // existing bound pods whose claim is missing, not allocated or not reserved
	Left           int      `json:"left"`           // reservations for deleted pods, and allocated claims without a reservation whose pod is deleted
	Examples       []string `json:"examples,omitempty"`
}

// Faults is the sum of all faults.
func (r *Report) Faults() int {
	return r.AllocatedTwice + r.BoundWithout + r.BoundElsewhere + r.Lost + r.Left
}

// String returns one line, and one more line for each example of a fault.
func (r *Report) String() string {
	line := fmt.Sprintf("%d claims, %d allocations of %d devices (at most %d at once), %d pods with claims bound: %d devices allocated twice, "+
		"%d pods bound without theirs, %d bound elsewhere, %d claims lost, %d left behind",
		r.Claims, r.Allocations, r.Devices, r.AtOnce, r.Binds, r.AllocatedTwice, r.BoundWithout, r.BoundElsewhere, r.Lost, r.Left)
	return strings.Join(append([]string{line}, r.Examples...), "\n  ")
}

func (r *Report) fault(counter *int, format string, args ...any) {
	*counter++
	if len(r.Examples) < 20 {
		r.Examples = append(r.Examples, fmt.Sprintf(format, args...))
	}
}

// Check reads etcd's whole history, which must not be compacted, and the API's present state. `extended` lists the
// resources of device classes: a pod that requests one must have its claim when it is bound.
func Check(ctx context.Context, etcdURL string, client kubernetes.Interface, extended ...corev1.ResourceName) (*Report, error) {
	r := newReplay(extended)
	if err := r.run(ctx, etcdURL); err != nil {
		return nil, fmt.Errorf("etcd's history: %w", err)
	}
	faults, err := Now(ctx, client, extended...)
	if err != nil {
		return nil, err
	}
	r.report.Lost, r.report.Left = faults.Lost, faults.Left
	r.report.Examples = append(r.report.Examples, faults.Examples...)
	return r.report, nil
}

// Now checks only the present state: lost claims, and claims left behind.
func Now(ctx context.Context, client kubernetes.Interface, extended ...corev1.ResourceName) (*Report, error) {
	report := &Report{}
	claimList, err := client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	podList, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	claims, pods := map[string]*resourcev1.ResourceClaim{}, map[types.UID]bool{}
	for i := range claimList.Items {
		claims[claimList.Items[i].Namespace+"/"+claimList.Items[i].Name] = &claimList.Items[i]
	}
	for i := range podList.Items {
		pod := &podList.Items[i]
		pods[pod.UID] = true
		if pod.Spec.NodeName == "" {
			continue
		}
		for _, name := range claimsOf(pod, extended) {
			if why := without(claims[name], pod); why != "" {
				report.fault(&report.Lost, "%s/%s is on %s, and its claim %s %s", pod.Namespace, pod.Name, pod.Spec.NodeName, name, why)
			}
		}
	}
	for name, claim := range claims {
		for _, consumer := range claim.Status.ReservedFor {
			if consumer.Resource == "pods" && !pods[consumer.UID] {
				report.fault(&report.Left, "claim %s is reserved for pod %s (%s), which is gone", name, consumer.Name, consumer.UID)
			}
		}
		owner := metav1.GetControllerOfNoCopy(claim)
		if claim.Status.Allocation != nil && len(claim.Status.ReservedFor) == 0 && owner != nil && owner.Kind == "Pod" && !pods[owner.UID] {
			report.fault(&report.Left, "claim %s is allocated, and its pod %s is gone", name, owner.Name)
		}
	}
	return report, nil
}

// claimsOf returns the claims that the pod must have, as namespace/name. A name that is not known yet appears as
// "<description>".
func claimsOf(pod *corev1.Pod, extended []corev1.ResourceName) (names []string) {
	for _, claim := range pod.Spec.ResourceClaims {
		name := claim.ResourceClaimName
		if name == nil {
			i := slices.IndexFunc(pod.Status.ResourceClaimStatuses, func(made corev1.PodResourceClaimStatus) bool { return made.Name == claim.Name })
			if i < 0 {
				names = append(names, "<from a template>")
				continue
			}
			if name = pod.Status.ResourceClaimStatuses[i].ResourceClaimName; name == nil {
				continue // It needs none.
			}
		}
		names = append(names, pod.Namespace+"/"+*name)
	}
	if pod.Status.ExtendedResourceClaimStatus != nil {
		return append(names, pod.Namespace+"/"+pod.Status.ExtendedResourceClaimStatus.ResourceClaimName)
	}
	for _, container := range pod.Spec.Containers {
		for _, name := range extended {
			if _, asks := container.Resources.Requests[name]; asks {
				return append(names, "<of extended resources>")
			}
		}
	}
	return names
}

// without returns what the claim lacks for the pod, or "".
func without(claim *resourcev1.ResourceClaim, pod *corev1.Pod) string {
	switch {
	case claim == nil:
		return "does not exist"
	case claim.Status.Allocation == nil:
		return "is not allocated"
	case !slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourcev1.ResourceClaimConsumerReference) bool { return consumer.UID == pod.UID }):
		return "is not reserved for it"
	}
	return ""
}

// replay is the state of claims and pods at one revision, and the history up to it.
type replay struct {
	report   *Report
	extended []corev1.ResourceName
	claims   map[string]*resourcev1.ResourceClaim // by namespace/name
	holders  map[device]string                    // of devices, the claim's name
	seen     map[types.UID]bool                   // claims
	used     map[device]bool
	bound    map[types.UID]bool
}

type device struct{ driver, pool, name string }

func newReplay(extended []corev1.ResourceName) *replay {
	return &replay{report: &Report{}, extended: extended, claims: map[string]*resourcev1.ResourceClaim{}, holders: map[device]string{},
		seen: map[types.UID]bool{}, used: map[device]bool{}, bound: map[types.UID]bool{}}
}

const (
	podPrefix   = "/registry/pods/"
	claimPrefix = "/registry/resourceclaims/"
	// endMark lies between the two prefixes, so one ordered watch sees both and the mark.
	endMark = "/registry/q-outboard-devices"
)

func (r *replay) run(ctx context.Context, etcdURL string) error {
	err := history.Replay(ctx, etcdURL, podPrefix, claimPrefix, endMark, func(event *clientv3.Event) error {
		if err := r.apply(event); err != nil {
			return fmt.Errorf("%s at revision %d: %w", event.Kv.Key, event.Kv.ModRevision, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.report.Claims, r.report.Devices = len(r.seen), len(r.used)
	return nil
}

func (r *replay) apply(event *clientv3.Event) error {
	key := string(event.Kv.Key)
	name, isClaim := strings.CutPrefix(key, claimPrefix)
	if event.Type == clientv3.EventTypeDelete {
		if isClaim {
			r.claimIs(name, nil, event.Kv.ModRevision)
		}
		return nil
	}
	if !isClaim && !strings.HasPrefix(key, podPrefix) {
		return nil
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Kv.Value, nil, nil)
	if err != nil {
		return err
	}
	if pod, isPod := object.(*corev1.Pod); isPod {
		r.podIs(pod, event.Kv.ModRevision)
		return nil
	}
	// The stored API version does not matter: the fields read here are the same in all of them.
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	claim := &resourcev1.ResourceClaim{}
	if err := json.Unmarshal(text, claim); err != nil {
		return err
	}
	r.claimIs(name, claim, event.Kv.ModRevision)
	return nil
}

// exclusive returns the devices that only this claim may hold: no shared devices and no admin access.
func exclusive(claim *resourcev1.ResourceClaim) (devices []device) {
	if claim == nil || claim.Status.Allocation == nil {
		return nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.ShareID == nil && (result.AdminAccess == nil || !*result.AdminAccess) {
			devices = append(devices, device{result.Driver, result.Pool, result.Device})
		}
	}
	return devices
}

// claimIs records the claim's new state; nil: it is deleted.
func (r *replay) claimIs(name string, claim *resourcev1.ResourceClaim, revision int64) {
	before := r.claims[name]
	for _, device := range exclusive(before) {
		if r.holders[device] == name {
			delete(r.holders, device)
		}
	}
	if claim == nil {
		delete(r.claims, name)
		return
	}
	r.claims[name] = claim
	r.seen[claim.UID] = true
	if claim.Status.Allocation != nil && (before == nil || before.Status.Allocation == nil) {
		r.report.Allocations++
	}
	for _, device := range exclusive(claim) {
		r.used[device] = true
		if holder := r.holders[device]; holder != "" {
			r.report.fault(&r.report.AllocatedTwice, "%v was allocated to %s at revision %d, while %s held it", device, name, revision, holder)
		}
		r.holders[device] = name
	}
	r.report.AtOnce = max(r.report.AtOnce, len(r.holders))
}

func (r *replay) podIs(pod *corev1.Pod, revision int64) {
	if pod.Spec.NodeName == "" || r.bound[pod.UID] {
		return
	}
	r.bound[pod.UID] = true
	names := claimsOf(pod, r.extended)
	if len(names) > 0 {
		r.report.Binds++
	}
	for _, name := range names {
		claim := r.claims[name]
		if why := without(claim, pod); why != "" {
			r.report.fault(&r.report.BoundWithout, "%s/%s was bound to %s at revision %d, and its claim %s %s", pod.Namespace, pod.Name,
				pod.Spec.NodeName, revision, name, why)
			continue
		}
		if node := onlyNode(claim); node != "" && node != pod.Spec.NodeName {
			r.report.fault(&r.report.BoundElsewhere, "%s/%s was bound to %s at revision %d, and its claim %s is for %s", pod.Namespace, pod.Name,
				pod.Spec.NodeName, revision, name, node)
		}
	}
}

// onlyNode returns the one node on which the claim can be used, or "" if no node is given by name.
func onlyNode(claim *resourcev1.ResourceClaim) string {
	selector := claim.Status.Allocation.NodeSelector
	if selector == nil || len(selector.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, field := range selector.NodeSelectorTerms[0].MatchFields {
		if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
			return field.Values[0]
		}
	}
	return ""
}
