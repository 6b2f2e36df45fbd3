// What hosts send on their own initiative: only for their own plugins, and with an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/short_names.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/push_results.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler::scheduler_pushes_test {
namespace {

using framework::ScriptedHost;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using v1beta1::PushResult;
using v1beta1::SyncRequest;
using v1beta1::SyncResponse;

constexpr char kProfile[] = "outboard";
constexpr char kWidgets[] = "widgets.v1.example.com";

class RecordedOrders final : public NoClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  void Write(const EffectOrder& order, absl::Time) override { writes.push_back(order); }
  std::vector<BindOrder> binds;
  std::vector<EffectOrder> writes;
};

class ErrorCounter final : public Observer {
 public:
  void OnProtocolError(const std::string& host, const std::string&, const absl::Status&) override {
    ++errors[host];
  }
  std::map<std::string, int> errors;
};

// Host "a" serves the algorithm, EarlyGate, the sort keys and Keeper; host "b" Gang and LateGate.
class PushesTest : public ::testing::Test {
 protected:
  PushesTest() : scheduler_(Options(), queue::QueueOptions(), &orders_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan& plan = plan_;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit"};
    plan.algorithm.score_plugins = {{"Score", 1}};
    plan.host_names = {"a", "b"};
    for (const char* plugin : {"Fit", "Score", "EarlyGate", "Sort", "Keeper"})
      plan.host_of[plugin] = "a";
    for (const char* plugin : {"Gang", "LateGate"}) plan.host_of[plugin] = "b";
    plan.pre_enqueue = {{"a", {{"EarlyGate", {}, 0}}}, {"b", {{"LateGate", {}, 1}}}};
    plan.permit = {{"b", {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.sort_host = "a";
    plan.object_writers = {"a"};
    plan.guard.resources = false;
    plan.wake_up_events["Fit"] = {queue::NodeEvent(queue::kAdd)};
    scheduler_.SetPlan(plan);
    Connect("a", "EarlyGate", &a_);
    Connect("b", "LateGate", &b_);
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid("uid-n");
    node->node.set_name("n");
    node->node.mutable_allocatable()->set_pods(10);
    node->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.custom_resources = {{kWidgets, {v1beta1::DeclaredResource::VERB_CREATE}, {}}};
    return options;
  }
  void Connect(const std::string& name, const std::string& gate, ScriptedHost* host) {
    host->EvaluateHints();
    // Also at "b", which does not run it in the profile.
    v1beta1::DeclaredResource* const used = host->AddPlugin("Keeper")->add_declared_resources();
    used->set_resource(kWidgets);
    used->add_verbs(v1beta1::DeclaredResource::VERB_CREATE);
    host->pre_enqueue = [this, gate](const v1beta1::PreEnqueueRequest& request) {
      v1beta1::PreEnqueueResponse response;
      for (const std::string& uid : request.pod_uids()) {
        asked_.push_back(absl::StrCat(gate, " ", uid));
        v1beta1::PluginStatus* const status = response.add_verdicts();
        status->set_code(v1beta1::CODE_SUCCESS);
        if (!closed_.contains(absl::StrCat(gate, " ", uid))) continue;
        status->set_code(v1beta1::CODE_UNSCHEDULABLE);
        status->set_plugin(gate);
        status->add_reasons("closed");
      }
      return response;
    };
    host->sort_keys = [this](const v1beta1::SortKeysRequest& request) {
      v1beta1::SortKeysResponse response;
      for (const std::string& uid : request.pod_uids()) {
        asked_.push_back(absl::StrCat("Sort ", uid));
        response.add_keys("key");
      }
      return response;
    };
    host->permit = [](const v1beta1::PermitRequest&) {
      v1beta1::PermitResponse response;
      v1beta1::PermitWait* const wait = response.add_waits();
      wait->set_plugin("Gang");
      wait->set_timeout_micros(60'000'000);
      return response;
    };
    const cache::ClusterState::Cursor cursor = scheduler_.cluster()->AddHost({});
    // The snapshot, which the owner of the connection takes and sends.
    scheduler_.cluster()->TakeChanges(cursor, now_);
    scheduler_.SetHost(name, host, cursor, now_);
  }
  void AddPod(const std::string& name, const std::string& node = "", const std::string& job = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.set_node_name(node);
    if (!job.empty()) (*pod->pod.mutable_labels())["job-name"] = job;
    pod->pod.add_containers();
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
  // A pod that plugin Fit of host "a" rejected.
  void AddRejectedPod(const std::string& name) {
    a_.cycle = [this](const auto&, auto* response) {
      a_.Infeasible("Fit", "no", response);
      return absl::OkStatus();
    };
    AddPod(name);
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    scheduler_.Tick(now_);
    ASSERT_EQ(PlaceOf("uid-" + name), queue::Place::kUnschedulable);
  }
  queue::Place PlaceOf(const std::string& uid) const {
    const queue::QueuedPod* const pod = scheduler_.queue().Find(uid);
    return pod == nullptr ? queue::Place::kNone : pod->place;
  }
  // Takes the push, with an id; the outcome that the host receives.
  std::string OutcomeOf(ScriptedHost* host, SyncResponse push) {
    push.set_push_id(++push_id_);
    host->pushes.push_back(std::move(push));
    scheduler_.Tick(now_);
    const std::vector<PushResult> results = std::exchange(host->push_results, {});
    if (results.size() != 1 || results[0].push_id() != push_id_)
      return absl::StrCat(results.size(), " results");
    EXPECT_EQ(results[0].message().empty(), results[0].outcome() == PushResult::OUTCOME_APPLIED);
    return std::string(ShortName(results[0].outcome()));
  }
  static SyncResponse Hint(const std::string& plugin, const std::string& uid) {
    SyncResponse push;
    v1beta1::QueueHint* const hint = push.mutable_queue_hints()->add_hints();
    hint->set_uid(uid);
    hint->set_plugin(plugin);
    return push;
  }
  static SyncResponse Activate(const std::string& plugin, const std::string& uid) {
    SyncResponse push;
    push.mutable_activate()->set_plugin(plugin);
    push.mutable_activate()->add_pod_uids(uid);
    return push;
  }
  static SyncResponse GateChanged(const std::string& uid) {
    SyncResponse push;
    push.mutable_gate_changed()->add_pod_uids(uid);
    return push;
  }
  static SyncResponse SortKeysChanged(const std::string& uid) {
    SyncResponse push;
    push.mutable_sort_keys_changed()->add_pod_uids(uid);
    return push;
  }
  static SyncResponse Allow(uint64_t attempt_id, const std::string& uid) {
    SyncResponse push;
    push.mutable_wait_decision()->set_attempt_id(attempt_id);
    push.mutable_wait_decision()->set_pod_uid(uid);
    push.mutable_wait_decision()->set_plugin("Gang");
    push.mutable_wait_decision()->set_allow(true);
    return push;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  framework::ProfilePlan plan_;
  int resource_version_ = 0;
  uint64_t push_id_ = 0;
  std::set<std::string> closed_;    // "GATE UID"
  std::vector<std::string> asked_;  // "PLUGIN UID"
  RecordedOrders orders_;
  ErrorCounter observer_;
  ScriptedHost a_, b_;
  Scheduler scheduler_;
};

TEST_F(PushesTest, HintsCountOnlyForThePluginsOfTheirHost) {
  AddRejectedPod("p");
  EXPECT_EQ(OutcomeOf(&b_, Hint("Fit", "uid-p")), "FORBIDDEN");
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kUnschedulable);
  EXPECT_EQ(OutcomeOf(&b_, Hint("Fit", "uid-unknown")), "FORBIDDEN");
  EXPECT_EQ(observer_.errors["b"], 2);
  EXPECT_EQ(OutcomeOf(&a_, Hint("Fit", "uid-unknown")), "UNKNOWN");
  EXPECT_EQ(OutcomeOf(&a_, Hint("Fit", "uid-p")), "APPLIED");
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff);
  EXPECT_EQ(observer_.errors["a"], 0);
}

// A refused hint does not take the others of its message with it.
TEST_F(PushesTest, TheOtherHintsOfARefusedPushCount) {
  AddRejectedPod("p");
  SyncResponse push = Hint("Gang", "uid-p");
  *push.mutable_queue_hints()->add_hints() = Hint("Fit", "uid-p").queue_hints().hints(0);
  EXPECT_EQ(OutcomeOf(&a_, push), "FORBIDDEN");
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff);
}

TEST_F(PushesTest, AHostActivatesOnlyForItsPlugins) {
  AddRejectedPod("p");
  EXPECT_EQ(OutcomeOf(&b_, Activate("Fit", "uid-p")), "FORBIDDEN");
  EXPECT_EQ(OutcomeOf(&b_, Activate("", "uid-p")), "FORBIDDEN");
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kUnschedulable);
  EXPECT_EQ(observer_.errors["b"], 2);
  EXPECT_EQ(OutcomeOf(&a_, Activate("Fit", "uid-p")), "APPLIED");
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kActive);
  AddPod("bound", "n");
  EXPECT_EQ(OutcomeOf(&a_, Activate("Fit", "uid-bound")), "SUPERSEDED");
  EXPECT_EQ(OutcomeOf(&a_, Activate("Fit", "uid-unknown")), "UNKNOWN");
  EXPECT_EQ(observer_.errors["a"], 0);
}

