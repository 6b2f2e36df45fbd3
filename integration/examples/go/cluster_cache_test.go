package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	pb "outboard.dev/contract/v1beta1"
)

// step is one message of the contract's example of a Sync stream, and the cache after it. This host keeps nodes and
// places that count, and ignores the rest.
type step struct {
	What    string          `json:"what"`
	Request json.RawMessage `json:"request"`
	Cache   struct {
		Version int64             `json:"version"`
		Nodes   map[string]string `json:"nodes"`
		Order   []uint32          `json:"order"`
		Pods    map[string]any    `json:"pods"`
	} `json:"cache"`
}

func message(t *testing.T, text json.RawMessage) *pb.SyncRequest {
	t.Helper()
	request := &pb.SyncRequest{}
	if err := protojson.Unmarshal(text, request); err != nil {
		t.Fatal(err)
	}
	return request
}

func TestSyncTrace(t *testing.T) {
	text, err := os.ReadFile("../../../proto/testing/sync_trace.json")
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		Steps   []step `json:"steps"`
		Refused []struct {
			What     string            `json:"what"`
			Requests []json.RawMessage `json:"requests"`
		} `json:"refused"`
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	cache := newClusterCache()
	for _, step := range trace.Steps {
		if err := cache.apply(message(t, step.Request)); err != nil {
			t.Fatalf("%s: %v", step.What, err)
		}
		if cache.version != step.Cache.Version {
			t.Errorf("%s: version %d instead of %d", step.What, cache.version, step.Cache.Version)
		}
		if cache.version == 0 {
			continue
		}
		nodes, pods := map[string]string{}, map[string]any{}
		for slot, node := range cache.nodes {
			nodes[strconv.Itoa(int(slot))] = node.GetName()
		}
		for uid, pod := range cache.pods {
			pods[uid] = nil
			if _, other := step.Cache.Pods[uid].(map[string]any); other {
				pods[uid] = step.Cache.Pods[uid] // Nominated.
			}
			if slot, placed := cache.place(pod); placed {
				pods[uid] = float64(slot)
			}
		}
		for _, differs := range []struct{ have, want any }{{nodes, step.Cache.Nodes}, {cache.order, step.Cache.Order}, {pods, step.Cache.Pods}} {
			if !reflect.DeepEqual(differs.have, differs.want) {
				t.Errorf("%s: %v instead of %v", step.What, differs.have, differs.want)
			}
		}
	}
	for _, refused := range trace.Refused {
		cache, err := newClusterCache(), error(nil)
		for _, step := range trace.Steps {
			if cache.version != 0 {
				break
			}
			if err := cache.apply(message(t, step.Request)); err != nil {
				t.Fatal(err)
			}
		}
		for _, request := range refused.Requests {
			if err != nil {
				t.Errorf("%s: refused too early: %v", refused.What, err)
			}
			err = cache.apply(message(t, request))
		}
		if err == nil {
			t.Errorf("%s: not refused", refused.What)
		}
	}
}
