// Reloads of a running outboard-shim, against an API server and a host in this process: what is
// refused, what is taken, and what a start with a bad file does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "proto/testing/fake_host.h"
#include "shim/http/client.h"
#include "shim/kube/testing/fake_api_server.h"
#include "shim/kube/testing/shim_program.h"

namespace outboard::shim {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using nlohmann::json;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kWidgets[] = "widgets.v1.example.com";

constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: $LEASE}
profiles:
- schedulerName: outboard
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sorter}, {name: $PLUGIN}, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:$DIRECTORY/host"}]
servingAddress: 127.0.0.1:0
verbosity: $VERBOSITY
customResources: [$RESOURCES]
)";

struct Settings {
  std::string lease = "reload-test";
  std::string plugin = "NodeResourcesFit";
  std::string verbosity = "0";
  std::string resources = {};
};

void AddPlugin(GetHostInfoResponse* info, const char* name,
               const std::vector<ExtensionPoint>& points) {
  PluginInfo* const plugin = info->add_plugins();
  plugin->set_name(name);
  plugin->mutable_extension_points()->Assign(points.begin(), points.end());
}

json Node(const std::string& name) {
  const json resources = {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "100"}};
  return {{"metadata", {{"name", name}}},
          {"status", {{"allocatable", resources}, {"capacity", resources}}}};
}

// Its uid is its name.
json Pod(const std::string& name, const std::string& ns = "ns") {
  return {
      {"metadata", {{"name", name}, {"namespace", ns}, {"uid", name}}},
      {"spec", {{"schedulerName", "outboard"}, {"containers", {{{"name", "c"}, {"image", "i"}}}}}},
      {"status", {{"phase", "Pending"}}}};
}

