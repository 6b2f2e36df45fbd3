#include "plugin_host/runtime/queueing_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/runtime/wake_up_events.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime::queueing_hints_test {
namespace {

using sdk::Hint;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using v1beta1::ClusterEvent;

// A plugin's calls and its programmed answers.
struct Script {
  Hint hint = Hint::kQueue;
  std::vector<std::string> asked;  // "pod: what before and after"
  sdk::ShimNotifier* pushes = nullptr;
};

std::string Describe(const sdk::ObjectChange& change) {
  const auto label = [](const v1beta1::Node* node) -> std::string {
    return node == nullptr ? "none" : absl::StrCat(node->name(), "/", node->labels().at("l"));
  };
  const auto place = [](const v1beta1::Pod* pod) -> std::string {
    return pod == nullptr ? "none" : absl::StrCat(pod->name(), "@", pod->node_name());
  };
  if (change.old_pod != nullptr || change.new_pod != nullptr) {
    return absl::StrCat(place(change.old_pod), " to ", place(change.new_pod));
  }
  if (change.old_object != nullptr || change.new_object != nullptr) {
    const auto driver = [](const v1beta1::ClusterObject* object) -> std::string {
      return object == nullptr ? "none" : object->storage_class().provisioner();
    };
    return absl::StrCat(driver(change.old_object), " to ", driver(change.new_object));
  }
  return absl::StrCat(label(change.old_node), " to ", label(change.new_node));
}

class Hinting : public sdk::Plugin, public sdk::PreEnqueuePlugin, public sdk::QueueingHintPlugin {
 public:
  explicit Hinting(Script* script) : script_(script) {}
  sdk::Verdict PreEnqueue(const sdk::PodView&, const sdk::ClusterView&, absl::Time) const override {
    return sdk::Verdict::Success();
  }
  Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    script_->asked.push_back(absl::StrCat(pod.name(), ": ", Describe(change)));
    return script_->hint;
  }

 private:
  Script* script_;
};

class Hintless : public sdk::Plugin, public sdk::PreEnqueuePlugin {
 public:
  sdk::Verdict PreEnqueue(const sdk::PodView&, const sdk::ClusterView&, absl::Time) const override {
    return sdk::Verdict::Success();
  }
};

class QueueingHintsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AddPlugin("Nodes", {sdk::WakeOn("Node", {ClusterEvent::ACTION_ADD, ClusterEvent::ACTION_DELETE,
                                             ClusterEvent::ACTION_UPDATE_NODE_LABEL})});
    AddPlugin("Pods", {sdk::WakeOn("Pod", {ClusterEvent::ACTION_ADD, ClusterEvent::ACTION_DELETE,
                                           ClusterEvent::ACTION_UPDATE_POD_LABEL})});
    AddPlugin("Classes",
              {sdk::WakeOn("StorageClass", {ClusterEvent::ACTION_ADD, ClusterEvent::ACTION_DELETE,
                                            ClusterEvent::ACTION_UPDATE_OTHER})});
    AddPlugin("Quiet", {});
    AddPlugin("Hintless", {sdk::WakeOn("Node", {ClusterEvent::ACTION_ADD})});
    session_ = std::make_unique<Session>("s", &registry_);
    Configure();
    session_->SetPush([this](const v1beta1::SyncResponse& push) {
      for (const v1beta1::QueueHint& hint : push.queue_hints().hints()) {
        hints_.push_back(absl::StrCat(hint.uid(), " by ", hint.plugin(), " #", hint.number()));
        last_hint_ = hint;
      }
    });
    v1beta1::SyncRequest snapshot;
    snapshot.set_version(1);
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    *snapshot.add_changes()->mutable_node_upsert()->mutable_node() = Node("n0", "a");
    for (const char* name : {"p", "q"}) {
      v1beta1::Pod pod = PodBuilder(name).Build();
      pod.set_scheduler_name("default");
      *snapshot.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
    }
    ASSERT_TRUE(session_->Apply(snapshot, now_).ok());
    snapshot.Clear();
    snapshot.set_version(1);
    snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(session_->Apply(snapshot, now_).ok());
  }
  void AddPlugin(const std::string& name, std::vector<ClusterEvent> events) {
    sdk::PluginDescriptor descriptor;
    descriptor.name = name;
    descriptor.extension_points = {v1beta1::EXTENSION_POINT_PRE_ENQUEUE};
    descriptor.wake_up_events = std::move(events);
    Script* script = &scripts_[name];
    const bool hints = name != "Hintless";
    descriptor.create =
        [script,
         hints](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
      script->pushes = context.pushes;
      if (!hints) return std::make_unique<Hintless>();
      return std::make_unique<Hinting>(script);
    };
    ASSERT_TRUE(registry_.Add(std::move(descriptor)).ok());
  }
  void Configure() {
    v1beta1::ConfigureRequest request;
    auto* profile = request.add_profiles();
    profile->set_name("default");
    auto* point = profile->add_points();
    point->set_extension_point(v1beta1::EXTENSION_POINT_PRE_ENQUEUE);
    for (const auto& [name, script] : scripts_) point->add_plugins(name);
    v1beta1::ConfigureResponse response;
    session_->Configure(request, &response);
    ASSERT_TRUE(response.problems().empty()) << response.DebugString();
  }
  static v1beta1::Node Node(const std::string& name, const std::string& label) {
    return NodeBuilder(name).Label("l", label).Build();
  }

  // A new message; needs no earlier events unless set.
  v1beta1::SyncRequest Delta() {
    v1beta1::SyncRequest request;
    request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
    request.set_version(++version_);
    request.set_events_needed_from(1000);
    return request;
  }
  void Apply(const v1beta1::SyncRequest& request) {
    const absl::Status status = session_->Apply(request, now_);
    ASSERT_TRUE(status.ok()) << status;
  }
  static v1beta1::UnschedulablePod* AddWaiting(v1beta1::SyncRequest* request,
                                               const std::string& pod, const std::string& plugin,
                                               uint64_t since) {
    v1beta1::UnschedulablePod* waiting = request->add_unschedulable_pods();
    waiting->set_uid("default/" + pod);
    waiting->add_rejected_by(plugin);
    waiting->set_since(since);
    return waiting;
  }
  void Waits(const std::string& pod, const std::string& plugin, uint64_t since = 1000) {
    v1beta1::SyncRequest request = Delta();
    AddWaiting(&request, pod, plugin, since);
    Apply(request);
  }
  static v1beta1::QueueEvent* AddEvent(v1beta1::SyncRequest* request, uint64_t number,
                                       const std::string& resource, ClusterEvent::Action action) {
    v1beta1::QueueEvent* event = request->add_events();
    event->set_number(number);
    event->mutable_event()->set_resource(resource);
    event->mutable_event()->add_actions(action);
    return event;
  }
  // n0's label becomes `label`, as event `number`.
  v1beta1::SyncRequest Relabel(const std::string& label, uint64_t number) {
    v1beta1::SyncRequest request = Delta();
    *request.add_changes()->mutable_node_upsert()->mutable_node() = Node("n0", label);
    AddEvent(&request, number, "Node", ClusterEvent::ACTION_UPDATE_NODE_LABEL)->set_node_name("n0");
    return request;
  }
  std::vector<std::string> TakeHints() { return std::exchange(hints_, {}); }

  const absl::Time now_ = absl::UnixEpoch();
  std::map<std::string, Script> scripts_;
  sdk::PluginRegistry registry_;
  std::unique_ptr<Session> session_;
  int64_t version_ = 1;
  std::vector<std::string> hints_;
  v1beta1::QueueHint last_hint_;
};

TEST_F(QueueingHintsTest, ThePluginSeesTheObjectBeforeAndAfter) {
  Waits("p", "Nodes");
  Apply(Relabel("b", 1001));
  EXPECT_THAT(scripts_["Nodes"].asked, ElementsAre("p: n0/a to n0/b"));
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #1001"));
  EXPECT_EQ(last_hint_.event().resource(), "Node");
  EXPECT_EQ(last_hint_.event().actions(0), ClusterEvent::ACTION_UPDATE_NODE_LABEL);
}

TEST_F(QueueingHintsTest, AHintEndsTheWait) {
  Waits("p", "Nodes");
  Apply(Relabel("b", 1001));
  Apply(Relabel("c", 1002));
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #1001"));
  Waits("p", "Nodes", 1003);
  Apply(Relabel("d", 1003));
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #1003"));
}

TEST_F(QueueingHintsTest, ASkippedEventLeavesThePodWaiting) {
  scripts_["Nodes"].hint = Hint::kSkip;
  Waits("p", "Nodes");
  Apply(Relabel("b", 1001));
  EXPECT_THAT(TakeHints(), IsEmpty());
  scripts_["Nodes"].hint = Hint::kQueue;
  Apply(Relabel("c", 1002));
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #1002"));
}

