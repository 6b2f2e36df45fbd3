#include "plugin_host/sdk/post_filter.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime::post_filter_test {
namespace {

using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// Counts pods by AddPod and RemovePod, and checks that the node has the same count.
struct CountState : sdk::AttemptState {
  std::map<sdk::Slot, int> counts;
  std::unique_ptr<sdk::AttemptState> Clone() const override {
    return std::make_unique<CountState>(*this);
  }
};

class Counting : public sdk::Plugin, public sdk::PreFilterPlugin, public sdk::NodeFilterPlugin {
 public:
  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    CountState& state = attempt.NewFilterState<CountState>();
    for (sdk::Slot slot : attempt.cluster().node_order()) {
      state.counts[slot] = static_cast<int>(attempt.cluster().node(slot).pods().size());
    }
    return pre_filter;
  }
  Verdict AddPod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                 const sdk::NodeView& node) const override {
    ++attempt.filter_state<CountState>()->counts[node.slot()];
    return pod.name() == "refused" ? Verdict::Error("no idea") : Verdict::Success();
  }
  Verdict RemovePod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                    const sdk::NodeView& node) const override {
    --attempt.filter_state<CountState>()->counts[node.slot()];
    return pod.name() == "stuck" ? Verdict::Error("no idea") : Verdict::Success();
  }
  Verdict FilterNode(const sdk::Attempt& attempt, const sdk::NodeView& node) const override {
    const int counted = attempt.filter_state<CountState>()->counts[node.slot()];
    if (counted != static_cast<int>(node.pods().size())) return Verdict::Error("lost count");
    if (counted == 0) return Verdict::Success();
    return Verdict::Unschedulable(absl::StrCat(counted, " pods"));
  }

  static Verdict pre_filter;
};
Verdict Counting::pre_filter;

// A programmed PostFilter.
class Scripted : public sdk::Plugin, public sdk::PostFilterPlugin {
 public:
  using Script = std::function<Verdict(const sdk::Attempt&, sdk::DryRun&, sdk::PostFilterAnswer*)>;
  explicit Scripted(Script* script) : script_(script) {}
  Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun& dry_run,
                     sdk::PostFilterAnswer* answer) const override {
    return (*script_)(attempt, dry_run, answer);
  }

 private:
  Script* const script_;
};

class PostFilterTest : public ::testing::Test {
 protected:
  template <typename Make>
  void Register(const std::string& name, std::vector<sdk::ExtensionPoint> points, Make make) {
    sdk::PluginDescriptor descriptor;
    descriptor.name = name;
    descriptor.extension_points = std::move(points);
    descriptor.create =
        [make](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
      return make();
    };
    ASSERT_TRUE(registry_.Add(std::move(descriptor)).ok());
  }
  void SetUp() override {
    Counting::pre_filter = Verdict::Success();
    Register("Counting", {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER},
             [] { return std::make_unique<Counting>(); });
    Register("First", {v1beta1::EXTENSION_POINT_POST_FILTER},
             [this] { return std::make_unique<Scripted>(&first_); });
    Register("Second", {v1beta1::EXTENSION_POINT_POST_FILTER},
             [this] { return std::make_unique<Scripted>(&second_); });
    session_ = std::make_unique<Session>("s", &registry_);
    v1beta1::ConfigureRequest configure;
    v1beta1::ProfileConfig* profile = configure.add_profiles();
    profile->set_name("p");
    const auto enable = [profile](v1beta1::ExtensionPoint point, std::vector<std::string> names) {
      auto* out = profile->add_points();
      out->set_extension_point(point);
      for (const std::string& name : names) out->add_plugins(name);
    };
    enable(v1beta1::EXTENSION_POINT_PRE_FILTER, {"Counting"});
    enable(v1beta1::EXTENSION_POINT_FILTER, {"Counting"});
    enable(v1beta1::EXTENSION_POINT_POST_FILTER, {"First", "Second"});
    v1beta1::ConfigureResponse configured;
    session_->Configure(configure, &configured);
    ASSERT_EQ(configured.problems_size(), 0) << configured.problems(0).message();

    v1beta1::SyncRequest snapshot;
    snapshot.set_version(1);
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (int i = 0; i < 2; ++i) {
      auto* upsert = snapshot.add_changes()->mutable_node_upsert();
      upsert->set_slot(i);
      *upsert->mutable_node() = NodeBuilder(absl::StrCat("n", i)).Build();
    }
    for (const char* name : {"a", "b", "c"}) AddPod(PodBuilder(name).OnNode("n0"), &snapshot);
    AddPod(PodBuilder("d").OnNode("n1").HostPort(80), &snapshot);
    AddPod(PodBuilder("pod").Priority(5), &snapshot);
    ASSERT_TRUE(session_->Apply(snapshot, now_).ok());
    snapshot.Clear();
    snapshot.set_version(1);
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(session_->Apply(snapshot, now_).ok());
  }
  static void AddPod(const v1beta1::Pod& pod, v1beta1::SyncRequest* request) {
    *request->add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
  }
  // A pod as the cache has it, as plugins get them from node views.
  static sdk::PodRecord& OnNode(const sdk::Attempt& attempt, sdk::Slot slot, size_t i) {
    return *attempt.cluster().node(slot).pods()[i];
  }

