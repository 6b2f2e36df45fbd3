// Compares the index with a model that recounts everything, over random clusters and changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/inter_pod_affinity/inter_pod_affinity.h"
#include "plugins/inter_pod_affinity/recount_model.h"

namespace outboard::inter_pod_affinity {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using v1beta1::SelectorRequirement;

// Draws clusters and pods with few distinct labels, so that terms match often.
class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  std::string OneOf(std::initializer_list<const char*> texts) {
    return texts.begin()[Below(static_cast<int>(texts.size()))];
  }
  std::string Namespace() { return OneOf({"ns0", "ns1", "ns2", "ns3", "unknown"}); }
  std::map<std::string, std::string> NamespaceLabels() {
    std::map<std::string, std::string> labels;
    if (Chance(70)) labels["team"] = OneOf({"x", "y"});
    return labels;
  }

  v1beta1::Node Node(const std::string& name) {
    NodeBuilder node(name);
    if (Chance(80)) node.Label("zone", OneOf({"a", "b", "c"}));
    if (Chance(80)) node.Label("host", name);
    if (Chance(30)) node.Label("rack", OneOf({"r1", "r2"}));
    return node;
  }
  void SetLabels(v1beta1::Pod* pod) {
    pod->clear_labels();
    if (Chance(80)) (*pod->mutable_labels())["app"] = OneOf({"a", "b", "c"});
    if (Chance(50)) (*pod->mutable_labels())["tier"] = OneOf({"x", "y"});
  }
  // `broken`: some terms cannot be parsed.
  v1beta1::Pod Pod(const std::string& name, bool broken) {
    v1beta1::Pod pod = sdk::testing::PodBuilder(name, Namespace());
    pod.set_priority(Below(3));
    SetLabels(&pod);
    if (Chance(40)) return pod;
    for (auto* rules : {pod.mutable_affinity()->mutable_pod_affinity(),
                        pod.mutable_affinity()->mutable_pod_anti_affinity()}) {
      if (Chance(40)) {
        for (int i = Below(2); i >= 0; --i) {
          Term(broken, rules->add_required_during_scheduling_ignored_during_execution());
        }
      }
      if (Chance(40)) {
        for (int i = Below(3); i >= 0; --i) {
          auto* term = rules->add_preferred_during_scheduling_ignored_during_execution();
          term->set_weight(Chance(50) ? 5 : 1 + Below(100));
          Term(broken, term->mutable_pod_affinity_term());
        }
      }
    }
    return pod;
  }

 private:
  void Requirement(const std::string& key, std::initializer_list<const char*> values,
                   v1beta1::LabelSelector* selector) {
    SelectorRequirement* requirement = selector->add_match_expressions();
    requirement->set_key(key);
    switch (Below(4)) {
      case 0:
        requirement->set_operator_(SelectorRequirement::OPERATOR_EXISTS);
        return;
      case 1:
        requirement->set_operator_(SelectorRequirement::OPERATOR_DOES_NOT_EXIST);
        return;
      case 2:
        requirement->set_operator_(SelectorRequirement::OPERATOR_NOT_IN);
        break;
      default:
        requirement->set_operator_(SelectorRequirement::OPERATOR_IN);
    }
    for (int i = Below(2); i >= 0; --i) requirement->add_values(OneOf(values));
  }
  void Term(bool broken, v1beta1::PodAffinityTerm* term) {
    term->set_topology_key(OneOf({"zone", "zone", "host", "host", "rack", "nowhere"}));
    if (Chance(95)) {
      v1beta1::LabelSelector* selector = term->mutable_label_selector();
      if (Chance(60)) (*selector->mutable_match_labels())["app"] = OneOf({"a", "b", "c"});
      if (Chance(20)) (*selector->mutable_match_labels())["tier"] = OneOf({"x", "y"});
      if (Chance(20)) Requirement("app", {"a", "b", "c"}, selector);
      if (Chance(20)) Requirement("tier", {"x", "y"}, selector);
      if (broken && Chance(5)) selector->add_match_expressions()->set_key("app");
    }
    if (Chance(25)) {
      for (int i = Below(2); i >= 0; --i) term->add_namespaces(Namespace());
    }
    if (!Chance(35)) return;
    v1beta1::LabelSelector* selector = term->mutable_namespace_selector();
    if (Chance(50)) (*selector->mutable_match_labels())["team"] = OneOf({"x", "y"});
    if (Chance(30)) Requirement("team", {"x", "y"}, selector);
  }

