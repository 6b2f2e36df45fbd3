#include "plugin_host/cache/cluster_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::host_cache {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using v1beta1::SyncRequest;

// Records notifications.
class Recorder : public sdk::ClusterObserver {
 public:
  void OnReset() override { calls.push_back("reset"); }
  void OnNodeChanged(sdk::Slot slot) override { calls.push_back(absl::StrCat("node ", slot)); }
  void OnNodeRemoved(sdk::Slot, const std::string& name) override {
    calls.push_back("gone " + name);
  }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    calls.push_back(absl::StrCat("+", pod.pod.name(), "@", slot));
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    calls.push_back(absl::StrCat("-", pod.pod.name(), "@", slot));
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    calls.push_back(absl::StrCat(old == nullptr ? "new " : "changed ", sdk::ObjectKey(object)));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    calls.push_back("removed " + sdk::ObjectKey(object));
  }
  std::vector<std::string> calls;
};

class ClusterCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SyncRequest begin = Message(1, SyncRequest::PHASE_SNAPSHOT_BEGIN);
    AddNode(&begin, 0, NodeBuilder("n0").Allocatable({{"cpu", "4"}, {"example.com/x", "3"}}));
    AddNode(&begin, 1, NodeBuilder("n1").Allocatable({{"cpu", "4"}}));
    ASSERT_TRUE(Apply(begin).ok());
    EXPECT_EQ(cache_.version(), 0);
    ASSERT_TRUE(Apply(Message(1, SyncRequest::PHASE_SNAPSHOT_END)).ok());
    EXPECT_EQ(cache_.version(), 1);
  }
  static SyncRequest Message(int64_t version, SyncRequest::Phase phase) {
    SyncRequest request;
    request.set_version(version);
    request.set_phase(phase);
    return request;
  }
  SyncRequest Delta() { return Message(cache_.version() + 1, SyncRequest::PHASE_DELTA); }
  static void AddNode(SyncRequest* request, sdk::Slot slot, const v1beta1::Node& node) {
    auto* upsert = request->add_changes()->mutable_node_upsert();
    upsert->set_slot(slot);
    *upsert->mutable_node() = node;
  }
  absl::Status Apply(const SyncRequest& request) { return cache_.Apply(request, now_); }
  absl::Status UpsertPod(const v1beta1::Pod& pod) {
    SyncRequest request = Delta();
    *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
    return Apply(request);
  }
  absl::Status RemoveNode(sdk::Slot slot) {
    SyncRequest request = Delta();
    request.add_changes()->mutable_node_remove()->set_slot(slot);
    return Apply(request);
  }
  absl::Status Place(const std::string& uid, v1beta1::PlacementState state, sdk::Slot slot) {
    SyncRequest request = Delta();
    auto* placement = request.add_changes()->mutable_pod_placement();
    placement->set_uid(uid);
    placement->set_state(state);
    placement->set_slot(slot);
    return Apply(request);
  }
  const sdk::NodeTable& nodes() { return cache_.view().nodes(); }

  const absl::Time now_ = absl::FromUnixSeconds(1000);
  ClusterCache cache_;
};

TEST_F(ClusterCacheTest, PodsOnNodesAreSummed) {
  PodBuilder pod("a");
  pod.Requests({{"cpu", "1"}, {"example.com/x", "2"}}).HostPort(80).OnNode("n0");
  ASSERT_TRUE(UpsertPod(pod).ok());
  EXPECT_EQ(nodes().requested_cpu[0], 1000);
  EXPECT_EQ(nodes().nonzero_memory[0], 200 << 20);
  EXPECT_EQ(nodes().pod_count[0], 1);
  EXPECT_EQ(cache_.view().node(0).Requested("example.com/x"), 2);
  EXPECT_EQ(nodes().host_ports[0].size(), 1u);
  pod.OnNode("n1");  // Moves.
  ASSERT_TRUE(UpsertPod(pod).ok());
  EXPECT_EQ(nodes().requested_cpu[0], 0);
  EXPECT_EQ(cache_.view().node(0).Requested("example.com/x"), 0);
  EXPECT_TRUE(nodes().host_ports[0].empty());
  EXPECT_EQ(nodes().requested_cpu[1], 1000);
  SyncRequest remove = Delta();
  remove.add_changes()->mutable_pod_remove()->set_uid("default/a");
  ASSERT_TRUE(Apply(remove).ok());
  EXPECT_EQ(nodes().pod_count[1], 0);
  EXPECT_EQ(cache_.FindPod("default/a"), nullptr);
}