  // One attempt: Cycle, then PostFilter.
  v1beta1::PostFilterResponse Attempt(const v1beta1::PostFilterRequest& post_filter = {}) {
    v1beta1::CycleRequest cycle;
    cycle.mutable_header()->set_attempt_id(1);
    cycle.mutable_header()->set_exact_version(1);
    cycle.mutable_header()->set_profile("p");
    cycle.set_pod_uid("default/pod");
    v1beta1::CycleResponse cycled;
    EXPECT_TRUE(session_->Cycle(cycle, now_, &cycled).ok());
    cycled_ = cycled;
    header_ = cycle.header();
    return PostFilter(post_filter);
  }
  v1beta1::PostFilterResponse PostFilter(v1beta1::PostFilterRequest request) {
    *request.mutable_header() = header_;
    v1beta1::PostFilterResponse response;
    const CallStatus status = session_->PostFilter(request, now_, &response);
    EXPECT_TRUE(status.ok()) << status.message();
    return response;
  }
  static Verdict Nothing(const sdk::Attempt&, sdk::DryRun&, sdk::PostFilterAnswer*) {
    return Verdict::Unschedulable("nothing helps");
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  sdk::PluginRegistry registry_;
  Scripted::Script first_ = Nothing;
  Scripted::Script second_ = Nothing;
  std::unique_ptr<Session> session_;
  v1beta1::CycleResponse cycled_;
  v1beta1::CallHeader header_;
};

TEST_F(PostFilterTest, ADryRunSeesTheChangesAndLeavesNoTrace) {
  std::vector<std::string> seen;
  first_ = [&](const sdk::Attempt& attempt, sdk::DryRun& dry_run, sdk::PostFilterAnswer*) {
    const std::vector<sdk::PodRecord*> pods = attempt.cluster().node(0).pods();
    dry_run.Begin(0);
    seen.push_back(dry_run.Filter().reasons()[0]);
    for (sdk::PodRecord* pod : pods) EXPECT_TRUE(dry_run.RemovePod(*pod).ok());
    EXPECT_TRUE(dry_run.Filter().ok());
    EXPECT_EQ(attempt.cluster().node(0).Requested("pods"), 0);
    EXPECT_TRUE(dry_run.AddPod(*pods[0]).ok());
    seen.push_back(dry_run.Filter().reasons()[0]);
    EXPECT_TRUE(dry_run.RemovePod(*pods[0]).ok());
    // The next node begins from the cluster as it is.
    dry_run.Begin(1);
    seen.push_back(dry_run.Filter().reasons()[0]);
    EXPECT_TRUE(dry_run.RemovePod(OnNode(attempt, 1, 0)).ok());
    EXPECT_TRUE(attempt.cluster().node(1).host_ports().empty());
    EXPECT_EQ(attempt.cluster().node(0).pods(), pods);
    return Verdict::Unschedulable("enough");
  };
  const sdk::NodeView node = session_->cache().view().node(0);
  const std::vector<sdk::PodRecord*> before = node.pods();
  Attempt();
  EXPECT_THAT(seen, ElementsAre("3 pods", "1 pods", "1 pods"));
  EXPECT_EQ(node.pods(), before);
  EXPECT_EQ(node.Requested("pods"), 3);
  EXPECT_EQ(session_->cache().view().node(1).host_ports().size(), 1u);
  const v1beta1::CycleResponse first = cycled_;
  Attempt();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(first.evaluation().filter(),
                                                                 cycled_.evaluation().filter()));
}

