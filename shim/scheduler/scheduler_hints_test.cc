// A host that evaluates queueing hints: what it receives, and the effect of its answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler::scheduler_hints_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";

class RecordedBinds final : public NoClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  std::vector<BindOrder> binds;
};

class ErrorCounter final : public Observer {
 public:
  void OnProtocolError(const std::string&, const std::string&, const absl::Status&) override {
    ++errors;
  }
  int errors = 0;
};

class QueueLog final : public queue::QueueObserver {
 public:
  void OnIncoming(absl::string_view queue, absl::string_view event) override {
    last = absl::StrCat(queue, " by ", event);
  }
  void OnUnschedulableReason(const std::string&, const std::string&, int) override {}
  std::string last;
};

class SchedulerHintsTest : public ::testing::Test {
 protected:
  SchedulerHintsTest()
      : scheduler_(SchedulerOptions(), queue::QueueOptions(), &effects_, &observer_, &queue_log_,
                   now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit", "Volumes", "Labels", "Gang"};
    plan.algorithm.score_plugins = {{"Score", 1}};
    plan.host_names = {kHost};
    for (const char* plugin : {"Fit", "Volumes", "Labels", "Gang"}) plan.host_of[plugin] = kHost;
    plan.permit = {{kHost, {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.guard.resources = false;
    plan.wake_up_events["Fit"] = {queue::NodeEvent(queue::kAdd),
                                  {"Pod", queue::kDelete | queue::kUpdatePodScaleDown, ""}};
    plan.wake_up_events["Volumes"] = {{"StorageClass", queue::kAdd, ""}};
    plan.wake_up_events["Labels"] = {queue::NodeEvent(queue::kUpdateNodeLabel)};
    plan.wake_up_events["Gang"] = {};
    scheduler_.SetPlan(plan);
    host_.EvaluateHints();
    Attach(&host_);
    RejectAllBy("Fit");
  }
  void Attach(framework::ScriptedHost* host) {
    if (cursor_ != 0) scheduler_.cluster()->RemoveHost(cursor_);
    cursor_ = scheduler_.cluster()->AddHost({});
    // The snapshot, which the owner of the connection takes and sends.
    scheduler_.cluster()->TakeChanges(cursor_, now_);
    scheduler_.SetHost(kHost, host, cursor_, now_);
  }
  void RejectAllBy(const std::string& plugin) {
    host_.cycle = [this, plugin](const auto&, auto* response) {
      host_.Infeasible(plugin, "no", response);
      return absl::OkStatus();
    };
  }
  kube::NodePtr MakeNode(const std::string& name, const std::string& label = "") {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", name));
    node->node.set_name(name);
    node->node.mutable_allocatable()->set_pods(10);
    if (!label.empty()) (*node->node.mutable_labels())["l"] = label;
    node->resource_version = absl::StrCat(++resource_version_);
    return node;
  }
  void PutNode(const std::string& name, const std::string& label = "") {
    scheduler_.events()->OnNodeUpsert(MakeNode(name, label), now_);
    host_.num_nodes = static_cast<uint32_t>(scheduler_.cluster()->node_count());
  }
  kube::PodPtr PutPod(const std::string& name, const std::string& node = "",
                      const std::string& job = "", int64_t cpu_millis = 100,
                      const std::string& nominated = "", int32_t priority = 0) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.set_node_name(node);
    pod->pod.set_nominated_node_name(nominated);
    pod->pod.set_priority(priority);
    if (!job.empty()) (*pod->pod.mutable_labels())["job-name"] = job;
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(cpu_millis);
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
    return pod;
  }
  // What the host received since the last call.
  struct Received {
    std::vector<std::string> waiting;  // "uid by plugins"
    std::vector<std::string> not_waiting;
    std::vector<std::string> events;  // "label object"
    std::vector<v1beta1::QueueEvent> raw;
    uint64_t since = 0;  // of the last waiting pod
  };
  Received TakeReceived() {
    scheduler_.Tick(now_);
    Received received;
    for (const v1beta1::SyncRequest& request : host_.changes) {
      for (const auto& pod : request.unschedulable_pods()) {
        std::string text = absl::StrCat(pod.uid(), " by");
        for (const std::string& plugin : pod.rejected_by()) absl::StrAppend(&text, " ", plugin);
        received.waiting.push_back(text);
        received.since = pod.since();
      }
      received.not_waiting.insert(received.not_waiting.end(),
                                  request.removed_unschedulable_pod_uids().begin(),
                                  request.removed_unschedulable_pod_uids().end());
      for (const auto& event : request.events()) {
        received.events.push_back(absl::StrCat(queue::FromContract(event.event()).Label(), " ",
                                               event.node_name(), event.pod_uid()));
        received.raw.push_back(event);
      }
    }
    host_.changes.clear();
    return received;
  }
  void Hint(const std::string& uid, const std::string& plugin, const v1beta1::QueueEvent& event) {
    v1beta1::QueueHint* hint = host_.pushes.emplace_back().mutable_queue_hints()->add_hints();
    hint->set_uid(uid);
    hint->set_plugin(plugin);
    *hint->mutable_event() = event.event();
    hint->set_number(event.number());
    scheduler_.Tick(now_);
  }
  // p, rejected by Fit on one node; the host knows that.
  void WithAWaitingPod() {
    PutNode("n1");
    PutPod("p");
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    EXPECT_THAT(TakeReceived().waiting, ElementsAre("uid-p by Fit"));
  }
  queue::Place PlaceOf(const std::string& uid) const {
    const queue::QueuedPod* pod = scheduler_.queue().Find(uid);
    return pod == nullptr ? queue::Place::kNone : pod->place;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int resource_version_ = 0;
  RecordedBinds effects_;
  ErrorCounter observer_;
  QueueLog queue_log_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  cache::ClusterState::Cursor cursor_ = 0;
};

TEST_F(SchedulerHintsTest, SendsWaitingPodsAndEventsAndAppliesHints) {
  WithAWaitingPod();
  PutNode("n2");
  const Received received = TakeReceived();
  EXPECT_THAT(received.events, ElementsAre("NodeAdd n2"));
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kUnschedulable);
  Hint("uid-p", "Fit", received.raw[0]);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff);
  EXPECT_THAT(TakeReceived().not_waiting, ElementsAre("uid-p"));
}

TEST_F(SchedulerHintsTest, SendsHostsTheTimeAfterEarlierEvents) {
  host_.heard_time = absl::InfinitePast();
  PutNode("n1");
  scheduler_.AdvanceHostClocks(now_);
  ASSERT_EQ(host_.changes.size(), 2u);
  EXPECT_EQ(host_.changes[0].time_unix_micros(), 0);
  EXPECT_EQ(host_.changes[0].changes_size(), 1);
  EXPECT_EQ(host_.changes[1].time_unix_micros(), absl::ToUnixMicros(now_));
  EXPECT_EQ(host_.changes[1].version(), host_.changes[0].version());
  EXPECT_FALSE(scheduler_.HostClocksAdvanced());
  host_.heard_time = now_;
  EXPECT_TRUE(scheduler_.HostClocksAdvanced());
  // The same instant again is another message.
  scheduler_.AdvanceHostClocks(now_);
  EXPECT_FALSE(scheduler_.HostClocksAdvanced());
  EXPECT_EQ(host_.changes.back().time_unix_micros(), absl::ToUnixMicros(now_) + 1);
  // No call waits for an unavailable host.
  host_.is_usable = false;
  EXPECT_TRUE(scheduler_.HostClocksAdvanced());
}

TEST_F(SchedulerHintsTest, TheEventTravelsWithItsChange) {
  WithAWaitingPod();
  PutNode("n2");
  scheduler_.Tick(now_);
  ASSERT_THAT(host_.changes, SizeIs(1));
  ASSERT_THAT(host_.changes[0].changes(), SizeIs(1));
  EXPECT_EQ(host_.changes[0].changes(0).node_upsert().node().name(), "n2");
  EXPECT_THAT(host_.changes[0].events(), SizeIs(1));
}

TEST_F(SchedulerHintsTest, SendsNoEventThatHelpsNoPod) {
  WithAWaitingPod();
  PutNode("n1", "other");  // Labels help no waiting pod.
  PutPod("bound", "n1");
  const Received received = TakeReceived();
  EXPECT_THAT(received.events, IsEmpty());
  EXPECT_THAT(received.waiting, IsEmpty());
}

TEST_F(SchedulerHintsTest, AnEventWithoutACacheChangeIsSentToo) {
  RejectAllBy("Labels");
  PutNode("n1");
  PutPod("p");
  scheduler_.ScheduleOne(now_);
  TakeReceived();
  RejectAllBy("Fit");
  PutNode("n1", "x");
  EXPECT_THAT(TakeReceived().events, ElementsAre("NodeUpdateNodeLabel n1"));
}

TEST_F(SchedulerHintsTest, PodsThatGoAreEvents) {
  WithAWaitingPod();
  PutPod("q", "n1");
  scheduler_.events()->OnPodDelete("uid-q", now_);
  EXPECT_THAT(TakeReceived().events, ElementsAre("AssignedPodDelete uid-q"));
  PutPod("pending");
  scheduler_.events()->OnPodDelete("uid-pending", now_);
  EXPECT_THAT(TakeReceived().events, IsEmpty()) << "it was on no node";
}

TEST_F(SchedulerHintsTest, ANominationThatEndsHelpsPodsOfNoHigherPriority) {
  WithAWaitingPod();
  PutPod("m", "", "", 100, "n1", 7);
  TakeReceived();
  PutPod("m", "", "", 100, "", 7);
  const Received received = TakeReceived();
  EXPECT_THAT(received.events, ElementsAre("AssignedPodDelete uid-m"));
  EXPECT_TRUE(received.raw[0].has_max_priority());
  EXPECT_EQ(received.raw[0].max_priority(), 7);
}

TEST_F(SchedulerHintsTest, AHostSeesWhatAnEventMayBeAboutLater) {
  WithAWaitingPod();
  PutPod("m", "", "", 100, "n1");
  scheduler_.Tick(now_);
  ASSERT_THAT(host_.changes, SizeIs(1)) << "although this is not an event";
  const auto& upserted = host_.changes[0].changes(0).pod_upsert().pod();
  EXPECT_EQ(upserted.nominated_node_name(), "n1");
  EXPECT_THAT(TakeReceived().events, IsEmpty());
  scheduler_.events()->OnPodDelete("uid-m", now_);
  EXPECT_THAT(TakeReceived().events, ElementsAre("AssignedPodDelete uid-m"));
}

TEST_F(SchedulerHintsTest, AWaitingPodsOwnUpdateIsAnEvent) {
  WithAWaitingPod();
  PutPod("p", "", "", 50);
  const Received received = TakeReceived();
  EXPECT_THAT(received.events, ElementsAre("UnschedulablePodUpdatePodScaleDown uid-p"));
  Hint("uid-p", "Fit", received.raw[0]);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff);
}

