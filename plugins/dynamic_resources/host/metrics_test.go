package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pb "outboard.dev/contract/v1beta1"
)

// scrape answers a request as the metrics server does.
func scrape(m *metrics, method, path string, body io.Reader) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, httptest.NewRequest(method, path, body))
	return answer
}

func TestMetrics(t *testing.T) {
	h := newHost("claims-test", "0.1.0", "")
	h.metrics = newMetrics(h)
	p := podUsing("p", "c")
	c := newClaim("c", exactly1("gpu", "gpu"))
	s := joinShim(t, connect(t, h), "session-1", "", 1, upsert(t, classResource, gpuClass()), upsert(t, sliceResource, newSlice("node-0", devices(1)...)),
		upsert(t, claimResource, c), upsertPod(p))
	s.try(p)
	s.score(0)
	s.delta(upsert(t, claimResource, showing(t, c, s.reserve(p, "node-0"))))
	s.unreserve(p, "node-0")
	push := await(t, s.pushes)
	s.tell(&pb.SyncRequest{PushResults: []*pb.PushResult{{PushId: push, Outcome: pb.PushResult_OUTCOME_FORBIDDEN}, {PushId: push + 7, Outcome: pb.PushResult_OUTCOME_FORBIDDEN}}})

	text := scrape(h.metrics, http.MethodGet, "/metrics", nil).Body.String()
	const plugin = `plugin="DynamicResources"`
	for _, line := range []string{
		`outboard_build_info{version="0.1.0"} 1`,
		`outboard_plugin_host_sessions{instance="claims-test"} 1`,
		`outboard_plugin_host_attempts_in_flight{instance="claims-test"} 1`,
		`outboard_plugin_host_writes_total{outcome="forbidden",` + plugin + `} 1`,
		`outboard_plugin_host_plugin_duration_seconds_count{extension_point="PreFilter",` + plugin + `} 1`,
		`outboard_plugin_host_plugin_duration_seconds_count{extension_point="Filter",` + plugin + `} 1`,
		`outboard_plugin_host_plugin_duration_seconds_count{extension_point="Score",` + plugin + `} 1`,
		`outboard_plugin_host_plugin_duration_seconds_count{extension_point="Reserve",` + plugin + `} 1`,
		`outboard_plugin_host_plugin_duration_seconds_bucket{extension_point="Filter",` + plugin + `,le="2.097152"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds", "go_memstats_heap_inuse_bytes"} {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestPointNames(t *testing.T) {
	for point, want := range map[pb.ExtensionPoint]string{
		pb.ExtensionPoint_EXTENSION_POINT_PRE_ENQUEUE: "PreEnqueue", pb.ExtensionPoint_EXTENSION_POINT_FILTER: "Filter", pb.ExtensionPoint_EXTENSION_POINT_PRE_BIND: "PreBind",
	} {
		expect(t, "name", pointName(point), want)
	}
}

func TestOnlyReadsOfMetricsAreAnswered(t *testing.T) {
	m := newMetrics(newHost("claims-test", "0.1.0", ""))
	for _, one := range []struct {
		method, path string
		body         io.Reader
		want         int
	}{
		{http.MethodGet, "/metrics", nil, http.StatusOK},
		{http.MethodHead, "/metrics", nil, http.StatusOK},
		{http.MethodPost, "/metrics", nil, http.StatusMethodNotAllowed},
		{http.MethodGet, "/metrics", strings.NewReader("x"), http.StatusRequestEntityTooLarge},
		{http.MethodGet, "/metrics", io.MultiReader(strings.NewReader("x")), http.StatusRequestEntityTooLarge}, // Without a length: chunked.
		{http.MethodGet, "/", nil, http.StatusNotFound},
	} {
		expect(t, one.method+" "+one.path, scrape(m, one.method, one.path, one.body).Code, one.want)
	}
}

// More clients than have a place, which send nothing or a body without an end, keep no other client waiting for long.
func TestSlowClientsOfMetrics(t *testing.T) {
	server, err := serveMetrics("127.0.0.1:0", newMetrics(newHost("claims-test", "0.1.0", "")), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	address := server.Addr
	for i := range 2 * maxMetricsClients {
		slow, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		if i%2 == 0 {
			fmt.Fprint(slow, "POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1000000\r\n")
		}
	}
	client := &http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), "outboard_build_info") {
		t.Errorf("%v: %.200s", err, text)
	}
}
