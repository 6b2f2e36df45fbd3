#include "shim/hosts/host_registry.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/unserved_plugins.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::hosts {
namespace {

using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using v1beta1::ConfigureRequest;
using v1beta1::GetHostInfoResponse;

// Hosts "small" and "main", in this order, over gRPC.
class HostRegistryTest : public ::testing::Test {
 protected:
  HostRegistryTest()
      : config_(Configuration()),
        scheduler_({}, queue::QueueOptions(), &effects_, &observer_, nullptr, SteadyNow()),
        hosts_(std::make_shared<config::Config>(config_), "session", &loop_, &scheduler_) {
    for (const char* name : {"small", "main"}) {
      fakes_[name] = FakeHost::Start(
          absl::StrCat("unix:", ::testing::TempDir(), "outboard-set-", getpid(), "-", name), name);
    }
  }
  // With `another` enabled after One.
  static config::Config Configuration(const std::string& another = "") {
    std::string text = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sort}, {name: One}, {name: Two}, {name: Binder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: small, address: "unix:/small"}, {name: main, address: "unix:/main"}]
)";
    if (!another.empty())
      text.replace(text.find("{name: One}"), 11, "{name: One}, {name: " + another + "}");
    auto config = config::ParseConfig(text, "f.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }
  // The host answers a handshake with these plugins.
  void Answers(const std::string& name, const std::vector<std::string>& plugins) {
    HostConnection connection;
    connection.channel = NewHostChannel(fakes_[name]->address());
    connection.identity.set_instance(name);
    connection.info = Info(plugins);
    const absl::Status taken = hosts_.OnHandshake({name, fakes_[name]->address(), std::nullopt, 0},
                                                  connection, SteadyNow());
    EXPECT_TRUE(taken.ok()) << taken;
  }
  static GetHostInfoResponse Info(const std::vector<std::string>& plugins) {
    GetHostInfoResponse info;
    for (const std::string& plugin : plugins) {
      auto* out = info.add_plugins();
      out->set_name(plugin);
      out->add_extension_points(plugin == "Sort"     ? v1beta1::EXTENSION_POINT_QUEUE_SORT
                                : plugin == "Binder" ? v1beta1::EXTENSION_POINT_BIND
                                                     : v1beta1::EXTENSION_POINT_FILTER);
      if (plugin != "SkippedHosts") continue;
      out->add_extension_points(v1beta1::EXTENSION_POINT_PRE_FILTER);
      v1beta1::Interest& interest = *out->add_interests();
      interest.set_extension_point(v1beta1::EXTENSION_POINT_PRE_FILTER);
      interest.add_any_field_set("spec.resourceClaims");
    }
    return info;
  }
  void WaitUntilReady() {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (!hosts_.AllReady() && SteadyNow() < limit) {
      loop_.Wait(limit);
      hosts_.Tick(SteadyNow());
    }
    ASSERT_TRUE(hosts_.AllReady());
  }
  // Kills the host; returns whether pods can still be placed.
  bool ServesWithout(const std::string& name) {
    fakes_[name]->Kill();
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (hosts_.AllReady() && SteadyNow() < limit) {
      loop_.Wait(limit);
      hosts_.Tick(SteadyNow());
    }
    return hosts_.ServesSomePods();
  }
  // Filters in each Configure that the host received.
  std::vector<std::string> Filters(const std::string& name) {
    std::vector<std::string> all;
    for (const ConfigureRequest& request : fakes_[name]->Requests<ConfigureRequest>()) {
      for (const auto& point : request.profiles(0).points()) {
        if (point.extension_point() != v1beta1::EXTENSION_POINT_FILTER) continue;
        std::string& text = all.emplace_back();
        for (const std::string& plugin : point.plugins()) absl::StrAppend(&text, plugin, ";");
      }
    }
    return all;
  }

  const config::Config config_;
  HostLoop loop_;
  scheduler::NoClusterActions effects_;
  scheduler::Observer observer_;
  scheduler::Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<FakeHost>> fakes_;
  HostRegistry hosts_;
};

TEST_F(HostRegistryTest, NoHostIsConfiguredBeforeAllHaveAnswered) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  EXPECT_THAT(Filters("main"), SizeIs(0));
  Answers("small", {"Two"});
  WaitUntilReady();
  EXPECT_THAT(Filters("main"), ElementsAre("One;"));
  EXPECT_THAT(Filters("small"), ElementsAre("Two;"));
}

