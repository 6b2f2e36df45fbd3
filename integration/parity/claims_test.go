package parity

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"outboard.dev/integration/parity/compare"
	"outboard.dev/integration/parity/generate"
	"outboard.dev/integration/parity/oracle"
)

// claimKinds are all kinds of claims in the cases, and whether pods with such a claim can be placed, and can be
// rejected because of it.
var claimKinds = map[string]struct{ placed, refused bool }{
	"template": {true, true}, "named": {true, true}, "shared": {true, true}, "allocated": {true, true},
	"reserved for another": {true, true}, "reserved for it": {true, true}, "never ready": {false, true},
	"missing": {false, true}, "deleted": {false, true}, "not made yet": {false, true}, "not needed": {true, false}, "of another pod": {false, true},
	"matchAttribute": {true, true}, "distinctAttribute": {true, true}, "firstAvailable": {true, true}, "all": {true, true},
	"too many": {false, true}, "no class": {false, true}, "careless selector": {true, true}, "selector": {true, true},
	"capacity": {true, true}, "partition": {true, true}, "toleration": {true, true}, "admin": {true, true},
	"extended resource": {true, true}, "left by an attempt before": {false, true},
}

// claimReasons are DynamicResources' reasons for nodes. (For a resource that no node and no class has,
// NodeResourcesFit rejects first.)
var claimReasons = []string{
	unresolvable + "DynamicResources: cannot allocate all claims",
	unresolvable + "DynamicResources: resourceclaim not available on the node",
	unresolvable + "DynamicResources: invalid resource pools were encountered",
	unresolvable + "DynamicResources: cannot schedule extended resource claim",
}

// claimMessages are DynamicResources' other messages for pods.
var claimMessages = []string{
	// PreEnqueue and PreFilter.
	"could not find ResourceClaim", "is being deleted", "ResourceClaim not created yet", "(Pod is not owner)", "device class no-such-class does not exist",
	// Filter, if the attempt ends there.
	"is currently being updated", "is currently invalid", "exceeds the claim limit of 32", "CEL runtime error",
	// PostFilter.
	"no new claims to deallocate", "deallocation of ResourceClaim completed", "deletion of ResourceClaim completed", "still not schedulable",
}

// claimCoverage counts pods by text of their message, and by kind of their claims.
type claimCoverage struct{ messages, found, placed, refused map[string]int }

func newClaimCoverage() *claimCoverage {
	return &claimCoverage{map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}}
}

func (c *claimCoverage) add(of *generate.Case, verdicts []oracle.Verdict) {
	for _, verdict := range verdicts {
		for _, text := range claimMessages {
			if strings.Contains(verdict.Message, text) {
				c.messages[text]++
			}
		}
		for _, kind := range of.Kinds[verdict.Pod] {
			c.found[kind]++
			switch {
			case verdict.Result == oracle.Scheduled:
				c.placed[kind]++
			case refusedForClaims(verdict):
				c.refused[kind]++
			}
		}
	}
}

// Every kind of claim must occur, be allocated and be rejected; every reason must be given. The minimums are for 300
// clusters, and lower in proportion for fewer. The forty of -short are too few for the rare kinds.
func TestCasesCoverEveryKindOfClaim(t *testing.T) {
	r := set{generate.Claims, 300}.run(t)
	totals, reasons, messages, found := r.totals, r.covered, r.claims.messages, r.claims.found
	t.Log(totals)
	if totals.Claims < 1500 {
		t.Errorf("%d changes of claims, want at least 1500", totals.Claims)
	}
	if reasons.Decided["DynamicResources"] < 50 {
		t.Errorf("scores of %d pods differ by DynamicResources, want at least 50", reasons.Decided["DynamicResources"])
	}
	for kind := range found {
		if _, known := claimKinds[kind]; !known {
			t.Errorf("kind %q is not in the list of kinds", kind)
		}
	}
	for kind, can := range claimKinds {
		if found[kind] < 10 || can.placed && r.claims.placed[kind] < 5 || can.refused && r.claims.refused[kind] < 5 {
			t.Errorf("kind %q: %d pods, %d placed, %d rejected for it", kind, found[kind], r.claims.placed[kind], r.claims.refused[kind])
		}
	}
	for _, reason := range claimReasons {
		if reasons.Reasons[reason] < 100 {
			t.Errorf("%s: %d nodes, want at least 100", reason, reasons.Reasons[reason])
		}
	}
	for _, text := range claimMessages {
		if messages[text] < 5 {
			t.Errorf("%s: %d pods, want at least 5", text, messages[text])
		}
	}
}

// refusedForClaims: DynamicResources is among the plugins that rejected the pod.
func refusedForClaims(verdict oracle.Verdict) bool {
	for _, rejection := range verdict.Filter {
		if rejection.Plugin == "DynamicResources" {
			return true
		}
	}
	return slices.ContainsFunc(claimMessages[:9], func(text string) bool { return strings.Contains(verdict.Message, text) })
}

