// Compares the index with a full recount, over random clusters and random changes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugin_host/sdk/tolerations.h"
#include "plugins/pod_topology_spread/logarithm.h"
#include "plugins/pod_topology_spread/pod_topology_spread.h"

namespace outboard::pod_topology_spread {
namespace {

using sdk::NodeView;
using sdk::PodRecord;
using sdk::Slot;
using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using Proto = v1beta1::TopologySpreadConstraint;
using Counts = std::map<std::string, int64_t>;

constexpr char kMismatch[] = "node(s) didn't match pod topology spread constraints";
constexpr char kMissing[] =
    "node(s) didn't match pod topology spread constraints (missing required label)";
constexpr char kHost[] = "kubernetes.io/hostname";
constexpr char kZone[] = "topology.kubernetes.io/zone";

// A constraint in the recount.
struct Rule {
  Proto proto;
  std::optional<sdk::CompiledLabelSelector> selector;  // Absent: matches nothing.
  bool Matches(const v1beta1::Pod& pod) const {
    return selector && selector->Matches(pod.labels());
  }
};

// Recounts pods for every query, directly by kube-scheduler's rules.
class Recount {
 public:
  Recount(const sdk::ClusterView& cluster, const v1beta1::Pod& pod)
      : cluster_(cluster), pod_(pod), affinity_(pod) {}

  std::vector<Rule> Rules(Proto::WhenUnsatisfiable action) const {
    std::vector<Rule> rules;
    for (const Proto& proto : pod_.topology_spread_constraints()) {
      if (proto.when_unsatisfiable() != action) continue;
      Rule rule{proto, std::nullopt};
      if (proto.has_label_selector()) {
        v1beta1::LabelSelector merged = proto.label_selector();
        for (const std::string& key : proto.match_label_keys()) {
          if (!pod_.labels().contains(key)) continue;
          auto* expression = merged.add_match_expressions();
          expression->set_key(key);
          expression->set_operator_(v1beta1::SelectorRequirement::OPERATOR_IN);
          expression->add_values(pod_.labels().at(key));
        }
        rule.selector = *sdk::CompiledLabelSelector::Parse(merged);
      }
      rules.push_back(rule);
    }
    if (pod_.topology_spread_constraints().empty() &&
        action == Proto::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY) {
      if (auto selector = OwnersSelector()) {
        for (const auto& [key, skew] : {std::pair(kHost, 3), std::pair(kZone, 5)}) {
          Rule rule{Proto(), selector};
          rule.proto.set_topology_key(key);
          rule.proto.set_max_skew(skew);
          rules.push_back(rule);
        }
      }
    }
    return rules;
  }

