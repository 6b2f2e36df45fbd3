package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	controlplane "outboard.dev/integration/control_plane"
)

// Where pods of hosts and shims have their certificates.
const mounted = "/etc/outboard-tls"

// networkHosts stands for the kubelets of the pods of the Deployment outboard-host: each container's program runs as a
// process with the container's arguments over TCP with mutual TLS, at an address of its own of this machine's loopback.
// The pods get the addresses and the readiness that a kubelet would report.
type networkHosts struct {
	*cluster
	secret string // the folder that is mounted
	// The program of an image, and arguments before the container's.
	programs map[string][]string

	mutex sync.Mutex
	pods  map[types.UID]*networkHost
}

type networkHost struct {
	ip        string
	processes []*controlplane.Process
	stopping  bool
}

// startNetworkHosts runs the pods of hosts from now on, and lets the shim's configuration name files of this machine.
func (c *cluster) startNetworkHosts(bin string, shim map[string]any) *networkHosts {
	c.Helper()
	claims, err := controlplane.ClaimsHostProgram()
	if err != nil {
		c.Fatal(err)
	}
	n := &networkHosts{cluster: c, secret: filepath.Join(c.Dir, "tls-host"), pods: map[types.UID]*networkHost{},
		programs: map[string][]string{"outboard-host": {filepath.Join(bin, "outboard-host")}, "outboard-claims-host": {claims}}}
	files := filepath.Join(c.Dir, "tls-shim")
	for _, folder := range []string{n.secret, files} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			c.Fatal(err)
		}
	}
	for i, of := range shim["hosts"].([]any) {
		tls := of.(map[string]any)["tls"].(map[string]any)
		if i == 0 {
			if err := c.mountSecrets(n.secret, files, tls["serverName"].(string)); err != nil {
				c.Fatal(err)
			}
		}
		for key, file := range tls {
			tls[key] = strings.Replace(file.(string), mounted, files, 1)
		}
	}
	watch, err := c.client.CoreV1().Pods(namespace).Watch(c.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=host", ResourceVersion: "0"})
	if err != nil {
		c.Fatal(err)
	}
	ended := make(chan struct{})
	c.Cleanup(func() { watch.Stop(); <-ended })
	go func() {
		defer close(ended)
		for event := range watch.ResultChan() {
			if pod, is := event.Object.(*corev1.Pod); is {
				n.see(pod)
			}
		}
	}()
	return n
}

func (n *networkHosts) see(pod *corev1.Pod) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	host := n.pods[pod.UID]
	switch {
	case host == nil && pod.DeletionTimestamp == nil:
		host = &networkHost{ip: fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))}
		n.pods[pod.UID] = host
		go n.start(pod, host)
	case host != nil && pod.DeletionTimestamp != nil && !host.stopping:
		host.stopping = true
		go n.stop(pod, host)
	case host != nil && !host.stopping && pod.Status.PodIP != "":
		n.report(pod)
	}
}

// start runs the containers, and reports their address once they listen.
func (n *networkHosts) start(pod *corev1.Pod, host *networkHost) {
	for _, container := range pod.Spec.Containers {
		image, _, _ := strings.Cut(filepath.Base(container.Image), "@")
		program, known := n.program(image)
		if !known {
			n.Errorf("pod %s: no program for image %s", pod.Name, container.Image)
			return
		}
		arguments := append([]string(nil), program[1:]...)
		address := ""
		for _, argument := range container.Args {
			name, value, _ := strings.Cut(argument, "=")
			switch {
			case name == "--listen":
				address = host.ip + value[strings.LastIndex(value, ":"):]
				value = address
			case strings.HasPrefix(value, mounted+"/"):
				value = n.secret + strings.TrimPrefix(value, mounted)
			}
			arguments = append(arguments, name+"="+value)
		}
		go n.run(pod.Name+"-"+container.Name, program[0], arguments, host)
		for { // The readiness probe of its container.
			connection, err := net.DialTimeout("tcp", address, time.Second)
			if err == nil {
				connection.Close()
				break
			}
			select {
			case <-n.Context().Done():
				return
			case <-time.After(20 * time.Millisecond): // Poll interval.
			}
		}
	}
	n.patch(pod, corev1.PodStatus{Phase: corev1.PodRunning, PodIP: host.ip, PodIPs: []corev1.PodIP{{IP: host.ip}}, StartTime: &metav1.Time{Time: time.Now()}})
}

