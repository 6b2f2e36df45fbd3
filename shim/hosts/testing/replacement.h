// Instances of one host that replace each other, over gRPC, for tests.
#ifndef OUTBOARD_SHIM_HOSTS_TESTING_REPLACEMENT_H_
#define OUTBOARD_SHIM_HOSTS_TESTING_REPLACEMENT_H_

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

namespace outboard::hosts::replacement_test {

using outboard::testing::FakeHost;
using outboard::testing::Fault;
using v1beta1::ConfigureRequest;
using v1beta1::CycleRequest;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::GetHostInfoResponse;

struct Failures final : scheduler::Observer {
  void OnHostCallFailed(const std::string& instance, const absl::Status& status) override {
    if (hosts != nullptr) hosts->OnHostCallFailed(instance, status);
  }
  HostRegistry* hosts = nullptr;
};

inline constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sort}, {name: Fake}, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:/main"}]
deadlines: {cycle: 200ms}
replacement: {shadowCycles: $SHADOW, shadowTimeout: 1h, keepWarm: 1m, rollbackFailures: 2}
)";

// Instances of host "main", over gRPC; the scheduler's time is the test's.
class ReplacementTest : public ::testing::Test {
 protected:
  ReplacementTest()
      : scheduler_({}, queue::QueueOptions(), &effects_, &failures_, nullptr, now_),
        hosts_(Configuration(0), "session", &loop_, &scheduler_) {
    failures_.hosts = &hosts_;
    hosts_.SetCallbacks({[this](const std::string& address) { lost_.push_back(address); },
                         [this](const std::string& address) { retired_.push_back(address); }});
    scheduler_.SetShadowObserver(&hosts_);
    scheduler_.SetProfileNames({"p"});
    for (const char* name : {"n1", "n2"}) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_name(name);
      node->node.set_uid(absl::StrCat("uid-", name));
      node->node.mutable_allocatable()->set_pods(100);
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
  }
  ~ReplacementTest() override { scheduler_.SetShadowObserver(nullptr); }