  std::mt19937 random_;
};

// A plugin and a model that get the same changes.
class World {
 public:
  World(uint32_t seed, const sdk::PluginDescriptor& descriptor) : dice(seed) {
    model.hard_weight = dice.Chance(30) ? 0 : 1 + dice.Below(10);
    harness = *PluginHarness::Create(
        descriptor, absl::StrCat("{\"hardPodAffinityWeight\":", model.hard_weight, "}"));
    for (int i = 0; i < 6; ++i) ChangeNode();
    for (int i = 0; i < 30; ++i) ChangePod();
    for (int i = 0; i < 4; ++i) ChangeNamespace();
  }

  void Change() {
    const int what = dice.Below(100);
    if (what < 20) return ChangeNode();
    if (what < 80) return ChangePod();
    if (what < 90) return ChangeNamespace();
    if (what < 95) {
      for (int i = dice.Below(700); i >= 0; --i) harness->Tick();
      return;
    }
    Rebuild();
  }

  // An incoming pod; equal pods repeat.
  v1beta1::Pod Question() {
    const int number = dice.Below(12);
    auto [it, inserted] = questions_.try_emplace(number);
    if (inserted) it->second = dice.Pod(absl::StrCat("question-", number), /*broken=*/false);
    if (model.pods[it->second.uid()].pod.uid().empty()) {
      model.pods[it->second.uid()].pod = it->second;
    }
    return it->second;
  }

  Dice dice;
  RecountModel model;
  std::unique_ptr<PluginHarness> harness;

 private:
  void ChangeNode() {
    const std::string name = absl::StrCat("n", dice.Below(9));
    if (model.nodes.contains(name) && dice.Chance(35)) {
      model.nodes.erase(name);
      harness->RemoveNode(name);
      for (auto& [uid, pod] : model.pods) {
        if (pod.nominated == name) pod.nominated.clear();
      }
      return;
    }
    // A new node, or other labels.
    model.nodes[name] = dice.Node(name);
    harness->AddNode(model.nodes[name]);
  }

  void ChangeNamespace() {
    const std::string name = absl::StrCat("ns", dice.Below(4));
    if (dice.Chance(20)) {
      model.namespaces.erase(name);
      harness->RemoveNamespace(name);
      return;
    }
    model.namespaces[name] = dice.NamespaceLabels();
    harness->AddNamespace(name, model.namespaces[name]);
  }

  std::string SomeNode() {
    auto it = model.nodes.begin();
    std::advance(it, dice.Below(static_cast<int>(model.nodes.size())));
    return it->first;
  }

  void ChangePod() {
    const int number = dice.Below(40);
    auto known = std::find_if(model.pods.begin(), model.pods.end(), [&](const auto& entry) {
      return entry.second.pod.name() == absl::StrCat("e", number);
    });
    if (known == model.pods.end()) return NewPod(absl::StrCat("e", number));
    ModelPod& pod = known->second;
    switch (dice.Below(4)) {
      case 0:
        harness->RemovePod(pod.pod.uid());
        model.pods.erase(known);
        return;
      case 1:  // Moves: removed from one node, added to another.
        harness->RemovePod(pod.pod.uid());
        model.pods.erase(known);
        return NewPod(absl::StrCat("e", number));
      case 2:  // Other labels.
        dice.SetLabels(&pod.pod);
        if (pod.pod.node_name().empty() && !model.nodes.contains(pod.node)) pod.node.clear();
        harness->AddPod(pod.pod);
        return;
      default:
        if (pod.pod.node_name().empty()) Place(&pod);
    }
  }
  void NewPod(const std::string& name) {
    v1beta1::Pod pod = dice.Pod(name, /*broken=*/true);
    if (dice.Chance(70)) pod.set_node_name(absl::StrCat("n", dice.Below(9)));
    model.pods[pod.uid()] = {pod, pod.node_name(), ""};
    harness->AddPod(pod);
    if (pod.node_name().empty()) Place(&model.pods[pod.uid()]);
  }
  // As the shim does for a pod that has no node in the API server.
  void Place(ModelPod* pod) {
    pod->node.clear();
    pod->nominated.clear();
    if (model.nodes.empty() || dice.Chance(30)) {
      return harness->Place(pod->pod.uid(), v1beta1::PLACEMENT_STATE_UNPLACED, "");
    }
    const std::string node = SomeNode();
    const bool nominated = dice.Chance(50);
    (nominated ? pod->nominated : pod->node) = node;
    harness->Place(
        pod->pod.uid(),
        nominated ? v1beta1::PLACEMENT_STATE_NOMINATED : v1beta1::PLACEMENT_STATE_ASSUMED, node);
  }