// addPrograms lets pods with these images, NAME:TAG, run.
func (n *networkHosts) addPrograms(programs map[string][]string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	maps.Copy(n.programs, programs)
}

// program is that of an image NAME:TAG, or of NAME.
func (n *networkHosts) program(image string) ([]string, bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if program, known := n.programs[image]; known {
		return program, true
	}
	name, _, _ := strings.Cut(image, ":")
	program, known := n.programs[name]
	return program, known
}

// run restarts the program until its pod ends, as a kubelet does.
func (n *networkHosts) run(name, program string, arguments []string, host *networkHost) {
	for {
		n.mutex.Lock()
		if host.stopping || n.Context().Err() != nil {
			n.mutex.Unlock()
			return
		}
		process, err := n.StartProcess(name, program, arguments...)
		if err == nil {
			host.processes = append(host.processes, process)
		}
		n.mutex.Unlock()
		if err != nil {
			n.Error(err)
			return
		}
		select {
		case <-process.Exited():
		case <-n.Context().Done():
			return
		}
		select {
		case <-n.Context().Done():
			return
		case <-time.After(time.Second): // A kubelet's first pause is longer.
		}
	}
}

// restart ends the processes of all hosts, which start again, and returns when they have ended.
func (n *networkHosts) restart() {
	n.mutex.Lock()
	var running []*controlplane.Process
	for _, host := range n.pods {
		for _, process := range host.processes {
			if !process.HasEnded() {
				running = append(running, process)
			}
		}
	}
	n.mutex.Unlock()
	for _, process := range running {
		process.Kill()
	}
}

func (n *networkHosts) stop(pod *corev1.Pod, host *networkHost) {
	n.mutex.Lock()
	processes := append([]*controlplane.Process(nil), host.processes...)
	n.mutex.Unlock()
	for _, process := range processes {
		process.Stop(time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second)
	}
	now := int64(0)
	err := n.client.CoreV1().Pods(pod.Namespace).Delete(n.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && n.Context().Err() == nil && !apierrors.IsNotFound(err) {
		n.Error(err)
	}
}

// report writes the condition Ready: containers that run, and the readiness gates.
func (n *networkHosts) report(pod *corev1.Pod) {
	ready := corev1.ConditionTrue
	for _, gate := range pod.Spec.ReadinessGates {
		if conditionOf(pod, gate.ConditionType) != corev1.ConditionTrue {
			ready = corev1.ConditionFalse
		}
	}
	if conditionOf(pod, corev1.PodReady) != ready {
		now := metav1.Now()
		n.patch(pod, corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: corev1.PodReady, Status: ready, LastTransitionTime: now}}})
	}
}

func (n *networkHosts) patch(pod *corev1.Pod, status corev1.PodStatus) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err == nil {
		_, err = n.client.CoreV1().Pods(pod.Namespace).Patch(n.Context(), pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	}
	if err != nil && n.Context().Err() == nil && !apierrors.IsNotFound(err) {
		n.Error(err)
	}
}

func conditionOf(pod *corev1.Pod, of corev1.PodConditionType) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == of {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}

// awaitHosts waits until all pods of the Deployment outboard-host listen.
func (n *networkHosts) awaitHosts(all []*unstructured.Unstructured) {
	n.Helper()
	want, _, err := unstructured.NestedFloat64(find(n.T, all, "Deployment", "outboard-host").Object, "spec", "replicas") // YAML numbers are float64.
	if err != nil {
		n.Fatal(err)
	}
	n.eventually(func() error {
		pods, err := n.client.CoreV1().Pods(namespace).List(n.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=host"})
		if err != nil {
			return err
		}
		with := 0
		for _, pod := range pods.Items {
			if pod.Status.PodIP != "" {
				with++
			}
		}
		if with != int(want) {
			return fmt.Errorf("%d of %v pods of hosts run", with, want)
		}
		return nil
	})
}
