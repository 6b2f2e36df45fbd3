// Shims that share a host that keeps a single session: which of them has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/host_registry.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::hosts::single_session_hosts_test {
namespace {

using testing::FakeHost;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using v1beta1::CallError;
using v1beta1::ConfigureRequest;
using v1beta1::ConfigureResponse;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::ProbeRequest;
using v1beta1::ProbeResponse;

constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
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
)";

// A host without a cache that keeps a single session.
class SingleSessionHost {
 public:
  SingleSessionHost()
      : host_(FakeHost::Start(
            absl::StrCat("unix:", ::testing::TempDir(), "outboard-single-", getpid()), "a")) {
    host_->Answer<ConfigureRequest, ConfigureResponse>(
        [this](const ConfigureRequest& request, ConfigureResponse*) {
          absl::MutexLock lock(&mu_);
          session_ = request.session_id();
          return grpc::Status::OK;
        });
    host_->Answer<ProbeRequest, ProbeResponse>(
        [this](const ProbeRequest& request, ProbeResponse* response) {
          *response = Probe(request.session_id());
          return grpc::Status::OK;
        });
    host_->Answer<FilterRequest, FilterResponse>(
        [this](const FilterRequest& request, FilterResponse* response) {
          absl::MutexLock lock(&mu_);
          if (request.header().session_id() != session_)
            return testing::CallFailure(CallError::REASON_SESSION_UNKNOWN, "another session");
          response->add_verdicts(0);
          return grpc::Status::OK;
        });
  }
  HostConnection Connect() const {
    HostConnection connection;
    connection.channel = NewHostChannel(host_->address());
    connection.identity.set_instance(host_->instance());
    connection.info.add_capabilities(v1beta1::CAPABILITY_INLINE_NODES);
    connection.info.add_capabilities(v1beta1::CAPABILITY_SINGLE_SESSION);
    const auto add = [&](const char* name, v1beta1::ExtensionPoint point) {
      v1beta1::PluginInfo* const plugin = connection.info.add_plugins();
      plugin->set_name(name);
      plugin->add_extension_points(point);
    };
    add("Sort", v1beta1::EXTENSION_POINT_QUEUE_SORT);
    add("Fake", v1beta1::EXTENSION_POINT_FILTER);
    add("DefaultBinder", v1beta1::EXTENSION_POINT_BIND);
    return connection;
  }
  // The answer to a probe of this session; empty: of the host.
  ProbeResponse Probe(const std::string& about) {
    absl::MutexLock lock(&mu_);
    const bool known = about.empty() || about == session_;
    ProbeResponse response;
    response.set_instance(host_->instance());
    response.set_state(known ? ProbeResponse::STATE_READY : ProbeResponse::STATE_INITIALIZING);
    response.set_current_session_id(session_);
    return response;
  }
  // Its shim is gone.
  void EndSession() {
    absl::MutexLock lock(&mu_);
    session_.clear();
  }
  const std::string& address() const { return host_->address(); }
  size_t configured() const { return host_->Requests<ConfigureRequest>().size(); }

 private:
  absl::Mutex mu_;
  std::string session_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<FakeHost> host_;  // last: its threads use the others
};

// One shim, with its connection to the host; connects again whenever it loses it.
class Shim {
 public:
  Shim(const std::string& session, SingleSessionHost* host, absl::Time now)
      : host_(host),
        scheduler_({}, queue::QueueOptions(), &effects_, &observer_, nullptr, now),
        registry_(Configuration(), session, &loop_, &scheduler_) {
    HostRegistry::Callbacks callbacks;
    callbacks.on_lost = [this](const std::string&) { connected_ = false; };
    registry_.SetCallbacks(std::move(callbacks));
    scheduler_.SetProfileNames({"p"});
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_name("n1");
    node->node.set_uid("uid-n1");
    node->node.mutable_allocatable()->set_pods(100);
    scheduler_.events()->OnNodeUpsert(node, now);
  }
  HostRegistry* registry() { return &registry_; }
  HostRegistry::View View() const {
    const std::vector<HostRegistry::View> all = registry_.Describe();
    return all.empty() ? HostRegistry::View() : all[0];
  }
  bool serves() const { return View().state == InstanceState::kServing && View().usable; }
  // A second of the scheduler's time, which ends with a probe.
  void Second(absl::Time now) {
    if (!connected_) {
      connected_ = true;
      const absl::Status taken =
          registry_.OnHandshake({"main", host_->address(), std::nullopt, 0}, host_->Connect(), now);
      EXPECT_TRUE(taken.ok()) << taken;
    }
    Run(now);
    registry_.OnProbedReady("main", "a", host_->Probe(""), now);
    Run(now);
  }
  // Waits, by the machine's clock, until the host has answered what it was asked.
  void UntilServes(absl::Time now) {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (!serves() && SteadyNow() < limit) {
      loop_.Wait(SteadyNow() + absl::Milliseconds(5));
      Run(now);
    }
    EXPECT_TRUE(serves()) << View().why;
  }
  void Schedule(const std::string& name, absl::Time now) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_name(name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_scheduler_name("p");
    scheduler_.events()->OnPodUpsert(pod, now);
    while (scheduler_.ScheduleOne(now)) continue;
    Run(now);
  }
  const std::vector<std::string>& bound() const { return effects_.bound; }

