package numa

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"
)

// memory answers the requests that the plugin's client sends, without a server.
type memory struct {
	objects topology.NodeResourceTopologyList
}

const groupVersion = "topology.node.k8s.io/v1alpha2"

func (m memory) RoundTrip(request *http.Request) (*http.Response, error) {
	var answer any
	switch strings.TrimSuffix(request.URL.Path, "/") {
	case "/api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group()}}
	case "/apis/topology.node.k8s.io":
		answer = group()
	case "/apis/" + groupVersion:
		answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion,
			APIResources: []metav1.APIResource{{Name: "noderesourcetopologies", Kind: "NodeResourceTopology", Verbs: metav1.Verbs{"list", "get"}}}}
	case "/apis/" + groupVersion + "/noderesourcetopologies":
		answer = m.objects
	default:
		return &http.Response{StatusCode: http.StatusNotFound, Request: request, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}, nil
	}
	body, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body))}, err
}

func group() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: "v1alpha2"}
	return metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: "topology.node.k8s.io",
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
}

// handle has what the plugin reads of a scheduler; its other methods are not implemented.
type handle struct {
	framework.Handle
	transport memory
	informers informers.SharedInformerFactory
}

func (h handle) KubeConfig() *rest.Config {
	return &rest.Config{Host: "http://objects.in.memory", Transport: h.transport}
}
func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }

// oracle is NodeResourceTopologyMatch with the objects of all cases, each of another node.
type oracle struct {
	plugin *noderesourcetopology.TopologyMatch
}

func newOracle(t *testing.T, cases []Case) oracle {
	t.Helper()
	objects := topology.NodeResourceTopologyList{TypeMeta: metav1.TypeMeta{Kind: "NodeResourceTopologyList", APIVersion: groupVersion}}
	for _, c := range cases {
		objects.Items = append(objects.Items, c.Topology)
	}
	shared, onlyResources := config.CacheInformerShared, config.CacheResyncScopeOnlyResources
	args := &config.NodeResourceTopologyMatchArgs{
		ScoringStrategy:          config.ScoringStrategy{Type: config.LeastNUMANodes},
		CacheResyncPeriodSeconds: 1000000, // never again while the test runs
		Cache:                    &config.NodeResourceTopologyCache{InformerMode: &shared, ResyncScope: &onlyResources},
	}
	quiet := logr.NewContext(context.Background(), logr.Discard())
	plugin, err := noderesourcetopology.New(quiet, args,
		handle{transport: memory{objects}, informers: informers.NewSharedInformerFactory(nil, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return oracle{plugin.(*noderesourcetopology.TopologyMatch)}
}

// answer returns the reason of Filter, or `ok`, and the score, of a node with the case's earlier pods assumed.
func (o oracle) answer(t *testing.T, c Case, scored bool) (string, int64) {
	t.Helper()
	for _, pod := range c.Assumed {
		o.plugin.Reserve(context.Background(), nil, &pod, c.Node.Name)
	}
	node := framework.NewNodeInfo()
	node.SetNode(&c.Node)
	reason := "ok"
	if status := o.plugin.Filter(context.Background(), nil, &c.Pod, node); !status.IsSuccess() {
		reason = strings.Join(status.Reasons(), "; ")
	}
	if !scored {
		return reason, 0
	}
	score, status := o.plugin.Score(context.Background(), nil, &c.Pod, node)
	if !status.IsSuccess() {
		t.Fatalf("score: %v", status)
	}
	return reason, score
}