TEST_F(PushesTest, AGateOpensOnlyByItsHost) {
  closed_ = {"EarlyGate uid-p", "LateGate uid-q"};
  AddPod("p");
  AddPod("q");
  ASSERT_EQ(scheduler_.queue().counts().gated, 2u);
  closed_.clear();
  asked_.clear();
  EXPECT_EQ(OutcomeOf(&b_, GateChanged("uid-p")), "SUPERSEDED");
  EXPECT_EQ(OutcomeOf(&b_, GateChanged("uid-unknown")), "UNKNOWN");
  EXPECT_THAT(asked_, IsEmpty());
  SyncResponse all;
  all.mutable_gate_changed()->set_all_pods(true);
  EXPECT_EQ(OutcomeOf(&b_, all), "APPLIED");
  EXPECT_THAT(asked_, UnorderedElementsAre("EarlyGate uid-q", "LateGate uid-q"));
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kGated);
  EXPECT_EQ(PlaceOf("uid-q"), queue::Place::kActive);
  EXPECT_EQ(OutcomeOf(&a_, GateChanged("uid-p")), "APPLIED");
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kActive);
  EXPECT_THAT(observer_.errors, IsEmpty());
}

TEST_F(PushesTest, SortKeysChangeOnlyByTheirHost) {
  AddPod("p");
  AddPod("bound", "n");
  asked_.clear();
  EXPECT_EQ(OutcomeOf(&b_, SortKeysChanged("uid-p")), "FORBIDDEN");
  EXPECT_EQ(observer_.errors["b"], 1);
  EXPECT_EQ(OutcomeOf(&a_, SortKeysChanged("uid-bound")), "SUPERSEDED");
  EXPECT_EQ(OutcomeOf(&a_, SortKeysChanged("uid-unknown")), "UNKNOWN");
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_EQ(OutcomeOf(&a_, SortKeysChanged("uid-p")), "APPLIED");
  EXPECT_THAT(asked_, ElementsAre("Sort uid-p"));
  EXPECT_EQ(observer_.errors["a"], 0);
}