class ShimReloadTest : public ::testing::Test {
 protected:
  ShimReloadTest() {
    host_ = outboard::testing::FakeHost::Start(absl::StrCat("unix:", shim_.directory(), "/host"));
    host_->Answer<GetHostInfoRequest, GetHostInfoResponse>(
        [](const GetHostInfoRequest&, GetHostInfoResponse* info) {
          info->add_capabilities(CAPABILITY_FUSED_CYCLE);
          AddPlugin(info, "Sorter", {EXTENSION_POINT_QUEUE_SORT});
          AddPlugin(info, "NodeResourcesFit", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
          AddPlugin(info, "WidgetFit", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
          info->mutable_plugins(2)->add_declared_resources()->set_resource(kWidgets);
          AddPlugin(info, "DefaultBinder", {EXTENSION_POINT_BIND});
          return grpc::Status::OK;
        });
    api_.Put("nodes", Node("n"));
    // The shim's own pod; another scheduler has placed it.
    json own = Pod("shim-0", "system");
    own["spec"]["schedulerName"] = "default-scheduler";
    own["spec"]["nodeName"] = "n";
    api_.Put("pods", own);
  }
  ~ShimReloadTest() override {
    if (HasFailure()) ADD_FAILURE() << shim_.Log();
    shim_.End();
    host_ = nullptr;
  }

  std::string Text(const Settings& settings) const {
    return absl::StrReplaceAll(kConfiguration, {{"$DIRECTORY", shim_.directory()},
                                                {"$LEASE", settings.lease},
                                                {"$PLUGIN", settings.plugin},
                                                {"$VERBOSITY", settings.verbosity},
                                                {"$RESOURCES", settings.resources}});
  }
  void Write(const std::string& text) const {
    shim_.Write("new", text);
    std::filesystem::rename(shim_.directory() + "/new", shim_.directory() + "/config");
  }
  void Start(const std::vector<std::string>& flags = {}) {
    shim_.Start({"POD_NAME=shim-0", "POD_NAMESPACE=system"}, flags);
  }
  void AwaitPages() {
    const std::string text = "Serving health and metrics on port ";
    ASSERT_TRUE(Await([&] {
      const std::string log = shim_.Log();
      // The last one: a second start has another port.
      const size_t at = log.rfind(text);
      if (at == log.npos) return false;
      const size_t begin = at + text.size();
      const size_t end = log.find_first_not_of("0123456789", begin);
      if (end == log.npos) return false;
      page_.server = absl::StrCat("127.0.0.1:", log.substr(begin, end - begin));
      return Page("/livez") == "ok";
    }));
  }
  bool Await(const std::function<bool()>& done) const {
    const absl::Time limit = absl::Now() + kPatience;
    while (!done()) {
      if (absl::Now() > limit || !shim_.IsRunning()) return false;
      absl::SleepFor(absl::Milliseconds(20));  // poll interval
    }
    return true;
  }
  std::string Page(const std::string& path,
                   const std::multimap<std::string, std::string>& parameters = {}) const {
    return http::GetPage(page_, path, parameters, absl::Seconds(10)).value_or("");
  }
  std::string Readiness() const { return Page("/readyz", {{"verbose", ""}}); }
  void AwaitMetric(const std::string& line) const {
    EXPECT_TRUE(Await([&] { return absl::StrContains(Page("/metrics"), "\n" + line + "\n"); }))
        << line;
  }
  // Events about the shim's pod with this reason.
  std::vector<json> Events(const std::string& reason) const {
    std::vector<json> found;
    for (const json& event : api_.All("events")) {
      if (event["reason"] == reason && event["regarding"]["name"] == "shim-0")
        found.push_back(event);
    }
    return found;
  }
  void AwaitEvent(const std::string& reason, const std::string& part) const {
    EXPECT_TRUE(Await([&] {
      for (const json& event : Events(reason)) {
        if (!absl::StrContains(event["note"].get<std::string>(), part)) continue;
        EXPECT_EQ(event["regarding"]["uid"], "shim-0");
        EXPECT_EQ(event["metadata"]["namespace"], "system");
        return true;
      }
      return false;
    })) << reason
        << ": " << part;
  }
  void ExpectPodsAreBound(const std::string& name) {
    api_.Put("pods", Pod(name));
    EXPECT_TRUE(Await([&] { return api_.Get("pods", "ns/" + name)["spec"].contains("nodeName"); }))
        << name;
  }

  // Until the file of --last-good-config has this text.
  void AwaitKept(const std::string& part) const {
    EXPECT_TRUE(Await([&] {
      std::stringstream text;
      text << std::ifstream(shim_.directory() + "/kept").rdbuf();
      return absl::StrContains(text.str(), part);
    })) << part;
  }

  kube::testing::FakeApiServer api_;
  testing::ShimProgram shim_{"shim-reload", api_.url()};
  std::unique_ptr<outboard::testing::FakeHost> host_;
  http::ShimAddress page_;
};

TEST_F(ShimReloadTest, ARefusedFileIsVisibleAndTheOldOneServes) {
  Write(Text({}));
  Start();
  AwaitPages();
  ExpectPodsAreBound("before");
  AwaitMetric("outboard_config_last_reload_successful 1");
  EXPECT_THAT(Readiness(), HasSubstr("[+]configuration ok\n"));

  Write(absl::StrReplaceAll(Text({}), {{"hosts:", "hots:"}}));
  AwaitMetric("outboard_config_last_reload_successful 0");
  AwaitEvent("ConfigurationRefused", "hots: unknown field; did you mean hosts?");
  EXPECT_THAT(Readiness(), HasSubstr("[+]configuration ok: the file was refused at "));
  EXPECT_THAT(Readiness(), HasSubstr("config:12:1: hots"));
  EXPECT_THAT(Page("/configz"), HasSubstr("hots: unknown field"));
  EXPECT_THAT(Page("/configz"), HasSubstr("name: \"main\"")) << "what runs";
  ExpectPodsAreBound("meanwhile");

  Write(Text({.verbosity = "1"}));
  AwaitMetric("outboard_config_last_reload_successful 1");
  AwaitEvent("ConfigurationLoaded", "loaded ");
  EXPECT_THAT(Readiness(), HasSubstr("[+]configuration ok\n"));
  EXPECT_EQ(Events("ConfigurationRefused").size(), 1u);
}

TEST_F(ShimReloadTest, FieldsThatWaitForARestartDoNotHoldUpTheRest) {
  Write(Text({}));
  Start();
  AwaitPages();
  ExpectPodsAreBound("before");
  Write(Text({.lease = "another", .verbosity = "2"}));
  AwaitMetric("outboard_config_restart_required 1");
  AwaitMetric("outboard_config_last_reload_successful 1");
  AwaitEvent("ConfigurationLoaded", "wait for a restart: leaderElection");
  EXPECT_THAT(Readiness(),
              HasSubstr("[+]configuration ok: fields that wait for a restart: leaderElection\n"));
  EXPECT_THAT(Page("/configz"), HasSubstr("verbosity: 2"));
  EXPECT_THAT(Page("/configz"), HasSubstr("resourceName: \"reload-test\""));
  Write(Text({}));
  AwaitMetric("outboard_config_restart_required 0");
}

TEST_F(ShimReloadTest, CustomResourcesAreAddedAndRemoved) {
  api_.Put("widgets", {{"metadata", {{"name", "w"}}}});
  Write(Text({}));
  Start();
  AwaitPages();
  ExpectPodsAreBound("before");
  EXPECT_EQ(api_.Count("GET", "/widgets"), 0);
  // A profile that needs it, in the same file.
  const std::string resources = absl::StrCat("{resource: ", kWidgets, "}");
  Write(Text({.plugin = "WidgetFit", .resources = resources}));
  AwaitMetric("outboard_informer_objects{resource=\"widgets.example.com\"} 1");
  AwaitEvent("ConfigurationLoaded", "loaded ");
  ExpectPodsAreBound("with");
  AwaitMetric("outboard_config_restart_required 0");

  Write(Text({}));
  AwaitMetric("outboard_informer_objects{resource=\"widgets.example.com\"} 0");
  ExpectPodsAreBound("without");
}

TEST_F(ShimReloadTest, WithoutALastGoodConfigurationABadFileEndsTheStart) {
  Write(absl::StrReplaceAll(Text({}), {{"hosts:", "hots:"}}));
  Start();
  EXPECT_EQ(shim_.AwaitExit(), 2);
  EXPECT_THAT(shim_.Log(), HasSubstr("config:12:1: hots: unknown field"));
}

TEST_F(ShimReloadTest, AStartWithABadFileRunsOnTheLastGoodConfiguration) {
  const std::string kept = shim_.directory() + "/kept";
  const std::vector<std::string> flags = {"--last-good-config", kept};
  Write(Text({.verbosity = "1"}));
  Start(flags);
  AwaitPages();
  ExpectPodsAreBound("first");
  AwaitKept("verbosity: 1");
  shim_.End();

  // A mistake of the file, and a mistake that shows only once the host has answered.
  size_t starts = 0;
  for (const std::string& bad :
       {absl::StrReplaceAll(Text({}), {{"hosts:", "hots:"}}), Text({.plugin = "NoSuchPlugin"})}) {
    SCOPED_TRACE(bad);
    std::filesystem::resize_file(shim_.directory() + "/log", 0);
    Write(bad);
    Start(flags);
    AwaitPages();
    ExpectPodsAreBound(absl::StrCat("second-", ++starts));
    AwaitMetric("outboard_config_last_reload_successful 0");
    EXPECT_THAT(Readiness(),
                HasSubstr(absl::StrCat("running on the last good configuration, ", kept)));
    EXPECT_THAT(Page("/configz"), HasSubstr("verbosity: 1"));
    EXPECT_TRUE(Await([&] { return Events("ConfigurationRefused").size() == starts; }));
    AwaitEvent("ConfigurationRefused", "running on the last good configuration");
    EXPECT_THAT(shim_.Log(), HasSubstr("running on the last good"));
    // The corrected file is loaded, and kept for the next start.
    Write(Text({.verbosity = "2"}));
    AwaitMetric("outboard_config_last_reload_successful 1");
    AwaitKept("verbosity: 2");
    Write(Text({.verbosity = "1"}));
    AwaitKept("verbosity: 1");
    shim_.End();
  }
}

}  // namespace
}  // namespace outboard::shim
