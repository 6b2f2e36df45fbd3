// User-requested plugins on clusters with absurd labels and annotations: no crash, no invented
// values, and one warning for each malformed value.
//
// OUTBOARD_ABSURD_SEEDS is the number of clusters; 10,000 unless a sanitizer is active.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/absurd_input_rules.h"
#include "plugins/builtin_plugins.h"
#include "proto/short_names.h"

namespace outboard::absurd {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

#ifdef OUTBOARD_SANITIZED
constexpr uint64_t kNumClusters = 300;
#else
constexpr uint64_t kNumClusters = 10000;
#endif

uint64_t NumSeeds() {
  uint64_t seeds = kNumClusters;
  if (const char* text = std::getenv("OUTBOARD_ABSURD_SEEDS")) {
    CHECK(absl::SimpleAtoi(text, &seeds)) << "OUTBOARD_ABSURD_SEEDS=" << text;
  }
  return seeds;
}

const sdk::PluginRegistry& Builtins() {
  static const sdk::PluginRegistry& registry = *[] {
    auto* made = new sdk::PluginRegistry();
    CHECK_EQ(RegisterBuiltinPlugins(made), absl::OkStatus());
    return made;
  }();
  return registry;
}

// Counts warnings that a value counts as absent, by the text before the value: `GPUAware: node n1:
// gpu-memory-gb`. Captures all log output, which does not go to the screen.
class Warnings final : public google::LogSink {
 public:
  Warnings() { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char*, const char*, int, const struct tm*,
            const char* message, size_t length) override {
    const std::string text(message, length);
    const size_t sign = text.find('=');
    if (severity == google::GLOG_WARNING && text.find("counts as absent") != std::string::npos &&
        sign != std::string::npos) {
      ++counts_[text.substr(0, sign)];
    }
  }
  std::map<std::string, int> Take() { return std::exchange(counts_, {}); }

