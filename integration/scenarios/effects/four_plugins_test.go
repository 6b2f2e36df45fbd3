// Package effects_test tests plugins that write to the Kubernetes API and read from it, on a real API server. See README.md.
package effects_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
)

const (
	namespace = "default"
	scheduler = "four-plugins"
	binder    = "binder" // The service account of BindItself.
	rackKey   = "example.com/rack"
	// Keys of Kubernetes, of which the shim's configuration allows one.
	forbiddenKey = "topology.kubernetes.io/rack"
	allowedKey   = "test.k8s.io/rack"
	patience     = 40 * time.Second
	pause        = 20 * time.Millisecond // poll interval

	// Who has the roles of access.yaml.
	bindings = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: four-plugins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: four-plugins}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + controlplane.OutboardUser + `}]
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ` + binder + `}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: binder}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: binder}
subjects: [{kind: ServiceAccount, name: ` + binder + `, namespace: ` + namespace + `}]
`
	cluster = `
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {rack: r7}},
status: {capacity: &n {cpu: "8", memory: 8Gi, pods: "110"}, allocatable: *n}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: blocklist}, data: {nodes: "n0,n1"}}
`
)

// configuration returns both documents of configuration.yaml, with the arguments of BindItself outside of a cluster, and
// with a profile for each of two keys of Kubernetes.
func configuration(server, caFile, tokenFile string) (scheduler, shim string, err error) {
	text, err := os.ReadFile("configuration.yaml")
	if err != nil {
		return "", "", err
	}
	scheduler, shim, found := strings.Cut(string(text), "---\n")
	if !found {
		return "", "", errors.New("configuration.yaml has only one document")
	}
	scheduler += fmt.Sprintf(`
  pluginConfig:
  - {name: BindItself, args: {server: %q, caFile: %q, tokenFile: %q}}
`, server, caFile, tokenFile)
	for _, profile := range [][2]string{{"forbidden-key", forbiddenKey}, {"allowed-key", allowedKey}} {
		scheduler += fmt.Sprintf(`
- schedulerName: %s
  plugins: {multiPoint: {enabled: [{name: AnnotateRack}]}}
  pluginConfig: [{name: AnnotateRack, args: {key: %s}}]
`, profile[0], profile[1])
	}
	return "podMaxBackoffSeconds: 1\n" + scheduler, shim + "allowedPodKeys: [" + allowedKey + "]\n", nil
}

// story is a control plane with a shim and two hosts: the built-in plugins, and the four in Python.
type story struct {
	*testing.T
	*controlplane.ControlPlane
	client   kubernetes.Interface
	hosts    []map[string]any
	outboard *controlplane.Outboard
}

func TestFourPluginsInPython(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	t.Run("OnePod", func(t *testing.T) { onePod(s.with(t)) })
	t.Run("AKeyOfKubernetes", func(t *testing.T) { aKeyOfKubernetes(s.with(t)) })
	t.Run("AnAllowedKeyOfKubernetes", func(t *testing.T) { anAllowedKeyOfKubernetes(s.with(t)) })
	t.Run("AResourceThatIsNotAllowed", func(t *testing.T) { aResourceThatIsNotAllowed(s.with(t)) })
}

