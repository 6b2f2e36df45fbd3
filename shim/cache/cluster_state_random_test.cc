// Random changes, and hosts that take them at random times. After each host took its changes, its
// copy must equal the state.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/cache/cluster_state.h"
#include "shim/cache/testing/model_cache.h"

namespace outboard::cache {
namespace {

using testing::ModelCache;

class RandomRun {
 public:
  RandomRun(uint32_t seed, size_t max_removed) : random_(seed), state_(max_removed) {
    if (seed % 2 == 0) state_.NotifyBindsOf("");
  }

  void Go(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      Step();
      if (i % 8 == 0) CheckBooks();
    }
    for (auto& host : hosts_) {
      while (TakePiece(*host)) continue;
      Take(*host);
    }
  }
  int snapshots() const { return snapshots_; }
  int pieces() const { return pieces_; }

 private:
  struct Host {
    ClusterState::Cursor cursor = 0;
    ChangeEncoder::Fields fields;
    ModelCache model;
    std::unique_ptr<Snapshot> snapshot;
    std::set<uint64_t> ended;
  };

  int Pick(int n) { return static_cast<int>(random_() % n); }
  std::string Version() { return absl::StrCat(++resource_version_); }

  void Step() {
    now_ += absl::Milliseconds(Pick(100));
    const std::string uid = absl::StrCat("u", Pick(25));
    const std::string node = absl::StrCat("n", Pick(8));
    const uint32_t slot =
        state_.slot_limit() == 0 ? 0 : Pick(static_cast<int>(state_.slot_limit()));
    switch (Pick(20)) {
      case 0:
      case 1:
        UpsertNode(node);
        break;
      case 2:
        if (Pick(2) == 0) state_.RemoveNode(node);
        break;
      case 3:
      case 4:
      case 5:
        UpsertPod(uid);
        break;
      case 6:
        if (Pick(2) == 0) state_.RemovePod(uid);
        break;
      case 7:
      case 8:
      case 9:
        if (state_.Assume(uid, slot).ok()) {
          EXPECT_TRUE(state_.IsAssumed(uid));
        }
        break;
      case 10:
        state_.Forget(uid).IgnoreError();
        break;
      case 11:
        // The API server confirms it, most often without another change.
        if (state_.IsAssumed(uid)) {
          auto pod = std::make_shared<kube::PodObject>(*state_.FindPod(uid));
          pod->pod.set_node_name(state_.NodeOf(uid));
          pod->resource_version = Version();
          if (Pick(3) == 0) pod->pod.set_start_unix_seconds(resource_version_);
          const bool moved = Pick(8) == 0;
          if (moved) pod->pod.set_node_name(node);
          const bool same = pod->pod.node_name() == state_.NodeOf(uid);
          const PodOutcome outcome = state_.UpsertPod(pod);
          EXPECT_EQ(outcome.kind, same ? PodOutcome::Kind::kConfirmed : PodOutcome::Kind::kMoved);
        }
        break;
      case 12:
        state_.SetWaiting(uid, 1 + Pick(100), {{"Gang", now_ + absl::Seconds(Pick(9))}}, now_)
            .IgnoreError();
        break;
      case 13:
        state_.EndWaiting(uid).IgnoreError();
        break;
      case 14:
        if (Pick(2) == 0) {
          state_.Nominate(uid, slot).IgnoreError();
        } else {
          state_.Unnominate(uid).IgnoreError();
        }
        break;
      case 15: {
        const std::string name = absl::StrCat("ns", Pick(3));
        if (Pick(3) == 0) {
          state_.RemoveNamespace(name);
          break;
        }
        auto ns = std::make_shared<kube::NamespaceObject>();
        ns->ns.set_name(name);
        (*ns->ns.mutable_labels())["a"] = absl::StrCat(Pick(2));
        state_.UpsertNamespace(ns);
        break;
      }
      case 16:
        Hosts();
        break;
      case 17:
        if (!hosts_.empty()) Take(*hosts_[Pick(static_cast<int>(hosts_.size()))]);
        break;
      case 18:
      case 19:
        ChangeObject();
        break;
    }
  }

  // Volumes, and workloads of two kinds with the same names.
  void ChangeObject() {
    auto object = std::make_shared<kube::ClusterObject>();
    const std::string name = absl::StrCat("o", Pick(3));
    if (Pick(2) == 0) {
      object->object.mutable_persistent_volume()->set_name(name);
      object->object.mutable_persistent_volume()->set_capacity_bytes(Pick(2));
    } else {
      object->object.mutable_pod_controller()->set_kind(Pick(2) == 0 ? "ReplicaSet"
                                                                     : "StatefulSet");
      object->object.mutable_pod_controller()->set_namespace_("ns");
      object->object.mutable_pod_controller()->set_name(name);
      (*object->object.mutable_pod_controller()->mutable_selector()->mutable_match_labels())["a"] =
          absl::StrCat(Pick(2));
    }
    object->object_uid = absl::StrCat("u", Pick(10) == 0);
    object->resource_version = Version();
    const std::string key = ModelCache::KeyOf(object->object);
    if (Pick(3) != 0) {
      state_.UpsertObject(object);
      objects_[key] = object->object;
      return;
    }
    const bool known = objects_.erase(key) > 0;
    EXPECT_EQ(state_.RemoveObject(*object).kind,
              known ? ObjectOutcome::Kind::kRemoved : ObjectOutcome::Kind::kIgnored);
  }

