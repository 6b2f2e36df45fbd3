// Binds that another scheduler asks for: the same Reserve, Permit, PreBind and PostBind as for pods
// of the queue, and only the caller learns how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/externally_scheduled_pods.h"

namespace outboard::scheduler::external_binds_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "extender";
constexpr char kHost[] = "main";
constexpr char kWidgets[] = "widgets.v1.example.com";
constexpr absl::Duration kPatience = absl::Seconds(4);
constexpr size_t kMaxBinds = 4;

// kube-scheduler writes its pods' events and status.
class RecordedActions final : public ClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  void Write(const EffectOrder& order, absl::Time) override { writes.push_back(order); }
  void Evict(const EvictOrder&, absl::Time) override { ADD_FAILURE(); }
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {
    ADD_FAILURE();
  }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {
    ADD_FAILURE();
  }
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string& message,
                    absl::Time) override {
    ADD_FAILURE() << message;
  }
  void PatchStatus(const kube::PodObject&, const std::optional<PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {
    ADD_FAILURE();
  }
  std::vector<BindOrder> binds;
  std::vector<EffectOrder> writes;
};

// Plugin Gang at Permit, for pods with its label; plugin Keeper at Reserve, PreBind and PostBind,
// for pods with its own.
class ExternalBindsTest : public ::testing::Test {
 protected:
  ExternalBindsTest()
      : scheduler_(Options(), queue::QueueOptions(), &effects_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Model"};
    plan.host_names = {kHost};
    plan.host_of = {{"Model", kHost}, {"Gang", kHost}, {"Keeper", kHost}};
    plan.reserve = {{kHost, {{"Keeper", {"metadata.labels['keeper']"}}}}};
    plan.permit = {{kHost, {{"Gang", {"metadata.labels['gang']"}}}}};
    plan.pre_bind_plugins = {"Keeper"};
    plan.post_bind = {{kHost, {{"Keeper", {"metadata.labels['keeper']"}}}}};
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
    v1beta1::DeclaredResource* const widgets = host_.AddPlugin("Keeper")->add_declared_resources();
    widgets->set_resource(kWidgets);
    widgets->add_verbs(v1beta1::DeclaredResource::VERB_CREATE);
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    for (const char* name : {"a", "b", "c"}) AddNode(name);
    host_.cycle = [this](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
      Note("filter", request.cycle().header());
      if (rejection_.empty()) {
        host_.Feasible(response);
      } else {
        host_.Infeasible("Model", rejection_, response);
      }
      return absl::OkStatus();
    };
    host_.reserve = [this](const v1beta1::ReserveRequest& request) {
      Note("reserve", request.header());
      return reserved_;
    };
    host_.permit = [this](const v1beta1::PermitRequest& request) {
      Note("permit", request.header());
      attempt_of_[request.pod_uid()] = request.header().attempt_id();
      return permitted_;
    };
    host_.pre_bind = [this](const v1beta1::PreBindRequest& request) {
      Note("preBind", request.header());
      return v1beta1::PreBindResponse();
    };
    host_.unreserve = [this](const v1beta1::UnreserveRequest& request) {
      Note("unreserve", request.header());
      return std::exchange(unreserve_answer_, {});
    };
  }
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.custom_resources = {{kWidgets, {v1beta1::DeclaredResource::VERB_CREATE}, {}}};
    return options;
  }

  void AddNode(const std::string& name) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", name));
    node->node.set_name(name);
    node->node.mutable_allocatable()->set_pods(10);
    node->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }
  // As informer::PodsOfExtender decodes it.
  kube::PodPtr AddPod(const std::string& name, const std::vector<std::string>& labels,
                      int64_t deletion = 0) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->externally_scheduled = true;
    pod->pod.set_deletion_unix_seconds(deletion);
    for (const std::string& label : labels) (*pod->pod.mutable_labels())[label] = "x";
    pod->pod.add_containers();
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
    return pod;
  }
  // The outcome is in ends_, by the pod's name.
  void Bind(const kube::PodPtr& pod, const std::string& node) {
    pods_.Bind(kProfile, pod, node, now_ + kPatience, now_,
               [this, name = pod->pod.name()](const absl::Status& end) {
                 EXPECT_TRUE(ends_.emplace(name, end).second) << name << " has two ends";
               });
  }
  void EndBind(const BindOrder& order, BindEnd end, const std::string& message = "") {
    order.ordered_by->OnBindEnded(order.attempt_id, end, message, now_);
  }
  void EndWrite(const EffectOrder order) {
    order.ordered_by->OnEffectEnded(order, {absl::OkStatus(), "7", "uid-w"}, now_);
  }
  // Time passes, and both parts that end waits notice.
  void Pass(absl::Duration duration) {
    now_ += duration;
    scheduler_.Tick(now_);
    pods_.Tick(now_);
  }
  void Note(const std::string& call, const v1beta1::CallHeader& header) {
    calls_.push_back(call);
    attempts_.insert(header.attempt_id());
    EXPECT_EQ(header.profile(), kProfile);
  }
  static v1beta1::PermitResponse Wait(const std::string& reason) {
    v1beta1::PermitResponse answer;
    v1beta1::PermitWait* wait = answer.add_waits();
    wait->set_plugin("Gang");
    wait->set_timeout_micros(absl::ToInt64Microseconds(absl::Seconds(30)));
    wait->set_reason(reason);
    return answer;
  }
  v1beta1::WaitDecision Decision(const std::string& pod, bool allow, const std::string& message) {
    v1beta1::WaitDecision decision;
    decision.set_attempt_id(attempt_of_[pod]);
    decision.set_pod_uid(pod);
    decision.set_plugin("Gang");
    decision.set_allow(allow);
    decision.set_message(message);
    return decision;
  }
  static v1beta1::ReserveResponse OneWidget() {
    v1beta1::ReserveResponse answer;
    v1beta1::Effect* effect = answer.add_effects();
    effect->set_key("w");
    effect->set_plugin("Keeper");
    effect->mutable_put_object()->set_resource(kWidgets);
    effect->mutable_put_object()->set_name("w");
    effect->mutable_put_object()->set_json("{}");
    return answer;
  }
  std::string NodeOf(const std::string& pod) { return pods_.cluster().NodeOf(pod); }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(24);
  int resource_version_ = 0;
  RecordedActions effects_;
  Observer observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  ExternallyScheduledPods pods_{scheduler_.shared_parts(), &effects_, kMaxBinds};
  std::string rejection_;  // of Filter
  v1beta1::ReserveResponse reserved_;
  v1beta1::PermitResponse permitted_;
  v1beta1::UnreserveResponse unreserve_answer_;  // once
  std::vector<std::string> calls_;
  std::set<uint64_t> attempts_;  // that hosts were asked about
  std::map<std::string, uint64_t> attempt_of_;
  std::map<std::string, absl::Status> ends_;
};