// As with a nominated node outside PreFilter's restriction.
TEST_F(PostFilterTest, ANodeThatWasTriedFirstKeepsItsCode) {
  std::vector<v1beta1::Code> codes;
  first_ = [&](const sdk::Attempt&, sdk::DryRun& dry_run, sdk::PostFilterAnswer*) {
    codes = {dry_run.CodeOf(0), dry_run.CodeOf(1)};
    return Verdict::Unschedulable("enough");
  };
  v1beta1::CallHeader header;
  header.set_attempt_id(1);
  header.set_exact_version(1);
  header.set_profile("p");
  v1beta1::PreFilterResponse pre_filtered;
  ASSERT_TRUE(session_->PreFilter(header, "default/pod", now_, &pre_filtered).ok());
  for (const std::vector<uint32_t>& slots : {std::vector<uint32_t>{1}, std::vector<uint32_t>{}}) {
    v1beta1::FilterRequest filter;
    filter.mutable_search()->set_num_feasible_nodes_to_find(1);
    filter.mutable_search()->mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
    v1beta1::FilterResponse filtered;
    ASSERT_TRUE(session_->Filter(header, filter, now_, &filtered).ok());
    EXPECT_EQ(filtered.processed(), slots.size());
  }
  v1beta1::PostFilterRequest request;
  *request.mutable_header() = header;
  v1beta1::PostFilterResponse response;
  ASSERT_TRUE(session_->PostFilter(request, now_, &response).ok());
  EXPECT_THAT(codes, ElementsAre(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                                 v1beta1::CODE_UNSCHEDULABLE));
}

TEST_F(PostFilterTest, KnowsWhatFilterSaid) {
  std::vector<v1beta1::Code> codes;
  first_ = [&](const sdk::Attempt&, sdk::DryRun& dry_run, sdk::PostFilterAnswer*) {
    codes = {dry_run.CodeOf(0), dry_run.CodeOf(1), dry_run.CodeOf(77)};
    return Verdict::Unschedulable("x");
  };
  Attempt();
  EXPECT_THAT(codes, ElementsAre(v1beta1::CODE_UNSCHEDULABLE, v1beta1::CODE_UNSCHEDULABLE,
                                 v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE));
  for (const Verdict& verdict : {Verdict::Unschedulable("later"), Verdict::Unresolvable("never")}) {
    Counting::pre_filter = verdict;
    Attempt();
    EXPECT_THAT(codes, ElementsAre(verdict.code(), verdict.code(), verdict.code()));
  }
}

TEST_F(PostFilterTest, TheFirstThatSucceedsDecides) {
  first_ = [](const sdk::Attempt& attempt, sdk::DryRun&, sdk::PostFilterAnswer* answer) {
    answer->candidates.push_back({1, {&OnNode(attempt, 1, 0)}, {}, 1});
    return Verdict::Success();
  };
  second_ = [](const sdk::Attempt&, sdk::DryRun&, sdk::PostFilterAnswer*) {
    ADD_FAILURE() << "called although the first succeeded";
    return Verdict::Success();
  };
  const v1beta1::PostFilterResponse response = Attempt();
  EXPECT_FALSE(response.has_rejection());
  ASSERT_EQ(response.candidates().candidates_size(), 1);
  EXPECT_EQ(response.candidates().candidates(0).plugin(), "First");
  EXPECT_EQ(response.candidates().candidates(0).slot(), 1u);
  EXPECT_THAT(response.candidates().candidates(0).victim_uids(), ElementsAre("default/d"));
  EXPECT_EQ(response.candidates().candidates(0).budget_violations(), 1u);
}

// The shim refuses these answers as a whole, and after some of them no longer calls the host.
TEST_F(PostFilterTest, AWrongCandidateIsThePluginsFailure) {
  sdk::PreemptionCandidate candidate;
  first_ = [&](const sdk::Attempt& attempt, sdk::DryRun&, sdk::PostFilterAnswer* answer) {
    sdk::PodRecord* const pod = &OnNode(attempt, 1, 0);
    for (auto* pods : {&candidate.victims, &candidate.companions})
      std::fill(pods->begin(), pods->end(), pod);
    answer->candidates = {candidate};
    return Verdict::Success();
  };
  const auto fault = [&](sdk::Slot slot, size_t victims, size_t companions) {
    candidate.slot = slot;
    candidate.victims.resize(victims);
    candidate.companions.resize(companions);
    const v1beta1::PostFilterResponse response = Attempt();
    if (!response.has_rejection()) return std::string();
    EXPECT_EQ(response.rejection().status().plugin(), "First");
    EXPECT_EQ(response.rejection().status().code(), v1beta1::CODE_ERROR);
    return response.rejection().status().reasons(0);
  };
  EXPECT_EQ(fault(1, 1, 0), "");
  EXPECT_EQ(fault(7, 1, 0), "PostFilter plugin First names a candidate without a node");
  EXPECT_EQ(fault(sdk::kNoSlot, 1, 0), "PostFilter plugin First names a candidate without a node");
  EXPECT_EQ(fault(1, 0, 0), "PostFilter plugin First names a candidate without victims");
  EXPECT_EQ(fault(1, 2, 0), "PostFilter plugin First names a victim twice");
  EXPECT_EQ(fault(1, 1, 1), "PostFilter plugin First names a victim twice");
  candidate.budget_violations = 9;
  EXPECT_EQ(fault(1, 1, 0), "");
  EXPECT_EQ(Attempt().candidates().candidates(0).budget_violations(), 1u);
}