  void UpsertNode(const std::string& name) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_name(name);
    const uint32_t slot = state_.SlotOf(name);
    const bool replace = slot == ClusterState::kNoSlot || Pick(10) == 0;
    node->node.set_uid(replace ? absl::StrCat(name, "-", Version()) : state_.NodeAt(slot)->uid());
    node->resource_version = Version();
    node->node.mutable_allocatable()->set_cpu_millis(1000 * Pick(3));
    if (Pick(2) == 0) {
      (*node->node.mutable_labels())["topology.kubernetes.io/zone"] = absl::StrCat("z", Pick(3));
    }
    (*node->node.mutable_annotations())["wanted"] = absl::StrCat(Pick(2));
    (*node->node.mutable_annotations())["unwanted"] = absl::StrCat(Pick(9));
    state_.UpsertNode(node);
  }

  void UpsertPod(const std::string& uid) {
    auto pod = std::make_shared<kube::PodObject>();
    const kube::PodPtr before = state_.FindPod(uid);
    pod->pod.set_uid(uid);
    pod->pod.set_namespace_("ns");
    // Several uids share a name, so that names are recreated.
    pod->pod.set_name(absl::StrCat("p", std::hash<std::string>()(uid) % 18));
    pod->resource_version = Version();
    pod->phase = Pick(12) == 0 ? "Succeeded" : "Running";
    pod->pod.set_priority(Pick(2));
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(100 * Pick(4));
    (*pod->pod.mutable_annotations())["wanted"] = absl::StrCat(Pick(2));
    (*pod->pod.mutable_annotations())["unwanted"] = absl::StrCat(Pick(9));
    if (before != nullptr && !before->pod.node_name().empty()) {
      pod->pod.set_node_name(before->pod.node_name());
    } else if (Pick(3) == 0) {
      pod->pod.set_node_name(absl::StrCat("n", Pick(8)));
    }
    state_.UpsertPod(pod);
  }

  void Hosts() {
    switch (Pick(4)) {
      case 0:
        if (hosts_.size() < 3) {
          hosts_.push_back(std::make_unique<Host>());
          Host& host = *hosts_.back();
          if (Pick(2) == 0) {
            host.fields.pod_annotations = {"wanted"};
            host.fields.node_annotations = {"wanted"};
          }
          host.cursor = state_.AddHost(host.fields);
          if (Pick(2) == 0) host.snapshot = state_.TakeSnapshot(host.cursor, now_);
        }
        break;
      case 1:
        if (!hosts_.empty() && Pick(3) == 0) {
          state_.RemoveHost(hosts_.back()->cursor);
          hosts_.pop_back();
        }
        break;
      case 2:
        if (!hosts_.empty() && Pick(5) == 0) state_.Resync(hosts_.front()->cursor);
        break;
      case 3:
        if (!hosts_.empty()) {
          Host& host = *hosts_[Pick(static_cast<int>(hosts_.size()))];
          const uint64_t attempt = resource_version_;
          state_.EndAttempt(host.cursor, attempt);
          host.ended.insert(attempt);
        }
        break;
    }
  }

  // One piece of a snapshot that is sent in pieces while changes continue.
  bool TakePiece(Host& host) {
    if (host.snapshot == nullptr) return false;
    const auto piece = host.snapshot->Next(static_cast<size_t>(1 + Pick(2000)));
    if (piece.has_value()) {
      EXPECT_EQ(piece->version(), host.snapshot->version());
      host.model.Apply(*piece);
      ++pieces_;
    } else {
      host.snapshot = nullptr;
    }
    return true;
  }

  void Take(Host& host) {
    if (TakePiece(host)) return;
    const int snapshots_before = host.model.snapshots;
    for (const auto& request : state_.TakeChanges(host.cursor, now_)) host.model.Apply(request);
    snapshots_ += host.model.snapshots - snapshots_before;
    EXPECT_EQ(host.model.fault, "");
    EXPECT_EQ(host.model.version, state_.VersionOf(host.cursor));
    EXPECT_EQ(host.model.ended_attempts, host.ended);
    CheckNodes(host);
    CheckPods(host);
    CheckObjects(host);
    EXPECT_TRUE(state_.TakeChanges(host.cursor, now_).empty()) << "nothing is sent twice";
  }

  template <typename Object>
  static std::string Text(Object object, const absl::flat_hash_set<std::string>& keys) {
    std::map<std::string, std::string> kept;
    for (const auto& [key, value] : object.annotations()) {
      if (keys.contains(key)) kept[key] = value;
    }
    object.clear_annotations();
    std::string text = object.ShortDebugString();
    for (const auto& [key, value] : kept) absl::StrAppend(&text, " ", key, "=", value);
    return text;
  }