 private:
  std::map<std::string, int> counts_;
};

// A cluster with absurd values, and the pods to place.
struct Cluster {
  std::vector<v1beta1::Node> nodes;
  std::vector<v1beta1::Pod> running;
  std::vector<v1beta1::Pod> pending;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Cluster Make() {
    Cluster cluster;
    for (uint64_t i = 0, n = 1 + Below(3); i < n; ++i) cluster.nodes.push_back(MakeNode(i));
    for (uint64_t i = 0, n = Below(4); i < n; ++i) {
      v1beta1::Pod pod = MakePod(absl::StrCat("running-", i));
      pod.set_node_name(cluster.nodes[Below(cluster.nodes.size())].name());
      cluster.running.push_back(std::move(pod));
    }
    for (uint64_t i = 0; i < 2; ++i)
      cluster.pending.push_back(MakePod(absl::StrCat("pending-", i)));
    return cluster;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  template <typename T>
  const T& OneOf(const std::vector<T>& values) {
    return values[Below(values.size())];
  }
  // The values that rules at this place may read, each with some chance. Rules of several plugins
  // about one key are one value.
  void Fill(Where where, google::protobuf::Map<std::string, std::string>* values) {
    static const auto& rules_by_key = *[] {
      auto* by_key = new std::map<Where, std::map<std::string, std::vector<const Rule*>>>();
      for (const Rule& rule : Rules()) (*by_key)[rule.where][rule.key].push_back(&rule);
      return by_key;
    }();
    const auto at = rules_by_key.find(where);
    if (at == rules_by_key.end()) return;
    for (const auto& [key, rules] : at->second) {
      if (Below(5) > 1) continue;
      const Rule& rule = *OneOf(rules);
      const uint64_t kind = Below(3);
      const std::vector<std::string>& pool = kind == 0 || (kind == 2 && rule.grammar.absurd.empty())
                                                 ? rule.grammar.good
                                             : kind == 1 ? AbsurdValues()
                                                         : rule.grammar.absurd;
      (*values)[key] = OneOf(pool);
    }
  }
  v1beta1::Node MakeNode(uint64_t i) {
    v1beta1::Node node = NodeBuilder(absl::StrCat("n", i));
    Fill(Where::kNodeLabel, node.mutable_labels());
    Fill(Where::kNodeAnnotation, node.mutable_annotations());
    v1beta1::ResourceList& allocatable = *node.mutable_allocatable();
    allocatable.set_cpu_millis(OneOf<int64_t>({0, 1, 1999, 2000, 64000, kHuge}));
    allocatable.set_memory_bytes(OneOf<int64_t>({0, int64_t{64} << 30, kHuge}));
    const int64_t gpus = OneOf<int64_t>({-1, 0, 1, 4, 8, 16, 129, kHuge});
    if (gpus >= 0) (*allocatable.mutable_scalar())[kGpu] = gpus;
    return node;
  }
  v1beta1::Pod MakePod(const std::string& name) {
    v1beta1::Pod pod = PodBuilder(name);
    Fill(Where::kPodLabel, pod.mutable_labels());
    Fill(Where::kPodAnnotation, pod.mutable_annotations());
    if (Below(3) == 0) (*pod.mutable_labels())["job-name"] = OneOf<std::string>({"j", "", "🚀"});
    v1beta1::Container& container = *pod.mutable_containers(0);
    container.set_image(OneOf<std::string>({"app", "vllm/vllm-openai:v1", "", "@", "🚀/train:1"}));
    container.mutable_requests()->set_cpu_millis(OneOf<int64_t>({0, 100, 4000, kHuge}));
    auto& extended = *container.mutable_requests()->mutable_scalar();
    const int64_t gpus = OneOf<int64_t>({0, 0, 1, 2, 4, 8, 129, kHuge});
    if (gpus > 0) extended[kGpu] = gpus;
    if (Below(8) == 0) extended["nvidia.com/gpumem"] = OneOf<int64_t>({0, 1, 8192, kHuge});
    if (Below(8) == 0) extended["nvidia.com/gpucores"] = OneOf<int64_t>({0, 30, 101, kHuge});
    if (Below(4) == 0) {
      container.add_command(OneOf<std::string>({"torchrun", "vllm", "", "🚀"}));
      container.add_args(
          OneOf<std::string>({"--tensor-parallel-size", "--nproc-per-node=-1", "="}));
      container.add_args(OneOf(AbsurdValues()));
    }
    return pod;
  }

  static constexpr char kGpu[] = "nvidia.com/gpu";
  // The largest value that the shim accepts, divided so that a few of them can be summed.
  static constexpr int64_t kHuge = int64_t{1} << 60;
  std::mt19937_64 random_;
};

int64_t GpusOf(const v1beta1::Pod& pod) {
  const auto& extended = pod.containers(0).requests().scalar();
  const auto it = extended.find("nvidia.com/gpu");
  return it == extended.end() ? 0 : it->second;
}

// Removes the values that the plugin cannot read from an object, and records them: true if it must
// warn.
void Clean(const std::string& plugin, const std::string& object, bool is_node, int64_t gpus,
           google::protobuf::Map<std::string, std::string>* labels,
           google::protobuf::Map<std::string, std::string>* annotations,
           std::map<std::string, bool>* malformed) {
  for (const Rule& rule : Rules()) {
    if (plugin != rule.plugin) continue;
    const bool of_node = rule.where == Where::kNodeLabel || rule.where == Where::kNodeAnnotation;
    if (of_node != is_node) continue;
    const bool is_label = rule.where == Where::kNodeLabel || rule.where == Where::kPodLabel;
    auto* values = is_label ? labels : annotations;
    const auto found = values->find(rule.key);
    if (found == values->end() || rule.grammar.can_be_read(found->second, {gpus})) continue;
    (*malformed)[absl::StrCat(plugin, ": ", object, ": ", rule.key)] |=
        rule.complains == Complains::kAlways;
    values->erase(found);
  }
}

Cluster Cleaned(const std::string& plugin, Cluster cluster,
                std::map<std::string, bool>* malformed) {
  for (v1beta1::Node& node : cluster.nodes) {
    Clean(plugin, absl::StrCat("node ", node.name()), true, 0, node.mutable_labels(),
          node.mutable_annotations(), malformed);
  }
  for (auto* pods : {&cluster.running, &cluster.pending}) {
    for (v1beta1::Pod& pod : *pods) {
      Clean(plugin, absl::StrCat("pod default/", pod.name()), false, GpusOf(pod),
            pod.mutable_labels(), pod.mutable_annotations(), malformed);
    }
  }
  return cluster;
}

// Calls all points of a plugin, and records the answers.
class Asked {
 public:
  Asked(const Requested& plugin, const std::string& args, const Cluster& cluster)
      : plugin_(plugin), cluster_(cluster) {
    auto made = PluginHarness::Create(*Builtins().Find(plugin.name), args);
    if (!made.ok()) {
      ADD_FAILURE() << made.status();
      return;
    }
    harness_ = *std::move(made);
    harness_->SetNow(absl::FromUnixSeconds(1767600000));  // 2026-01-05T08:00:00Z
    for (const v1beta1::Node& node : cluster.nodes) harness_->AddNode(node);
    for (const v1beta1::Pod& pod : cluster.running) harness_->AddPod(pod);
    for (const v1beta1::Pod& pod : cluster.pending) harness_->AddPod(pod);
    AskAll();
    // Changes unrelated to the values, and the same calls again.
    const std::string before = answers_;
    answers_.clear();
    for (v1beta1::Node node : cluster.nodes) {
      (*node.mutable_labels())["unrelated"] = "changed";
      harness_->AddNode(node);
    }
    for (v1beta1::Pod pod : cluster.running) {
      (*pod.mutable_labels())["unrelated"] = "changed";
      harness_->AddPod(pod);
    }
    harness_->Tick();
    AskAll();
    EXPECT_EQ(answers_, before) << "after unrelated changes";
    answers_ = before;
  }
  const std::string& answers() const { return answers_; }

