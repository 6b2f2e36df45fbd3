package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	"google.golang.org/grpc"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// writeSys writes what the updater reads of /sys: zones with their CPUs, memory, huge pages and distances.
func (m machine) writeSys(t *testing.T, root string) {
	t.Helper()
	write := func(file, text string) {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const blocks = "devices/system/memory/block_size_bytes"
	write(blocks, "8000000")
	for i, zone := range m.zones {
		name := fmt.Sprintf("node%d", i)
		node := "devices/system/node/" + name
		for k, cpu := range m.cpus(i) {
			write(fmt.Sprintf("%s/cpu%d/topology/core_id", node, cpu), fmt.Sprint(k%zone.cores))
		}
		write(node+"/distance", strings.Trim(fmt.Sprint(m.distances[i]), "[]"))
		write(node+"/meminfo", fmt.Sprintf("Node %d MemTotal:       %d kB", i, zone.memory/1024))
		write(node+"/hugepages/hugepages-1048576kB/nr_hugepages", fmt.Sprint(zone.hugePages))
		write(node+"/hugepages/hugepages-2048kB/nr_hugepages", "0")
		link := filepath.Join(root, "bus/node/devices", name)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../../../"+node, link); err != nil {
			t.Fatal(err)
		}
	}
}

// kubeletConfiguration is the file of a kubelet with the machine's policies.
func (m machine) kubeletConfiguration() string {
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for field, value := range map[string]string{"topologyManagerPolicy": m.policy, "topologyManagerScope": m.scope} {
		if value != "" {
			text += field + ": " + value + "\n"
		}
	}
	return text
}

// kubelet serves the PodResources API.
type kubelet struct {
	podresourcesv1.UnimplementedPodResourcesListerServer
	machine machine
}

func (k kubelet) List(context.Context, *podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	return k.machine.given(), nil
}

func (k kubelet) GetAllocatableResources(context.Context, *podresourcesv1.AllocatableResourcesRequest) (*podresourcesv1.AllocatableResourcesResponse, error) {
	return k.machine.allocatable(), nil
}

func (m machine) serveKubelet(t *testing.T, socket string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresourcesv1.RegisterPodResourcesListerServer(server, kubelet{machine: m})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

// apiServer has the machine's pods, and keeps the object that the updater creates.
type apiServer struct {
	machine machine
	mutex   sync.Mutex
	created []v1alpha2.NodeResourceTopology
}

const topologies = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"

func (a *apiServer) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	answer := func(status int, object any) {
		response.Header().Set("Content-Type", "application/json")
		response.WriteHeader(status)
		_ = json.NewEncoder(response).Encode(object)
	}
	if request.Method == http.MethodPost && request.URL.Path == topologies {
		text, err := io.ReadAll(request.Body)
		var object v1alpha2.NodeResourceTopology
		if err == nil {
			err = json.Unmarshal(text, &object)
		}
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.created = append(a.created, object)
		answer(http.StatusCreated, object)
		return
	}
	for _, pod := range a.machine.pods {
		if request.Method == http.MethodGet && request.URL.Path == "/api/v1/namespaces/default/pods/"+pod.name {
			answer(http.StatusOK, pod.object())
			return
		}
	}
	answer(http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound})
}

// serve returns the API server's kubeconfig.
func (a *apiServer) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, server.URL)
}