TEST_F(ClusterCacheTest, AnAssumedPlaceOutlivesUpdatesThatDoNotKnowIt) {
  PodBuilder pod("a");
  ASSERT_TRUE(UpsertPod(pod.Requests({{"cpu", "1"}})).ok());
  EXPECT_EQ(cache_.FindPod("default/a")->place, sdk::Place::kNone);
  ASSERT_TRUE(Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, 1).ok());
  ASSERT_TRUE(UpsertPod(pod.Label("x", "y")).ok());
  EXPECT_EQ(nodes().requested_cpu[1], 1000);
  ASSERT_TRUE(UpsertPod(pod.OnNode("n1")).ok());
  EXPECT_EQ(cache_.FindPod("default/a")->place, sdk::Place::kBound);
  EXPECT_EQ(nodes().pod_count[1], 1);
  ASSERT_TRUE(UpsertPod(PodBuilder("b")).ok());
  ASSERT_TRUE(Place("default/b", v1beta1::PLACEMENT_STATE_ASSUMED, 0).ok());
  ASSERT_TRUE(Place("default/b", v1beta1::PLACEMENT_STATE_UNPLACED, 0).ok());
  EXPECT_EQ(nodes().pod_count[0], 0);
}

TEST_F(ClusterCacheTest, AnAssumedPodThatIsBoundNamesItsNode) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a").Requests({{"cpu", "1"}})).ok());
  ASSERT_TRUE(Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, 1).ok());
  ASSERT_TRUE(Place("default/a", v1beta1::PLACEMENT_STATE_BOUND, 1).ok());
  const sdk::PodRecord* pod = cache_.FindPod("default/a");
  EXPECT_EQ(pod->place, sdk::Place::kBound);
  EXPECT_EQ(pod->pod.node_name(), "n1");
  EXPECT_EQ(nodes().pod_count[1], 1);
  EXPECT_EQ(nodes().requested_cpu[1], 1000);
  // The host did not know the place before.
  ASSERT_TRUE(UpsertPod(PodBuilder("b").Requests({{"cpu", "1"}})).ok());
  ASSERT_TRUE(Place("default/b", v1beta1::PLACEMENT_STATE_BOUND, 0).ok());
  EXPECT_EQ(nodes().requested_cpu[0], 1000);
  EXPECT_EQ(cache_.FindPod("default/b")->pod.node_name(), "n0");
}

TEST_F(ClusterCacheTest, WaitsAreKeptWithTheirEnds) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a")).ok());
  SyncRequest request = Delta();
  auto* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("default/a");
  placement->set_state(v1beta1::PLACEMENT_STATE_WAITING);
  placement->set_attempt_id(7);
  auto* wait = placement->add_waits();
  wait->set_plugin("Coscheduling");
  wait->set_remaining_micros(1'500'000);
  ASSERT_TRUE(Apply(request).ok());
  const sdk::PodRecord* pod = cache_.FindPod("default/a");
  EXPECT_EQ(pod->place, sdk::Place::kWaiting);
  EXPECT_EQ(pod->waiting_attempt, 7u);
  EXPECT_EQ(pod->waits[0].deadline, now_ + absl::Milliseconds(1500));
  EXPECT_EQ(nodes().pod_count[0], 1);
  ASSERT_TRUE(Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, 0).ok());
  EXPECT_TRUE(pod->waits.empty());
  EXPECT_EQ(nodes().pod_count[0], 1);
}