  // The reason for each node; each `nominated` pod counts as on the node that is checked.
  std::map<std::string, std::string> Filter() const {
    const std::vector<Rule> rules = Rules(Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
    std::map<std::string, std::string> verdicts;
    for (Slot slot : cluster_.node_order()) {
      std::string verdict = Evaluate(rules, slot, {});
      std::vector<const PodRecord*> nominated;
      for (const PodRecord* other : cluster_.nodes().nominated[slot]) {
        if (other->pod.uid() != pod_.uid() && other->pod.priority() >= pod_.priority()) {
          nominated.push_back(other);
        }
      }
      if (!nominated.empty()) {
        const std::string second = Evaluate(rules, slot, nominated);
        if (!second.empty()) verdict = second;
      }
      verdicts[cluster_.node(slot).name()] = verdict;
    }
    return verdicts;
  }

  // Empty: the node is feasible. `extra`: pods added to the node after counting; `gone`: pods
  // removed after counting.
  std::string Evaluate(const std::vector<Rule>& rules, Slot slot,
                       const std::vector<const PodRecord*>& extra,
                       const std::vector<const PodRecord*>& gone = {}) const {
    const NodeView node = cluster_.node(slot);
    for (const Rule& rule : rules) {
      Counts counts;
      for (Slot other : cluster_.node_order()) {
        if (!HasAll(cluster_.node(other), rules) || !Counts_(rule, other)) continue;
        counts[*Value(other, rule)] += PodsOn(rule, other);
      }
      auto change = [&](const PodRecord* pod, int64_t count) {
        if (pod->pod.namespace_() != pod_.namespace_() || !rule.Matches(pod->pod)) return;
        if (HasAll(node, rules) && Counts_(rule, slot)) counts[*Value(slot, rule)] += count;
      };
      for (const PodRecord* pod : extra) change(pod, 1);
      for (const PodRecord* pod : gone) change(pod, -1);
      const auto value = Value(slot, rule);
      if (!value) return kMissing;
      int64_t lowest = std::numeric_limits<int32_t>::max();
      for (const auto& [name, count] : counts) lowest = std::min(lowest, count);
      const int64_t domains = rule.proto.has_min_domains() ? rule.proto.min_domains() : 1;
      if (static_cast<int64_t>(counts.size()) < domains) lowest = 0;
      const int64_t there = counts.contains(*value) ? counts[*value] : 0;
      if (there + rule.Matches(pod_) - lowest > rule.proto.max_skew()) return kMismatch;
    }
    return "";
  }

  // Raw scores; nullopt for ignored nodes.
  std::map<std::string, std::optional<int64_t>> Raw(const std::vector<std::string>& nodes) const {
    const std::vector<Rule> rules = Rules(Proto::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
    const bool all = !pod_.topology_spread_constraints().empty();
    std::map<std::string, double> sums;
    std::map<std::string, std::optional<int64_t>> result;
    if (rules.empty()) return result;
    for (const std::string& name : nodes) {
      if (!all || HasAll(*cluster_.FindNode(name), rules)) sums[name] = 0;
    }
    for (const Rule& rule : rules) {
      const bool host = rule.proto.topology_key() == kHost;
      std::set<std::string> domains;
      for (const auto& [name, sum] : sums) domains.insert(ValueOrEmpty(name, rule));
      const double weight = GoLog(static_cast<double>((host ? sums.size() : domains.size()) + 2));
      for (auto& [name, sum] : sums) {
        const Slot slot = cluster_.FindNode(name)->slot();
        if (!Value(slot, rule)) continue;
        int64_t count = host ? PodsOn(rule, slot) : 0;
        for (Slot other : cluster_.node_order()) {
          if (host || (all && !HasAll(cluster_.node(other), rules))) continue;
          if (!Counts_(rule, other)) continue;
          if (Value(other, rule).value_or("") == *Value(slot, rule)) count += PodsOn(rule, other);
        }
        sum += static_cast<double>(count) * weight + (rule.proto.max_skew() - 1);
      }
    }
    for (const std::string& name : nodes) {
      result[name] = std::nullopt;
      if (sums.contains(name)) result[name] = static_cast<int64_t>(std::round(sums[name]));
    }
    return result;
  }

  static std::map<std::string, int64_t> Normalized(
      const std::map<std::string, std::optional<int64_t>>& raw) {
    int64_t lowest = std::numeric_limits<int64_t>::max(), highest = 0;
    for (const auto& [name, score] : raw) {
      if (score) lowest = std::min(lowest, *score);
      if (score) highest = std::max(highest, *score);
    }
    std::map<std::string, int64_t> result;
    for (const auto& [name, score] : raw) {
      result[name] = !score ? 0 : highest == 0 ? 100 : 100 * (highest + lowest - *score) / highest;
    }
    return result;
  }

 private:
  std::optional<std::string> Value(Slot slot, const Rule& rule) const {
    const auto& labels = cluster_.node(slot).proto().labels();
    auto it = labels.find(rule.proto.topology_key());
    if (it == labels.end()) return std::nullopt;
    return it->second;
  }
  std::string ValueOrEmpty(const std::string& name, const Rule& rule) const {
    return Value(cluster_.FindNode(name)->slot(), rule).value_or("");
  }
  static bool HasAll(const NodeView& node, const std::vector<Rule>& rules) {
    for (const Rule& rule : rules) {
      if (!node.proto().labels().contains(rule.proto.topology_key())) return false;
    }
    return true;
  }
  // Whether the constraint's policies let the node count.
  bool Counts_(const Rule& rule, Slot slot) const {
    const NodeView node = cluster_.node(slot);
    if (rule.proto.node_affinity_policy() != Proto::NODE_INCLUSION_POLICY_IGNORE &&
        !affinity_.Matches(node).value_or(false)) {
      return false;
    }
    return rule.proto.node_taints_policy() != Proto::NODE_INCLUSION_POLICY_HONOR ||
           sdk::FindUntoleratedTaint(node.taints(), pod_.tolerations()) == nullptr;
  }
  int64_t PodsOn(const Rule& rule, Slot slot) const {
    if (rule.selector && rule.selector->matches_everything()) return 0;
    int64_t count = 0;
    for (const PodRecord* pod : cluster_.nodes().pods[slot]) {
      count += pod->pod.namespace_() == pod_.namespace_() &&
               pod->pod.deletion_unix_seconds() == 0 && rule.Matches(pod->pod);
    }
    return count;
  }
  // The selectors of the pod's services and ReplicaSet.
  std::optional<sdk::CompiledLabelSelector> OwnersSelector() const {
    v1beta1::LabelSelector merged;
    cluster_.objects().ForEach<v1beta1::Service>([&](const v1beta1::Service& service) {
      if (service.namespace_() != pod_.namespace_()) return;
      for (const auto& [key, value] : service.selector()) {
        auto it = pod_.labels().find(key);
        if (it == pod_.labels().end() || it->second != value) return;
      }
      for (const auto& [key, value] : service.selector()) {
        (*merged.mutable_match_labels())[key] = value;
      }
    });
    cluster_.objects().ForEach<v1beta1::PodController>([&](const v1beta1::PodController& set) {
      if (set.namespace_() != pod_.namespace_() || set.name() != pod_.controller().name()) return;
      for (const auto& [key, value] : set.selector().match_labels()) {
        auto* expression = merged.add_match_expressions();
        expression->set_key(key);
        expression->set_operator_(v1beta1::SelectorRequirement::OPERATOR_IN);
        expression->add_values(value);
      }
    });
    auto selector = sdk::CompiledLabelSelector::Parse(merged);
    if (!selector.ok() || selector->matches_everything()) return std::nullopt;
    return *selector;
  }

  sdk::ClusterView cluster_;
  const v1beta1::Pod& pod_;
  sdk::RequiredNodeAffinity affinity_;
};

// A cluster that changes at random.
class RandomCluster {
 public:
  explicit RandomCluster(uint32_t seed) : random_(seed) {
    auto created = PluginHarness::Create(Descriptor());
    EXPECT_TRUE(created.ok()) << created.status();
    harness_ = std::move(*created);
    for (int i = 0; i < 4; ++i) ChangeNode();
  }
  PluginHarness& harness() { return *harness_; }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool Chance(uint32_t percent) { return Below(100) < percent; }
  std::string Pick(std::initializer_list<const char*> values) {
    return *(values.begin() + Below(static_cast<uint32_t>(values.size())));
  }

  void Change() {
    switch (Below(12)) {
      case 0:
        return ChangeNode();
      case 1:
        return Chance(40) ? RemoveNode() : ChangeNode();
      case 2:
        return RemovePod();
      case 3:
        return PlacePod();
      case 4:
        return ChangeOwner();
      default:
        return AddPod();
    }
  }

  v1beta1::Pod RandomPod(const std::string& name) {
    PodBuilder builder(name, Pick({"x", "x", "y"}));
    if (Chance(90)) builder.Label("app", Pick({"a", "b", "c"}));
    if (Chance(50)) builder.Label("tier", Pick({"front", "back"}));
    builder.Priority(static_cast<int32_t>(Below(3)));
    return builder;
  }

  // An incoming pod, with constraints or owners.
  v1beta1::Pod Incoming() {
    v1beta1::Pod pod = RandomPod(absl::StrCat("incoming-", ++names_));
    if (Chance(25)) (*pod.mutable_node_selector())["pool"] = Pick({"p", "q"});
    if (Chance(30)) {
      auto* toleration = pod.add_tolerations();
      toleration->set_key("dedicated");
      toleration->set_operator_(v1beta1::Toleration::OPERATOR_EXISTS);
    }
    if (Chance(30)) {
      pod.mutable_controller()->set_api_version("apps/v1");
      pod.mutable_controller()->set_kind("ReplicaSet");
      pod.mutable_controller()->set_name(Pick({"r1", "r2"}));
    }
    std::set<std::pair<std::string, int>> used;
    for (uint32_t n = Below(4); n > 0; --n) {
      Proto constraint = RandomConstraint();
      if (!used.emplace(constraint.topology_key(), constraint.when_unsatisfiable()).second) {
        continue;
      }
      *pod.add_topology_spread_constraints() = constraint;
    }
    return pod;
  }

 private:
  Proto RandomConstraint() {
    Proto c;
    c.set_topology_key(Pick({kZone, kZone, kHost, "rack", "nowhere"}));
    c.set_when_unsatisfiable(Chance(60) ? Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE
                                        : Proto::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
    c.set_max_skew(static_cast<int32_t>(1 + Below(3)));
    if (Chance(90)) {
      auto* selector = c.mutable_label_selector();
      if (Chance(80)) (*selector->mutable_match_labels())["app"] = Pick({"a", "b"});
      if (Chance(30)) {
        auto* expression = selector->add_match_expressions();
        expression->set_key("tier");
        expression->set_operator_(Chance(50) ? v1beta1::SelectorRequirement::OPERATOR_EXISTS
                                             : v1beta1::SelectorRequirement::OPERATOR_NOT_IN);
        if (expression->operator_() == v1beta1::SelectorRequirement::OPERATOR_NOT_IN) {
          expression->add_values("back");
        }
      } else if (Chance(20)) {
        auto* expression = selector->add_match_expressions();
        expression->set_key("app");
        expression->set_operator_(v1beta1::SelectorRequirement::OPERATOR_IN);
        for (const char* value : {"c", "a", "a"}) expression->add_values(value);
      }
    }
    if (Chance(20)) c.add_match_label_keys("tier");
    if (Chance(30)) c.set_min_domains(static_cast<int32_t>(1 + Below(4)));
    if (Chance(30))
      c.set_node_affinity_policy(Chance(50) ? Proto::NODE_INCLUSION_POLICY_HONOR
                                            : Proto::NODE_INCLUSION_POLICY_IGNORE);
    if (Chance(40))
      c.set_node_taints_policy(Chance(70) ? Proto::NODE_INCLUSION_POLICY_HONOR
                                          : Proto::NODE_INCLUSION_POLICY_IGNORE);
    return c;
  }
  std::optional<std::string> AnyNode() {
    const auto order = harness_->cluster().node_order();
    if (order.empty()) return std::nullopt;
    return harness_->cluster().node(order[Below(static_cast<uint32_t>(order.size()))]).name();
  }
  std::optional<std::string> AnyPod() {
    if (pods_.empty()) return std::nullopt;
    return *std::next(pods_.begin(), Below(static_cast<uint32_t>(pods_.size())));
  }
  void ChangeNode() {
    // Names repeat, so that nodes change, and reappear while pods refer to them.
    const std::string name = absl::StrCat("n", Below(9));
    NodeBuilder node(name);
    if (Chance(90)) node.Label(kHost, Chance(95) ? name : "shared");
    if (Chance(85)) node.Label(kZone, Pick({"a", "b", "c", ""}));
    if (Chance(70)) node.Label("rack", absl::StrCat("r", Below(20)));
    if (Chance(60)) node.Label("pool", Pick({"p", "q"}));
    if (Chance(25)) node.Taint("dedicated", "", v1beta1::TAINT_EFFECT_NO_SCHEDULE);
    if (Chance(15)) node.Taint("soft", "", v1beta1::TAINT_EFFECT_PREFER_NO_SCHEDULE);
    harness_->AddNode(node);
  }
  void RemoveNode() {
    if (auto name = AnyNode()) harness_->RemoveNode(*name);
  }
  void AddPod() {
    v1beta1::Pod pod = RandomPod(absl::StrCat("p", Below(40)));
    if (Chance(70)) pod.set_node_name(absl::StrCat("n", Below(10)));
    if (Chance(10)) pod.set_deletion_unix_seconds(7);
    harness_->AddPod(pod);
    pods_.insert(pod.uid());
  }
  void RemovePod() {
    auto uid = AnyPod();
    if (!uid) return;
    harness_->RemovePod(*uid);
    pods_.erase(*uid);
  }
  void PlacePod() {
    auto uid = AnyPod();
    auto node = AnyNode();
    if (!uid || !node || harness_->cluster().FindPod(*uid)->place == sdk::Place::kBound) return;
    const v1beta1::PlacementState states[] = {
        v1beta1::PLACEMENT_STATE_ASSUMED, v1beta1::PLACEMENT_STATE_WAITING,
        v1beta1::PLACEMENT_STATE_NOMINATED, v1beta1::PLACEMENT_STATE_UNPLACED};
    harness_->Place(*uid, states[Below(4)], *node);
  }
  void ChangeOwner() {
    v1beta1::ClusterObject object;
    if (Chance(60)) {
      v1beta1::Service* service = object.mutable_service();
      service->set_namespace_(Pick({"x", "y"}));
      service->set_name(Pick({"s1", "s2", "s3"}));
      if (Chance(85)) (*service->mutable_selector())["app"] = Pick({"a", "b", "c"});
      if (Chance(30)) (*service->mutable_selector())["tier"] = Pick({"front", "back"});
    } else {
      v1beta1::PodController* set = object.mutable_pod_controller();
      set->set_api_version("apps/v1");
      set->set_kind("ReplicaSet");
      set->set_namespace_(Pick({"x", "y"}));
      set->set_name(Pick({"r1", "r2"}));
      (*set->mutable_selector()->mutable_match_labels())["app"] = Pick({"a", "b", "c"});
    }
    if (Chance(75)) {
      harness_->AddObject(object);
    } else {
      harness_->RemoveObject(object);
    }
  }

  std::mt19937 random_;
  std::unique_ptr<PluginHarness> harness_;
  std::set<std::string> pods_;  // By uid.
  int names_ = 0;
};

void CheckFilter(RandomCluster& cluster, const Recount& recount, const v1beta1::Pod& pod) {
  const auto outcome = cluster.harness().PreFilter(pod);
  ASSERT_EQ(outcome.verdict.skip(),
            recount.Rules(Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE).empty());
  std::map<std::string, std::string> verdicts;
  for (const auto& [node, verdict] : cluster.harness().Filter(pod)) {
    verdicts[node] = verdict.ok() ? "" : verdict.reasons()[0];
    if (!verdict.ok()) {
      EXPECT_EQ(verdict.code(), verdicts[node] == kMissing
                                    ? v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
                                    : v1beta1::CODE_UNSCHEDULABLE);
    }
  }
  EXPECT_EQ(verdicts, recount.Filter());
}

void CheckScores(RandomCluster& cluster, const Recount& recount, const v1beta1::Pod& pod) {
  std::vector<std::string> nodes;  // Empty would mean all.
  for (Slot slot : cluster.harness().cluster().node_order()) {
    if (nodes.empty() || cluster.Chance(70)) {
      nodes.push_back(cluster.harness().cluster().node(slot).name());
    }
  }
  if (nodes.empty()) return;
  const auto expected = recount.Raw(nodes);
  std::map<std::string, int64_t> raw;
  for (const auto& [name, score] : expected) raw[name] = score.value_or(0);
  EXPECT_EQ(*cluster.harness().RawScore(pod, nodes), raw);
  EXPECT_EQ(*cluster.harness().Score(pod, nodes), Recount::Normalized(expected));
}

// Adds pods to a node and removes them in a copy of the state, as preemption does.
void CheckHypotheses(RandomCluster& cluster, const Recount& recount, const v1beta1::Pod& pod) {
  const sdk::ClusterView view = cluster.harness().cluster();
  const std::vector<Rule> rules = recount.Rules(Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
  if (rules.empty()) return;
  auto* plugin = dynamic_cast<sdk::PreFilterPlugin*>(&cluster.harness().plugin());
  auto* filter = dynamic_cast<sdk::FilterPlugin*>(&cluster.harness().plugin());
  sdk::PluginState base;
  const sdk::PodView incoming(view.FindPod(pod.uid()));
  sdk::PreFilterResult result;
  ASSERT_TRUE(
      plugin->PreFilter(sdk::Attempt(1, incoming, view, absl::UnixEpoch(), &base), &result).ok());
  for (Slot slot : view.node_order()) {
    sdk::PluginState state;
    state.filter = base.filter->Clone();
    const sdk::Attempt attempt(1, incoming, view, absl::UnixEpoch(), &state);
    std::vector<const PodRecord*> extra, gone;
    for (const PodRecord* other : view.nodes().pods[slot]) {
      if (!cluster.Chance(60)) continue;
      gone.push_back(other);
      ASSERT_TRUE(plugin->RemovePod(attempt, sdk::PodView(other), view.node(slot)).ok());
    }
    for (const auto& [uid, other] : view.pods()) {
      if (other->place != sdk::Place::kNone || !cluster.Chance(30)) continue;
      extra.push_back(other.get());
      ASSERT_TRUE(plugin->AddPod(attempt, sdk::PodView(other.get()), view.node(slot)).ok());
    }
    sdk::VerdictTable table;
    sdk::BlockVerdicts ids;
    sdk::FilterSink sink(&table, 0, 1, &ids);
    filter->Filter(attempt, sdk::NodeBlock{{&slot, 1}, 1}, sink);
    const std::string verdict =
        sink.rejected() == 0 ? "" : table.entries()[ids[0]].verdict.reasons()[0];
    EXPECT_EQ(verdict, recount.Evaluate(rules, slot, extra, gone)) << view.node(slot).name();
  }
}

class SpreadRandomTest : public testing::TestWithParam<uint32_t> {};

TEST_P(SpreadRandomTest, EqualsARecountOfEverything) {
  RandomCluster cluster(GetParam());
  for (int step = 0; step < 250; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    for (uint32_t n = cluster.Below(6); n > 0; --n) cluster.Change();
    const v1beta1::Pod pod = cluster.Incoming();
    cluster.harness().AddPod(pod);
    const Recount recount(cluster.harness().cluster(), pod);
    CheckFilter(cluster, recount, pod);
    CheckScores(cluster, recount, pod);
    CheckHypotheses(cluster, recount, pod);
    cluster.harness().RemovePod(pod.uid());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SpreadRandomTest, testing::Range(1u, 9u));

}  // namespace
}  // namespace outboard::pod_topology_spread