TEST_F(HostRegistryTest, SaysAtOnceWhichPluginsNoHostServes) {
  class Sink : public google::LogSink {
   public:
    Sink() { google::AddLogSink(this); }
    ~Sink() override { google::RemoveLogSink(this); }
    void send(google::LogSeverity severity, const char*, const char*, int,
              const google::LogMessageTime&, const char* message, size_t length) override {
      const std::string text(message, length);
      if (text.find("No connected host") == 0)
        lines.push_back(absl::StrCat(google::GetLogSeverityName(severity), " ", text));
    }
    std::vector<std::string> lines;
  } log;
  Answers("small", {"Two"});
  EXPECT_THAT(log.lines,
              ElementsAre("INFO No connected host serves these plugins; profile \"p\": Sort, One, "
                          "Binder. Connected hosts: small; no answer yet: main. Pods wait until a "
                          "host with these plugins connects."));
  EXPECT_EQ(hosts_.Describe()[0].why,
            "no connected host serves all plugins of profile \"p\": Sort, One, Binder");
  // The same is not logged again.
  Answers("small", {"Two"});
  EXPECT_THAT(log.lines, SizeIs(1));
  Answers("main", {"Sort", "One", "Binder"});
  EXPECT_THAT(log.lines, SizeIs(1));
  WaitUntilReady();
}

TEST_F(HostRegistryTest, WarningsAboutAConfigurationLeaveItInForce) {
  class Sink : public google::LogSink {
   public:
    Sink() { google::AddLogSink(this); }
    ~Sink() override { google::RemoveLogSink(this); }
    void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
              const char* message, size_t length) override {
      const std::string text(message, length);
      if (text.find("field a is old") != std::string::npos) lines.push_back(text);
    }
    std::vector<std::string> lines;
  } log;
  const std::string warning = "f.yaml.a: field a is old (profile \"p\", plugin Two)";
  fakes_["small"]->Answer<ConfigureRequest, v1beta1::ConfigureResponse>(
      [](const ConfigureRequest&, v1beta1::ConfigureResponse* response) {
        v1beta1::ConfigProblem* problem = response->add_problems();
        problem->set_profile("p");
        problem->set_plugin("Two");
        problem->set_field("a");
        problem->set_message("field a is old");
        problem->set_severity(v1beta1::ConfigProblem::SEVERITY_WARNING);
        return grpc::Status::OK;
      });
  Answers("main", {"Sort", "One", "Binder"});
  Answers("small", {"Two"});
  WaitUntilReady();
  const auto warning_of = [this](const std::string& name) {
    for (const HostRegistry::View& view : hosts_.Describe()) {
      if (view.instance == name) return view.warning;
    }
    return std::string("no instance");
  };
  EXPECT_EQ(warning_of("main"), "");
  EXPECT_EQ(warning_of("small"), warning);
  EXPECT_THAT(log.lines, ElementsAre("Host \"small\": instance small (build ) warns: " + warning));
  // Beside what it says in probes.
  v1beta1::ProbeResponse probe;
  probe.set_warning("out of disk");
  hosts_.OnProbedReady("small", "small", probe, SteadyNow());
  EXPECT_EQ(warning_of("small"), "out of disk; " + warning);
  hosts_.OnProbedReady("small", "small", v1beta1::ProbeResponse(), SteadyNow());
  EXPECT_EQ(warning_of("small"), warning);
  // The same is not logged again when the instance gets its configuration again.
  config::Config changed = config_;
  changed.shim.deadlines.cycle += absl::Milliseconds(1);
  ASSERT_TRUE(hosts_.Reload(std::make_shared<config::Config>(changed), SteadyNow()).ok());
  WaitUntilReady();
  EXPECT_EQ(fakes_["small"]->Count<ConfigureRequest>(), 2);
  EXPECT_THAT(log.lines, SizeIs(1));
}

