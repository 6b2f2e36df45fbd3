package images_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	controlplane "outboard.dev/integration/control_plane"
	"outboard.dev/integration/deploy"
)

const (
	shippedNamespace = "outboard-system"
	shippedAddress   = `address: "0.0.0.0:10270"`
	// Of hosts.
	shippedMetrics, shippedClaimsMetrics = "127.0.0.1:10273", "127.0.0.1:10274"
)

// kubelet runs one of the pods of deploy/kustomize/sidecar with Docker, as its specification says. It rejects unknown
// settings. All pods share the machine's address, so each has its own ports.
type kubelet struct {
	*testing.T
	client     kubernetes.Interface
	spec       *corev1.PodSpec
	api        *url.URL
	mounts     map[string]string // by volume: the options of --mount, without the target
	containers map[string]*container
	port       int               // of the shim's pages
	metrics    map[string]string // by shipped address of a host's metrics: the one used here
}

// applyShipped applies deploy/kustomize/sidecar and returns the pods of its Deployment, as the API server stores
// them.
func applyShipped(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface) *appsv1.Deployment {
	t.Helper()
	manifests, err := deploy.Kustomized("sidecar")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	// kube-controller-manager would add it to each namespace.
	authority, err := os.ReadFile(filepath.Join(c.Dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(shippedNamespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(authority)},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deployment, err := client.AppsV1().Deployments(shippedNamespace).Get(t.Context(), "outboard-shim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return deployment
}

// newKubelet creates the kubelet of a pod of the Deployment with these images, by container.
func newKubelet(t *testing.T, c *controlplane.ControlPlane, client kubernetes.Interface, deployment *appsv1.Deployment, images map[string]string) *kubelet {
	t.Helper()
	api, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	spec := deployment.Spec.Template.Spec.DeepCopy()
	k := &kubelet{T: t, client: client, spec: spec, api: api, mounts: map[string]string{}, containers: map[string]*container{}, port: freePort(t),
		metrics: map[string]string{}}
	for _, shipped := range []string{shippedMetrics, shippedClaimsMetrics} {
		k.metrics[shipped] = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	}
	for i := range spec.Containers {
		container := &spec.Containers[i]
		if container.Image = images[container.Name]; container.Image == "" {
			t.Fatalf("unknown container %s", container.Name)
		}
		for j := range container.Ports {
			container.Ports[j].ContainerPort = int32(k.port)
		}
		for j, arg := range container.Args {
			container.Args[j] = k.withOwnMetrics(arg)
		}
	}
	for _, volume := range spec.Volumes {
		k.mounts[volume.Name] = k.volume(volume)
	}
	return k
}

// withOwnMetrics replaces the shipped addresses of metrics by the pod's own.
func (k *kubelet) withOwnMetrics(text string) string {
	for shipped, own := range k.metrics {
		text = strings.ReplaceAll(text, shipped, own)
	}
	return text
}

// volume creates a volume and returns its options for --mount.
func (k *kubelet) volume(volume corev1.Volume) string {
	k.Helper()
	switch {
	case volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory:
		// World-writable, with the pod's group, like a real emptyDir.
		options := fmt.Sprintf("mode=2777,gid=%d,size=%d", *k.spec.SecurityContext.FSGroup, volume.EmptyDir.SizeLimit.Value())
		return "type=volume,volume-nocopy,source=" + socketVolume(k.T, options)
	case volume.ConfigMap != nil:
		files := k.configMap(volume.ConfigMap.Name)
		if strings.Count(files["config.yaml"], shippedAddress) != 1 {
			k.Fatalf("the shipped configuration does not have %s:\n%s", shippedAddress, files["config.yaml"])
		}
		files["config.yaml"] = strings.Replace(files["config.yaml"], shippedAddress, fmt.Sprintf(`address: "127.0.0.1:%d"`, k.port), 1)
		files["config.yaml"] = k.withOwnMetrics(files["config.yaml"])
		return "type=bind,source=" + k.folder(files)
	case volume.Projected != nil:
		files := map[string]string{}
		for _, source := range volume.Projected.Sources {
			switch {
			case source.ServiceAccountToken != nil:
				token, err := k.client.CoreV1().ServiceAccounts(shippedNamespace).CreateToken(k.Context(), k.spec.ServiceAccountName, &authenticationv1.TokenRequest{
					Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: source.ServiceAccountToken.ExpirationSeconds},
				}, metav1.CreateOptions{})
				if err != nil {
					k.Fatal(err)
				}
				files[source.ServiceAccountToken.Path] = token.Status.Token
			case source.ConfigMap != nil:
				data := k.configMap(source.ConfigMap.Name)
				for _, item := range source.ConfigMap.Items {
					files[item.Path] = data[item.Key]
				}
			case source.DownwardAPI != nil:
				for _, item := range source.DownwardAPI.Items {
					files[item.Path] = k.field(item.FieldRef.FieldPath)
				}
			}
		}
		return "type=bind,source=" + k.folder(files)
	}
	k.Fatalf("unsupported volume %s: %+v", volume.Name, volume.VolumeSource)
	return ""
}

func (k *kubelet) configMap(name string) map[string]string {
	k.Helper()
	object, err := k.client.CoreV1().ConfigMaps(shippedNamespace).Get(k.Context(), name, metav1.GetOptions{})
	if err != nil {
		k.Fatal(err)
	}
	return object.Data
}

// folder contains the files, readable by all users that reach it through a mount.
func (k *kubelet) folder(files map[string]string) string {
	k.Helper()
	folder := k.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			k.Fatal(err)
		}
	}
	return folder
}