TEST_F(QueueingHintsTest, AnEventCostsOnlyThePodsThatItsPluginsRejected) {
  Waits("p", "Pods");
  Waits("q", "Nodes");
  Apply(Relabel("b", 1001));
  EXPECT_THAT(scripts_["Pods"].asked, IsEmpty());
  EXPECT_THAT(scripts_["Nodes"].asked, ElementsAre("q: n0/a to n0/b"));
}

TEST_F(QueueingHintsTest, AddedAndRemovedObjectsHaveOneSide) {
  scripts_["Nodes"].hint = Hint::kSkip;
  Waits("p", "Nodes");
  v1beta1::SyncRequest request = Delta();
  request.add_changes()->mutable_node_upsert()->set_slot(1);
  *request.mutable_changes(0)->mutable_node_upsert()->mutable_node() = Node("n1", "x");
  AddEvent(&request, 1001, "Node", ClusterEvent::ACTION_ADD)->set_node_name("n1");
  Apply(request);
  request = Delta();
  request.add_changes()->mutable_node_remove()->set_slot(1);
  AddEvent(&request, 1002, "Node", ClusterEvent::ACTION_DELETE)->set_node_name("n1");
  Apply(request);
  // An object added and removed between two messages is unknown.
  request = Delta();
  AddEvent(&request, 1003, "Node", ClusterEvent::ACTION_DELETE)->set_node_name("n2");
  Apply(request);
  EXPECT_THAT(scripts_["Nodes"].asked, ElementsAre("p: none to n1/x", "p: n1/x to none"));
}

TEST_F(QueueingHintsTest, APodsPlaceAsTheShimHasItCounts) {
  scripts_["Pods"].hint = Hint::kSkip;
  Waits("p", "Pods");
  v1beta1::SyncRequest request = Delta();
  auto* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("default/q");
  placement->set_state(v1beta1::PLACEMENT_STATE_ASSUMED);
  Apply(request);
  request = Delta();
  placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid("default/q");
  placement->set_state(v1beta1::PLACEMENT_STATE_UNPLACED);
  AddEvent(&request, 1001, "AssignedPod", ClusterEvent::ACTION_DELETE)->set_pod_uid("default/q");
  Apply(request);
  EXPECT_THAT(scripts_["Pods"].asked, ElementsAre("p: q@n0 to none"));
}

TEST_F(QueueingHintsTest, AnUpdateOfAPendingPodConcernsItAlone) {
  Waits("p", "Pods");
  Waits("q", "Pods");
  v1beta1::SyncRequest request = Delta();
  AddEvent(&request, 1001, "UnscheduledPod", ClusterEvent::ACTION_UPDATE_POD_LABEL)
      ->set_pod_uid("default/q");
  Apply(request);
  EXPECT_THAT(TakeHints(), ElementsAre("default/q by Pods #1001"));
}

TEST_F(QueueingHintsTest, APodsOwnLostPlaceDoesNotHelpIt) {
  Waits("p", "Pods");
  v1beta1::SyncRequest request = Delta();
  AddEvent(&request, 1001, "AssignedPod", ClusterEvent::ACTION_DELETE)->set_pod_uid("default/p");
  Apply(request);
  EXPECT_THAT(TakeHints(), IsEmpty());
}

TEST_F(QueueingHintsTest, TheEndOfItsNominationConcernsThePodItselfToo) {
  for (const char* gate : {"", "Nodes", "Pods"}) {
    v1beta1::SyncRequest request = Delta();
    AddWaiting(&request, "p", "Pods", 1000)->set_gated_by(gate);
    Apply(request);
    request = Delta();
    v1beta1::QueueEvent* event =
        AddEvent(&request, 1001, "AssignedPod", ClusterEvent::ACTION_DELETE);
    event->set_pod_uid("default/p");
    event->set_max_priority(0);
    Apply(request);
    // The gate filters it, like all events except updates of the pod.
    EXPECT_EQ(TakeHints().size(), gate == std::string("Nodes") ? 0u : 1u) << gate;
  }
}

TEST_F(QueueingHintsTest, MaxPriorityLimitsAnEvent) {
  Waits("p", "Pods");
  for (const int32_t priority : {-1, 0}) {
    v1beta1::SyncRequest request = Delta();
    v1beta1::QueueEvent* event =
        AddEvent(&request, 1002 + priority, "AssignedPod", ClusterEvent::ACTION_DELETE);
    event->set_pod_uid("default/q");
    event->set_max_priority(priority);
    Apply(request);
    EXPECT_EQ(TakeHints().size(), priority == 0 ? 1u : 0u);
  }
}

