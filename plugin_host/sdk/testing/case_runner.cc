#include "plugin_host/sdk/testing/case_runner.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/testing/object_yaml.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugin_host/sdk/testing/preemption_harness.h"

namespace outboard::sdk::testing {
namespace {

std::string CodeName(Code code) {
  if (code == kWait) return "Wait";
  if (code == kSkip) return "skip";
  switch (code) {
    case v1beta1::CODE_SUCCESS:
      return "ok";
    case v1beta1::CODE_ERROR:
      return "Error";
    case v1beta1::CODE_UNSCHEDULABLE:
      return "Unschedulable";
    case v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE:
      return "UnschedulableAndUnresolvable";
    case v1beta1::CODE_PENDING:
      return "Pending";
    default:
      return "?";
  }
}

// In the syntax of cases: `ok`, `skip`, or `Unschedulable: a reason; another`.
std::string Text(const Verdict& verdict) {
  if (verdict.ok() || verdict.skip()) return CodeName(verdict.code());
  return absl::StrCat(CodeName(verdict.code()), ": ", absl::StrJoin(verdict.reasons(), "; "));
}

std::map<std::string, std::string> TextMap(const YAML::Node& yaml) {
  std::map<std::string, std::string> result;
  for (const auto& entry : yaml) {
    result[entry.first.as<std::string>()] = entry.second.as<std::string>();
  }
  return result;
}

void CheckKeys(const YAML::Node& yaml, const std::set<std::string>& known) {
  for (const auto& entry : yaml) {
    const std::string key = entry.first.as<std::string>();
    EXPECT_TRUE(known.contains(key)) << "a case has no " << key;
  }
}

void SetNomination(PluginHarness* harness, const v1beta1::Pod& pod) {
  harness->Place(pod.uid(), v1beta1::PLACEMENT_STATE_NOMINATED, pod.nominated_node_name());
}
void SetNomination(PreemptionHarness* harness, const v1beta1::Pod& pod) {
  harness->Nominate(pod.uid(), pod.nominated_node_name());
}

// Fills the cluster; false after a failure.
template <typename Harness>
bool Load(const YAML::Node& given, Harness* harness) {
  if (given["now"]) {
    absl::Time now;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, given["now"].as<std::string>(), &now, &error)) {
      ADD_FAILURE() << "now: " << error;
      return false;
    }
    harness->SetNow(now);
  }
  if constexpr (std::is_same_v<Harness, PluginHarness>) {
    for (const auto& yaml : given["namespaces"]) {
      harness->AddNamespace(yaml["name"].as<std::string>(), TextMap(yaml["labels"]));
    }
  }
  for (const auto& yaml : given["objects"]) {
    absl::StatusOr<v1beta1::ClusterObject> object = ObjectFromYaml(yaml);
    if (!object.ok()) {
      ADD_FAILURE() << "objects: " << object.status();
      return false;
    }
    harness->AddObject(*object);
  }
  for (const auto& yaml : given["nodes"]) {
    absl::StatusOr<v1beta1::Node> node = NodeFromYaml(yaml);
    if (!node.ok()) {
      ADD_FAILURE() << "nodes: " << node.status();
      return false;
    }
    harness->AddNode(*node);
  }
  for (const auto& yaml : given["objects"]) {
    absl::StatusOr<v1beta1::ClusterObject> object = ObjectFromYaml(yaml);
    if (!object.ok()) {
      ADD_FAILURE() << "objects: " << object.status();
      return false;
    }
    harness->AddObject(*object);
  }
  for (const auto& yaml : given["pods"]) {
    absl::StatusOr<v1beta1::Pod> pod = PodFromYaml(yaml);
    if (!pod.ok()) {
      ADD_FAILURE() << "pods: " << pod.status();
      return false;
    }
    harness->AddPod(*pod);
    if (!pod->nominated_node_name().empty()) {
      SetNomination(harness, *pod);
    }
  }
  return true;
}

void ExpectScores(const YAML::Node& expected,
                  const absl::StatusOr<std::map<std::string, int64_t>>& got) {
  if (!got.ok()) {
    EXPECT_EQ(expected.as<std::string>(), std::string(got.status().message()));
    return;
  }
  if (expected.IsScalar()) {
    EXPECT_EQ(expected.as<std::string>(), "skip");
    EXPECT_TRUE(got->empty()) << "scored unexpectedly";
    return;
  }
  std::map<std::string, std::string> texts;
  for (const auto& [node, score] : *got) texts[node] = absl::StrCat(score);
  EXPECT_EQ(TextMap(expected), texts);
}

// An object of an event, before or after; ADD lacks `old`, DELETE lacks `new`.
struct EventObject {
  v1beta1::Node node;
  v1beta1::Pod pod;
  v1beta1::ClusterObject object;
};