  static std::shared_ptr<const config::Config> Configuration(int shadow_cycles,
                                                             std::string text = kConfiguration) {
    text.replace(text.find("$SHADOW"), 7, absl::StrCat(shadow_cycles));
    auto config = config::ParseConfig(text, "f.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::make_shared<config::Config>(*config);
  }

  // An instance comes up and answers a handshake. `started`: seconds.
  void Comes(const std::string& id, int started, const std::string& digest = "") {
    Starts(id);
    Answers(id, started, digest);
  }
  void Starts(const std::string& id) {
    fakes_[id] = FakeHost::Start(
        absl::StrCat("unix:", ::testing::TempDir(), "outboard-replace-", getpid(), "-", id), id);
  }
  void Answers(const std::string& id, int started, const std::string& digest = "") {
    HostConnection connection;
    connection.channel = NewHostChannel(fakes_[id]->address());
    connection.identity.set_instance(id);
    connection.identity.set_build(absl::StrCat("build-", id));
    connection.identity.set_build_digest(digest);
    connection.identity.set_started_unix_micros(started * 1000000);
    GetHostInfoResponse& info = connection.info;
    info.add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
    if (plans_groups_) info.add_capabilities(v1beta1::CAPABILITY_GROUP_PLAN);
    for (const char* plugin : {"Sort", "Fake", "DefaultBinder"}) {
      auto* out = info.add_plugins();
      out->set_name(plugin);
      out->add_extension_points(std::string(plugin) == "Sort" ? v1beta1::EXTENSION_POINT_QUEUE_SORT
                                : std::string(plugin) == "DefaultBinder"
                                    ? v1beta1::EXTENSION_POINT_BIND
                                    : v1beta1::EXTENSION_POINT_FILTER);
      if (std::string(plugin) != "Fake") continue;
      out->add_extension_points(v1beta1::EXTENSION_POINT_SCORE);
      if (reserves_) out->add_extension_points(v1beta1::EXTENSION_POINT_RESERVE);
    }
    const absl::Status taken =
        hosts_.OnHandshake({"main", fakes_[id]->address(), std::nullopt, 0}, connection, now_);
    EXPECT_TRUE(taken.ok()) << taken;
  }
  // The sessions with which it was configured, in order.
  std::vector<std::string> SessionsOf(const std::string& id) {
    std::vector<std::string> sessions;
    for (const auto& request : fakes_[id]->Requests<ConfigureRequest>())
      sessions.push_back(request.session_id());
    return sessions;
  }
  // `instance state` of all, in order of arrival.
  std::vector<std::string> States() const {
    std::vector<std::string> states;
    for (const HostRegistry::View& view : hosts_.Describe())
      states.push_back(absl::StrCat(view.instance, " ", StateName(view.state)));
    return states;
  }
  HostRegistry::View ViewOf(const std::string& id) const {
    for (const HostRegistry::View& view : hosts_.Describe()) {
      if (view.instance == id) return view;
    }
    ADD_FAILURE() << "no instance " << id;
    return {};
  }
  void RunOnce() {
    hosts_.Tick(now_);
    scheduler_.Tick(now_);
  }
  // Until `done`; the test's clock stands still.
  template <typename Done>
  void RunUntil(Done done) {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (!done() && SteadyNow() < limit) {
      RunOnce();
      if (!done()) loop_.Wait(SteadyNow() + absl::Milliseconds(5));
    }
  }
  // Until the instances are in these states.
  void WaitFor(const std::vector<std::string>& states) {
    RunUntil([&] { return States() == states; });
    ASSERT_EQ(States(), states);
  }
  void Schedule(const std::string& name) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_name(name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_scheduler_name("p");
    scheduler_.events()->OnPodUpsert(pod, now_);
    EXPECT_TRUE(scheduler_.ScheduleOne(now_));
    while (scheduler_.ScheduleOne(now_)) {
    }
  }
  // Schedules pods until `done`, as a busy cluster would.
  template <typename Done>
  void ScheduleUntil(Done done) {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    for (int i = 0; !done() && SteadyNow() < limit; ++i) {
      Schedule(absl::StrCat("pod-", ++pods_));
      loop_.Wait(SteadyNow() + absl::Milliseconds(2));
      RunOnce();
    }
    ASSERT_TRUE(done());
  }
  // The instance's next cycles fail; -1: all.
  void Fails(const std::string& id, int times = 1,
             grpc::StatusCode code = grpc::StatusCode::INTERNAL,
             const std::string& message = "out of ideas") {
    Fault broken;
    broken.status = grpc::Status(code, message);
    broken.times = times;
    fakes_[id]->Inject<CycleRequest>(broken);
  }
  void HangsOnce(const std::string& id) {
    Fault slow;
    slow.delay = absl::Seconds(60);
    fakes_[id]->Inject<CycleRequest>(slow);
  }
  void BReplacesA(const std::string& digest_a = "", const std::string& digest_b = "") {
    Comes("a", 1, digest_a);
    WaitFor({"a serving"});
    Comes("b", 2, digest_b);
    WaitFor({"a standby", "b serving"});
  }
  // Every node is infeasible according to this instance.
  void RejectsAll(const std::string& id) {
    fakes_[id]->Answer<FilterRequest, FilterResponse>(
        [](const FilterRequest&, FilterResponse* response) {
          response->set_processed(2);
          response->set_feasible(std::string(1, 0));
          auto* reason = response->add_reasons();
          reason->set_plugin("Fake");
          reason->set_code(v1beta1::CODE_UNSCHEDULABLE);
          reason->add_reasons("no");
          response->add_rejected(0);
          response->add_rejected(0);
          return grpc::Status::OK;
        });
  }

  absl::Time now_ = absl::FromUnixSeconds(100000);
  HostLoop loop_;
  CountedEffects effects_;
  Failures failures_;
  scheduler::Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<FakeHost>> fakes_;
  std::vector<std::string> lost_, retired_;
  int pods_ = 0;
  bool reserves_ = false;  // plugin Fake is at reserve, too
  bool plans_groups_ = false;
  HostRegistry hosts_;
};

}  // namespace outboard::hosts::replacement_test

#endif  // OUTBOARD_SHIM_HOSTS_TESTING_REPLACEMENT_H_