// Hosts see one attempt, although Filter was never asked before the bind: another replica may have
// answered it.
TEST_F(ExternalBindsTest, GoesThroughAllPointsInOneAttempt) {
  reserved_ = OneWidget();
  Bind(AddPod("p", {"keeper", "gang"}), "b");
  EXPECT_THAT(calls_, ElementsAre("filter", "reserve", "permit"));
  EXPECT_THAT(host_.cycles[0].cycle().search().nodes().slots(), ElementsAre(1)) << "only the node";
  EXPECT_EQ(NodeOf("p"), "b");
  ASSERT_THAT(effects_.writes, SizeIs(1));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EndWrite(effects_.writes[0]);
  Pass(absl::ZeroDuration());
  EXPECT_THAT(calls_, ElementsAre("filter", "reserve", "permit", "preBind"));
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(effects_.binds[0].node_name, "b");
  EXPECT_THAT(ends_, IsEmpty());
  EndBind(effects_.binds[0], BindEnd::kBound);
  EXPECT_TRUE(ends_.at("p").ok());
  EXPECT_THAT(attempts_, SizeIs(1));
  ASSERT_THAT(host_.post_binds, SizeIs(1));
  EXPECT_EQ(host_.post_binds[0].header().attempt_id(), *attempts_.begin());
  EXPECT_EQ(pods_.NextTick(), absl::InfiniteFuture());
}

TEST_F(ExternalBindsTest, HostsAreNotAskedAboutPodsThatNoPluginIsInterestedIn) {
  Bind(AddPod("p", {}), "a");
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_THAT(calls_, IsEmpty());
}

TEST_F(ExternalBindsTest, ANodeThatNoLongerPassesIsRejected) {
  rejection_ = "GPU model mismatch";
  Bind(AddPod("p", {"keeper"}), "a");
  EXPECT_EQ(ends_.at("p").message(), "GPU model mismatch");
  EXPECT_THAT(calls_, ElementsAre("filter"));
  EXPECT_EQ(NodeOf("p"), "");
  // The host forgets the attempt.
  scheduler_.Tick(now_ + absl::Seconds(1));
  ASSERT_FALSE(host_.changes.empty());
  EXPECT_THAT(host_.changes.back().ended_attempts(), ElementsAre(*attempts_.begin()));
}

