package testcluster_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"outboard.dev/integration/bench/checker"
	"outboard.dev/integration/bench/load"
	controlplane "outboard.dev/integration/control_plane"
	testcluster "outboard.dev/integration/test_cluster"
)

var changesRate = flag.Int("changes.rate", 50, "TestChangesUnderLoad: pods created a second")

const (
	loadNamespace, gangNamespace = "load", "gangs"
	fakeNodes                    = 200
	gangs, gangSize              = 5, 4
)

// TestChangesUnderLoad changes everything that a platform team changes on a running installation, one thing after the
// other: the configuration (mistyped, and corrected), the certificates with their authority, the images of hosts and
// shims, and the leader's node, which is drained. Meanwhile pods come, and gangs wait for GPUs. No pod is lost, and the
// gangs start whole when GPUs come.
func TestChangesUnderLoad(t *testing.T) {
	c := testcluster.ForTest(t, testcluster.Options{Nodes: 2, Images: imageArchives(t), FakeNodes: fakeNodes})
	i := newInstallation(t, c, "ai-scheduler", "deployment/outboard-host", "deployment/outboard-shim")
	client := i.client
	i.createSecrets()
	i.kubectl("apply", "-f", filepath.Join(i.root, "deploy", "crds"))
	i.timed("kubectl apply -k, and all pods are ready", func() {
		i.kubectl("apply", "-k", filepath.Join(i.root, "deploy", "kustomize", "ai-scheduler-mtls"))
		i.rolledOut()
	})
	for _, name := range []string{loadNamespace, gangNamespace} {
		i.kubectl("create", "namespace", name)
		i.eventually("account of "+name, func(ctx context.Context) error {
			_, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
	}

	stream := load.Start(t.Context(), client, loadNamespace, *changesRate, func(name string) *corev1.Pod {
		pod := load.NewPod(name)
		pod.Spec.SchedulerName = i.scheduler
		testcluster.FakeNodesOnly(&pod.Spec)
		return pod
	})
	i.createGangs()
	changes := []struct {
		name string
		do   func()
	}{
		{"the configuration mistyped, corrected", i.mistypesItsConfiguration},
		{"another authority, other certificates", i.rotatesCertificates},
		{"all images", i.isUpgraded},
		{"the leader's node drained", i.drainsItsLeadersNode},
	}
	began := []time.Time{}
	for _, change := range changes {
		began = append(began, time.Now())
		t.Logf("change: %s", change.name)
		change.do()
	}
	if bound := i.boundOfGangs(t.Context()); len(bound) > 0 {
		t.Errorf("pods of gangs were bound without GPUs: %v", bound)
	}
	i.timed("gangs start when GPUs come", i.bringsGPUs)
	ended := time.Now()
	if err := stream.End(t.Context()); err != nil {
		t.Fatal(err)
	}

	for n, change := range changes {
		end := ended
		if n+1 < len(changes) {
			end = began[n+1]
		}
		took := []float64{}
		for _, pod := range stream.Latencies() {
			if !pod.Created.Before(began[n]) && pod.Created.Before(end) {
				took = append(took, pod.Took.Seconds())
			}
		}
		t.Logf("%s: %.0f s, %d pods; created to bound, s: p50 %.3f, p99 %.3f, most %.3f", change.name, end.Sub(began[n]).Seconds(),
			len(took), load.Quantile(took, 0.5), load.Quantile(took, 0.99), load.Quantile(took, 1))
	}
	// Events follow the binds. Each check reads all of etcd's history.
	var report *checker.Report
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Second) { // Poll interval.
		var err error
		if report, err = checker.Check(t.Context(), c.EtcdURL, client); err != nil {
			t.Fatal(err)
		}
		if report.Faults() == 0 || time.Now().After(end) {
			break
		}
	}
	t.Log(report)
	if report.Faults() > 0 {
		t.Errorf("%d faults in the history of binds", report.Faults())
	}
}

// createGangs creates Jobs whose pods each need all GPUs of a node.
func (i *installation) createGangs() {
	size := int32(gangSize)
	for n := range gangs {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("train-%d", n)}, Spec: batchv1.JobSpec{
			Parallelism: &size, Completions: &size,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"outboard/min-replicas": fmt.Sprint(size)}},
				Spec: corev1.PodSpec{SchedulerName: i.scheduler, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
					Name: "main", Image: testcluster.PauseImage,
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
				}}},
			},
		}}
		testcluster.FakeNodesOnly(&job.Spec.Template.Spec)
		if _, err := i.client.BatchV1().Jobs(gangNamespace).Create(i.Context(), job, metav1.CreateOptions{}); err != nil {
			i.Fatal(err)
		}
	}
}

func (i *installation) boundOfGangs(ctx context.Context) (bound []string) {
	i.Helper()
	pods, err := i.client.CoreV1().Pods(gangNamespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		i.Fatal(err)
	}
	for _, pod := range pods.Items {
		bound = append(bound, pod.Name)
	}
	return bound
}