func (k *kubelet) valueOf(variable corev1.EnvVar) string {
	k.Helper()
	if variable.ValueFrom == nil {
		return variable.Value
	}
	if variable.ValueFrom.FieldRef == nil {
		k.Fatalf("unsupported variable %s: %+v", variable.Name, variable.ValueFrom)
	}
	return k.field(variable.ValueFrom.FieldRef.FieldPath)
}

// field returns a field of the pod.
func (k *kubelet) field(path string) string {
	k.Helper()
	switch path {
	case "metadata.name":
		return "outboard-shim-0"
	case "metadata.namespace":
		return shippedNamespace
	}
	k.Fatalf("unsupported field %s", path)
	return ""
}

// start runs the containers, in order, and waits until the pod is ready.
func (k *kubelet) start() {
	k.Helper()
	for i := range k.spec.Containers {
		spec := &k.spec.Containers[i]
		flags := []string{"--network=host", "--pull=never",
			"--env=KUBERNETES_SERVICE_HOST=" + k.api.Hostname(), "--env=KUBERNETES_SERVICE_PORT=" + k.api.Port()}
		flags = append(flags, k.securityFlags(spec.SecurityContext)...)
		if memory, limited := spec.Resources.Limits[corev1.ResourceMemory]; limited {
			flags = append(flags, "--memory="+strconv.FormatInt(memory.Value(), 10))
		}
		for _, mount := range spec.VolumeMounts {
			flag := "--mount=" + k.mounts[mount.Name] + ",target=" + mount.MountPath
			if mount.ReadOnly {
				flag += ",readonly"
			}
			flags = append(flags, flag)
		}
		for _, variable := range spec.Env {
			flags = append(flags, "--env="+variable.Name+"="+k.valueOf(variable))
		}
		if len(spec.Command) > 0 {
			k.Fatalf("container %s has a command, which is not supported", spec.Name)
		}
		k.containers[spec.Name] = runContainer(k.T, spec.Name, spec.Image, flags, spec.Args...)
	}
	for i := range k.spec.Containers {
		spec := &k.spec.Containers[i]
		for _, probe := range []*corev1.Probe{spec.StartupProbe, spec.ReadinessProbe} {
			if probe != nil {
				k.passes(spec, probe)
			}
		}
	}
}

func (k *kubelet) securityFlags(own *corev1.SecurityContext) (flags []string) {
	of := k.spec.SecurityContext
	flags = append(flags, fmt.Sprintf("--user=%d:%d", *of.RunAsUser, *of.RunAsGroup), fmt.Sprintf("--group-add=%d", *of.FSGroup))
	for _, capability := range own.Capabilities.Drop {
		flags = append(flags, "--cap-drop="+string(capability))
	}
	if *own.ReadOnlyRootFilesystem {
		flags = append(flags, "--read-only")
	}
	if !*own.AllowPrivilegeEscalation {
		flags = append(flags, "--security-opt=no-new-privileges")
	}
	return flags
}

// passes waits until the probe succeeds, for as long as it may fail.
func (k *kubelet) passes(spec *corev1.Container, probe *corev1.Probe) {
	k.Helper()
	end := time.Now().Add(time.Duration(probe.PeriodSeconds*probe.FailureThreshold) * time.Second)
	for {
		err := k.probe(spec, probe)
		if err == nil {
			return
		}
		if time.Now().After(end) || !k.containers[spec.Name].state().Running {
			k.Fatalf("probe of %s failed: %v", spec.Name, err)
		}
		time.Sleep(50 * time.Millisecond) // Poll interval.
	}
}

func (k *kubelet) probe(spec *corev1.Container, probe *corev1.Probe) error {
	if probe.Exec != nil {
		_, err := tryDocker(k.Context(), append([]string{"exec", k.containers[spec.Name].id}, probe.Exec.Command...)...)
		return err
	}
	get := probe.HTTPGet
	port := get.Port.IntVal
	if i := slices.IndexFunc(spec.Ports, func(p corev1.ContainerPort) bool { return p.Name == get.Port.StrVal }); i >= 0 {
		port = spec.Ports[i].ContainerPort
	}
	address := fmt.Sprintf("%s://%s%s", strings.ToLower(string(get.Scheme)), net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), get.Path)
	// A kubelet verifies no certificate either.
	client := &http.Client{Timeout: time.Duration(probe.TimeoutSeconds) * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return nil
}

// freePort returns an unused port of the machine.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// stop ends all containers at once, each after its preStop hook. They must exit by themselves without an error.
func (k *kubelet) stop() {
	k.Helper()
	ended := make(chan string)
	for i := range k.spec.Containers {
		spec := &k.spec.Containers[i]
		go func() {
			defer func() { ended <- spec.Name }()
			if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil {
				time.Sleep(time.Duration(spec.Lifecycle.PreStop.Sleep.Seconds) * time.Second) // The hook itself.
			}
			_, err := tryDocker(k.Context(), "stop", fmt.Sprintf("--time=%d", *k.spec.TerminationGracePeriodSeconds), k.containers[spec.Name].id)
			if err != nil {
				k.Error(err)
			}
		}()
	}
	for range k.spec.Containers {
		name := <-ended
		if state := k.containers[name].state(); state.Running || state.OOMKilled || state.ExitCode != 0 {
			k.Errorf("%s ended after SIGTERM with %+v", name, state)
		}
	}
}