TEST_F(ExternalBindsTest, ARejectionByReserveGivesThePlaceBack) {
  v1beta1::PluginStatus* rejection = reserved_.mutable_rejection();
  rejection->set_plugin("Keeper");
  rejection->set_code(v1beta1::CODE_UNSCHEDULABLE);
  rejection->add_reasons("no free static IP");
  Bind(AddPod("p", {"keeper"}), "a");
  EXPECT_EQ(ends_.at("p").message(), "no free static IP");
  EXPECT_THAT(calls_, ElementsAre("filter", "reserve", "unreserve"));
  EXPECT_EQ(NodeOf("p"), "");
}

TEST_F(ExternalBindsTest, AFailedBindGivesThePlaceBack) {
  Bind(AddPod("p", {"keeper"}), "a");
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EndBind(effects_.binds[0], BindEnd::kNotBound, "409 Conflict");
  EXPECT_THAT(std::string(ends_.at("p").message()), HasSubstr("409 Conflict"));
  EXPECT_THAT(calls_, ElementsAre("filter", "reserve", "unreserve"));
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_THAT(host_.post_binds, IsEmpty());
}

TEST_F(ExternalBindsTest, AGangIsBoundTogether) {
  permitted_ = Wait("gang \"g\": 1 of 3 members placed");
  Bind(AddPod("p", {"gang"}), "a");
  Bind(AddPod("q", {"gang"}), "b");
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_EQ(scheduler_.waiting_pods(), 2u);
  permitted_.clear_waits();
  *permitted_.add_decisions() = Decision("p", true, "");
  *permitted_.add_decisions() = Decision("q", true, "");
  Bind(AddPod("r", {"gang"}), "c");
  ASSERT_THAT(effects_.binds, SizeIs(3));
  for (const BindOrder& order : std::vector<BindOrder>(effects_.binds))
    EndBind(order, BindEnd::kBound);
  ASSERT_THAT(ends_, SizeIs(3));
  for (const auto& [pod, end] : ends_) EXPECT_TRUE(end.ok()) << pod << ": " << end;
}

