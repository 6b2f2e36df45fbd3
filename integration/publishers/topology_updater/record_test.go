package topologyupdater

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	updater "sigs.k8s.io/node-feature-discovery/pkg/nfd-topology-updater"
	"sigs.k8s.io/node-feature-discovery/pkg/resourcemonitor"
	"sigs.k8s.io/node-feature-discovery/pkg/utils/hostpath"
	"sigs.k8s.io/yaml"
)

const (
	recorded = "../recorded/node_resource_topologies.yaml"
	module   = "sigs.k8s.io/node-feature-discovery"
	objects  = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
)

func quantity(value int) resource.Quantity {
	return *resource.NewQuantity(int64(value), resource.DecimalSI)
}

// apiServer has the host's pods and no NodeResourceTopology; it keeps the one that is created.
func (h host) apiServer(t *testing.T) (address string, created *[]byte) {
	t.Helper()
	created = new([]byte)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(object)
	}
	mux.HandleFunc("GET "+objects+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
	})
	mux.HandleFunc("POST "+objects, func(w http.ResponseWriter, r *http.Request) {
		*created, _ = io.ReadAll(r.Body)
		answer(w, http.StatusCreated, json.RawMessage(*created))
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": r.PathValue("namespace"), "uid": "6c1e9d0e-1df5-4b1c-9f43-0a2f0c2b3a52"}})
	})
	for _, pod := range h.pods {
		mux.HandleFunc("GET /api/v1/namespaces/default/pods/"+pod.name, func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusOK, pod.object()) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, created
}

// publish runs the updater once, with --oneshot.
func (h host) publish(t *testing.T) *v1alpha2.NodeResourceTopology {
	t.Helper()
	t.Chdir(t.TempDir())
	h.write(t)
	address, created := h.apiServer(t)
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", address)
	if err := os.WriteFile("kubeconfig", []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODE_NAME", h.name)
	t.Setenv("KUBERNETES_NAMESPACE", "node-feature-discovery")
	kubeletConfig, err := filepath.Abs("kubelet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	u, err := updater.NewTopologyUpdater(updater.Args{Oneshot: true, KubeConfigFile: "kubeconfig"},
		resourcemonitor.Args{PodResourceSocketPath: h.serve(t), SleepInterval: time.Second / 10, Namespace: "*",
			KubeletConfigURI: "file://" + kubeletConfig, PodSetFingerprint: h.fingerprint})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Run(); err != nil {
		t.Fatal(err)
	}
	object := &v1alpha2.NodeResourceTopology{}
	if err := json.Unmarshal(*created, object); err != nil {
		t.Fatalf("created %q: %v", *created, err)
	}
	return object
}

// ordered sorts what the updater writes in the order of a Go map, which differs at each write.
func ordered(object *v1alpha2.NodeResourceTopology) *v1alpha2.NodeResourceTopology {
	slices.SortFunc(object.Zones, func(a, b v1alpha2.Zone) int { return strings.Compare(a.Name, b.Name) })
	for _, zone := range object.Zones {
		slices.SortFunc(zone.Resources, func(a, b v1alpha2.ResourceInfo) int { return strings.Compare(a.Name, b.Name) })
	}
	return object
}

func text(t *testing.T) string {
	t.Helper()
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# What Node Feature Discovery's topology updater creates, with zones and resources sorted: it writes them in no order.
# Publisher: %s %s (Apache-2.0), package pkg/nfd-topology-updater, run once (--oneshot).
# Command: integration/publishers/record.sh
`, module, strings.TrimSpace(string(version)))
	for _, host := range hosts() {
		object := ordered(host.publish(t))
		manifest, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n# %s\n%s", host.what, manifest)
	}
	return out.String()
}

// TestRecorded: the recorded file is what this version of the publisher writes. UPDATE_GOLDEN=1 writes it.
func TestRecorded(t *testing.T) {
	if hostpath.SysfsDir != "host/sys" {
		t.Fatalf("the updater would read %s: run integration/publishers/record.sh, which links it with another prefix", hostpath.SysfsDir)
	}
	file, err := filepath.Abs(recorded)
	if err != nil {
		t.Fatal(err)
	}
	got := text(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d: recorded %q, published %q; if the publisher changed, integration/publishers/record.sh writes the file", recorded, i+1, wantLines[i], gotLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%s has %d lines, the publisher wrote %d", recorded, len(wantLines), len(gotLines))
	}
}
