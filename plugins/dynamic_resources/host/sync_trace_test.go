package main

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	pb "outboard.dev/contract/v1beta1"
)

// The contract's example of a Sync stream gives the cache that it says; this host keeps nodes and pods of it.
func TestSyncTrace(t *testing.T) {
	text, err := os.ReadFile("../../../proto/testing/sync_trace.json")
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Steps []struct {
			What    string
			Request json.RawMessage
			Cache   struct {
				Version int64
				Nodes   map[string]string
				Order   []uint32
				Pods    map[string]any
			}
		}
		Refused []struct {
			What     string
			Requests []json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	apply := func(cache *clusterCache, text json.RawMessage) error {
		t.Helper()
		request := &pb.SyncRequest{}
		if err := protojson.Unmarshal(text, request); err != nil {
			t.Fatal(err)
		}
		return cache.apply(request, make([]any, len(request.GetChanges())))
	}
	cache := newClusterCache(&warnings{})
	for _, step := range trace.Steps {
		if err := apply(cache, step.Request); err != nil {
			t.Fatalf("%s: %v", step.What, err)
		}
		expect(t, step.What+": version", cache.version, step.Cache.Version)
		if cache.version == 0 {
			continue
		}
		nodes, pods := map[string]string{}, map[string]any{}
		for slot, node := range cache.nodes {
			nodes[strconv.Itoa(int(slot))] = node.object.Name
		}
		for uid := range cache.pods {
			pods[uid] = step.Cache.Pods[uid] // Where a pod is does not matter here.
		}
		expect(t, step.What+": nodes", nodes, step.Cache.Nodes)
		expect(t, step.What+": order", cache.order, step.Cache.Order)
		expect(t, step.What+": pods", pods, step.Cache.Pods)
	}
	for _, refused := range trace.Refused {
		cache, err := newClusterCache(&warnings{}), error(nil)
		for i := 0; cache.version == 0; i++ {
			if err := apply(cache, trace.Steps[i].Request); err != nil {
				t.Fatal(err)
			}
		}
		for _, request := range refused.Requests {
			expect(t, refused.What+": refused too early", err, nil)
			err = apply(cache, request)
		}
		if err == nil {
			t.Errorf("%s: not refused", refused.What)
		}
	}
}
