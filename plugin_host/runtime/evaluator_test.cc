#include "plugin_host/runtime/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime {
namespace {

using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;

// A plugin with programmed answers.
struct Script {
  Verdict pre_filter;
  std::optional<std::set<std::string>> names;
  std::map<std::string, Verdict> filter;  // By node; others pass.
  bool reject_with_pods = false;          // Rejects nodes with a pod.
  bool reject_without_pods = false;       // Rejects nodes without a pod.
  Verdict pre_score;
  Verdict score;
  std::vector<int64_t> scores;  // By position; empty: 7 for all.
  int filter_calls = 0;
  int score_calls = 0;
};

struct CountState : sdk::AttemptState {
  int added = 0;
  std::unique_ptr<sdk::AttemptState> Clone() const override {
    return std::make_unique<CountState>(*this);
  }
};

class Scripted : public sdk::Plugin,
                 public sdk::PreFilterPlugin,
                 public sdk::NodeFilterPlugin,
                 public sdk::PreScorePlugin,
                 public sdk::ScorePlugin {
 public:
  explicit Scripted(Script* script) : script_(script) {}
  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    attempt.NewFilterState<CountState>();
    result->node_names = script_->names;
    return script_->pre_filter;
  }
  Verdict AddPod(const sdk::Attempt& attempt, const sdk::PodView&,
                 const sdk::NodeView&) const override {
    ++attempt.filter_state<CountState>()->added;
    return Verdict::Success();
  }
  Verdict FilterNode(const sdk::Attempt& attempt, const sdk::NodeView& node) const override {
    ++script_->filter_calls;
    if (script_->reject_with_pods && !node.pods().empty()) {
      return Verdict::Unschedulable(
          absl::StrCat("has ", attempt.filter_state<CountState>()->added, " more"));
    }
    if (script_->reject_without_pods && node.pods().empty()) return Verdict::Unschedulable("alone");
    auto it = script_->filter.find(node.name());
    return it == script_->filter.end() ? Verdict::Success() : it->second;
  }
  Verdict PreScore(const sdk::Attempt&, absl::Span<const sdk::Slot>) const override {
    return script_->pre_score;
  }
  Verdict Score(const sdk::Attempt&, absl::Span<const sdk::Slot> nodes,
                absl::Span<int64_t> raw) const override {
    ++script_->score_calls;
    for (size_t i = 0; i < nodes.size(); ++i) {
      raw[i] = i < script_->scores.size() ? script_->scores[i] : 7;
    }
    return script_->score;
  }

 private:
  Script* script_;
};

class EvaluatorTest : public ::testing::Test, public PushTarget {
 protected:
  void Decide(const std::string&, const sdk::WaitDecision&) override {}
  void SortKeysChanged(absl::Span<const std::string>) override {}
  void GateChanged(absl::Span<const std::string>) override {}
  void Activate(const std::string&, absl::Span<const std::string>) override {}
  void Write(const std::string&, v1beta1::Effect) override {}