TEST_F(PostFilterTest, ReasonsAreAsManyAsTheContractAllows) {
  first_ = second_ = [](const sdk::Attempt&, sdk::DryRun&, sdk::PostFilterAnswer*) {
    return Verdict(v1beta1::CODE_UNSCHEDULABLE, std::vector<std::string>(10, "no"));
  };
  EXPECT_EQ(Attempt().rejection().status().reasons_size(), 16);
}

TEST_F(PostFilterTest, RejectionsAreJoinedUntilOneIsFinal) {
  second_ = [](const sdk::Attempt&, sdk::DryRun&, sdk::PostFilterAnswer* answer) {
    answer->clear_nomination = true;
    return Verdict::Unschedulable("nor this");
  };
  v1beta1::PostFilterResponse response = Attempt();
  EXPECT_EQ(response.rejection().status().plugin(), "First");
  EXPECT_EQ(response.rejection().status().code(), v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_THAT(response.rejection().status().reasons(), ElementsAre("nothing helps", "nor this"));
  EXPECT_TRUE(response.rejection().clear_nomination());

  second_ = [](const sdk::Attempt&, sdk::DryRun&, sdk::PostFilterAnswer*) {
    return Verdict::Unresolvable("for good");
  };
  response = Attempt();
  EXPECT_EQ(response.rejection().status().plugin(), "Second");
  EXPECT_EQ(response.rejection().status().code(), v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  EXPECT_THAT(response.rejection().status().reasons(), ElementsAre("for good"));

  second_ = [](const sdk::Attempt&, sdk::DryRun&, sdk::PostFilterAnswer* answer) {
    answer->clear_nomination = true;
    return Verdict::Error("it broke");
  };
  response = Attempt();
  EXPECT_EQ(response.rejection().status().code(), v1beta1::CODE_ERROR);
  EXPECT_THAT(response.rejection().status().reasons(), ElementsAre("it broke"));
  EXPECT_FALSE(response.rejection().clear_nomination());
}

TEST_F(PostFilterTest, APluginFailureHasUpstreamsText) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(1);
  AddPod(PodBuilder("stuck").OnNode("n1"), &request);
  ASSERT_TRUE(session_->Apply(request, now_).ok());
  std::vector<std::string> errors;
  first_ = [&](const sdk::Attempt& attempt, sdk::DryRun& dry_run, sdk::PostFilterAnswer*) {
    dry_run.Begin(1);
    errors.push_back(dry_run.RemovePod(OnNode(attempt, 1, 1)).reasons()[0]);
    return Verdict::Unschedulable("x");
  };
  Attempt();
  EXPECT_THAT(errors, ElementsAre("running RemovePod on PreFilter plugin \"Counting\": no idea"));
}

// --- Several hosts

TEST_F(PostFilterTest, MergedVerdictsReplaceItsOwn) {
  std::vector<v1beta1::Code> codes;
  first_ = [&](const sdk::Attempt&, sdk::DryRun& dry_run, sdk::PostFilterAnswer*) {
    codes = {dry_run.CodeOf(0), dry_run.CodeOf(1)};
    return Verdict::Unschedulable("x");
  };
  v1beta1::PostFilterRequest request;
  request.mutable_judged()->set_others(v1beta1::CODE_UNSCHEDULABLE);
  request.mutable_judged()->add_slots(0);
  request.mutable_judged()->add_codes(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  Attempt(request);
  EXPECT_THAT(codes, ElementsAre(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                                 v1beta1::CODE_UNSCHEDULABLE));
}

// A question in short form: the node, pods removed (-) and returned (+) since its last question,
// and the host's own rejection.
std::string Short(const v1beta1::PreemptionQuestion& question) {
  const v1beta1::SimulatedNode& told = question.simulated_node();
  std::string text = absl::StrCat(told.continues() ? "then " : "n", told.slot());
  for (const std::string& uid : told.removed_pod_uids()) absl::StrAppend(&text, " -", uid);
  for (const std::string& uid : told.added_pod_uids()) absl::StrAppend(&text, " +", uid);
  for (const std::string& reason : question.own().reasons()) absl::StrAppend(&text, ": ", reason);
  return text;
}

std::vector<std::string> Short(const v1beta1::PostFilterResponse& response) {
  std::vector<std::string> all;
  for (const auto& question : response.questions().questions()) all.push_back(Short(question));
  return all;
}

TEST_F(PostFilterTest, AsksOthersAndRunsAgainWithTheirAnswers) {
  std::vector<std::vector<bool>> seen;
  first_ = [&](const sdk::Attempt& attempt, sdk::DryRun& dry_run, sdk::PostFilterAnswer* answer) {
    std::vector<bool>& fits = seen.emplace_back();
    const std::vector<sdk::PodRecord*> pods = attempt.cluster().node(0).pods();
    dry_run.Begin(0);
    for (sdk::PodRecord* pod : pods) EXPECT_TRUE(dry_run.RemovePod(*pod).ok());
    fits.push_back(dry_run.Filter().ok());
    if (!fits.back()) return Verdict::Unschedulable("never fits");
    // Its own filters reject here, which is enough: other hosts are not asked.
    EXPECT_TRUE(dry_run.AddPod(*pods[0]).ok());
    EXPECT_FALSE(dry_run.Filter().ok());
    EXPECT_TRUE(dry_run.RemovePod(*pods[0]).ok());
    fits.push_back(dry_run.Filter().ok());
    dry_run.Begin(1);
    fits.push_back(dry_run.Filter().ok());
    answer->candidates.push_back({0, {pods[0]}, {}, 0});
    return Verdict::Success();
  };
  v1beta1::PostFilterRequest request;
  request.set_others_filter(true);
  v1beta1::PostFilterResponse response = Attempt(request);
  EXPECT_THAT(Short(response),
              ElementsAre("n0 -default/a -default/b -default/c", "then 0", "n1: 1 pods"));
  EXPECT_FALSE(response.has_rejection());
  EXPECT_TRUE(response.candidates().candidates().empty());
  // As expected, as expected, and another host's rejection.
  request.add_answers()->set_code(v1beta1::CODE_SUCCESS);
  request.add_answers()->set_code(v1beta1::CODE_SUCCESS);
  request.add_answers()->set_code(v1beta1::CODE_UNSCHEDULABLE);
  response = PostFilter(request);
  EXPECT_FALSE(response.has_questions());
  ASSERT_EQ(response.candidates().candidates_size(), 1);
  EXPECT_THAT(seen.back(), ElementsAre(true, true, false));
}

TEST_F(PostFilterTest, ARejectionOfOthersLeadsElsewhereOnThatNode) {
  std::string took;
  first_ = [&](const sdk::Attempt& attempt, sdk::DryRun& dry_run, sdk::PostFilterAnswer*) {
    const std::vector<sdk::PodRecord*> pods = attempt.cluster().node(0).pods();
    dry_run.Begin(0);
    for (sdk::PodRecord* pod : pods) EXPECT_TRUE(dry_run.RemovePod(*pod).ok());
    took = dry_run.Filter().ok() ? "first" : dry_run.Filter().ok() ? "second" : "none";
    return Verdict::Unschedulable("x");
  };
  v1beta1::PostFilterRequest request;
  request.set_others_filter(true);
  EXPECT_THAT(Short(Attempt(request)), SizeIs(1));
  v1beta1::PluginStatus* no = request.add_answers();
  no->set_code(v1beta1::CODE_UNSCHEDULABLE);
  no->add_reasons("taken");
  v1beta1::PostFilterResponse response = PostFilter(request);
  EXPECT_THAT(Short(response), ElementsAre("n0 -default/a -default/b -default/c"));
  request.clear_answers();
  request.add_answers()->set_code(v1beta1::CODE_SUCCESS);
  response = PostFilter(request);
  EXPECT_EQ(took, "second");
  EXPECT_EQ(response.rejection().status().reasons(0), "x");
}

TEST_F(PostFilterTest, AnswersMustBeAsManyAsQuestions) {
  v1beta1::PostFilterRequest request;
  Attempt(request);
  request.add_answers()->set_code(v1beta1::CODE_SUCCESS);
  v1beta1::PostFilterResponse response;
  *request.mutable_header() = header_;
  EXPECT_EQ(session_->PostFilter(request, now_, &response).reason(),
            v1beta1::CallError::REASON_INVALID);
}

class HypothesesTest : public PostFilterTest {
 protected:
  HypothesesTest() { first_ = Nothing; }
  v1beta1::SimulatedNode* Add(sdk::Slot slot, std::vector<std::string> removed,
                              std::vector<std::string> added = {}) {
    v1beta1::SimulatedNode* hypothesis = request_.mutable_simulation()->add_nodes();
    hypothesis->set_slot(slot);
    hypothesis->mutable_removed_pod_uids()->Assign(removed.begin(), removed.end());
    hypothesis->mutable_added_pod_uids()->Assign(added.begin(), added.end());
    return hypothesis;
  }
  // '.' for a node that the pod fits on, else the reason.
  std::vector<std::string> Filter() {
    Attempt();
    v1beta1::FilterResponse response;
    const CallStatus status = session_->Filter(header_, request_, now_, &response);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<std::string> verdicts;
    int rejected = 0;
    for (uint32_t i = 0; i < response.processed(); ++i) {
      if ((response.feasible()[i / 8] >> (i % 8)) & 1) {
        verdicts.push_back(".");
        continue;
      }
      const auto& status = response.reasons(static_cast<int>(response.rejected(rejected++)));
      EXPECT_EQ(status.plugin(), "Counting");
      verdicts.push_back(status.reasons(0));
    }
    return verdicts;
  }
  v1beta1::CallError::Reason Refusal() {
    Attempt();
    v1beta1::FilterResponse response;
    return session_->Filter(header_, request_, now_, &response).reason();
  }
  v1beta1::FilterRequest request_;
};

TEST_F(HypothesesTest, EachIsEvaluatedAloneOrContinuesTheLast) {
  Add(0, {"default/a"});
  Add(0, {"default/a", "default/b", "default/c"});
  Add(0, {}, {"default/b"})->set_continues(true);
  Add(0, {"default/b"})->set_continues(true);
  Add(1, {});
  Add(0, {});
  EXPECT_THAT(Filter(), ElementsAre("2 pods", ".", "1 pods", ".", "1 pods", "3 pods"));
  EXPECT_EQ(session_->cache().view().node(0).pods().size(), 3u);
}

TEST_F(HypothesesTest, PodsMustBeWhereTheyAreTakenFrom) {
  Add(1, {"default/a"});
  EXPECT_EQ(Refusal(), v1beta1::CallError::REASON_OBJECT_UNKNOWN);
  request_.Clear();
  Add(0, {"default/a", "default/a"});
  EXPECT_EQ(Refusal(), v1beta1::CallError::REASON_OBJECT_UNKNOWN);
  request_.Clear();
  Add(0, {}, {"default/a"});
  EXPECT_EQ(Refusal(), v1beta1::CallError::REASON_OBJECT_UNKNOWN);
  request_.Clear();
  Add(7, {});
  EXPECT_EQ(Refusal(), v1beta1::CallError::REASON_OBJECT_UNKNOWN);
  request_.Clear();
  Add(0, {});
  Add(1, {})->set_continues(true);
  EXPECT_EQ(Refusal(), v1beta1::CallError::REASON_INVALID);
}

TEST_F(HypothesesTest, APluginThatFailsRejects) {
  v1beta1::SyncRequest request;
  request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
  request.set_version(1);
  AddPod(PodBuilder("stuck").OnNode("n1"), &request);
  ASSERT_TRUE(session_->Apply(request, now_).ok());
  Add(1, {"default/d", "default/stuck"});
  Add(0, {"default/a", "default/b", "default/c"});
  EXPECT_THAT(Filter(),
              ElementsAre("running RemovePod on PreFilter plugin \"Counting\": no idea", "."));
}

TEST_F(PostFilterTest, NeedsAnAttempt) {
  v1beta1::PostFilterRequest request;
  request.mutable_header()->set_attempt_id(9);
  v1beta1::PostFilterResponse response;
  EXPECT_EQ(session_->PostFilter(request, now_, &response).reason(),
            v1beta1::CallError::REASON_ATTEMPT_UNKNOWN);
}

}  // namespace
}  // namespace outboard::runtime::post_filter_test