TEST_F(SchedulerHintsTest, APlaceGivenBackAfterPermitIsAnEventForOthers) {
  WithAWaitingPod();
  host_.cycle = nullptr;
  host_.permit = [](const v1beta1::PermitRequest&) {
    v1beta1::PermitResponse response;
    v1beta1::PermitWait* wait = response.add_waits();
    wait->set_plugin("Gang");
    wait->set_timeout_micros(1'000'000);
    return response;
  };
  PutPod("g", "", "job");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  Received received = TakeReceived();
  EXPECT_THAT(received.events, IsEmpty());
  now_ += absl::Seconds(2);
  scheduler_.Tick(now_);  // The wait runs out.
  received = TakeReceived();
  EXPECT_THAT(received.events, ElementsAre("AssignedPodDelete uid-g"));
  EXPECT_THAT(received.waiting, ElementsAre("uid-g by Gang"));
  EXPECT_LE(received.since, received.raw[0].number()) << "the attempt had not seen it";
}

TEST_F(SchedulerHintsTest, EventsOfAWaitAtPermitAreKept) {
  PutNode("n1");
  host_.cycle = nullptr;
  host_.permit = [](const v1beta1::PermitRequest&) {
    v1beta1::PermitResponse response;
    v1beta1::PermitWait* wait = response.add_waits();
    wait->set_plugin("Gang");
    wait->set_timeout_micros(100'000'000);
    return response;
  };
  PutPod("g", "", "job");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  host_.changes.clear();
  PutNode("n2");
  scheduler_.Tick(now_);
  ASSERT_THAT(host_.changes, SizeIs(1));
  ASSERT_THAT(host_.changes[0].events(), SizeIs(1));
  EXPECT_LE(host_.changes[0].events_needed_from(), host_.changes[0].events(0).number());
}