 private:
  template <typename Point>
  bool Is() const {
    return dynamic_cast<Point*>(&harness_->plugin()) != nullptr;
  }
  void Note(const std::string& what, const sdk::Verdict& verdict) {
    absl::StrAppend(&answers_, what, ": ", ShortName(verdict.code()), " ",
                    absl::StrJoin(verdict.reasons(), "; "), "\n");
    EXPECT_NE(verdict.code(), v1beta1::CODE_ERROR) << answers_;
    for (const std::string& reason : verdict.reasons()) {
      bool known = false;
      for (const std::regex& pattern : Patterns()) known |= std::regex_match(reason, pattern);
      EXPECT_TRUE(known) << plugin_.name << " says " << reason;
    }
  }
  const std::vector<std::regex>& Patterns() const {
    static auto& patterns = *new std::map<std::string, std::vector<std::regex>>();
    std::vector<std::regex>& known = patterns[plugin_.name];
    if (known.empty()) known.assign(plugin_.reasons.begin(), plugin_.reasons.end());
    return known;
  }
  void NoteScores(const std::string& what, const std::map<std::string, int64_t>& scores) {
    for (const auto& [node, score] : scores)
      absl::StrAppend(&answers_, what, " of ", node, ": ", score, "\n");
  }

  void AskAll() {
    for (const v1beta1::Pod& pod : cluster_.pending) Ask(pod);
  }
  void Ask(const v1beta1::Pod& pod) {
    absl::StrAppend(&answers_, pod.name(), "\n");
    if (Is<sdk::PreEnqueuePlugin>()) Note("preEnqueue", harness_->PreEnqueue(pod));
    const sdk::Verdict pre_filter = harness_->PreFilter(pod).verdict;
    Note("preFilter", pre_filter);
    if (pre_filter.rejected()) return;
    if (Is<sdk::FilterPlugin>()) {
      for (const auto& [node, verdict] : harness_->Filter(pod)) Note(node, verdict);
    }
    if (Is<sdk::PostFilterPlugin>()) AskPostFilter(pod);
    if (Is<sdk::ScorePlugin>()) {
      const auto raw = harness_->RawScore(pod);
      ASSERT_TRUE(raw.ok()) << plugin_.name << ": " << raw.status();
      NoteScores("raw", *raw);
      for (const auto& [node, score] : *raw) {
        // Far below the values at which sums and products of scores overflow.
        EXPECT_LT(std::abs(score), int64_t{1} << 50) << plugin_.name << " on " << node;
      }
      // An error unless all scores are in 0..100.
      const auto scores = harness_->Score(pod);
      ASSERT_TRUE(scores.ok()) << plugin_.name << ": " << scores.status();
      NoteScores("score", *scores);
    }
    if (Is<sdk::QueueingHintPlugin>()) AskHints(pod);
    if (Is<sdk::PermitPlugin>()) {
      const std::string& node = cluster_.nodes[0].name();
      Note("reserve", harness_->Reserve(pod, node));
      sdk::PermitAnswer answer;
      Note("permit", harness_->Permit(pod, node, &answer));
      harness_->Unreserve(pod, node);
    }
  }
  // For a pod with the highest priority that every node has rejected.
  void AskPostFilter(v1beta1::Pod pod) {
    pod.set_name(absl::StrCat(pod.name(), "-important"));
    pod.set_uid(absl::StrCat(pod.uid(), "-important"));
    pod.set_priority(10);
    const v1beta1::PostFilterResponse response = harness_->PostFilterOfRejected(pod);
    const v1beta1::PluginStatus& rejection = response.rejection().status();
    if (response.has_rejection()) {
      Note("postFilter", {rejection.code(), std::vector<std::string>(rejection.reasons().begin(),
                                                                     rejection.reasons().end())});
    }
    for (const v1beta1::PreemptionCandidate& candidate : response.candidates().candidates()) {
      absl::StrAppend(&answers_, "candidate ", candidate.slot(), ": ",
                      absl::StrJoin(candidate.victim_uids(), " "), " and ",
                      absl::StrJoin(candidate.companion_uids(), " "), "\n");
    }
  }
  void AskHints(const v1beta1::Pod& pod) {
    for (const v1beta1::Node& node : cluster_.nodes) {
      for (const v1beta1::Node* old : {static_cast<const v1beta1::Node*>(nullptr), &node}) {
        sdk::ObjectChange change;
        change.resource = "Node";
        change.action = old == nullptr ? v1beta1::ClusterEvent::ACTION_ADD
                                       : v1beta1::ClusterEvent::ACTION_UPDATE_NODE_LABEL;
        change.old_node = old == nullptr ? nullptr : &cluster_.nodes.back();
        change.new_node = &node;
        absl::StrAppend(&answers_, "hint: ", harness_->Hint(pod, change), "\n");
      }
    }
    for (const v1beta1::Pod& other : cluster_.running) {
      sdk::ObjectChange change;
      change.resource = "AssignedPod";
      change.action = v1beta1::ClusterEvent::ACTION_DELETE;
      change.old_pod = &other;
      absl::StrAppend(&answers_, "hint: ", harness_->Hint(pod, change), "\n");
    }
  }