TEST_F(QueueingHintsTest, ObjectsOfOtherKinds) {
  Waits("p", "Classes");
  for (const char* provisioner : {"x", "y"}) {
    v1beta1::SyncRequest request = Delta();
    v1beta1::StorageClass* storage_class =
        request.add_changes()->mutable_object_upsert()->mutable_storage_class();
    storage_class->set_name("fast");
    storage_class->set_provisioner(provisioner);
    v1beta1::ObjectReference* reference =
        AddEvent(&request, 1000 + version_, "StorageClass", ClusterEvent::ACTION_UPDATE_OTHER)
            ->mutable_object();
    reference->set_kind("StorageClass");
    reference->set_name("fast");
    Apply(request);
  }
  EXPECT_THAT(scripts_["Classes"].asked, ElementsAre("p: x to y"));
}

TEST_F(QueueingHintsTest, ObjectsOfOtherKindsThatComeAndGo) {
  scripts_["Classes"].hint = Hint::kSkip;
  Waits("p", "Classes");
  v1beta1::ClusterObject fast;
  fast.mutable_storage_class()->set_name("fast");
  fast.mutable_storage_class()->set_provisioner("x");
  v1beta1::ObjectReference name = sdk::ReferenceTo(fast);
  v1beta1::SyncRequest request = Delta();
  *request.add_changes()->mutable_object_upsert() = fast;
  *AddEvent(&request, 1001, "StorageClass", ClusterEvent::ACTION_ADD)->mutable_object() = name;
  Apply(request);
  request = Delta();
  *request.add_changes()->mutable_object_remove() = name;
  *AddEvent(&request, 1002, "StorageClass", ClusterEvent::ACTION_DELETE)->mutable_object() = name;
  // Another kind's object of that name, which the host does not have.
  name.set_kind("CSIDriver");
  *AddEvent(&request, 1003, "StorageClass", ClusterEvent::ACTION_DELETE)->mutable_object() = name;
  Apply(request);
  EXPECT_THAT(scripts_["Classes"].asked, ElementsAre("p: none to x", "p: x to none"));
}

TEST_F(QueueingHintsTest, PendingPluginsAreAskedFirst) {
  v1beta1::SyncRequest request = Delta();
  AddWaiting(&request, "p", "Hintless", 1000)->add_pending_by("Nodes");
  Apply(request);
  request = Delta();
  request.add_changes()->mutable_node_upsert()->set_slot(1);
  *request.mutable_changes(0)->mutable_node_upsert()->mutable_node() = Node("n1", "x");
  AddEvent(&request, 1001, "Node", ClusterEvent::ACTION_ADD)->set_node_name("n1");
  Apply(request);
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #1001"));
}

TEST_F(QueueingHintsTest, WhatTheGateDidNotRegisterDoesNotCountForAGatedPod) {
  v1beta1::SyncRequest request = Delta();
  v1beta1::UnschedulablePod* waiting = AddWaiting(&request, "p", "Nodes", 1000);
  waiting->add_rejected_by("Pods");
  waiting->set_gated_by("Pods");
  Apply(request);
  Apply(Relabel("b", 1001));
  EXPECT_THAT(TakeHints(), IsEmpty());
  request = Delta();
  AddEvent(&request, 1002, "UnscheduledPod", ClusterEvent::ACTION_UPDATE_POD_LABEL)
      ->set_pod_uid("default/p");
  Apply(request);
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Pods #1002"));
}

TEST_F(QueueingHintsTest, APluginWithoutEventsIsHelpedByThePodsOwnUpdate) {
  Waits("p", "Quiet");
  Apply(Relabel("b", 1001));
  EXPECT_THAT(TakeHints(), IsEmpty());
  v1beta1::SyncRequest request = Delta();
  AddEvent(&request, 1002, "UnscheduledPod", ClusterEvent::ACTION_UPDATE_OTHER)
      ->set_pod_uid("default/p");
  Apply(request);
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Quiet #1002"));
}

TEST_F(QueueingHintsTest, ChangesOfTaintsWakeWhomAddedNodesWake) {
  Waits("p", "Nodes");
  v1beta1::SyncRequest request = Delta();
  AddEvent(&request, 1001, "Node", ClusterEvent::ACTION_UPDATE_NODE_TAINT)->set_node_name("n0");
  scripts_["Nodes"].hint = Hint::kSkip;
  Apply(request);
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #1001"));
  EXPECT_THAT(scripts_["Nodes"].asked, IsEmpty()) << "without a call";
}

