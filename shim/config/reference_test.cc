// Holds docs/configuration.md against the code: fields, defaults, and what reloads. Also which
// plugins docs/plugins.md says are on by default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/config/config.h"
#include "shim/config/default_plugins.h"
#include "shim/config/profiles.h"

namespace outboard::config {
namespace {

using ::testing::ContainerEq;

// Sets every field to a value that is not its default.
constexpr char kEverything[] = R"(
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 8
leaderElection:
  leaderElect: false
  leaseDuration: 20s
  renewDeadline: 12s
  retryPeriod: 3s
  resourceLock: leases
  resourceName: lease
  resourceNamespace: other
clientConnection: {kubeconfig: /k, acceptContentTypes: a, contentType: application/json, qps: 1, burst: 2}
enableProfiling: false
enableContentionProfiling: false
percentageOfNodesToScore: 50
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: true
profiles:
- schedulerName: mine
  percentageOfNodesToScore: 40
  plugins: {score: {enabled: [{name: GPUAware, weight: 3}], disabled: [{name: ImageLocality}]}}
  pluginConfig: [{name: GPUAware, args: {minGPUMemoryGB: 1}}]
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: a, metricsAddress: "127.0.0.1:9"}, {name: t, address: "h:1", tls: {caFile: a, certFile: b, keyFile: c, serverName: d}},
        {name: u, addresses: ["unix:/u", "unix:/v"]},
        {name: p, pods: {namespace: ns, selector: "a=b", port: 7}, tls: {caFile: a, certFile: b, keyFile: c, serverName: d}}]
socketDirectory: /run/s
allowedUids: [7]
replacement: {shadowCycles: 1, shadowTimeout: 1s, keepWarm: 2m, rollbackFailures: 3}
servingAddress: 127.0.0.1:1
secureServing: {address: "0.0.0.0:2", certFile: /c, keyFile: /k, clientCAFile: /a}
deadlines: {cycle: 2s, reserve: 2s, permit: 2s, bind: 2s, queue: 2s}
preemption: {maxEvictionsPerAttempt: 1, maxEvictionsPerMinute: 2}
failurePolicies: [{plugin: GPUAware, point: filter, policy: FailOpen}]
customResources: [{resource: as.v1.example.com, verbs: [create], namespaces: [team]}]
allowedPodKeys: [app.kubernetes.io/name]
extender:
  address: 0.0.0.0:3
  profile: mine
  schedulerNames: [theirs]
  deadline: 1s
  bindDeadline: 3s
  maxBinds: 9
  admitsBindings: true
  leaderService: leader
  tls: {certFile: c, keyFile: k, clientCAFile: a}
metrics: {workloadTypeLabel: kind, workloadTypes: [a], jobNameLabels: [job]}
unknownProfiles: {prefixes: [mine-]}
verbosity: 2
explainMemoryMiB: 1
allowedEnvironmentVariables: [A]
featureGates: {TaintTolerationComparisonOperators: true}
)";

// A row of the page: `| path | default | reloads | meaning |`.
struct Row {
  std::string default_value;
  bool reloads = false;
};