  const Requested& plugin_;
  const Cluster& cluster_;
  std::unique_ptr<PluginHarness> harness_;
  std::string answers_;
};

// Args that enable as many rules of a plugin as possible.
std::string ArgsOf(const std::string& plugin) {
  if (plugin == "CostOptimized")
    return R"({"windows": [{"from": "22:00", "to": "06:00", "factor": 0.5}]})";
  // No server listens there.
  if (plugin == "GPULoad") return R"({"prometheus": {"address": "http://127.0.0.1:9"}})";
  if (plugin == "MetricScore") {
    return R"({"prometheus": {"address": "http://127.0.0.1:9"}, "metrics": [{"name": "m",
      "query": "m", "direction": "lower", "filter": {"above": 1}}]})";
  }
  if (plugin == "Objectives") return R"({"licences": {"solver": 3}})";
  return "";
}

std::string Text(const Cluster& cluster) {
  std::string text;
  for (const v1beta1::Node& node : cluster.nodes) text += node.DebugString() + "--\n";
  for (const v1beta1::Pod& pod : cluster.running) text += pod.DebugString() + "--\n";
  for (const v1beta1::Pod& pod : cluster.pending) text += pod.DebugString() + "--\n";
  return text;
}

int NumFailures() {
  return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

class AbsurdInputTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    FLAGS_stderrthreshold = google::GLOG_FATAL;
    if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("absurd_input_test");
    for (const int severity : {google::GLOG_INFO, google::GLOG_WARNING, google::GLOG_ERROR})
      google::SetLogDestination(severity, "");
  }
};

TEST_F(AbsurdInputTest, MalformedCountsAsAbsentAndIsWarnedOfOnce) {
  Warnings warnings;
  int64_t malformed_values = 0, complaints = 0;
  std::set<std::string> failed;  // Report one cluster per plugin.
  for (uint64_t seed = 1; seed <= NumSeeds(); ++seed) {
    const Cluster cluster = Generator(seed).Make();
    for (const Requested& plugin : RequestedPlugins()) {
      if (failed.contains(plugin.name)) continue;
      const int failures = NumFailures();
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", plugin.name));
      std::map<std::string, bool> malformed;
      const Cluster clean = Cleaned(plugin.name, cluster, &malformed);
      const std::string args = ArgsOf(plugin.name);
      const std::string expected = Asked(plugin, args, clean).answers();
      const std::map<std::string, int> of_clean = warnings.Take();
      const std::string answers = Asked(plugin, args, cluster).answers();
      const std::map<std::string, int> warned = warnings.Take();
      EXPECT_EQ(answers, expected) << "a malformed value changed something";
      EXPECT_TRUE(of_clean.empty()) << "warned of readable value: " << of_clean.begin()->first;
      for (const auto& [value, count] : warned) {
        EXPECT_EQ(count, 1) << value;
        EXPECT_TRUE(malformed.contains(value)) << "warned about a readable value: " << value;
      }
      for (const auto& [value, must_complain] : malformed)
        EXPECT_TRUE(!must_complain || warned.contains(value)) << "no warning about " << value;
      malformed_values += static_cast<int64_t>(malformed.size());
      complaints += static_cast<int64_t>(warned.size());
      if (NumFailures() > failures) {
        ADD_FAILURE() << Text(cluster);
        failed.insert(plugin.name);
      }
    }
  }
  if (!HasFailure()) {
    std::printf("%lld malformed values, %lld of them with a warning, each once\n",
                static_cast<long long>(malformed_values), static_cast<long long>(complaints));
    EXPECT_GT(complaints, malformed_values / 4) << "the values do not reach the plugins";
  }
}