  void CheckNodes(const Host& host) {
    EXPECT_EQ(host.model.nodes.size(), state_.node_count());
    EXPECT_EQ(host.model.order, state_.node_order());
    for (const auto& [slot, node] : host.model.nodes) {
      const kube::NodePtr& actual = state_.NodeAt(slot);
      ASSERT_NE(actual, nullptr);
      EXPECT_EQ(Text(actual->node, host.fields.node_annotations),
                Text(node, {"wanted", "unwanted"}));
    }
  }

  void CheckObjects(const Host& host) {
    EXPECT_EQ(state_.object_count(), objects_.size());
    EXPECT_EQ(host.model.objects.size(), objects_.size());
    for (const auto& [key, object] : host.model.objects) {
      ASSERT_TRUE(objects_.count(key)) << key;
      EXPECT_EQ(object.ShortDebugString(), objects_.at(key).ShortDebugString());
    }
  }

  void CheckPods(const Host& host) {
    EXPECT_EQ(host.model.pods.size(), state_.pod_count());
    state_.ForEachPod([&](const kube::PodPtr& pod, bool assumed) {
      const auto it = host.model.pods.find(pod->uid());
      ASSERT_NE(it, host.model.pods.end()) << pod->uid();
      const ModelCache::Pod& seen = it->second;
      v1beta1::Pod expected = pod->pod;
      const bool bound = !expected.node_name().empty();
      if (bound && seen.place == ModelCache::Place::kAssumed) {
        // Confirmed without a message: the object is as it was before the bind.
        expected.set_node_name(seen.object.node_name());
      }
      EXPECT_EQ(Text(expected, host.fields.pod_annotations),
                Text(seen.object, {"wanted", "unwanted"}));
      const uint32_t slot = state_.SlotOf(state_.NodeOf(pod->uid()));
      EXPECT_EQ(seen.counts() ? static_cast<int64_t>(seen.slot) : -1,
                slot == ClusterState::kNoSlot ? -1 : static_cast<int64_t>(slot))
          << pod->uid() << " of " << state_.NodeOf(pod->uid());
      if (assumed && slot != ClusterState::kNoSlot) {
        EXPECT_TRUE(seen.place == ModelCache::Place::kAssumed ||
                    seen.place == ModelCache::Place::kWaiting);
      }
    });
  }

  void CheckBooks() {
    std::map<std::string, std::pair<size_t, int64_t>> expected;
    size_t assumed_pods = 0;
    state_.ForEachPod([&](const kube::PodPtr& pod, bool assumed) {
      if (assumed) ++assumed_pods;
      const std::string node = state_.NodeOf(pod->uid());
      if (node.empty()) return;
      ++expected[node].first;
      expected[node].second += DemandOf(pod->pod).cpu_millis;
    });
    EXPECT_EQ(state_.assumed_count(), assumed_pods);
    for (int i = 0; i < 8; ++i) {
      const std::string name = absl::StrCat("n", i);
      const NodeUsage* usage = state_.UsageOf(name);
      EXPECT_EQ(usage == nullptr ? 0 : usage->pods(), expected[name].first) << name;
      EXPECT_EQ(usage == nullptr ? absl::int128(0) : usage->cpu_millis(),
                absl::int128(expected[name].second))
          << name;
      if (usage == nullptr) {
        EXPECT_EQ(state_.SlotOf(name), ClusterState::kNoSlot);
      }
    }
    std::vector<uint32_t> order = state_.node_order();
    std::sort(order.begin(), order.end());
    EXPECT_TRUE(std::adjacent_find(order.begin(), order.end()) == order.end());
    for (const uint32_t slot : order) EXPECT_NE(state_.NodeAt(slot), nullptr);
  }

  std::mt19937 random_;
  ClusterState state_;
  // The expected objects of the state.
  std::map<std::string, v1beta1::ClusterObject> objects_;
  std::vector<std::unique_ptr<Host>> hosts_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  uint64_t resource_version_ = 0;
  int snapshots_ = 0;
  int pieces_ = 0;
};

TEST(ClusterStateRandomTest, HostCachesEqualTheState) {
  int snapshots = 0;
  int pieces = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomRun run(seed, /*max_removed=*/65536);
    run.Go(1500);
    snapshots += run.snapshots();
    pieces += run.pieces();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(snapshots, 60);
  EXPECT_GT(pieces, 300);
}

TEST(ClusterStateRandomTest, ALogTooShortLeadsToSnapshotsNotToGaps) {
  int with_room = 0;
  int without = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomRun wide(seed, /*max_removed=*/65536);
    wide.Go(1000);
    with_room += wide.snapshots();
    RandomRun narrow(seed, /*max_removed=*/2);
    narrow.Go(1000);
    without += narrow.snapshots();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(without, with_room);
}

}  // namespace
}  // namespace outboard::cache