TEST_F(SchedulerHintsTest, AnEventThatWasNotSentIsNotALabel) {
  WithAWaitingPod();
  v1beta1::QueueEvent invented;
  invented.set_number(1000);
  invented.mutable_event()->set_resource("Invented");
  invented.mutable_event()->add_actions(v1beta1::ClusterEvent::ACTION_ADD);
  Hint("uid-p", "Fit", invented);
  EXPECT_EQ(observer_.errors, 1);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff) << "one attempt too many does no harm";
}

TEST_F(SchedulerHintsTest, AHintIsCountedUnderKubeSchedulersLabelOfItsEvent) {
  RejectAllBy("Volumes");
  PutNode("n1");
  PutPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  TakeReceived();
  auto storage_class = std::make_shared<kube::ClusterObject>();
  storage_class->object.mutable_storage_class()->set_name("fast");
  storage_class->object_uid = "uid-fast";
  storage_class->resource_version = absl::StrCat(++resource_version_);
  scheduler_.events()->OnObjectUpsert(storage_class, now_);
  const Received received = TakeReceived();
  ASSERT_THAT(received.raw, SizeIs(1));
  EXPECT_EQ(received.raw[0].event().resource(), "StorageClass");
  EXPECT_EQ(received.raw[0].object().ShortDebugString(), "kind: \"StorageClass\" name: \"fast\"");
  Hint("uid-p", "Volumes", received.raw[0]);
  EXPECT_EQ(observer_.errors, 0) << "the event was published";
  EXPECT_EQ(queue_log_.last, "backoff by storage.k8s.io/StorageClassAdd");
}