TEST_F(HostRegistryTest, UnknownActionsOfARegistrationAreAWarning) {
  HostConnection connection;
  connection.channel = NewHostChannel(fakes_["small"]->address());
  connection.identity.set_instance("small");
  v1beta1::PluginInfo* plugin = connection.info.add_plugins();
  plugin->set_name("Two");
  v1beta1::ClusterEvent* event = plugin->add_wake_up_events();
  event->set_resource("Node");
  event->add_actions(static_cast<v1beta1::ClusterEvent::Action>(77));
  ASSERT_TRUE(hosts_
                  .OnHandshake({"small", fakes_["small"]->address(), std::nullopt, 0}, connection,
                               SteadyNow())
                  .ok());
  EXPECT_THAT(hosts_.Describe()[0].warning, HasSubstr("action 77 on Node of plugin Two"));
}

TEST_F(HostRegistryTest, NamesOnlySomeOfManyUnservedPlugins) {
  GetHostInfoResponse info;
  info.add_plugins()->set_name("One");
  EXPECT_EQ(UnservedPlugins(Configuration("Mine"), {{"main", info}}),
            "profile \"p\": Sort, Mine, Two, Binder");
  const auto defaults = config::ParseConfig("", "f.yaml");
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(UnservedPlugins(*defaults, {{"main", info}}),
            "profile \"default-scheduler\": SchedulingGates, PrioritySort, NodeUnschedulable, "
            "NodeName, TaintToleration and 15 more");
}

TEST_F(HostRegistryTest, PodsOfOtherHostsDoNotWaitForAnUnavailableHost) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  const absl::Time wakeup = hosts_.NextWakeup();
  hosts_.Tick(wakeup - absl::Milliseconds(1));
  EXPECT_EQ(hosts_.plans(), nullptr);
  hosts_.Tick(wakeup);
  EXPECT_EQ(hosts_.NextWakeup(), absl::InfiniteFuture());
  WaitUntilReady();
  EXPECT_THAT(Filters("main"), ElementsAre("One;Two;"));
  // It gets its share once it comes.
  Answers("small", {"Two"});
  const absl::Time limit = SteadyNow() + absl::Seconds(30);
  while (Filters("main").size() < 2 && SteadyNow() < limit) {
    loop_.Wait(limit);
    hosts_.Tick(SteadyNow());
  }
  WaitUntilReady();
  EXPECT_THAT(Filters("main"), ElementsAre("One;Two;", "One;"));
  EXPECT_THAT(Filters("small"), ElementsAre("Two;"));
}

TEST_F(HostRegistryTest, NoHostServesWithoutARequiredHost) {
  Answers("main", {"Sort", "One", "Binder"});
  hosts_.Tick(hosts_.NextWakeup());
  EXPECT_EQ(hosts_.plans(), nullptr);
  Answers("small", {"Two"});
  WaitUntilReady();
}

TEST_F(HostRegistryTest, WithoutAHostThatAllPodsNeedNoneCanBePlaced) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"Two"});
  EXPECT_FALSE(hosts_.ServesSomePods());
  WaitUntilReady();
  EXPECT_TRUE(hosts_.ServesSomePods());
  EXPECT_FALSE(ServesWithout("small"));
}

TEST_F(HostRegistryTest, WithoutAHostThatSomePodsNeedOthersCanBePlaced) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"SkippedHosts"});
  const auto with_skipped = std::make_shared<config::Config>(Configuration("SkippedHosts"));
  ASSERT_EQ(hosts_.Reload(with_skipped, SteadyNow()), absl::OkStatus());
  WaitUntilReady();
  EXPECT_TRUE(ServesWithout("small"));
}

TEST_F(HostRegistryTest, AHostRestartsFromScratchOnlyIfAnotherHostChangesItsShare) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"Two"});
  WaitUntilReady();
  // Nothing changes for "main".
  Answers("small", {"Two", "Other"});
  WaitUntilReady();
  EXPECT_THAT(Filters("main"), ElementsAre("One;"));
  EXPECT_THAT(Filters("small"), ElementsAre("Two;", "Two;"));
  // "small" also serves One.
  Answers("small", {"One", "Two"});
  EXPECT_FALSE(hosts_.AllReady());
  WaitUntilReady();
  EXPECT_THAT(Filters("small"), ElementsAre("Two;", "Two;", "One;Two;"));
  EXPECT_EQ(fakes_["main"]->Count<ConfigureRequest>(), 2);
  EXPECT_THAT(Filters("main"), ElementsAre("One;"));
  // Nothing is left for "main"; pods no longer need it.
  Answers("small", {"Sort", "One", "Two", "Binder"});
  WaitUntilReady();
  EXPECT_EQ(fakes_["main"]->Count<ConfigureRequest>(), 2);
  fakes_["main"]->Kill();
  hosts_.Tick(SteadyNow());
  EXPECT_TRUE(hosts_.AllReady());
}

