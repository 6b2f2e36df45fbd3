package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	// The query of CostOptimized without matchers; plugins/cost_optimized/price_query_test.cc compares it with the plugin's.
	priceQueryFile = "../../../plugins/cost_optimized/testdata/price_query.promql"
	// Prometheus' answer, for the plugin's tests.
	pricesAnswerFile = "../recorded/prices_answer.json"
)

// pricesConfig scrapes both publishers. OpenCost twice, as two replicas of its Service; the second target has a label
// `node` of its own, so Prometheus renames OpenCost's.
func pricesConfig(address string) string {
	return fmt.Sprintf(`global: {scrape_interval: 500ms, scrape_timeout: 400ms}
scrape_configs:
- {job_name: opencost, metrics_path: /opencost, static_configs: [{targets: [%[1]q]}]}
- {job_name: opencost-on-node, metrics_path: /other-opencost, static_configs: [{targets: [%[1]q], labels: {node: exporters}}]}
- {job_name: karpenter, metrics_path: /karpenter, static_configs: [{targets: [%[1]q]}]}
`, address)
}

// TestCostOptimizedQuery: CostOptimized's query over a real Prometheus gives each node's and each offering's price.
func TestCostOptimizedQuery(t *testing.T) {
	query, err := os.ReadFile(priceQueryFile)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/opencost":
			WriteOpenCost(w, []Price{
				{Node: "spot", InstanceType: "p5.48xlarge", Region: "us-east-1", ProviderID: "aws:///us-east-1a/i-0a", Arch: "amd64", CPU: 0.03, RAM: 0.004, GPU: 2.5, Total: 31.5, GPUs: 8, Spot: true},
				{Node: "owned", InstanceType: "dgx-h100", Arch: "amd64", CPU: 0.03, RAM: 0.004, GPU: 0.95, Total: 18, GPUs: 8},
			})
		case "/other-opencost":
			WriteOpenCost(w, []Price{{Node: "elsewhere", Arch: "amd64", Total: 2}})
		case "/karpenter":
			WriteKarpenter(w, []Offering{
				{"g6.xlarge", "on-demand", "us-east-1a", 0.8048},
				{"g6.xlarge", "spot", "us-east-1a", 0.25},
				{"p5.48xlarge", "reserved", "us-east-1a", 98.32 / 1e7},
				{"p5.48xlarge", "spot", "us-east-1a", 0},
			})
		}
	}))
	defer server.Close()
	prometheus := StartPrometheus(t, pricesConfig(strings.TrimPrefix(server.URL, "http://")))
	const rows = 7
	var samples []Sample
	for end := time.Now().Add(patience); len(samples) < rows; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %d rows, the last error: %v", patience, len(samples), err)
		}
		samples, err = Query(prometheus, string(query))
	}
	if len(samples) != rows {
		t.Errorf("%d rows, want %d", len(samples), rows)
	}
	compareAnswer(t, pricesAnswerFile, answered(samples))
}