TEST_F(ClusterCacheTest, EffectsAndStatesStandWithThePlaceUntilThePodIsBound) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a")).ok());
  SyncRequest request = Delta();
  auto* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("default/a");
  placement->set_state(v1beta1::PLACEMENT_STATE_ASSUMED);
  placement->add_effects()->set_key("x");
  for (const char* plugin : {"A", "B"}) {
    placement->add_states()->set_plugin(plugin);
    placement->mutable_states()->rbegin()->set_state(std::string("of ") + plugin);
  }
  ASSERT_TRUE(Apply(request).ok());
  const sdk::PodRecord* pod = cache_.FindPod("default/a");
  ASSERT_EQ(pod->effects.size(), 1u);
  EXPECT_EQ(pod->effects[0].key(), "x");
  EXPECT_EQ(pod->StateOf("B"), "of B");
  EXPECT_EQ(pod->StateOf("C"), "");
  ASSERT_TRUE(UpsertPod(PodBuilder("a").Label("k", "v")).ok());
  EXPECT_EQ(pod->effects.size(), 1u) << "an update does not contain them";
  EXPECT_EQ(pod->StateOf("A"), "of A");
  ASSERT_TRUE(UpsertPod(PodBuilder("a").OnNode("n0")).ok());
  EXPECT_TRUE(pod->effects.empty());
  EXPECT_EQ(pod->StateOf("A"), "");
}

TEST_F(ClusterCacheTest, APlacementWithoutStatesHasNone) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a")).ok());
  SyncRequest request = Delta();
  auto* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("default/a");
  placement->set_state(v1beta1::PLACEMENT_STATE_ASSUMED);
  placement->add_states()->set_plugin("A");
  placement->mutable_states(0)->set_state("s");
  ASSERT_TRUE(Apply(request).ok());
  const sdk::PodRecord* pod = cache_.FindPod("default/a");
  EXPECT_EQ(pod->StateOf("A"), "s");
  ASSERT_TRUE(Place("default/a", v1beta1::PLACEMENT_STATE_UNPLACED, 0).ok());
  EXPECT_EQ(pod->StateOf("A"), "");
}

TEST_F(ClusterCacheTest, NominatedPodsTakeNoRoom) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a").Requests({{"cpu", "1"}})).ok());
  ASSERT_TRUE(Place("default/a", v1beta1::PLACEMENT_STATE_NOMINATED, 0).ok());
  EXPECT_EQ(nodes().nominated_count[0], 1u);
  EXPECT_EQ(nodes().requested_cpu[0], 0);
  ASSERT_TRUE(Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, 1).ok());
  EXPECT_EQ(nodes().nominated_count[0], 0u);
  EXPECT_EQ(nodes().requested_cpu[1], 1000);
}

TEST_F(ClusterCacheTest, PodsOfAnUnknownNodeAreCountedOnceItComes) {
  ASSERT_TRUE(UpsertPod(PodBuilder("early").OnNode("n2")).ok());
  ASSERT_TRUE(UpsertPod(PodBuilder("late").OnNode("n0")).ok());
  ASSERT_TRUE(RemoveNode(0).ok());
  EXPECT_FALSE(cache_.FindPod("default/late")->on_node());
  EXPECT_EQ(nodes().pod_count[0], 0);
  SyncRequest request = Delta();
  AddNode(&request, 0, NodeBuilder("n2"));
  AddNode(&request, 2, NodeBuilder("n0"));
  ASSERT_TRUE(Apply(request).ok());
  EXPECT_EQ(nodes().pod_count[0], 1);
  EXPECT_EQ(nodes().pods[2][0]->pod.name(), "late");
  // A pod removed before its node is added leaves no trace.
  ASSERT_TRUE(UpsertPod(PodBuilder("ghost").OnNode("n9")).ok());
  SyncRequest remove = Delta();
  remove.add_changes()->mutable_pod_remove()->set_uid("default/ghost");
  AddNode(&remove, 3, NodeBuilder("n9"));
  ASSERT_TRUE(Apply(remove).ok());
  EXPECT_EQ(nodes().pod_count[3], 0);
}