std::map<std::string, Row> ReadPage() {
  std::ifstream file("docs/configuration.md");
  EXPECT_TRUE(file.good());
  std::map<std::string, Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `")) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    EXPECT_EQ(cells.size(), 6u) << line;
    const std::string path = cells[1].substr(1, cells[1].size() - 2);
    EXPECT_TRUE(cells[3] == "yes" || cells[3] == "no") << line;
    EXPECT_TRUE(rows.emplace(path, Row{cells[2], cells[3] == "yes"}).second) << "twice: " << path;
  }
  return rows;
}

// Values by path; a list is `NAME[]`, and all extension points are one.
void Flatten(const YAML::Node& node, const std::string& path,
             std::map<std::string, std::string>* out) {
  if (absl::EndsWith(path, ".args") || node.IsScalar()) {
    (*out)[path] = node.IsScalar() ? node.Scalar() : "";
  } else if (node.IsSequence()) {
    std::string& all = (*out)[absl::StrCat(path, "[]")];
    for (const YAML::Node& element : node) {
      if (element.IsScalar()) {
        absl::StrAppend(&all, all.empty() ? "" : ", ", element.Scalar());
      } else {
        Flatten(element, absl::StrCat(path, "[]"), out);
      }
    }
    if (all.empty()) out->erase(absl::StrCat(path, "[]"));
  } else if (node.IsMap()) {
    for (const auto& entry : node) {
      std::string key = entry.first.Scalar();
      if (absl::EndsWith(path, ".plugins")) key = "POINT";
      if (key != "apiVersion" && key != "kind")
        Flatten(entry.second, path.empty() ? key : absl::StrCat(path, ".", key), out);
    }
  }
}

std::map<std::string, std::string> Effective(const char* text) {
  const absl::StatusOr<Config> config = ParseConfig(text, "f.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  std::map<std::string, std::string> values;
  for (const YAML::Node& document : YAML::LoadAll(EffectiveConfigYaml(*config, nullptr)))
    Flatten(document, "", &values);
  return values;
}

TEST(ConfigurationPage, NamesEveryField) {
  std::set<std::string> have;
  for (const auto& [path, row] : ReadPage()) have.insert(path);
  std::set<std::string> want;
  for (const auto& [path, value] : Effective(kEverything)) want.insert(path);
  EXPECT_THAT(have, ContainerEq(want));
}

TEST(ConfigurationPage, NamesTheDefaults) {
  const std::map<std::string, Row> rows = ReadPage();
  for (const auto& [path, value] : Effective("")) {
    if (absl::StartsWith(path, "profiles[].plugins") ||
        path == "profiles[].percentageOfNodesToScore")
      continue;  // Said in words.
    const auto row = rows.find(path);
    ASSERT_NE(row, rows.end()) << path;
    EXPECT_EQ(row->second.default_value, value.empty() ? "\"\"" : value) << path;
  }
}

TEST(ConfigurationPage, SaysWhatReloads) {
  const absl::StatusOr<Config> before = ParseConfig("", "f.yaml");
  absl::StatusOr<Config> after = ParseConfig(kEverything, "f.yaml");
  ASSERT_TRUE(before.ok() && after.ok()) << after.status();
  // Without an extender no running endpoint needs a profile.
  const auto waiting = KeepUntilRestart(*before, &*after);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  const std::set<std::string> fields(waiting->begin(), waiting->end());
  for (const auto& [path, row] : ReadPage()) {
    const std::string field = path.substr(0, path.find_first_of(".["));
    EXPECT_EQ(row.reloads, fields.count(field) == 0) << path;
  }
}

// Rows: `| [Name](target) | on | ...`. That each served plugin has one row is compared beside the
// plugins.
TEST(PluginsPage, SaysWhichPluginsTheDefaultProfileEnables) {
  std::ifstream page("docs/plugins.md");
  ASSERT_TRUE(page.good());
  std::map<std::string, std::string> want = {{kNotServedPlugin, "yes, ours"}};
  for (const PluginEntry& entry : DefaultMultiPoint()) want[entry.name] = "yes";
  std::map<std::string, std::string> have;
  for (std::string line; std::getline(page, line);) {
    if (!absl::StartsWith(line, "| [")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    ASSERT_GE(cells.size(), 4u) << line;
    const std::vector<std::string> name = absl::StrSplit(cells[1], absl::ByAnyChar("[]"));
    ASSERT_GE(name.size(), 2u) << line;
    const std::string on(absl::StripAsciiWhitespace(cells[2]));
    if (on != "no") have[name[1]] = on;
  }
  EXPECT_THAT(have, ContainerEq(want));
}

}  // namespace
}  // namespace outboard::config