func newStory(t *testing.T) *story {
	t.Helper()
	directory, err := controlplane.OutboardDirectory()
	if err != nil {
		t.Fatal(err)
	}
	s := &story{T: t, ControlPlane: controlplane.ForTest(t, controlplane.Options{Audit: true})}
	s.client, err = s.Client()
	s.check(err)
	access, err := os.ReadFile("access.yaml")
	s.check(err)
	for _, manifest := range []string{string(access), bindings, cluster} {
		s.check(s.Apply(s.Context(), manifest))
	}
	repository, err := controlplane.Repository()
	s.check(err)
	python, err := exec.Command(filepath.Join(repository, "sdk/python/environment.sh")).Output()
	s.check(err)
	s.startHost("builtin", filepath.Join(directory, "outboard-host"))
	// The API server is not behind a proxy.
	s.startHost("python", "env", "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*", "PYTHONPATH="+filepath.Join(repository, "sdk/python"),
		strings.TrimSpace(string(python)), filepath.Join(repository, "integration/scenarios/effects/four_plugins.py"))
	token, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(s.Context(), binder, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	s.check(err)
	caFile, tokenFile := filepath.Join(s.Dir, "binder-ca.crt"), filepath.Join(s.Dir, "binder-token")
	authority, _ := s.ServingAuthorities()
	s.check(errors.Join(os.WriteFile(caFile, authority, 0o600), os.WriteFile(tokenFile, []byte(token.Status.Token), 0o600)))
	profiles, shim, err := configuration(s.URL, caFile, tokenFile)
	s.check(err)
	s.outboard, err = s.StartOutboard(s.Context(), controlplane.OutboardOptions{
		Config: controlplane.SchedulerConfig{Text: profiles}, Shim: shim, Hosts: s.hosts,
	})
	s.check(err)
	return s
}

// with is the story for a subtest.
func (s *story) with(t *testing.T) *story {
	copied := *s
	copied.T = t
	return &copied
}

func (s *story) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *story) startHost(name, program string, args ...string) {
	s.Helper()
	address := "unix:" + filepath.Join(s.Dir, name+".sock")
	_, err := s.StartProcess("host-"+name, program, append(args, "--listen", address)...)
	s.check(err)
	s.hosts = append(s.hosts, map[string]any{"name": name, "address": address})
}

// await polls until look finds no fault, and fails with the last one. It returns how long that took.
func (s *story) await(what string, look func() (fault string)) time.Duration {
	s.Helper()
	fault := ""
	for began := time.Now(); time.Since(began) < patience; time.Sleep(pause) {
		if fault = look(); fault == "" {
			return time.Since(began)
		}
	}
	s.Fatalf("%s: %s\nend of the shim's log:\n%s", what, fault, s.outboard.Shim.LogTail())
	return 0
}

func (s *story) create(name, schedulerName string) *corev1.Pod {
	s.Helper()
	pod, err := s.client.CoreV1().Pods(namespace).Create(s.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{SchedulerName: schedulerName, Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}}},
	}, metav1.CreateOptions{})
	s.check(err)
	return pod
}

func (s *story) pod(name string) *corev1.Pod {
	s.Helper()
	pod, err := s.client.CoreV1().Pods(namespace).Get(s.Context(), name, metav1.GetOptions{})
	s.check(err)
	return pod
}

func (s *story) awaitBound(name string) time.Duration {
	s.Helper()
	return s.await(name+" is to be bound", func() string {
		if pod := s.pod(name); pod.Spec.NodeName == "" {
			return fmt.Sprintf("it is not: %v", pod.Status.Conditions)
		}
		return ""
	})
}

// awaitMessage waits until the pod's condition PodScheduled contains a text.
func (s *story) awaitMessage(name, part string) {
	s.Helper()
	s.await(name+" is to wait", func() string {
		pod := s.pod(name)
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, part) {
				return ""
			}
		}
		return fmt.Sprintf("no condition contains %q: %v, node %q", part, pod.Status.Conditions, pod.Spec.NodeName)
	})
}

// asBound returns the pod as it was when the API server set its node.
func (s *story) asBound(created *corev1.Pod) *corev1.Pod {
	s.Helper()
	watch, err := s.client.CoreV1().Pods(namespace).Watch(s.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + created.Name, ResourceVersion: created.ResourceVersion,
	})
	s.check(err)
	defer watch.Stop()
	for timeout := time.After(patience); ; {
		select {
		case event := <-watch.ResultChan():
			if pod, isPod := event.Object.(*corev1.Pod); isPod && pod.Spec.NodeName != "" {
				return pod
			}
		case <-timeout:
			s.Fatalf("the watch shows no bound %s", created.Name)
		}
	}
}

// binds returns the users that sent a Binding of the pod, whether the API server accepted it or not.
func (s *story) binds(name string) (users []string) {
	s.Helper()
	follower, err := s.FollowAudit()
	s.check(err)
	defer follower.Close()
	all, err := follower.Next()
	s.check(err)
	for _, event := range all {
		of := event.ObjectRef
		if of != nil && of.Resource == "pods" && of.Subresource == "binding" && of.Name == name {
			users = append(users, event.User.Username)
		}
	}
	return users
}