 private:
  struct Effects final : scheduler::NoClusterActions {
    void Bind(const scheduler::BindOrder& order, absl::Time) override {
      bound.push_back(order.pod->pod.name());
    }
    std::vector<std::string> bound;
  };
  static std::shared_ptr<const config::Config> Configuration() {
    auto config = config::ParseConfig(kConfiguration, "f.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::make_shared<config::Config>(*config);
  }
  void Run(absl::Time now) {
    registry_.Tick(now);
    scheduler_.Tick(now);
  }

  SingleSessionHost* const host_;
  HostLoop loop_;
  Effects effects_;
  scheduler::Observer observer_;
  scheduler::Scheduler scheduler_;
  HostRegistry registry_;
  bool connected_ = false;
};

class SingleSessionHostsTest : public ::testing::Test {
 protected:
  // The shim finds the host, and takes it.
  void Takes(Shim* shim) {
    shim->Second(now_);
    shim->UntilServes(now_);
    now_ += absl::Seconds(10);  // Later probes cannot be older than its session.
  }
  void Seconds(int count, std::vector<Shim*> shims) {
    for (int i = 0; i < count; ++i) {
      now_ += absl::Seconds(1);
      for (Shim* shim : shims) shim->Second(now_);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(100000);
  SingleSessionHost host_;
};

TEST_F(SingleSessionHostsTest, TheLoserSaysSoAndWaitsUntilTheOtherIsGone) {
  Shim first("first", &host_, now_);
  Takes(&first);
  first.Schedule("p1", now_);
  EXPECT_THAT(first.bound(), SizeIs(1));
  Shim second("second", &host_, now_);
  Takes(&second);
  EXPECT_EQ(host_.configured(), 2u);
  // Hours in which neither fights.
  Seconds(200, {&first, &second});
  now_ += absl::Hours(3);
  Seconds(200, {&first, &second});
  EXPECT_EQ(host_.configured(), 2u);
  EXPECT_TRUE(second.serves());
  EXPECT_EQ(first.View().state, InstanceState::kWaiting);
  EXPECT_THAT(first.View().why, HasSubstr("now session second-"));
  EXPECT_THAT(first.View().why, HasSubstr("which replaced this shim's session first-"));
  EXPECT_TRUE(first.registry()->single_sessions()->yielding());
  EXPECT_FALSE(second.registry()->single_sessions()->yielding());
  second.Schedule("p2", now_);
  EXPECT_THAT(second.bound(), SizeIs(1));
  // The second shim leaves.
  host_.EndSession();
  Seconds(1, {&first});
  first.UntilServes(now_);
  EXPECT_EQ(host_.configured(), 3u);
  EXPECT_FALSE(first.registry()->single_sessions()->yielding());
}

// A call reports the loss before a probe does.
TEST_F(SingleSessionHostsTest, ALossThatACallReportsDoesNotTakeTheSessionBack) {
  Shim first("first", &host_, now_);
  Takes(&first);
  Shim second("second", &host_, now_);
  Takes(&second);
  first.Schedule("p1", now_);
  EXPECT_THAT(first.bound(), IsEmpty());
  Seconds(3, {&first, &second});
  EXPECT_EQ(host_.configured(), 2u);
  EXPECT_THAT(first.View().why, HasSubstr("session second-"));
}

TEST_F(SingleSessionHostsTest, AnAdministratorDecidesWhichShimHasIt) {
  Shim first("first", &host_, now_);
  Takes(&first);
  Shim second("second", &host_, now_);
  Takes(&second);
  Seconds(3, {&first, &second});
  ASSERT_FALSE(first.serves());
  EXPECT_TRUE(first.registry()->ClearQuarantine("main", now_).ok());
  first.UntilServes(now_);
  now_ += absl::Seconds(10);
  Seconds(3, {&first, &second});
  EXPECT_TRUE(first.serves());
  EXPECT_THAT(second.View().why, HasSubstr("now session first-"));
}

// Replicas of one shim: a candidate does not disturb the leader.
TEST_F(SingleSessionHostsTest, ACandidateConfiguresTheHostOnceItLeads) {
  Shim leader("leader", &host_, now_);
  Takes(&leader);
  Shim candidate("candidate", &host_, now_);
  candidate.registry()->single_sessions()->SetLeading(false);
  Seconds(10, {&leader, &candidate});
  EXPECT_EQ(host_.configured(), 1u);
  EXPECT_TRUE(candidate.registry()->AllReady()) << "it can lead";
  EXPECT_THAT(candidate.View().why, HasSubstr("this replica configures it when it leads"));
  // The former leader, which may hang, has not left the host.
  candidate.registry()->single_sessions()->SetLeading(true);
  EXPECT_FALSE(candidate.registry()->AllReady());
  Seconds(1, {&candidate});
  candidate.UntilServes(now_);
  EXPECT_EQ(host_.configured(), 2u);
}

TEST_F(SingleSessionHostsTest, ARestartedShimTakesTheHostAtOnce) {
  {
    Shim crashed("crashed", &host_, now_);
    Takes(&crashed);
  }
  Shim next("next", &host_, now_);
  Takes(&next);
  EXPECT_THAT(host_.Probe("").current_session_id(), StartsWith("next-"));
}

}  // namespace
}  // namespace outboard::hosts::single_session_hosts_test