TEST_F(PushesTest, DecisionsAreAnswered) {
  AddPod("p", "", "train");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  ASSERT_EQ(scheduler_.waiting_pods(), 1u);
  EXPECT_EQ(OutcomeOf(&a_, Allow(1, "uid-p")), "FORBIDDEN");
  EXPECT_EQ(observer_.errors["a"], 1);
  SyncResponse no_plugin = Allow(1, "uid-p");
  no_plugin.mutable_wait_decision()->clear_plugin();
  EXPECT_EQ(OutcomeOf(&b_, no_plugin), "FORBIDDEN");
  EXPECT_EQ(observer_.errors["b"], 1);
  EXPECT_EQ(OutcomeOf(&b_, Allow(1, "uid-unknown")), "UNKNOWN");
  EXPECT_THAT(orders_.binds, IsEmpty());
  EXPECT_EQ(OutcomeOf(&b_, Allow(1, "uid-p")), "APPLIED");
  EXPECT_THAT(orders_.binds, SizeIs(1));
  EXPECT_EQ(OutcomeOf(&b_, Allow(1, "uid-p")), "SUPERSEDED") << "it no longer waits";
  EXPECT_EQ(OutcomeOf(&b_, Allow(77, "uid-p")), "SUPERSEDED");
  EXPECT_EQ(observer_.errors["b"], 1);
}

