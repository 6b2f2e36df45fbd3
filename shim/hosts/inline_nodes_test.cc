// A host without a cluster cache beside one with a cache: comes, serves, is replaced, goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/host_registry.h"
#include "shim/hosts/testing/counted_effects.h"

namespace outboard::hosts {
namespace {

using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::CallError;
using v1beta1::ConfigureRequest;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::GetHostInfoResponse;
using v1beta1::ProbeRequest;
using v1beta1::ProbeResponse;

constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sort}, {name: One}, {name: Fake}, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:/main"}, {name: inline, address: "unix:/inline"}]
replacement: {shadowCycles: 0, keepWarm: 1m}
)";

// Host "main" filters with One, and instances of host "inline" with Fake, which comes after it.
class InlineNodesTest : public ::testing::Test {
 protected:
  InlineNodesTest()
      : scheduler_({}, queue::QueueOptions(), &effects_, &observer_, nullptr, SteadyNow()),
        hosts_(Configuration(), "session", &loop_, &scheduler_) {
    hosts_.SetCallbacks({[this](const std::string& address) { lost_.push_back(address); },
                         [](const std::string&) {}});
    scheduler_.SetProfileNames({"p"});
    for (const char* name : {"n1", "n2"}) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_name(name);
      node->node.set_uid(absl::StrCat("uid-", name));
      (*node->node.mutable_labels())["name"] = name;
      node->node.mutable_allocatable()->set_pods(100);
      scheduler_.events()->OnNodeUpsert(node, SteadyNow());
    }
    Comes("main", "main-1", {"Sort", "One", "DefaultBinder"}, /*started=*/1);
  }

  static std::shared_ptr<const config::Config> Configuration() {
    auto config = config::ParseConfig(kConfiguration, "f.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::make_shared<config::Config>(*config);
  }
  void Comes(const std::string& host, const std::string& id,
             const std::vector<std::string>& plugins, int started) {
    fakes_[id] = FakeHost::Start(
        absl::StrCat("unix:", ::testing::TempDir(), "outboard-inline-", getpid(), "-", id), id);
    HostConnection connection;
    connection.channel = NewHostChannel(fakes_[id]->address());
    connection.identity.set_instance(id);
    connection.identity.set_started_unix_micros(started * 1000000);
    GetHostInfoResponse& info = connection.info;
    for (const std::string& plugin : plugins) {
      auto* out = info.add_plugins();
      out->set_name(plugin);
      out->add_extension_points(plugin == "Sort"            ? v1beta1::EXTENSION_POINT_QUEUE_SORT
                                : plugin == "DefaultBinder" ? v1beta1::EXTENSION_POINT_BIND
                                                            : v1beta1::EXTENSION_POINT_FILTER);
    }
    if (host == "inline") info.add_capabilities(v1beta1::CAPABILITY_INLINE_NODES);
    const absl::Status taken =
        hosts_.OnHandshake({host, fakes_[id]->address(), std::nullopt, 0}, connection, SteadyNow());
    EXPECT_TRUE(taken.ok()) << taken;
  }
  // An instance without a cluster cache. It accepts pods only on this node.
  void InlineComes(const std::string& id, int started, const std::string& node, bool ready = true) {
    Comes("inline", id, {"Fake"}, started);
    SetReady(id, ready);
    fakes_[id]->Answer<FilterRequest, FilterResponse>(
        [node](const FilterRequest& request, FilterResponse* answer) {
          answer->set_processed(static_cast<uint32_t>(request.inline_nodes_size()));
          std::string bits(1, '\0');
          for (int i = 0; i < request.inline_nodes_size(); ++i) {
            if (request.inline_nodes(i).node().labels().at("name") == node) {
              bits[0] = static_cast<char>(bits[0] | (1 << i));
            } else {
              answer->add_rejected(0);
            }
          }
          auto* reason = answer->add_reasons();
          reason->set_plugin("Fake");
          reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
          reason->add_reasons("another node");
          answer->set_feasible(bits);
          return grpc::Status::OK;
        });
  }
  void SetReady(const std::string& id, bool ready) {
    fakes_[id]->Answer<ProbeRequest, ProbeResponse>(
        [id, ready](const ProbeRequest&, ProbeResponse* answer) {
          answer->set_instance(id);
          answer->set_state(ready ? ProbeResponse::STATE_READY : ProbeResponse::STATE_INITIALIZING);
          answer->set_reason(ready ? "" : "warming up");
          return grpc::Status::OK;
        });
  }
  template <typename Condition>
  void Until(const std::string& what, Condition condition) {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (!condition() && SteadyNow() < limit) {
      loop_.Wait(SteadyNow() + absl::Milliseconds(20));
      hosts_.Tick(SteadyNow());
    }
    EXPECT_TRUE(condition()) << what;
  }
  std::string Serving() {
    for (const HostRegistry::View& view : hosts_.Describe()) {
      if (view.host == "inline" && view.state == InstanceState::kServing && view.usable)
        return view.instance;
    }
    return "unknown";
  }
  void UntilServes(const std::string& id) {
    Until(absl::StrCat(id, " serves"), [&] { return Serving() == id && hosts_.AllReady(); });
  }
  void Schedule(const std::string& name) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_name(name);
    pod->pod.set_namespace_("default");
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_scheduler_name("p");
    pod->pod.add_containers();
    scheduler_.events()->OnPodUpsert(pod, SteadyNow());
    EXPECT_TRUE(scheduler_.ScheduleOne(SteadyNow()));
  }

  HostLoop loop_;
  CountedEffects effects_;
  scheduler::Observer observer_;
  scheduler::Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<FakeHost>> fakes_;
  HostRegistry hosts_;
  std::vector<std::string> lost_;
};