// When one member gives its place back, the plugin rejects the others.
TEST_F(ExternalBindsTest, AGangThatIsIncompleteInTimeIsNotBound) {
  permitted_ = Wait("gang \"g\": 1 of 3 members placed");
  Bind(AddPod("p", {"gang"}), "a");
  now_ += absl::Seconds(1);
  Bind(AddPod("q", {"gang"}), "b");
  EXPECT_EQ(pods_.NextTick(), now_ + absl::Seconds(3));
  Pass(absl::Seconds(2));
  EXPECT_THAT(ends_, IsEmpty());
  *unreserve_answer_.add_decisions() =
      Decision("q", false, "gang \"g\": pod p released its place; 1 others were placed");
  Pass(absl::Seconds(1));
  ASSERT_THAT(ends_, SizeIs(2));
  EXPECT_EQ(ends_.at("p").message(), "not allowed within 4s: gang \"g\": 1 of 3 members placed");
  EXPECT_EQ(ends_.at("q").message(), "gang \"g\": pod p released its place; 1 others were placed");
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(NodeOf("q"), "");
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
  // kube-scheduler tries again.
  ends_.clear();
  permitted_.Clear();
  Bind(scheduler_.cluster()->FindPod("p"), "a");
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

// What was written stands until its outcome is known; then the attempt fails.
TEST_F(ExternalBindsTest, AnEffectUnderWayIsAwaitedWhenTimeIsOver) {
  reserved_ = OneWidget();
  Bind(AddPod("p", {"keeper"}), "a");
  Pass(kPatience);
  EXPECT_THAT(ends_, IsEmpty());
  EXPECT_EQ(NodeOf("p"), "a");
  EndWrite(effects_.writes[0]);
  EXPECT_THAT(std::string(ends_.at("p").message()),
              AllOf(HasSubstr("Keeper"), HasSubstr("not ready within 4s")));
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_THAT(effects_.binds, IsEmpty());
}

TEST_F(ExternalBindsTest, ABindUnderWayIsNotWithdrawn) {
  Bind(AddPod("p", {"gang"}), "a");
  ASSERT_THAT(effects_.binds, SizeIs(1));
  Pass(kPatience);
  EXPECT_THAT(ends_, IsEmpty());
  EndBind(effects_.binds[0], BindEnd::kBound);
  EXPECT_TRUE(ends_.at("p").ok());
}

TEST_F(ExternalBindsTest, AnUnsettledBindIsReported) {
  Bind(AddPod("p", {}), "a");
  EndBind(effects_.binds[0], BindEnd::kUnknown);
  EXPECT_EQ(ends_.at("p").code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(NodeOf("p"), "a") << "until the API server says more";
}

TEST_F(ExternalBindsTest, ARepeatedRequestIsRejectedWhileTheFirstWaits) {
  permitted_ = Wait("the others");
  const kube::PodPtr pod = AddPod("p", {"gang"});
  Bind(pod, "a");
  absl::Status again;
  pods_.Bind(kProfile, pod, "a", now_ + kPatience, now_,
             [&](const absl::Status& end) { again = end; });
  EXPECT_EQ(again.message(), "pod ns/p is already on node a");
  EXPECT_THAT(ends_, IsEmpty());
}

TEST_F(ExternalBindsTest, BindsInProgressAreBounded) {
  permitted_ = Wait("the others");
  for (size_t i = 0; i < kMaxBinds; ++i) Bind(AddPod(absl::StrCat("p", i), {"gang"}), "a");
  EXPECT_THAT(ends_, IsEmpty());
  Bind(AddPod("q", {"gang"}), "a");
  EXPECT_EQ(ends_.at("q").message(),
            "4 binds are in progress, the most at a time (extender.maxBinds)");
  EXPECT_EQ(NodeOf("q"), "");
  Pass(kPatience);
  EXPECT_THAT(ends_, SizeIs(kMaxBinds + 1));
  ends_.clear();
  permitted_.Clear();
  Bind(scheduler_.cluster()->FindPod("q"), "a");
  EXPECT_THAT(effects_.binds, SizeIs(1));
}

TEST_F(ExternalBindsTest, ADeletedPodEndsItsWait) {
  permitted_ = Wait("the others");
  Bind(AddPod("p", {"gang"}), "a");
  AddPod("p", {"gang"}, /*deletion=*/1);
  EXPECT_EQ(ends_.at("p").message(), "pod is being deleted");
  EXPECT_EQ(NodeOf("p"), "");
}

TEST_F(ExternalBindsTest, ADeletedNodeEndsTheWaitsOnIt) {
  permitted_ = Wait("the others");
  Bind(AddPod("p", {"gang"}), "a");
  scheduler_.events()->OnNodeDelete("a", now_);
  EXPECT_THAT(std::string(ends_.at("p").message()), HasSubstr("node a is gone"));
}

TEST_F(ExternalBindsTest, ASilentHostIsReported) {
  host_.permit = [](const v1beta1::PermitRequest&) {
    return absl::DeadlineExceededError("too slow");
  };
  Bind(AddPod("p", {"gang"}), "a");
  EXPECT_EQ(ends_.at("p").message(), "plugin host \"main\" did not answer: too slow");
  EXPECT_EQ(NodeOf("p"), "");
}

// The pods name the profile, but another scheduler places them.
TEST_F(ExternalBindsTest, TheQueueNeverTakesTheirPods) {
  AddPod("p", {});
  AddPod("p", {"changed"});
  EXPECT_EQ(scheduler_.queue().Find("p"), nullptr);
  scheduler_.ChangeProfileNames({kProfile, "another"}, now_);
  EXPECT_EQ(scheduler_.queue().Find("p"), nullptr);
  EXPECT_FALSE(scheduler_.ScheduleOne(now_));
  // A failed bind does not queue it either.
  Bind(scheduler_.cluster()->FindPod("p"), "a");
  EndBind(effects_.binds[0], BindEnd::kNotBound, "no");
  EXPECT_EQ(scheduler_.queue().Find("p"), nullptr);
}

// The webhook counts kube-scheduler's own binds of them as before.
TEST_F(ExternalBindsTest, TheirBindsByAnotherSchedulerAreAdmittedAndCounted) {
  const kube::PodPtr pod = AddPod("p", {});
  EXPECT_TRUE(pods_.Admit(kProfile, pod, "a", /*dry_run=*/false, now_).ok());
  EXPECT_EQ(NodeOf("p"), "a");
}

}  // namespace
}  // namespace outboard::scheduler::external_binds_test
