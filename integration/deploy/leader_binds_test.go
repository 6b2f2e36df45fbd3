package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// boundToken returns a token of an account; unless pod is nil it is bound to the pod, as the kubelet's.
func (c *cluster) boundToken(namespace, account string, pod *corev1.Pod) string {
	c.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(c.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return answer.Status.Token
}

// clientWith returns a client with a token.
func (c *cluster) clientWith(token string) kubernetes.Interface {
	c.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		c.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.QPS = token, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}
	return client
}

// shimOf returns a client with a token of the shims' account, bound to the pod unless that is nil.
func (c *cluster) shimOf(pod *corev1.Pod) kubernetes.Interface {
	c.Helper()
	return c.clientWith(c.boundToken(namespace, "outboard-shim", pod))
}

// bind sends a binding; dry, unless it is for real.
func (c *cluster) bind(client kubernetes.Interface, pod string, dryRun ...string) error {
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "default"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	return client.CoreV1().Pods("default").Bind(c.Context(), binding, metav1.CreateOptions{DryRun: dryRun})
}

// The component: the API server accepts binds of the shim whose pod holds the lease, and of no other shim.
func TestOnlyTheLeaderMayBind(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.bring(kustomized(t, "sidecar"))
	var shims []corev1.Pod
	c.eventually(func() error {
		pods, err := c.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=shim"})
		if err == nil && len(pods.Items) != 2 {
			err = fmt.Errorf("%d shims", len(pods.Items))
		}
		if err == nil {
			shims = pods.Items
		}
		return err
	})
	c.pod("p", "outboard-scheduler", "", "1")
	first, second, nowhere := c.shimOf(&shims[0]), c.shimOf(&shims[1]), c.shimOf(nil)
	for _, shim := range []kubernetes.Interface{first, second, nowhere} {
		if err := c.bind(shim, "p", metav1.DryRunAll); err != nil {
			t.Fatalf("without the component: %v", err)
		}
	}

	c.apply(kustomized(t, "components/leader-binds"))
	denied := func(shim kubernetes.Interface) func() error {
		return func() error {
			// Forbidden; Invalid without a lease.
			err := c.bind(shim, "p", metav1.DryRunAll)
			if (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), "outboard-leader-binds") {
				return nil
			}
			return fmt.Errorf("want a denial by the policy: %v", err)
		}
	}
	allowed := func(shim kubernetes.Interface) func() error {
		return func() error { return c.bind(shim, "p", metav1.DryRunAll) }
	}
	// Without a lease there is no leader.
	c.eventually(denied(first))

	leases := c.client.CoordinationV1().Leases(namespace)
	holder := func(i int) *string {
		identity := shims[i].Name + "_7b1c"
		return &identity
	}
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "outboard-scheduler"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: holder(0)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.eventually(allowed(first))
	for _, shim := range []kubernetes.Interface{second, nowhere} {
		if err := denied(shim)(); err != nil {
			t.Error(err)
		}
	}

	// The API server sees the lease through its own watch, a moment late.
	var delays []time.Duration
	for i := range 40 {
		lease.Spec.HolderIdentity = holder(1 - i%2)
		if lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		leader, deposed := second, first
		if i%2 == 1 {
			leader, deposed = first, second
		}
		c.eventually(denied(deposed))
		delays = append(delays, time.Since(began))
		c.eventually(allowed(leader))
	}
	slices.Sort(delays)
	t.Logf("a deposed leader's binds are denied %v after the lease changed (median), at most %v", delays[len(delays)/2], delays[len(delays)-1])

	// A released lease has no holder.
	released := ""
	lease.Spec.HolderIdentity = &released
	if lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually(denied(first))
	c.eventually(denied(second))
	// Other schedulers are not concerned.
	if err := c.bind(c.client, "p", metav1.DryRunAll); err != nil {
		t.Errorf("a bind by another user: %v", err)
	}
	lease.Spec.HolderIdentity = holder(0)
	if _, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually(allowed(first))
	if err := c.bind(first, "p"); err != nil {
		t.Errorf("the leader: %v", err)
	}
	pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName != "n" {
		t.Errorf("bound to %q: %v", pod.Spec.NodeName, err)
	}
}