  // As the cluster cache does for a plugin added later, or after a snapshot.
  void Rebuild() {
    auto& observer = dynamic_cast<sdk::ClusterObserver&>(harness->plugin());
    observer.OnReset();
    const sdk::ClusterView cluster = harness->cluster();
    for (const auto& [name, labels] : cluster.namespaces()) observer.OnNamespaceChanged(name);
    for (sdk::Slot slot : cluster.node_order()) observer.OnNodeChanged(slot);
    for (const auto& [uid, pod] : cluster.pods()) {
      if (pod->on_node()) observer.OnPodAddedToNode(*pod, pod->slot);
      observer.OnPodChanged(*pod);
    }
  }

  std::map<int, v1beta1::Pod> questions_;
};

std::map<std::string, std::string> Texts(const std::map<std::string, sdk::Verdict>& verdicts) {
  std::map<std::string, std::string> texts;
  for (const auto& [node, verdict] : verdicts) {
    texts[node] = verdict.ok() ? "" : verdict.reasons().at(0);
  }
  return texts;
}

// How often each case occurred.
struct Tried {
  int skipped = 0;
  int filtered = 0;
  int scored = 0;
};

void CheckAgainstModel(World* world, const v1beta1::Pod& pod, Tried* tried) {
  const auto expected = world->model.Filter(pod);
  const auto outcome = world->harness->PreFilter(pod);
  ASSERT_EQ(outcome.verdict.skip(), !expected.has_value());
  (expected ? tried->filtered : tried->skipped)++;
  if (expected) {
    ASSERT_EQ(Texts(world->harness->Filter(pod)), *expected);
  }
  const auto expected_raw = world->model.RawScores(pod);
  const auto raw = world->harness->RawScore(pod);
  ASSERT_TRUE(raw.ok()) << raw.status();
  if (!expected_raw) {
    ASSERT_TRUE(raw->empty()) << "scored, although no term matches";
    return;
  }
  ++tried->scored;
  ASSERT_EQ(*raw, *expected_raw);
  ASSERT_EQ(*world->harness->Score(pod), RecountModel::Normalized(*expected_raw));
}