// claimsProgram replaces the outboard program: it adds a host for claims beside the other one. An empty string if either
// is missing.
func claimsProgram(t *testing.T) string {
	t.Helper()
	outboard := program(t)
	t.Setenv("OUTBOARD", outboard)
	host := os.Getenv("CLAIMS_HOST")
	if host == "" {
		host = filepath.Join("..", "..", "build", "claims", "outboard-claims-host")
	}
	if _, err := os.Stat(host); err != nil || outboard == "" {
		return ""
	}
	host, err := filepath.Abs(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLAIMS_HOST", host)
	script, err := filepath.Abs(filepath.Join("..", "simulator", "claims_host.sh"))
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func TestOutboardAllocatesAsKubeScheduler(t *testing.T) {
	if (set{generate.Claims, seeds(*seedCount)}).mustAgree(t).totals.ClaimsCompared == 0 {
		t.Error("the program's output has no effects on claims")
	}
}

// Two answers of the oracle to one case must be equal: compared fields must not contain kube-scheduler's random
// choices.
func TestTheOracleAllocatesTheSameTwice(t *testing.T) {
	for seed := range uint64(20) {
		files, err := generate.New(seed+1, generate.Claims).Write(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var answers [2]bytes.Buffer
		for i := range answers {
			verdicts, err := oracle.RunFiles(context.Background(), files.Cluster, files.Pods, files.Config, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := oracle.Write(&answers[i], verdicts); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(answers[0].Bytes(), answers[1].Bytes()) {
			t.Errorf("seed %d: two answers differ", seed+1)
		}
	}
}

// The oracle on claims small enough to check by hand with Kubernetes' documentation.
func TestOracleOnKnownClaims(t *testing.T) {
	write := writer(t)
	cluster := write("cluster.yaml", `
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "4", memory: 4Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: "4", memory: 4Gi, pods: "10"}}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: "device.driver == 'd.example.com'"}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d.example.com, nodeName: b, pool: {name: b, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: shared, namespace: default}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: two, namespace: default}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}}
`)
	pods := write("pods.yaml", `
{apiVersion: v1, kind: Pod, metadata: {name: first}, spec: {containers: [{name: c}], resourceClaims: [{name: c, resourceClaimName: shared}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: second}, spec: {containers: [{name: c}], resourceClaims: [{name: c, resourceClaimName: shared}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: third}, spec: {containers: [{name: c, resources: {requests: {example.com/gpu: 1}, limits: {example.com/gpu: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: fourth}, spec: {containers: [{name: c}], resourceClaims: [{name: c, resourceClaimName: two}]}}
`)
	config := write("config.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	verdicts, err := oracle.RunFiles(context.Background(), cluster, pods, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	selector := `"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["b"]}]}]}`
	allocation := func(request, device string) string {
		return fmt.Sprintf(`{"devices":{"results":[{"request":%q,"driver":"d.example.com","pool":"b","device":%q}]},%s}`, request, device, selector)
	}
	want := []string{
		"default/first b [default/shared: reserved true, allocation " + allocation("r", "gpu-0") + "] ",
		"default/second b [default/shared: reserved true, allocation ] ", // Allocated for the first pod.
		"default/third b [<extended-resources>: reserved true, allocation " + allocation("container-0-request-0", "gpu-1") + "] ",
		"default/fourth  [] 0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
	}
	for i, verdict := range verdicts {
		if got := fmt.Sprintf("%s %s %v %s", verdict.Pod, verdict.Node, verdict.Claims, verdict.Message); i >= len(want) || got != want[i] {
			t.Errorf("line %d:\n got %s\nwant %s", i, got, want[min(i, len(want)-1)])
		}
	}
}

// A wrong device, a missing claim and an additional claim must be found in the format of a program's output.
func TestEveryMistakeWithClaimsIsFound(t *testing.T) {
	files, err := generate.New(2, generate.Claims).Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	expected, err := oracle.RunFiles(context.Background(), files.Cluster, files.Pods, files.Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	for mistake, spoil := range map[string]func(string) string{
		"none":           func(line string) string { return line },
		"another device": func(line string) string { return strings.Replace(line, `"device":"`, `"device":"x`, 1) },
		"not reserved": func(line string) string {
			return strings.Replace(line, `"reservedFor":[{"resource":"pods"}]`, `"reservedFor":[]`, 1)
		},
		"another claim": func(line string) string { return strings.Replace(line, `"name":"claim-`, `"name":"other-`, 1) },
		"another node":  func(line string) string { return strings.Replace(line, `"operator":"In"`, `"operator":"NotIn"`, 1) },
	} {
		var lines bytes.Buffer
		if err := oracle.Write(&lines, expected); err != nil {
			t.Fatal(err)
		}
		actual, err := oracle.Read(strings.NewReader(spoil(lines.String())))
		if err != nil {
			t.Fatal(err)
		}
		if differences := compare.Diff(expected, actual); (len(differences) > 0) == (mistake == "none") {
			t.Errorf("mistake %q: differences %v", mistake, differences)
		}
	}
}