// bringsGPUs adds as many nodes with GPUs as the gangs need, and waits until all their pods are bound.
func (i *installation) bringsGPUs() {
	i.Helper()
	for n := range gangs * gangSize {
		node := testcluster.NewFakeNode(fakeNodes + n)
		node.Status.Capacity["nvidia.com/gpu"] = resource.MustParse("8")
		if _, err := i.client.CoreV1().Nodes().Create(i.Context(), node, metav1.CreateOptions{}); err != nil {
			i.Fatal(err)
		}
	}
	i.eventually("gangs", func(ctx context.Context) error {
		if bound := i.boundOfGangs(ctx); len(bound) < gangs*gangSize {
			return fmt.Errorf("%d of %d pods of gangs are bound", len(bound), gangs*gangSize)
		}
		return nil
	})
}

// mistypesItsConfiguration writes a field that does not exist: both shims refuse the file and run on, until it is right.
func (i *installation) mistypesItsConfiguration() {
	i.Helper()
	configMaps := i.client.CoreV1().ConfigMaps(namespace)
	write := func(change func(string) string) {
		config, err := configMaps.Get(i.Context(), "outboard-config", metav1.GetOptions{})
		if err != nil {
			i.Fatal(err)
		}
		config.Data["config.yaml"] = change(config.Data["config.yaml"])
		if _, err := configMaps.Update(i.Context(), config, metav1.UpdateOptions{}); err != nil {
			i.Fatal(err)
		}
	}
	i.timed("a mistyped field is refused by both shims", func() {
		write(func(text string) string { return strings.Replace(text, "\nhosts:", "\nhots:", 1) })
		i.bothSay("ConfigurationRefused", "hots: unknown field; did you mean hosts?")
	})
	i.timed("and the corrected file is loaded", func() {
		write(func(text string) string { return strings.Replace(text, "\nhots:", "\nhosts:", 1) })
		i.bothSay("ConfigurationLoaded", "loaded ")
	})
}

// bothSay waits until both shims' pods have an event with this reason and text.
func (i *installation) bothSay(reason, text string) {
	i.Helper()
	i.eventually("events "+reason, func(ctx context.Context) error {
		events, err := i.client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return err
		}
		pods := map[string]bool{}
		for _, event := range events.Items {
			if strings.Contains(event.Note, text) {
				pods[event.ReportingInstance] = true
			}
		}
		if len(pods) < 2 {
			return fmt.Errorf("events of %d instances: %v", len(pods), events.Items)
		}
		return nil
	})
}

// rotatesCertificates replaces the authority and all certificates as docs/operations/certificates.md says. What is
// started afterwards, and its peers, need the new ones.
func (i *installation) rotatesCertificates() {
	i.Helper()
	secrets := i.client.CoreV1().Secrets(namespace)
	components := []string{"host", "shim"}
	old, next := map[string]map[string][]byte{}, map[string]map[string][]byte{}
	folders := map[string]string{"host": i.TempDir(), "shim": i.TempDir()}
	if err := controlplane.WriteHostSecrets(folders["host"], folders["shim"], hostName); err != nil {
		i.Fatal(err)
	}
	for _, component := range components {
		secret, err := secrets.Get(i.Context(), "outboard-"+component+"-tls", metav1.GetOptions{})
		if err != nil {
			i.Fatal(err)
		}
		old[component], next[component] = secret.Data, map[string][]byte{}
		for name := range secret.Data {
			if next[component][name], err = os.ReadFile(filepath.Join(folders[component], name)); err != nil {
				i.Fatal(err)
			}
		}
	}
	step := func(what string, data func(component string) map[string][]byte) {
		i.timed(what, func() {
			for _, component := range components {
				secret, err := secrets.Get(i.Context(), "outboard-"+component+"-tls", metav1.GetOptions{})
				if err != nil {
					i.Fatal(err)
				}
				secret.Data = data(component)
				if _, err := secrets.Update(i.Context(), secret, metav1.UpdateOptions{}); err != nil {
					i.Fatal(err)
				}
			}
			for _, component := range components {
				i.mounts(component, data(component))
			}
		})
	}
	with := func(files map[string][]byte, authorities ...[]byte) map[string][]byte {
		files = maps.Clone(files)
		files["ca.crt"] = nil
		for _, authority := range authorities {
			files["ca.crt"] = append(files["ca.crt"], authority...)
		}
		return files
	}
	step("both authorities", func(c string) map[string][]byte { return with(old[c], old[c]["ca.crt"], next[c]["ca.crt"]) })
	step("the new certificates", func(c string) map[string][]byte { return with(next[c], old[c]["ca.crt"], next[c]["ca.crt"]) })
	step("without the former authority", func(c string) map[string][]byte { return next[c] })
	i.timed("new hosts, with new connections", func() {
		i.kubectl("rollout", "restart", "deployment/outboard-host", "--namespace", namespace)
		i.rolledOut()
	})
}

// mounts waits until all pods of the component have these files.
func (i *installation) mounts(component string, files map[string][]byte) {
	i.Helper()
	i.eventually("files of "+component, func(ctx context.Context) error {
		pods, err := i.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, node := range i.cluster.Nodes {
				if node.Name != pod.Spec.NodeName {
					continue
				}
				for name, want := range files {
					got, err := node.Command(ctx, "cat", "/var/lib/kubelet/pods/"+string(pod.UID)+"/volumes/kubernetes.io~secret/tls/"+name).Output()
					if err != nil || string(got) != string(want) {
						return fmt.Errorf("%s of %s is not up to date (%v)", name, pod.Name, err)
					}
				}
			}
		}
		return nil
	})
}