// The object of an event of this resource, in the syntax of `objects`.
absl::StatusOr<v1beta1::ClusterObject> EventObjectFromYaml(const std::string& resource,
                                                           const YAML::Node& yaml) {
  const auto* kinds = v1beta1::ClusterObject::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    // Resources of custom objects have dots: `widgets.v1.example.com`.
    const std::string kind = absl::StrContains(resource, '.') ? "GenericObject" : resource;
    if (!absl::EqualsIgnoreCase(kinds->field(i)->message_type()->name(), kind)) continue;
    YAML::Node object;
    object[kinds->field(i)->camelcase_name()] = yaml;
    return ObjectFromYaml(object);
  }
  return absl::InvalidArgumentError("unknown kind " + resource);
}

void ExpectHint(const YAML::Node& yaml, const v1beta1::Pod& pod, const std::string& expected,
                PluginHarness* harness) {
  ObjectChange change;
  const std::string resource = yaml["resource"].as<std::string>();
  change.resource = resource;
  ASSERT_TRUE(v1beta1::ClusterEvent::Action_Parse(
      absl::StrCat("ACTION_", yaml["action"].as<std::string>()), &change.action))
      << "unknown action " << yaml["action"].as<std::string>();
  EXPECT_EQ(change.action == v1beta1::ClusterEvent::ACTION_ADD, !yaml["old"]) << "ADD has no `old`";
  EXPECT_EQ(change.action == v1beta1::ClusterEvent::ACTION_DELETE, !yaml["new"])
      << "DELETE has no `new`";
  EventObject before, after;
  for (const char* side : {"old", "new"}) {
    if (!yaml[side]) continue;
    EventObject& object = side == std::string("old") ? before : after;
    const auto set = [&](auto parsed, auto* into, auto** old_into, auto** new_into) {
      ASSERT_TRUE(parsed.ok()) << side << ": " << parsed.status();
      *into = *std::move(parsed);
      (&object == &before ? *old_into : *new_into) = into;
    };
    if (resource == "Node") {
      set(NodeFromYaml(yaml[side]), &object.node, &change.old_node, &change.new_node);
    } else if (resource == "AssignedPod" || resource == "UnscheduledPod") {
      set(PodFromYaml(yaml[side]), &object.pod, &change.old_pod, &change.new_pod);
    } else {
      set(EventObjectFromYaml(resource, yaml[side]), &object.object, &change.old_object,
          &change.new_object);
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(expected, harness->Hint(pod, change));
}

// Named `events`, and the expected hint of each.
void ExpectHints(const YAML::Node& events, const YAML::Node& expected, const v1beta1::Pod& pod,
                 PluginHarness* harness) {
  for (const auto& event : events) {
    const std::string name = event.first.as<std::string>();
    SCOPED_TRACE(name);
    ASSERT_TRUE(expected[name]) << "no hint for the event";
    ExpectHint(event.second, pod, expected[name].as<std::string>(), harness);
  }
  for (const auto& hint : expected) {
    EXPECT_TRUE(events[hint.first.as<std::string>()]) << "no event " << hint.first;
  }
}

void ExpectTerms(const YAML::Node& expected,
                 const std::map<std::string, std::map<std::string, double>>& terms) {
  std::map<std::string, std::map<std::string, std::string>> want, have;
  for (const auto& node : expected) {
    for (const auto& term : node.second)
      want[node.first.as<std::string>()][term.first.as<std::string>()] =
          absl::StrFormat("%.4g", term.second.as<double>());
  }
  for (const auto& [node, of_node] : terms) {
    for (const auto& [name, value] : of_node) have[node][name] = absl::StrFormat("%.4g", value);
  }
  EXPECT_EQ(want, have);
}

// `n1: a b` for each candidate, the best first; `n1 !1: a b` if a budget is violated.
std::vector<std::string> CandidateTexts(const v1beta1::PostFilterResponse& response,
                                        const ClusterView& cluster) {
  std::vector<std::string> texts;
  for (const v1beta1::PreemptionCandidate& candidate : response.candidates().candidates()) {
    std::string text(cluster.node(candidate.slot()).name());
    if (candidate.budget_violations() > 0)
      absl::StrAppend(&text, " !", candidate.budget_violations());
    absl::StrAppend(&text, ":");
    for (const std::string& uid : candidate.victim_uids()) {
      const PodRecord* pod = cluster.FindPod(uid);
      absl::StrAppend(&text, " ", pod == nullptr ? uid : pod->pod.name());
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

void ExpectPostFilter(const PluginDescriptor& descriptor, const YAML::Node& given,
                      const v1beta1::Pod& pod, const YAML::Node& expected) {
  auto harness = PreemptionHarness::Create(descriptor, {RoomFilter()},
                                           given["args"] ? YamlToJson(given["args"]) : "");
  ASSERT_TRUE(harness.ok()) << harness.status();
  if (!Load(given, harness->get())) return;
  const v1beta1::PostFilterResponse response = (*harness)->Attempt(pod);
  if (response.has_rejection()) {
    const v1beta1::PluginStatus& status = response.rejection().status();
    ASSERT_TRUE(expected.IsScalar()) << absl::StrJoin(status.reasons(), "; ");
    EXPECT_EQ(expected.as<std::string>(),
              Text({status.code(),
                    std::vector<std::string>(status.reasons().begin(), status.reasons().end())}));
    return;
  }
  const std::vector<std::string> texts = CandidateTexts(response, (*harness)->cluster());
  ASSERT_TRUE(expected.IsSequence()) << absl::StrJoin(texts, "; ");
  EXPECT_EQ(expected.as<std::vector<std::string>>(), texts);
}

void RunCase(const PluginDescriptor& descriptor, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, "\n--\n");
  ASSERT_EQ(parts.size(), 2u) << "a case has a cluster, a line `--`, and what is expected";
  const YAML::Node given = YAML::Load(parts[0]);
  const YAML::Node expected = YAML::Load(parts[1]);
  CheckKeys(given, {"args", "now", "nodes", "pods", "namespaces", "objects", "pod", "events"});
  CheckKeys(expected, {"preFilter", "nodeNames", "filter", "raw", "scores", "terms", "preEnqueue",
                       "hints", "postFilter", "argsProblems"});
  ASSERT_TRUE(expected.IsMap() && expected.size() > 0) << "a case must expect something";

  absl::StatusOr<std::unique_ptr<PluginHarness>> harness =
      PluginHarness::Create(descriptor, given["args"] ? YamlToJson(given["args"]) : "");
  if (expected["argsProblems"]) {
    ASSERT_FALSE(harness.ok()) << "the arguments are accepted";
    std::vector<std::string> problems;
    for (const auto& problem : expected["argsProblems"]) {
      problems.push_back(problem.as<std::string>());
    }
    EXPECT_EQ(absl::StrJoin(problems, "\n"), std::string(harness.status().message()));
    return;
  }
  ASSERT_TRUE(harness.ok()) << harness.status();
  PluginHarness& h = **harness;
  if (!Load(given, &h)) return;
  absl::StatusOr<v1beta1::Pod> pod = PodFromYaml(given["pod"]);
  ASSERT_TRUE(pod.ok()) << "pod: " << pod.status();

  if (expected["preEnqueue"]) {
    EXPECT_EQ(expected["preEnqueue"].as<std::string>(), Text(h.PreEnqueue(*pod)));
  }
  if (expected["preFilter"] || expected["nodeNames"]) {
    const PluginHarness::PreFilterOutcome outcome = h.PreFilter(*pod);
    if (expected["preFilter"]) {
      EXPECT_EQ(expected["preFilter"].as<std::string>(), Text(outcome.verdict));
    }
    if (expected["nodeNames"]) {
      EXPECT_TRUE(outcome.node_names.has_value()) << "PreFilter restricts nothing";
      EXPECT_EQ(expected["nodeNames"].as<std::vector<std::string>>(),
                outcome.node_names.value_or(std::vector<std::string>()));
    }
  }
  if (expected["filter"]) {
    std::map<std::string, std::string> verdicts;
    for (const auto& [node, verdict] : h.Filter(*pod)) verdicts[node] = Text(verdict);
    EXPECT_EQ(TextMap(expected["filter"]), verdicts);
  }
  if (expected["hints"]) ExpectHints(given["events"], expected["hints"], *pod, &h);
  if (expected["postFilter"]) ExpectPostFilter(descriptor, given, *pod, expected["postFilter"]);
  if (expected["raw"]) ExpectScores(expected["raw"], h.RawScore(*pod));
  if (expected["scores"]) ExpectScores(expected["scores"], h.Score(*pod));
  if (expected["terms"]) ExpectTerms(expected["terms"], h.Terms(*pod));
}

}  // namespace

void RunCases(const PluginDescriptor& descriptor, const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  ASSERT_FALSE(error) << folder << ": " << error.message();
  ASSERT_FALSE(files.empty()) << folder << " has no *.case";
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::ifstream stream(file);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    int number = 0;
    for (absl::string_view one : absl::StrSplit(text, "\n==\n")) {
      SCOPED_TRACE(absl::StrCat(file.string(), ", case ", ++number));
      try {  // yaml-cpp throws.
        RunCase(descriptor, std::string(one));
      } catch (const YAML::Exception& exception) {
        ADD_FAILURE() << exception.what();
      }
    }
  }
}

}  // namespace outboard::sdk::testing