// eventOf waits for the event with this reason about the pod.
func (s *story) eventOf(pod, reason string) (found eventsv1.Event) {
	s.Helper()
	s.await(fmt.Sprintf("event %s of %s", reason, pod), func() string {
		events, err := s.client.EventsV1().Events(namespace).List(s.Context(), metav1.ListOptions{})
		s.check(err)
		for _, event := range events.Items {
			if event.Regarding.Name == pod && event.Reason == reason {
				found = event
				return ""
			}
		}
		return fmt.Sprintf("none among %d events", len(events.Items))
	})
	return found
}

// onePod meets all four plugins: it waits for the ConfigMap, is annotated before it has a node, is bound by the plugin
// and gets the plugin's event.
func onePod(s *story) {
	created := s.create("one", scheduler)
	s.awaitMessage("one", "1 node(s) were in the ConfigMap blocklist")
	blocklist, err := s.client.CoreV1().ConfigMaps(namespace).Get(s.Context(), "blocklist", metav1.GetOptions{})
	s.check(err)
	blocklist.Data["nodes"] = "n0"
	_, err = s.client.CoreV1().ConfigMaps(namespace).Update(s.Context(), blocklist, metav1.UpdateOptions{})
	s.check(err)
	s.Logf("bound %.2f s after the ConfigMap was changed", s.awaitBound("one").Seconds())

	if rack := s.asBound(created).Annotations[rackKey]; rack != "r7" {
		s.Errorf("when the pod got its node, annotation %s was %q", rackKey, rack)
	}
	want := "system:serviceaccount:" + namespace + ":" + binder
	s.await("the Binding is in the audit log", func() string {
		if users := s.binds("one"); len(users) != 1 || users[0] != want {
			return fmt.Sprintf("bound by %q, not by %s", users, want)
		}
		return ""
	})
	event := s.eventOf("one", "Reserved")
	if event.ReportingController != scheduler || event.Annotations["outboard.dev/plugin"] != "RecordPlacement" {
		s.Errorf("the event's reporter is %q, its plugin %q", event.ReportingController, event.Annotations["outboard.dev/plugin"])
	}
	if event.Note != "Node n1 in rack r7 is reserved for the pod" || event.Regarding.UID != created.UID {
		s.Errorf("the event is %q about %s, not %s", event.Note, event.Regarding.UID, created.UID)
	}
}

// A plugin may not write an annotation of Kubernetes: the pod is not bound, and its message names the key.
func aKeyOfKubernetes(s *story) {
	s.create("forbidden", "forbidden-key")
	s.awaitMessage("forbidden", "key "+forbiddenKey+" belongs to Kubernetes, and allowedPodKeys in the configuration of the shim do not name it")
	if pod := s.pod("forbidden"); pod.Spec.NodeName != "" || len(pod.Annotations) > 0 {
		s.Errorf("node %q, annotations %v", pod.Spec.NodeName, pod.Annotations)
	}
	// It would be tried again, and the shim does not call a host for a while that answers wrongly several times.
	s.check(s.client.CoreV1().Pods(namespace).Delete(s.Context(), "forbidden", metav1.DeleteOptions{}))
}

// allowedPodKeys allows one; the shim binds this pod.
func anAllowedKeyOfKubernetes(s *story) {
	created := s.create("allowed", "allowed-key")
	s.awaitBound("allowed")
	if rack := s.asBound(created).Annotations[allowedKey]; rack != "r7" {
		s.Errorf("when the pod got its node, annotation %s was %q", allowedKey, rack)
	}
	s.await("the Binding is in the audit log", func() string {
		if users := s.binds("allowed"); len(users) != 1 || users[0] != controlplane.OutboardUser {
			return fmt.Sprintf("bound by %q", users)
		}
		return ""
	})
}

// Without customResources a shim refuses the plugin that reads ConfigMaps, and says what to add.
func aResourceThatIsNotAllowed(s *story) {
	refused, err := s.StartOutboard(s.Context(), controlplane.OutboardOptions{
		Name: "-refused", Hosts: s.hosts,
		Config: controlplane.SchedulerConfig{Text: "profiles: [{schedulerName: refused, plugins: {multiPoint: {enabled: [{name: Blocklist}]}}}]"},
	})
	if err == nil {
		s.Fatal("the shim is ready")
	}
	const says = `profile "refused": plugin Blocklist needs a custom resource that customResources does not allow; add to it: {resource: configmaps.v1, verbs: []}`
	if log := refused.Shim.LogTail(); !strings.Contains(log, says) {
		s.Errorf("missing in the log: %s\n%s", says, log)
	}
}