TEST_F(SchedulerHintsTest, ActivateTriesWhomThePluginRejectedAtOnce) {
  WithAWaitingPod();
  v1beta1::Activate* activate = host_.pushes.emplace_back().mutable_activate();
  activate->set_plugin("Gang");
  activate->add_pod_uids("uid-p");
  scheduler_.Tick(now_);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kUnschedulable);
  activate = host_.pushes.emplace_back().mutable_activate();
  activate->set_plugin("Fit");
  activate->add_pod_uids("uid-p");
  scheduler_.Tick(now_);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kActive);
}

TEST_F(SchedulerHintsTest, AReplacedHostsPodsAreTried) {
  WithAWaitingPod();
  PutNode("n2");
  scheduler_.Tick(now_);  // The event is on its way, but the host dies.
  scheduler_.SetHost(kHost, nullptr, 0, now_);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kUnschedulable);
  framework::ScriptedHost successor;
  successor.EvaluateHints();
  Attach(&successor);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff);
  scheduler_.SetHost(kHost, nullptr, 0, now_);
}

TEST_F(SchedulerHintsTest, AHostThatMissedAMessagesWorthIsNotTrusted) {
  WithAWaitingPod();
  scheduler_.cluster()->Resync(cursor_);  // The next changes are a snapshot, which forgets waits.
  PutNode("n2");
  scheduler_.Tick(now_);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff);
}

TEST_F(SchedulerHintsTest, AHostWithoutTheCapabilityReceivesNoEvents) {
  framework::ScriptedHost plain;
  Attach(&plain);
  plain.cycle = [&plain](const auto&, auto* response) {
    plain.Infeasible("Fit", "no", response);
    return absl::OkStatus();
  };
  PutNode("n1");
  PutPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  PutNode("n2");
  scheduler_.Tick(now_);
  EXPECT_EQ(PlaceOf("uid-p"), queue::Place::kBackoff) << "moved by the kind of the event";
  for (const v1beta1::SyncRequest& request : plain.changes) {
    EXPECT_THAT(request.unschedulable_pods(), IsEmpty());
    EXPECT_THAT(request.events(), IsEmpty());
  }
  scheduler_.SetHost(kHost, nullptr, 0, now_);
}

TEST_F(SchedulerHintsTest, ImpossibleHintsOpenTheBreaker) {
  PutNode("n");
  PutPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(scheduler_.IsHeldBack(kHost)) << i;
    v1beta1::QueueHint* const hint = host_.pushes.emplace_back().mutable_queue_hints()->add_hints();
    hint->set_uid("uid-p");
    hint->set_plugin("Fit");
    hint->set_number(1);
    hint->mutable_event()->set_resource("made-up");
    hint->mutable_event()->add_actions(v1beta1::ClusterEvent::ACTION_ADD);
    scheduler_.Tick(now_);
  }
  EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
  EXPECT_EQ(observer_.errors, 3);
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_hints_test