TEST_F(InlineNodesTest, ServesOnceItReportsReady) {
  InlineComes("a", 1, "n2", /*ready=*/false);
  Until("it was asked", [&] { return fakes_["a"]->Count<ProbeRequest>() > 1; });
  EXPECT_FALSE(hosts_.AllReady());
  SetReady("a", true);
  UntilServes("a");
  ASSERT_EQ(fakes_["a"]->Count<ConfigureRequest>(), 1);
  const ConfigureRequest configured = fakes_["a"]->Requests<ConfigureRequest>()[0];
  EXPECT_EQ(configured.instance(), "a");
  EXPECT_EQ(fakes_["a"]->Requests<ProbeRequest>()[0].session_id(), configured.session_id());
  Schedule("p1");
  EXPECT_THAT(effects_.bound, ElementsAre("p1 n2"));
  // It received only what came with the call.
  EXPECT_EQ(fakes_["a"]->Count<v1beta1::SyncRequest>(), 0);
  EXPECT_EQ(fakes_["a"]->Count<v1beta1::PreFilterRequest>(), 0);
  ASSERT_EQ(fakes_["a"]->Count<FilterRequest>(), 1);
  const FilterRequest request = fakes_["a"]->Requests<FilterRequest>()[0];
  EXPECT_THAT(request.inline_nodes(), SizeIs(2));
  EXPECT_EQ(request.pod().name(), "p1");
  EXPECT_EQ(request.header().session_id(), configured.session_id());
  Schedule("p2");
  const FilterRequest second = fakes_["a"]->Requests<FilterRequest>().back();
  EXPECT_EQ(second.inline_nodes(0).requested().pods() + second.inline_nodes(1).requested().pods(),
            1)
      << "p1 counts";
}

// A process that took its place at the address: it was not configured with this session.
TEST_F(InlineNodesTest, AnInstanceThatDoesNotKnowItsSessionNeedsAnotherHandshake) {
  InlineComes("a", 1, "n2");
  UntilServes("a");
  fakes_["a"]->Answer<FilterRequest, FilterResponse>([](const FilterRequest&, FilterResponse*) {
    return testing::CallFailure(CallError::REASON_SESSION_UNKNOWN, "no such session");
  });
  Schedule("p1");
  EXPECT_THAT(effects_.bound, IsEmpty());
  Until("it was lost", [&] { return !lost_.empty(); });
  EXPECT_THAT(lost_, ElementsAre(fakes_["a"]->address()));
  EXPECT_EQ(Serving(), "unknown");
}

TEST_F(InlineNodesTest, ANewerInstanceTakesItsPlace) {
  InlineComes("a", 1, "n1");
  UntilServes("a");
  Schedule("p1");
  InlineComes("b", 2, "n2", /*ready=*/false);
  Until("b was asked", [&] { return fakes_["b"]->Count<ProbeRequest>() > 0; });
  Schedule("p2");
  SetReady("b", true);
  UntilServes("b");
  Schedule("p3");
  EXPECT_THAT(effects_.bound, ElementsAre("p1 n1", "p2 n1", "p3 n2"));
  EXPECT_THAT(lost_, IsEmpty());
  // The predecessor is still ready, and takes over at once.
  fakes_["b"]->Kill();
  UntilServes("a");
  Schedule("p4");
  EXPECT_EQ(effects_.bound.back(), "p4 n1");
}

TEST_F(InlineNodesTest, ADeadInstanceIsDetectedWithAndWithoutACall) {
  InlineComes("a", 1, "n1");
  UntilServes("a");
  fakes_["a"]->Kill();
  Schedule("p1");
  EXPECT_THAT(effects_.bound, IsEmpty());
  scheduler_.Tick(SteadyNow() + absl::Seconds(5));
  EXPECT_THAT(effects_.failed, SizeIs(1));
  Until("the call reported it", [&] { return lost_.size() == 1; });
  EXPECT_FALSE(hosts_.AllReady());
  InlineComes("b", 2, "n2");
  UntilServes("b");
  fakes_["b"]->Kill();
  Until("a probe reported it", [&] { return lost_.size() == 2; });
}

TEST_F(InlineNodesTest, AnAnswerThatCannotBeReadIsRefused) {
  InlineComes("a", 1, "n1");
  UntilServes("a");
  fakes_["a"]->Answer<FilterRequest, FilterResponse>(
      [](const FilterRequest&, FilterResponse* answer) {
        answer->set_processed(1);
        answer->set_feasible(std::string(1, '\x01'));
        return grpc::Status::OK;
      });
  Schedule("p1");
  EXPECT_THAT(effects_.bound, IsEmpty());
  scheduler_.Tick(SteadyNow() + absl::Seconds(5));
  EXPECT_THAT(effects_.failed, ElementsAre(::testing::HasSubstr("\"inline\" did not answer")));
  EXPECT_EQ(Serving(), "a") << "one bad answer does not replace it";
}

TEST_F(InlineNodesTest, AHandshakeFailsForImpossibleCapabilities) {
  auto fake = FakeHost::Start(
      absl::StrCat("unix:", ::testing::TempDir(), "outboard-inline-", getpid(), "-x"), "x");
  // FakeHost has the fused cycle.
  fake->Answer<v1beta1::GetHostInfoRequest, GetHostInfoResponse>(
      [](const v1beta1::GetHostInfoRequest&, GetHostInfoResponse* info) {
        info->add_capabilities(v1beta1::CAPABILITY_INLINE_NODES);
        info->add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
        return grpc::Status::OK;
      });
  const auto host = Handshake(NewHostChannel(fake->address()), absl::Seconds(10));
  EXPECT_TRUE(absl::IsFailedPrecondition(host.status())) << host.status();
}

}  // namespace
}  // namespace outboard::hosts