TEST_F(QueueingHintsTest, EventsOfAnAttemptUnderWayAreKeptForIt) {
  v1beta1::SyncRequest request = Relabel("b", 5);
  request.set_events_needed_from(5);
  Apply(request);
  request = Relabel("c", 6);
  request.set_events_needed_from(5);
  Apply(request);
  EXPECT_THAT(scripts_["Nodes"].asked, IsEmpty()) << "no pod waits yet";
  scripts_["Nodes"].hint = Hint::kSkip;
  request = Delta();
  request.set_events_needed_from(7);
  AddWaiting(&request, "p", "Nodes", 5);
  AddWaiting(&request, "q", "Nodes", 6);
  Apply(request);
  EXPECT_THAT(scripts_["Nodes"].asked,
              UnorderedElementsAre("p: n0/a to n0/b", "p: n0/b to n0/c", "q: n0/b to n0/c"));
  EXPECT_THAT(TakeHints(), IsEmpty());
  scripts_["Nodes"].hint = Hint::kQueue;
  Apply(Relabel("d", 1001));
  EXPECT_THAT(TakeHints(),
              UnorderedElementsAre("default/p by Nodes #1001", "default/q by Nodes #1001"));
}

TEST_F(QueueingHintsTest, APodAndLaterEventsInOneMessage) {
  v1beta1::SyncRequest request = Relabel("b", 7);
  AddWaiting(&request, "p", "Nodes", 7);  // Parked, then the event came; no attempt is in progress.
  AddWaiting(&request, "q", "Nodes", 8);  // Was tried after the event.
  request.set_events_needed_from(8);
  Apply(request);
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #7"));
}

TEST_F(QueueingHintsTest, APodThatNeedsWhatIsForgottenIsWoken) {
  v1beta1::SyncRequest request = Delta();
  request.set_events_needed_from(50);
  Apply(request);
  Waits("p", "Nodes", 49);
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #0"));
}

TEST_F(QueueingHintsTest, TheHistoryIsBounded) {
  for (uint64_t number = 1; number <= QueueingHints::kMaxHistory + 10; ++number) {
    v1beta1::SyncRequest request = Delta();
    request.set_events_needed_from(1);
    AddEvent(&request, number, "Node", ClusterEvent::ACTION_UPDATE_NODE_LABEL)->set_node_name("n0");
    Apply(request);
  }
  v1beta1::SyncRequest request = Delta();
  request.set_events_needed_from(1);
  AddWaiting(&request, "p", "Nodes", 1);
  scripts_["Nodes"].hint = Hint::kSkip;
  AddWaiting(&request, "q", "Nodes", 100);
  Apply(request);
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #0"));
}

TEST_F(QueueingHintsTest, PodsThatWaitNoMoreAreLeftAlone) {
  Waits("p", "Nodes");
  v1beta1::SyncRequest request = Relabel("b", 1001);
  request.add_removed_unschedulable_pod_uids("default/p");
  request.add_removed_unschedulable_pod_uids("default/unknown");
  Apply(request);
  EXPECT_THAT(TakeHints(), IsEmpty());
}

TEST_F(QueueingHintsTest, ASnapshotEndsAllWaits) {
  Waits("p", "Nodes");
  session_->BeginSync();
  v1beta1::SyncRequest snapshot;
  snapshot.set_version(9);
  snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
  *snapshot.add_changes()->mutable_node_upsert()->mutable_node() = Node("n0", "a");
  Apply(snapshot);
  snapshot.Clear();
  snapshot.set_version(9);
  snapshot.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  Apply(snapshot);
  version_ = 9;
  Apply(Relabel("b", 1001));
  EXPECT_THAT(TakeHints(), IsEmpty());
}

TEST_F(QueueingHintsTest, WaitsOutliveANewConfiguration) {
  Waits("p", "Nodes");
  Configure();
  Apply(Relabel("b", 1001));
  EXPECT_THAT(TakeHints(), ElementsAre("default/p by Nodes #1001"));
}

TEST_F(QueueingHintsTest, APluginCanHaveItsOwnTriedAtOnce) {
  v1beta1::SyncResponse pushed;
  session_->SetPush([&](const v1beta1::SyncResponse& push) { pushed = push; });
  scripts_["Pods"].pushes->Activate({"default/p", "default/q"});
  EXPECT_EQ(pushed.activate().plugin(), "Pods");
  EXPECT_THAT(pushed.activate().pod_uids(), ElementsAre("default/p", "default/q"));
}

}  // namespace
}  // namespace outboard::runtime::queueing_hints_test