TEST_F(ClusterCacheTest, NodeOrderIsAPermutation) {
  EXPECT_THAT(nodes().order, ElementsAre(0, 1));
  SyncRequest request = Delta();
  request.mutable_node_order()->add_slots(1);
  request.mutable_node_order()->add_slots(0);
  ASSERT_TRUE(Apply(request).ok());
  EXPECT_THAT(nodes().order, ElementsAre(1, 0));
  for (const std::vector<uint32_t>& bad :
       {std::vector<uint32_t>{0}, std::vector<uint32_t>{0, 0}, std::vector<uint32_t>{0, 5}}) {
    ClusterCache other;
    SyncRequest snapshot = Message(1, SyncRequest::PHASE_SNAPSHOT_BEGIN);
    AddNode(&snapshot, 0, NodeBuilder("n0"));
    AddNode(&snapshot, 1, NodeBuilder("n1"));
    snapshot.mutable_node_order()->mutable_slots()->Add(bad.begin(), bad.end());
    EXPECT_FALSE(other.Apply(snapshot, now_).ok());
  }
}

TEST_F(ClusterCacheTest, AChangeThatDoesNotFitMakesItIncomplete) {
  SyncRequest occupied = Delta();
  AddNode(&occupied, 0, NodeBuilder("other"));
  EXPECT_FALSE(Apply(occupied).ok());
  EXPECT_FALSE(cache_.complete());
  EXPECT_FALSE(UpsertPod(PodBuilder("a")).ok());  // Until the next snapshot.
  SetUp();
  EXPECT_FALSE(RemoveNode(9).ok());
  SetUp();
  EXPECT_FALSE(Place("unknown", v1beta1::PLACEMENT_STATE_ASSUMED, 0).ok());
  SetUp();
  EXPECT_FALSE(Apply(Message(0, SyncRequest::PHASE_DELTA)).ok());
  EXPECT_FALSE(ClusterCache().Apply(Message(1, SyncRequest::PHASE_SNAPSHOT_END), now_).ok());
  SyncRequest renamed = Delta();
  AddNode(&renamed, 5, NodeBuilder("n0"));
  EXPECT_FALSE(Apply(renamed).ok());
  SetUp();
  SyncRequest far = Delta();
  AddNode(&far, 0xfffffff0, NodeBuilder("far"));
  EXPECT_FALSE(Apply(far).ok());
}

TEST_F(ClusterCacheTest, ASnapshotReplacesEverythingAndNotifiesObservers) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a").OnNode("n0")).ok());
  Recorder recorder;
  cache_.AddObserver(&recorder);
  EXPECT_THAT(recorder.calls, ElementsAre("reset", "node 0", "node 1", "+a@0"));
  recorder.calls.clear();
  ASSERT_TRUE(RemoveNode(0).ok());
  EXPECT_THAT(recorder.calls, ElementsAre("-a@0", "gone n0"));
  recorder.calls.clear();
  SetUp();
  EXPECT_THAT(recorder.calls, ElementsAre("reset", "node 0", "node 1"));
  EXPECT_TRUE(cache_.view().pods().empty());
  cache_.RemoveObserver(&recorder);
}

TEST_F(ClusterCacheTest, AHypothesisLeavesNoTrace) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a").Requests({{"cpu", "1"}}).HostPort(80)).ok());
  auto* pod = const_cast<sdk::PodRecord*>(cache_.FindPod("default/a"));
  {
    ClusterCache::Hypothesis hypothesis(&cache_, 0);
    hypothesis.AddPod(pod);
    EXPECT_EQ(nodes().requested_cpu[0], 1000);
    EXPECT_EQ(nodes().host_ports[0].size(), 1u);
  }
  EXPECT_EQ(nodes().requested_cpu[0], 0);
  EXPECT_EQ(nodes().pod_count[0], 0);
  EXPECT_TRUE(nodes().host_ports[0].empty());
  EXPECT_TRUE(nodes().pods[0].empty());
}