  void SetUp() override {
    v1beta1::ProfileConfig config;
    config.set_name("p");
    for (const std::string name : {"A", "B"}) {
      sdk::PluginDescriptor descriptor;
      descriptor.name = name;
      descriptor.extension_points = {
          v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
          v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
      Script* script = name == "A" ? &a_ : &b_;
      descriptor.create =
          [script](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
        return std::make_unique<Scripted>(script);
      };
      ASSERT_TRUE(registry_.Add(std::move(descriptor)).ok());
    }
    for (auto point : {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                       v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE}) {
      auto* out = config.add_points();
      out->set_extension_point(point);
      out->add_plugins("A");
      out->add_plugins("B");
    }
    google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem> problems;
    profile_ = Profile::Create(config, registry_, &cache_, this, &problems);
    ASSERT_NE(profile_, nullptr) << problems[0].message();
  }
  void AddNodes(int count) {
    v1beta1::SyncRequest request;
    request.set_version(1);
    request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (int i = 0; i < count; ++i) {
      auto* upsert = request.add_changes()->mutable_node_upsert();
      upsert->set_slot(i);
      *upsert->mutable_node() = NodeBuilder(absl::StrCat("n", i)).Build();
    }
    *request.add_changes()->mutable_pod_upsert()->mutable_pod() = PodBuilder("pod").Priority(5);
    ASSERT_TRUE(cache_.Apply(request, now_).ok());
    request.Clear();
    request.set_version(1);
    request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(cache_.Apply(request, now_).ok());
  }
  void Nominate(const std::string& name, int32_t priority, sdk::Slot slot) {
    v1beta1::SyncRequest request;
    request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
    request.set_version(2);
    *request.add_changes()->mutable_pod_upsert()->mutable_pod() =
        PodBuilder(name).Priority(priority);
    auto* placement = request.add_changes()->mutable_pod_placement();
    placement->set_uid("default/" + name);
    placement->set_state(v1beta1::PLACEMENT_STATE_NOMINATED);
    placement->set_slot(slot);
    ASSERT_TRUE(cache_.Apply(request, now_).ok());
  }
  const sdk::PodRecord& Pod() { return *cache_.FindPod("default/pod"); }
  v1beta1::PreFilterResponse PreFilter() {
    attempt_.Begin(1, "default/pod", profile_);
    v1beta1::PreFilterResponse response;
    evaluator_.PreFilter(attempt_, Pod(), now_, &response);
    return response;
  }
  v1beta1::FilterResponse Filter(const SearchOptions& options = {}) {
    PreFilter();
    v1beta1::FilterResponse response;
    evaluator_.Filter(attempt_, Pod(), now_, cache_.view().node_order(), options, &response,
                      &feasible_);
    return response;
  }
  // The rejecting plugin of each rejected node, in order.
  static std::vector<std::string> RejectedBy(const v1beta1::FilterResponse& response) {
    std::vector<std::string> plugins;
    int listed = 0;
    for (uint32_t i = 0; i < response.processed(); ++i) {
      const auto has = [i](const std::string& bits) { return ((bits[i / 8] >> (i % 8)) & 1) != 0; };
      if (has(response.feasible())) continue;
      int reason = 0;
      while (reason < response.rejected_for_size() && !has(response.rejected_for(reason))) ++reason;
      if (reason == response.rejected_for_size())
        reason = static_cast<int>(response.rejected(listed++));
      plugins.push_back(response.reasons(reason).plugin());
    }
    EXPECT_EQ(listed, response.rejected_size());
    return plugins;
  }
  v1beta1::ScoreResponse Score() {
    Filter();
    v1beta1::PreScoreResponse pre_score;
    evaluator_.PreScore(attempt_, Pod(), now_, feasible_, &pre_score);
    v1beta1::ScoreResponse response;
    evaluator_.Score(attempt_, Pod(), now_, feasible_, /*explain=*/false, &response);
    return response;
  }

  const absl::Time now_ = absl::UnixEpoch();
  Script a_, b_;
  sdk::PluginRegistry registry_;
  host_cache::ClusterCache cache_;
  std::shared_ptr<const Profile> profile_;
  Evaluator evaluator_{&cache_};
  AttemptRecord attempt_;
  std::vector<sdk::Slot> feasible_;
};

TEST(FeasibleNodesToFindTest, IsKubernetesFormula) {
  EXPECT_EQ(FeasibleNodesToFind(99, {}), 99u);
  EXPECT_EQ(FeasibleNodesToFind(100, {}), 100u);
  EXPECT_EQ(FeasibleNodesToFind(1000, {}), 420u);
  EXPECT_EQ(FeasibleNodesToFind(2000, {}), 680u);
  EXPECT_EQ(FeasibleNodesToFind(5000, {}), 500u);
  EXPECT_EQ(FeasibleNodesToFind(15000, {}), 750u);
  EXPECT_EQ(FeasibleNodesToFind(1000, {0, 5}), 100u);
  EXPECT_EQ(FeasibleNodesToFind(1000, {0, 100}), 1000u);
  EXPECT_EQ(FeasibleNodesToFind(1000, {0, 0, 1}), 1u);
  // Another host has already limited the sample.
  EXPECT_EQ(FeasibleNodesToFind(501, {0, 100, 500}), 500u);
  EXPECT_EQ(FeasibleNodesToFind(8, {0, 100, 7}), 7u);
  EXPECT_EQ(FeasibleNodesToFind(8, {0, 100, 9}), 8u);
}

TEST_F(EvaluatorTest, TheFirstPluginThatRejectsIsReported) {
  AddNodes(3);
  a_.filter["n1"] = Verdict::Unschedulable("from A");
  b_.filter["n1"] = Verdict::Unresolvable("from B");
  b_.filter["n2"] = Verdict::Unresolvable("from B");
  const auto response = Filter();
  EXPECT_EQ(response.processed(), 3u);
  EXPECT_EQ(response.feasible(), std::string("\x01"));
  EXPECT_THAT(RejectedBy(response), ElementsAre("A", "B"));
  EXPECT_EQ(response.reasons(0).plugin(), "A");
  EXPECT_EQ(response.reasons(1).plugin(), "B");
  EXPECT_EQ(response.reasons(1).code(), v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
}

TEST_F(EvaluatorTest, TheSearchEndsAtOneMoreThanEnough) {
  AddNodes(200);  // 100 are enough.
  a_.filter["n5"] = Verdict::Unschedulable("no");
  // After the 100th, before the 101st: counted.
  a_.filter["n101"] = Verdict::Unschedulable("no");
  a_.filter["n103"] = Verdict::Error("never reached");  // Past the cut: discarded.
  const auto response = Filter();
  EXPECT_FALSE(response.has_error());
  EXPECT_EQ(feasible_.size(), 100u);
  EXPECT_EQ(feasible_.back(), 100u);
  EXPECT_EQ(response.processed(), 102u);
  EXPECT_THAT(response.rejected(), ElementsAre(0, 0)) << "few of many nodes: in a list";
  EXPECT_EQ(response.rejected_for_size(), 0);
  EXPECT_EQ(response.reasons_size(), 1);
  EXPECT_EQ(response.feasible().size(), 13u);
}

TEST_F(EvaluatorTest, TheSearchBeginsAtTheOffsetAndGoesRound) {
  AddNodes(5);
  a_.filter["n0"] = Verdict::Unschedulable("no");
  const auto response = Filter({.start_offset = 13});
  EXPECT_THAT(feasible_, ElementsAre(3, 4, 1, 2));
  EXPECT_EQ(response.feasible(), std::string("\x1b"));
  Filter({.start_offset = 2, .num_to_find = 1});
  EXPECT_THAT(feasible_, ElementsAre(2));
}

TEST_F(EvaluatorTest, AFailureEndsTheAnswerAtItsNode) {
  AddNodes(4);
  a_.filter["n1"] = Verdict::Unschedulable("no");
  b_.filter["n1"] = Verdict::Error("hidden behind A");
  b_.filter["n2"] = Verdict::Error("broken");
  const auto response = Filter();
  EXPECT_EQ(response.error().plugin(), "B");
  EXPECT_EQ(response.error().reasons(0), "running \"B\" filter plugin: broken");
  EXPECT_EQ(response.processed(), 2u);
}

// For any number of nodes evaluated together, and any compaction for later plugins: the same result
// as node by node.
TEST_F(EvaluatorTest, ManyNodesAreAsOneByOne) {
  constexpr int kNodes = 1300;
  AddNodes(kNodes);
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    a_.filter.clear();
    b_.filter.clear();
    const uint32_t by_a = random() % 101, by_b = random() % 101, failing = random() % 3;
    const uint32_t reasons = 1 + random() % 20;
    for (int i = 0; i < kNodes; ++i) {
      const std::string name = absl::StrCat("n", i);
      const auto verdict = [&] {
        if (random() % 1000 < failing) return Verdict::Error("broken");
        return Verdict::Unschedulable(absl::StrCat("reason ", random() % reasons));
      };
      if (random() % 100 < by_a) a_.filter[name] = verdict();
      if (random() % 100 < by_b) b_.filter[name] = verdict();
    }
    const SearchOptions options{.start_offset = static_cast<uint32_t>(random() % kNodes),
                                .percentage_of_nodes_to_score = random() % 2 ? 100u : 10u};
    const auto response = Filter(options);
    const uint32_t wanted = FeasibleNodesToFind(kNodes, options);
    std::vector<sdk::Slot> feasible;
    std::vector<std::string> rejected_by;
    std::string error;
    uint32_t processed = 0;
    for (; processed < kNodes; ++processed) {
      const sdk::Slot slot = (options.start_offset + processed) % kNodes;
      const std::string name = absl::StrCat("n", slot);
      const bool a = a_.filter.count(name) != 0, b = b_.filter.count(name) != 0;
      if (!a && !b) {
        if (feasible.size() == wanted) break;
        feasible.push_back(slot);
        continue;
      }
      const Verdict& verdict = a ? a_.filter[name] : b_.filter[name];
      if (!verdict.rejected()) {
        error = a ? "A" : "B";
        break;
      }
      rejected_by.push_back(a ? "A" : "B");
    }
    EXPECT_EQ(response.processed(), processed);
    EXPECT_EQ(feasible_, feasible);
    EXPECT_EQ(RejectedBy(response), rejected_by);
    EXPECT_EQ(response.error().plugin(), error);
    EXPECT_EQ(response.feasible().size(), (processed + 7) / 8);
  }
}

TEST_F(EvaluatorTest, NominatedPodsOfItsPriorityCountAsIfTheyRan) {
  AddNodes(3);
  Nominate("equal", 5, 0);
  Nominate("lesser", 4, 1);
  a_.reject_with_pods = true;
  const auto response = Filter();
  EXPECT_THAT(feasible_, ElementsAre(1, 2));
  EXPECT_EQ(response.reasons(0).reasons(0), "has 1 more");
  // The attempt's own state and the node are as before.
  EXPECT_EQ(static_cast<CountState*>(attempt_.states[0].filter.get())->added, 0);
  EXPECT_EQ(cache_.view().nodes().pod_count[0], 0);
  EXPECT_EQ(a_.filter_calls, 4);
}

TEST_F(EvaluatorTest, ReportsRejectionsThatHoldOnlyWithoutNominatedPods) {
  AddNodes(4);
  Nominate("one", 5, 1);
  Nominate("two", 5, 2);
  Nominate("three", 5, 3);
  b_.filter["n2"] = Verdict::Unschedulable("anyway");
  b_.filter["n3"] = Verdict::Error("broken");
  a_.reject_without_pods = true;
  const auto response = Filter();
  EXPECT_THAT(feasible_, ElementsAre());
  // n0 has no nominated pods; A accepts n1 with them; on n2 and n3 B rejects first, with them.
  EXPECT_THAT(RejectedBy(response), ElementsAre("A", "A", "B"));
  EXPECT_EQ(response.error().plugin(), "B");
  EXPECT_THAT(response.only_without_nominated(), ElementsAre(1));
}

TEST_F(EvaluatorTest, SkipLeavesThePluginOut) {
  AddNodes(2);
  a_.pre_filter = Verdict::Skip();
  a_.filter["n0"] = Verdict::Unschedulable("no");
  a_.pre_score = Verdict::Skip();
  const auto response = Score();
  EXPECT_EQ(feasible_.size(), 2u);
  EXPECT_EQ(a_.filter_calls, 0);
  EXPECT_EQ(a_.score_calls, 0);
  ASSERT_EQ(response.plugins_size(), 1);
  EXPECT_EQ(response.plugins(0).plugin(), "B");
  EXPECT_EQ(response.plugins(0).scores(), std::string("\x07\x07"));
}

TEST_F(EvaluatorTest, PreFilterResultsAreIntersected) {
  AddNodes(3);
  a_.names = {"n2", "n1"};
  b_.names = {"n1", "gone"};
  auto response = PreFilter();
  EXPECT_THAT(response.node_names().names(), ElementsAre("n1"));
  EXPECT_THAT(response.restricted_by(), ElementsAre("A", "B"));
  b_.names = {"n0"};
  response = PreFilter();
  EXPECT_EQ(response.rejection().reasons(0),
            "node(s) didn't satisfy plugin(s) [A B] simultaneously");
  EXPECT_THAT(response.rejected_by(), ElementsAre("A", "B"));
  b_.names.reset();
  a_.names.emplace();
  response = PreFilter();
  EXPECT_EQ(response.rejection().reasons(0), "node(s) didn't satisfy plugin A");
}

TEST_F(EvaluatorTest, PreFilterRejectionsAreMerged) {
  AddNodes(1);
  a_.pre_filter = Verdict::Unschedulable("from A");
  auto response = PreFilter();
  EXPECT_EQ(response.rejection().plugin(), "A");
  b_.pre_filter = Verdict::Unresolvable("from B");
  response = PreFilter();  // B still runs, and ends the round.
  EXPECT_EQ(response.rejection().plugin(), "B");
  EXPECT_THAT(response.rejected_by(), ElementsAre("A", "B"));
  b_.pre_filter = Verdict::Error("broken");
  response = PreFilter();
  EXPECT_EQ(response.rejection().code(), v1beta1::CODE_ERROR);
  EXPECT_EQ(response.rejection().reasons(0), "running PreFilter plugin \"B\": broken");
}

TEST_F(EvaluatorTest, ScoresMustBeWithinRange) {
  AddNodes(2);
  b_.scores = {100, 101};
  const auto response = Score();
  EXPECT_TRUE(response.plugins().empty());
  EXPECT_EQ(response.error().reasons(0),
            "applying score defaultWeights on Score plugins: plugin \"B\" returns an invalid score "
            "101, it should in the range of [0, 100] after normalizing");
}

TEST_F(EvaluatorTest, FailuresOfScoringEndTheAttempt) {
  AddNodes(2);
  a_.score = Verdict::Error("broken");
  EXPECT_EQ(Score().error().reasons(0), "running Score plugins: plugin \"A\" failed with: broken");
}

}  // namespace
}  // namespace outboard::runtime