// A gang with an unreadable size is neither a single pod nor a gang of another size.
TEST_F(AbsurdInputTest, AGangOfAbsurdSizeIsRejected) {
  for (const char* key : {"outboard/min-replicas", "min-replicas"}) {
    std::vector<std::string> sizes = AbsurdValues();
    sizes.insert(sizes.end(), {"0", "100001", "2.0", "1e3"});
    for (const std::string& size : sizes) {
      auto harness = *PluginHarness::Create(*Builtins().Find("AtomicReplicaCoordinator"));
      harness->AddNode(NodeBuilder("n"));
      const PodBuilder pod = PodBuilder("p").Label("job-name", "j").Annotation(key, size);
      sdk::PermitAnswer answer;
      const sdk::Verdict verdict = harness->Permit(pod, "n", &answer);
      EXPECT_TRUE(verdict.rejected()) << key << "=" << size;
    }
  }
  for (const std::string& size : AbsurdValues()) {
    const PodBuilder koordinator =
        PodBuilder("p")
            .Annotation("gang.scheduling.koordinator.sh/name", "g")
            .Annotation("gang.scheduling.koordinator.sh/min-available", size);
    const PodBuilder legacy = PodBuilder("p")
                                  .Label("pod-group.scheduling.sigs.k8s.io/name", "g")
                                  .Label("pod-group.scheduling.sigs.k8s.io/min-available", size);
    for (const v1beta1::Pod& pod : {v1beta1::Pod(koordinator), v1beta1::Pod(legacy)}) {
      auto harness = *PluginHarness::Create(*Builtins().Find("AtomicReplicaCoordinator"));
      harness->AddNode(NodeBuilder("n"));
      sdk::PermitAnswer answer;
      EXPECT_TRUE(harness->PreFilter(pod).verdict.rejected()) << size;
      EXPECT_TRUE(harness->Permit(pod, "n", &answer).rejected()) << size;
    }
  }
}

// Checks that no plugin and no annotation is missing.
TEST_F(AbsurdInputTest, AllRequestedPluginsAndTheirAnnotationsAreHere) {
  const std::set<std::string> kube_schedulers = {"DefaultBinder",
                                                 "DefaultPreemption",
                                                 "DynamicResources",
                                                 "ImageLocality",
                                                 "InterPodAffinity",
                                                 "NodeAffinity",
                                                 "NodeDeclaredFeatures",
                                                 "NodeName",
                                                 "NodePorts",
                                                 "NodeResourcesBalancedAllocation",
                                                 "NodeResourcesFit",
                                                 "NodeUnschedulable",
                                                 "NodeVolumeLimits",
                                                 "NotServed",
                                                 "PodTopologySpread",
                                                 "PrioritySort",
                                                 "SchedulingGates",
                                                 "TaintToleration",
                                                 "VolumeBinding",
                                                 "VolumeRestrictions",
                                                 "VolumeZone"};
  std::set<std::string> requested;
  for (const Requested& plugin : RequestedPlugins()) requested.insert(plugin.name);
  const std::vector<std::string> of_groups = sdk::GroupAnnotationFields();
  const std::regex annotation(R"((Pod|Node)\.metadata\.annotations\['(.*)'\])");
  for (const auto& [name, descriptor] : Builtins().descriptors()) {
    EXPECT_NE(requested.contains(name), kube_schedulers.contains(name)) << name;
    if (!requested.contains(name)) continue;
    for (const std::string& field : descriptor.needed_fields) {
      // The SDK reads a pod's group, for all plugins.
      if (std::count(of_groups.begin(), of_groups.end(), field) > 0) continue;
      std::smatch parts;
      if (!std::regex_match(field, parts, annotation)) continue;
      const Where where = parts[1] == "Pod" ? Where::kPodAnnotation : Where::kNodeAnnotation;
      bool has_rule = false;
      for (const Rule& rule : Rules())
        has_rule |= name == rule.plugin && where == rule.where && parts[2] == rule.key;
      EXPECT_TRUE(has_rule) << name << " reads " << field;
    }
  }
}

}  // namespace
}  // namespace outboard::absurd