TEST_F(ClusterCacheTest, AHypothesisTakesPodsOffAndPutsThemBackInOrder) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(
        UpsertPod(PodBuilder(name).Requests({{"cpu", "1"}}).HostPort(80).OnNode("n0")).ok());
  }
  ASSERT_TRUE(UpsertPod(PodBuilder("late").Requests({{"cpu", "2"}})).ok());
  const std::vector<sdk::PodRecord*> before = nodes().pods[0];
  ASSERT_EQ(before.size(), 3u);
  const uint64_t generation = nodes().generation[0];
  {
    ClusterCache::Hypothesis outer(&cache_, 0);
    outer.RemovePod(before[0]);
    outer.RemovePod(before[1]);
    EXPECT_EQ(nodes().requested_cpu[0], 1000);
    EXPECT_THAT(nodes().pods[0], ElementsAre(before[2]));
    {
      ClusterCache::Hypothesis inner(&cache_, 0);
      inner.AddPod(const_cast<sdk::PodRecord*>(cache_.FindPod("default/late")));
      EXPECT_EQ(nodes().requested_cpu[0], 3000);
    }
    EXPECT_THAT(nodes().pods[0], ElementsAre(before[2]));
    outer.AddPod(before[0]);
    EXPECT_EQ(nodes().requested_cpu[0], 2000);
    EXPECT_EQ(nodes().host_ports[0].size(), 2u);
  }
  EXPECT_EQ(nodes().pods[0], before);
  EXPECT_EQ(nodes().requested_cpu[0], 3000);
  EXPECT_EQ(nodes().pod_count[0], 3);
  EXPECT_EQ(nodes().host_ports[0].size(), 3u);
  EXPECT_NE(nodes().generation[0], generation) << "data derived meanwhile must not be kept";
}

// Caches with an entry per node rely on it.
TEST_F(ClusterCacheTest, RecordsWhichNodesChanged) {
  uint64_t seen = nodes().changes.total();
  const auto changed = [&] {
    std::vector<sdk::Slot> slots;
    EXPECT_TRUE(nodes().changes.ForEachSince(seen, [&](sdk::Slot slot) { slots.push_back(slot); }));
    seen = nodes().changes.total();
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    return slots;
  };
  ASSERT_TRUE(UpsertPod(PodBuilder("waits")).ok());
  EXPECT_THAT(changed(), ElementsAre());
  ASSERT_TRUE(UpsertPod(PodBuilder("runs").OnNode("n1")).ok());
  EXPECT_THAT(changed(), ElementsAre(1));
  {
    ClusterCache::Trial trial(&cache_);
    trial.Place(*cache_.FindPod("default/waits"), 0);
    EXPECT_THAT(changed(), ElementsAre(0));
  }
  EXPECT_THAT(changed(), ElementsAre(0));
  {
    ClusterCache::Hypothesis without(&cache_, 1);
    without.RemovePod(const_cast<sdk::PodRecord*>(cache_.FindPod("default/runs")));
    EXPECT_THAT(changed(), ElementsAre(1));
  }
  EXPECT_THAT(changed(), ElementsAre(1));
  ASSERT_TRUE(Apply(Message(9, SyncRequest::PHASE_SNAPSHOT_BEGIN)).ok());
  EXPECT_FALSE(nodes().changes.ForEachSince(seen, [](sdk::Slot) {}))
      << "any slot may have another node";
}

TEST_F(ClusterCacheTest, DistinguishesChangesOfPodsFromOthers) {
  const uint64_t before = cache_.surroundings_version();
  ASSERT_TRUE(UpsertPod(PodBuilder("p").OnNode("n0")).ok());
  EXPECT_EQ(cache_.surroundings_version(), before);
  SyncRequest request = Delta();
  AddNode(&request, 0, NodeBuilder("n0").Label("a", "b"));
  ASSERT_TRUE(Apply(request).ok());
  EXPECT_NE(cache_.surroundings_version(), before);
}