TEST(RecountTest, AnyChangeLeavesTheIndexRight) {
  Tried tried;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    World world(seed, Descriptor());
    for (int step = 0; step < 120; ++step) {
      world.Change();
      for (int i = 0; i < 2; ++i) {
        const v1beta1::Pod pod = world.Question();
        SCOPED_TRACE(absl::StrCat("seed ", seed, ", step ", step, ": ", pod.ShortDebugString()));
        CheckAgainstModel(&world, pod, &tried);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  // Ensures that the random clusters exercise every case.
  EXPECT_GT(tried.skipped, 500);
  EXPECT_GT(tried.filtered, 500);
  EXPECT_GT(tried.scored, 500);
}

// Attempts whose states the test changes, as preemption does.
class Rehearsal {
 public:
  Rehearsal(PluginHarness* harness, const v1beta1::Pod& pod)
      : harness_(harness),
        pre_filter_(dynamic_cast<sdk::PreFilterPlugin&>(harness->plugin())),
        filter_(dynamic_cast<sdk::FilterPlugin&>(harness->plugin())),
        pod_(harness->cluster().FindPod(pod.uid())) {}

  bool Begin() {
    sdk::PreFilterResult result;
    return pre_filter_.PreFilter(View(&state_), &result).ok();
  }
  void Clone() { clone_.filter = state_.filter->Clone(); }
  void Add(const sdk::PodRecord& pod, const std::string& node) {
    ASSERT_TRUE(pre_filter_.AddPod(View(&clone_), sdk::PodView(&pod), Node(node)).ok());
  }
  void Remove(const sdk::PodRecord& pod, const std::string& node) {
    ASSERT_TRUE(pre_filter_.RemovePod(View(&clone_), sdk::PodView(&pod), Node(node)).ok());
  }
  std::map<std::string, std::string> OfClone() { return Filter(&clone_); }
  std::map<std::string, std::string> OfOriginal() { return Filter(&state_); }

 private:
  sdk::Attempt View(sdk::PluginState* state) {
    return sdk::Attempt(1, sdk::PodView(pod_), harness_->cluster(), absl::UnixEpoch(), state);
  }
  sdk::NodeView Node(const std::string& name) { return *harness_->cluster().FindNode(name); }
  std::map<std::string, std::string> Filter(sdk::PluginState* state) {
    const std::vector<sdk::Slot> slots(harness_->cluster().node_order().begin(),
                                       harness_->cluster().node_order().end());
    const uint64_t all = (uint64_t{1} << slots.size()) - 1;
    sdk::VerdictTable table;
    sdk::BlockVerdicts ids;
    sdk::FilterSink sink(&table, 0, all, &ids);
    filter_.Filter(View(state), sdk::NodeBlock{slots, all}, sink);
    EXPECT_EQ(sink.failed(), 0u);
    std::map<std::string, std::string> texts;
    for (size_t i = 0; i < slots.size(); ++i) {
      const bool rejected = (sink.rejected() >> i & 1) != 0;
      texts[harness_->cluster().node(slots[i]).name()] =
          rejected ? table.entries()[ids[i]].verdict.reasons().at(0) : "";
    }
    return texts;
  }

  PluginHarness* harness_;
  sdk::PreFilterPlugin& pre_filter_;
  sdk::FilterPlugin& filter_;
  const sdk::PodRecord* pod_;
  sdk::PluginState state_;
  sdk::PluginState clone_;
};

void CheckAddAndRemove(World* world, const v1beta1::Pod& pod) {
  world->harness->PreFilter(pod);  // Makes the pod known.
  Rehearsal rehearsal(world->harness.get(), pod);
  if (!rehearsal.Begin()) return;
  RecountModel changed = world->model;
  rehearsal.Clone();
  for (auto& [uid, model_pod] : changed.pods) {
    if (uid == pod.uid() || !world->dice.Chance(20)) continue;
    const sdk::PodRecord& record = *world->harness->cluster().FindPod(uid);
    if (changed.nodes.contains(model_pod.node)) {
      rehearsal.Remove(record, model_pod.node);
      model_pod.node.clear();
      if (world->dice.Chance(70)) continue;  // The others return to the same or another node.
    }
    auto node = changed.nodes.begin();
    if (changed.nodes.empty()) continue;
    std::advance(node, world->dice.Below(static_cast<int>(changed.nodes.size())));
    model_pod.node = node->first;
    rehearsal.Add(record, model_pod.node);
  }
  ASSERT_EQ(rehearsal.OfClone(), changed.FilterNodes(pod));
  ASSERT_EQ(rehearsal.OfOriginal(), world->model.FilterNodes(pod));
}

TEST(RecountTest, AddPodAndRemovePodEqualPreFilterOnTheOtherCluster) {
  for (uint32_t seed = 1001; seed <= 1080; ++seed) {
    World world(seed, Descriptor());
    for (int step = 0; step < 40; ++step) {
      world.Change();
      const v1beta1::Pod pod = world.Question();
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", step ", step, ": ", pod.ShortDebugString()));
      CheckAddAndRemove(&world, pod);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace outboard::inter_pod_affinity