TEST_F(PushesTest, AHostWritesOnlyForItsPlugins) {
  SyncResponse push;
  push.mutable_effect()->set_plugin("Keeper");
  push.mutable_effect()->set_key("w");
  push.mutable_effect()->mutable_put_object()->set_resource(kWidgets);
  push.mutable_effect()->mutable_put_object()->set_name("w");
  push.mutable_effect()->mutable_put_object()->set_json("{}");
  EXPECT_EQ(OutcomeOf(&b_, push), "FORBIDDEN");
  EXPECT_THAT(orders_.writes, IsEmpty());
  EXPECT_EQ(observer_.errors["b"], 1);
  EXPECT_EQ(OutcomeOf(&a_, push), "0 results") << "it is under way";
  EXPECT_THAT(orders_.writes, SizeIs(1));
}

// A reload gives its plugin to another host while its push is on the way.
TEST_F(PushesTest, AHostThatLosesAPluginIsNotAtFault) {
  AddRejectedPod("p");
  a_.pushes.push_back(Hint("Fit", "uid-p"));
  plan_.host_of["Fit"] = "b";
  scheduler_.SetPlan(plan_);
  scheduler_.SetHost("a", nullptr, 0, now_);
  EXPECT_THAT(observer_.errors, IsEmpty());
}

TEST_F(PushesTest, AnUnknownKindOfPushIsAnsweredAndNoFault) {
  EXPECT_EQ(OutcomeOf(&a_, SyncResponse()), "UNKNOWN");
  EXPECT_THAT(observer_.errors, IsEmpty());
}

TEST_F(PushesTest, APushWithoutAnIdIsNotAnswered) {
  scheduler_.Tick(now_);
  const size_t messages = a_.changes.size();
  a_.pushes.push_back(SyncResponse());
  scheduler_.Tick(now_);
  EXPECT_THAT(a_.changes, SizeIs(messages));
}

TEST_F(PushesTest, AHostThatDoesNotReadGetsItsResultsLater) {
  a_.is_sending = true;
  EXPECT_EQ(OutcomeOf(&a_, SyncResponse()), "0 results");
  a_.is_sending = false;
  scheduler_.Tick(now_);
  ASSERT_THAT(a_.push_results, SizeIs(1));
  EXPECT_EQ(a_.push_results[0].push_id(), push_id_);
}

TEST(PushResultBuffer, SplitsWhatOneMessageCannotCarry) {
  constexpr uint64_t kResults = 5000;
  PushResultBuffer buffer;
  for (uint64_t id = 1; id <= kResults; ++id)
    buffer.Add(id, PushResult::OUTCOME_FAILED, std::string(2000, 'x'));
  uint64_t id = 0;
  int messages = 0;
  for (; !buffer.empty(); ++messages) {
    SyncRequest request;
    buffer.TakeInto(&request);
    EXPECT_LE(request.ByteSizeLong(), size_t{2} << 20);
    for (const PushResult& result : request.push_results()) {
      EXPECT_EQ(result.push_id(), ++id);
      EXPECT_LE(result.message().size(), 1024u);
    }
  }
  EXPECT_EQ(id, kResults);
  EXPECT_GT(messages, 2);
}

TEST(PushResultBuffer, IsBounded) {
  PushResultBuffer buffer;
  buffer.Add(0, PushResult::OUTCOME_APPLIED, "");
  EXPECT_TRUE(buffer.empty()) << "no answer is wanted";
  for (uint64_t id = 1; id <= PushResultBuffer::kMaxResults + 10; ++id)
    buffer.Add(id, PushResult::OUTCOME_APPLIED, "");
  SyncRequest request;
  while (!buffer.empty()) buffer.TakeInto(&request);
  EXPECT_EQ(static_cast<size_t>(request.push_results_size()), PushResultBuffer::kMaxResults);
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_pushes_test