TEST_F(ClusterCacheTest, ATrialIsUndoneAndNotifiesObservers) {
  for (const char* name : {"a", "b"})
    ASSERT_TRUE(UpsertPod(PodBuilder(name).Requests({{"cpu", "1"}}).HostPort(80)).ok());
  ASSERT_TRUE(UpsertPod(PodBuilder("there").Requests({{"cpu", "1"}}).OnNode("n0")).ok());
  const std::vector<sdk::PodRecord*> before = nodes().pods[0];
  Recorder recorder;
  cache_.AddObserver(&recorder);
  recorder.calls.clear();
  const uint64_t room_version = cache_.room_version();
  const uint64_t version = nodes().version;
  {
    ClusterCache::Trial trial(&cache_);
    trial.Place(*cache_.FindPod("default/a"), 0);
    trial.Place(*cache_.FindPod("default/b"), 1);
    EXPECT_EQ(cache_.FindPod("default/a")->place, sdk::Place::kAssumed);
    EXPECT_EQ(nodes().requested_cpu[0], 2000);
    EXPECT_NE(nodes().version, version);
    EXPECT_NE(cache_.room_version(), room_version);
    trial.UndoTo(1);
    EXPECT_EQ(trial.size(), 1u);
    EXPECT_EQ(nodes().requested_cpu[1], 0);
    EXPECT_EQ(cache_.FindPod("default/b")->place, sdk::Place::kNone);
    trial.Place(*cache_.FindPod("default/b"), 0);
    EXPECT_EQ(nodes().requested_cpu[0], 3000);
  }
  EXPECT_EQ(nodes().pods[0], before);
  EXPECT_EQ(nodes().requested_cpu[0], 1000);
  EXPECT_TRUE(nodes().host_ports[0].empty());
  EXPECT_EQ(cache_.FindPod("default/a")->place, sdk::Place::kNone);
  EXPECT_EQ(cache_.FindPod("default/a")->slot, sdk::kNoSlot);
  EXPECT_EQ(cache_.room_version(), room_version) << "a pod without a fitting node still has none";
  EXPECT_NE(nodes().version, version) << "data derived meanwhile must not be kept";
  EXPECT_THAT(recorder.calls, ElementsAre("+a@0", "+b@1", "-b@1", "+b@0", "-b@0", "-a@0"));
  cache_.RemoveObserver(&recorder);
}

TEST_F(ClusterCacheTest, ATrialGivesANominatedPodItsNominationBack) {
  ASSERT_TRUE(UpsertPod(PodBuilder("a").Requests({{"cpu", "1"}})).ok());
  SyncRequest nominate = Delta();
  auto* placement = nominate.add_changes()->mutable_pod_placement();
  placement->set_uid("default/a");
  placement->set_state(v1beta1::PLACEMENT_STATE_NOMINATED);
  placement->set_slot(1);
  ASSERT_TRUE(Apply(nominate).ok());
  {
    ClusterCache::Trial trial(&cache_);
    trial.Place(*cache_.FindPod("default/a"), 0);
    EXPECT_EQ(nodes().nominated_count[1], 0u);
  }
  EXPECT_EQ(nodes().nominated_count[1], 1u);
  EXPECT_THAT(nodes().nominated[1], ElementsAre(cache_.FindPod("default/a")));
  EXPECT_EQ(cache_.FindPod("default/a")->place, sdk::Place::kNominated);
}

TEST_F(ClusterCacheTest, AbsentPodsReturnInAnyOrderAndStandWhereTheyStood) {
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(UpsertPod(PodBuilder(name).Requests({{"cpu", "1"}}).OnNode("n0")).ok());
  ASSERT_TRUE(UpsertPod(PodBuilder("elsewhere").Requests({{"cpu", "1"}}).OnNode("n1")).ok());
  ASSERT_TRUE(UpsertPod(PodBuilder("new").Requests({{"cpu", "2"}})).ok());
  const std::vector<sdk::PodRecord*> before = nodes().pods[0];
  const uint64_t room_version = cache_.room_version();
  {
    ClusterCache::Absence absence(&cache_);
    absence.Remove(*before[0]);
    absence.Remove(*before[1]);
    absence.Remove(*cache_.FindPod("default/elsewhere"));
    EXPECT_EQ(nodes().requested_cpu[0], 1000);
    EXPECT_EQ(nodes().requested_cpu[1], 0);
    {
      ClusterCache::Trial trial(&cache_);
      trial.Place(*cache_.FindPod("default/new"), 0);
      EXPECT_EQ(nodes().requested_cpu[0], 3000);
    }
    absence.Return(*before[0]);
    EXPECT_EQ(nodes().requested_cpu[0], 2000);
    absence.Remove(*before[0]);
  }
  EXPECT_EQ(nodes().pods[0], before);
  EXPECT_EQ(nodes().requested_cpu[0], 3000);
  EXPECT_EQ(nodes().requested_cpu[1], 1000);
  EXPECT_EQ(before[1]->place, sdk::Place::kBound);
  EXPECT_EQ(cache_.room_version(), room_version);
}