// Checks the configuration with `Late` enabled, which the host with this name refuses or not.
class ConfigCheckTest : public HostRegistryTest {
 protected:
  void Refuses(const std::string& name) {
    fakes_[name]->Answer<ConfigureRequest, v1beta1::ConfigureResponse>(
        [](const ConfigureRequest& request, v1beta1::ConfigureResponse* response) {
          if (!absl::StrContains(request.ShortDebugString(), "Late")) return grpc::Status::OK;
          v1beta1::ConfigProblem* problem = response->add_problems();
          problem->set_profile("p");
          problem->set_plugin("Late");
          problem->set_field("a");
          problem->set_message("must be positive");
          return grpc::Status::OK;
        });
  }
  absl::Status Check() {
    absl::StatusOr<ConfigCheck> check =
        hosts_.CheckReload(std::make_shared<config::Config>(Configuration("Late")));
    if (!check.ok()) return check.status();
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    std::optional<absl::Status> result;
    while (!(result = check->Take()).has_value() && SteadyNow() < limit) loop_.Wait(limit);
    return result.value_or(absl::DeadlineExceededError("no result"));
  }
};

TEST_F(ConfigCheckTest, AHostRefusesBeforeItsSessionEnds) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"Two", "Late"});
  WaitUntilReady();
  EXPECT_EQ(Check(), absl::OkStatus());
  Refuses("small");
  EXPECT_THAT(Check().message(), HasSubstr("must be positive"));
  // Only the host whose part changes was asked, and no session was touched.
  EXPECT_EQ(fakes_["main"]->Count<ConfigureRequest>(), 1);
  const auto asked = fakes_["small"]->Requests<ConfigureRequest>();
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_FALSE(asked[0].validate_only());
  EXPECT_TRUE(asked[1].validate_only());
  EXPECT_TRUE(asked[2].validate_only());
  EXPECT_TRUE(hosts_.AllReady());
}

TEST_F(ConfigCheckTest, AnInstanceThatAcceptsIsEnough) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"Two", "Late"});
  WaitUntilReady();
  Refuses("small");
  const auto newer =
      FakeHost::Start(absl::StrCat("unix:", ::testing::TempDir(), "newer-", getpid()), "newer");
  HostConnection connection;
  connection.channel = NewHostChannel(newer->address());
  connection.identity.set_instance("newer");
  connection.info = Info({"Two", "Late"});
  ASSERT_TRUE(
      hosts_.OnHandshake({"small", newer->address(), std::nullopt, 0}, connection, SteadyNow())
          .ok());
  EXPECT_EQ(Check(), absl::OkStatus());
}

TEST_F(ConfigCheckTest, AHostThatDoesNotAnswerDoesNotRefuse) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"Two", "Late"});
  WaitUntilReady();
  fakes_["small"]->Kill();
  EXPECT_EQ(Check(), absl::OkStatus());
}

TEST_F(ConfigCheckTest, APluginThatNoHostServesIsRefusedAtOnce) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"Two"});
  WaitUntilReady();
  EXPECT_THAT(Check().message(), HasSubstr("Late"));
}

TEST_F(HostRegistryTest, AHostThatServedNoProfileServesOnceTheConfigurationWantsIt) {
  Answers("main", {"Sort", "One", "Two", "Binder"});
  Answers("small", {"Late"});
  WaitUntilReady();
  EXPECT_THAT(Filters("small"), SizeIs(0));
  const absl::Status taken =
      hosts_.Reload(std::make_shared<config::Config>(Configuration("Late")), SteadyNow());
  ASSERT_TRUE(taken.ok()) << taken;
  EXPECT_FALSE(hosts_.AllReady());
  WaitUntilReady();
  EXPECT_THAT(Filters("small"), ElementsAre("Late;"));
}

}  // namespace
}  // namespace outboard::hosts