TEST_F(ClusterCacheTest, ImagesCountTheNodesThatHaveThem) {
  SyncRequest request = Delta();
  AddNode(&request, 0, NodeBuilder("n0").Image("app:1", 100));
  AddNode(&request, 1, NodeBuilder("n1").Image("app:1", 200));
  ASSERT_TRUE(Apply(request).ok());
  const uint32_t id = nodes().image_names.Find("app:1");
  EXPECT_EQ(nodes().image_states[id].node_count, 2);
  EXPECT_EQ(nodes().image_states[id].size_bytes, 100);  // From the first node.
  EXPECT_TRUE(cache_.view().node(1).HasImage(id));
  ASSERT_TRUE(RemoveNode(0).ok());
  EXPECT_EQ(nodes().image_states[id].node_count, 1);
  EXPECT_FALSE(cache_.view().node(0).HasImage(id));
}

TEST_F(ClusterCacheTest, LabelsAndTaintsAreInterned) {
  SyncRequest request = Delta();
  AddNode(&request, 0,
          NodeBuilder("n0").Label("zone", "a").Taint("k", "v", v1beta1::TAINT_EFFECT_NO_SCHEDULE));
  AddNode(&request, 1,
          NodeBuilder("n1").Label("zone", "b").Taint("k", "v", v1beta1::TAINT_EFFECT_NO_SCHEDULE));
  ASSERT_TRUE(Apply(request).ok());
  EXPECT_EQ(nodes().taint_set[0], nodes().taint_set[1]);
  EXPECT_EQ(cache_.view().node(0).taints()[0].key(), "k");
  EXPECT_EQ(cache_.view().node(1).Label("zone"), "b");
  EXPECT_FALSE(cache_.view().node(1).Label("rack").has_value());
}

TEST_F(ClusterCacheTest, WritesObjectsOfOtherKindsByTheirNames) {
  Recorder recorder;
  cache_.AddObserver(&recorder);
  recorder.calls.clear();
  SyncRequest delta = Delta();
  v1beta1::PodController* replica_set =
      delta.add_changes()->mutable_object_upsert()->mutable_pod_controller();
  replica_set->set_kind("ReplicaSet");
  replica_set->set_namespace_("ns");
  replica_set->set_name("web");
  v1beta1::StorageClass* storage_class =
      delta.add_changes()->mutable_object_upsert()->mutable_storage_class();
  storage_class->set_name("fast");
  delta.add_changes()->mutable_object_upsert();  // A kind of a later contract.
  ASSERT_TRUE(Apply(delta).ok());
  const sdk::ClusterObjects& objects = cache_.view().objects();
  EXPECT_NE(objects.Find<v1beta1::PodController>(sdk::WorkloadKey("ReplicaSet", "ns", "web")),
            nullptr);
  EXPECT_EQ(objects.Find<v1beta1::PodController>(sdk::WorkloadKey("StatefulSet", "ns", "web")),
            nullptr);
  ASSERT_NE(objects.Find<v1beta1::StorageClass>("fast"), nullptr);

  delta = Delta();
  storage_class = delta.add_changes()->mutable_object_upsert()->mutable_storage_class();
  storage_class->set_name("fast");
  storage_class->set_provisioner("example.com/disk");
  v1beta1::ObjectReference* gone = delta.add_changes()->mutable_object_remove();
  gone->set_kind("ReplicaSet");
  gone->set_namespace_("ns");
  gone->set_name("web");
  // Never known; other kinds have the names.
  gone = delta.add_changes()->mutable_object_remove();
  gone->set_kind("CSINode");
  gone->set_name("fast");
  gone = delta.add_changes()->mutable_object_remove();
  gone->set_kind("StatefulSet");
  gone->set_namespace_("ns");
  gone->set_name("web");
  ASSERT_TRUE(Apply(delta).ok());
  EXPECT_EQ(objects.Find<v1beta1::StorageClass>("fast")->provisioner(), "example.com/disk");
  EXPECT_EQ(objects.Count<v1beta1::PodController>(), 0u);
  EXPECT_THAT(recorder.calls, ElementsAre("new ReplicaSet/ns/web", "new fast", "changed fast",
                                          "removed ReplicaSet/ns/web"));
  cache_.RemoveObserver(&recorder);
}

}  // namespace
}  // namespace outboard::host_cache
