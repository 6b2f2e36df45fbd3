// Random clusters: compares CostAwarePreemptor's answers with the optimum, with DefaultPreemption's
// choice, and with the rules. The assessment uses only the generator's knowledge of its pods, in
// code that shares nothing with the plugin.
//
// The generator:
// - Nodes have 8 GPUs and 64 CPUs. They are filled until the preemptor fits nowhere, and mostly
//   until no GPU is left.
// - 45 % of the pods train (1, 2, 4 or 8 GPUs; started 10 minutes to 7 days ago), 35 % serve
//   inference (1 or 2 GPUs; 1 hour to 30 days ago), 20 % do other work, half of it without GPUs
//   (1 hour to 2 days ago).
// - Three of four training pods write checkpoints, every 5 to 60 minutes. One in ten of these
//   stopped up to 10 hours ago, and one in thirty names a future time. Two of five training pods
//   name an estimated end, up to an hour ago or up to two days ahead.
// - Priorities: training 0 (30 %), 100 (40 %), 500 (20 %), 1000 (10 %); inference 100 (30 %),
//   500 (50 %), 900 (20 %), as in clusters that serve users first; other work 0 or 100.
// - A cluster with gangs has one to three; every other pod belongs to one, on any nodes. Members
//   are equal, except in one gang of three, whose members request 1, 2 or 4 GPUs each; some have
//   other restart times or old checkpoints. A gang needs all members, or up to three fewer. It is
//   declared in one of five ways, two of which require that all leave together, whatever the size.
// - A pod declares its type by label (half), owner or image. The preemptor requests 1, 2, 4 or 8
//   GPUs and has priority 500, 1000 or 2000. A quarter of the clusters have budgets for two apps of
//   inference pods.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/preemption_harness.h"
#include "plugins/builtin_plugins.h"
#include "plugins/cost_aware_preemptor/cost_aware_preemptor.h"

namespace outboard::cost_aware_preemptor::random_clusters_test {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using sdk::testing::PreemptionHarness;

constexpr int64_t kNow = 1767614400;  // 2026-01-05T12:00:00Z
constexpr int64_t kMinute = 60, kHour = 3600, kDay = 24 * kHour;
constexpr int64_t kNodeGpus = 8, kNodeCpus = 64;

enum class Type { kTraining, kInference, kOther };

// A pod as the generator knows it; times in seconds before now, negative: in the future.
struct Truth {
  std::string name;
  int node = 0;
  Type type = Type::kOther;
  int32_t priority = 0;
  int64_t gpus = 0, cpus = 0;
  int64_t age = 0;
  bool checkpointing = false;
  std::optional<int64_t> checkpoint_age;
  std::optional<int64_t> end_age;
  std::optional<int64_t> restart_seconds;
  int app = -1;
  int gang = -1;
};

struct Gang {
  enum class Style { kJob, kKoordinator, kSchedulerPlugins, kDisruptedAsWhole, kWithoutObject };
  Style style = Style::kJob;
  int min = 0;
  Truth member;
  bool mixed = false;
};

struct Cluster {
  int nodes = 0;
  std::vector<Truth> pods;
  std::vector<Gang> gangs;
  Truth preemptor;
  std::map<int, int> allowed;  // By app.
};

class Generator {
 public:
  Generator(uint64_t seed, int max_nodes, bool with_gangs = false)
      : random_(seed), max_nodes_(max_nodes), with_gangs_(with_gangs) {}

  Cluster Make() {
    Cluster cluster;
    cluster.nodes = 1 + static_cast<int>(Below(max_nodes_));
    if (Below(4) == 0) {
      for (int app = 0; app < 2; ++app) cluster.allowed[app] = static_cast<int>(Below(3));
    }
    cluster.preemptor.name = "preemptor";
    cluster.preemptor.priority = OneOf<int32_t>({500, 1000, 2000});
    cluster.preemptor.gpus = OneOf<int64_t>({1, 2, 4, 8});
    cluster.preemptor.cpus = cluster.preemptor.gpus * 2;
    for (int64_t g = with_gangs_ ? Between(1, 3) : 0; g > 0; --g)
      cluster.gangs.push_back(MakeGang());
    for (int node = 0; node < cluster.nodes; ++node) {
      int64_t gpus = kNodeGpus, cpus = kNodeCpus;
      while (gpus >= cluster.preemptor.gpus || (gpus > 0 && Below(10) != 0)) {
        Truth pod = with_gangs_ && Below(2) == 0 ? MakeMember(cluster.gangs) : MakePod();
        if (pod.gpus > gpus || pod.cpus > cpus) continue;
        gpus -= pod.gpus;
        cpus -= pod.cpus;
        pod.node = node;
        pod.name = absl::StrCat("pod-", cluster.pods.size());
        cluster.pods.push_back(pod);
      }
    }
    for (size_t g = 0; g < cluster.gangs.size(); ++g) {
      const auto members = std::count_if(cluster.pods.begin(), cluster.pods.end(), [&](auto& pod) {
        return pod.gang == static_cast<int>(g);
      });
      cluster.gangs[g].min = static_cast<int>(std::max<int64_t>(1, members - Below(4)));
    }
    return cluster;
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }
  Truth MakePod() {
    Truth pod;
    const int64_t dice = Below(100);
    if (dice < 45) {
      pod.type = Type::kTraining;
      pod.priority = OneOf<int32_t>({0, 0, 0, 100, 100, 100, 100, 500, 500, 1000});
      pod.gpus = OneOf<int64_t>({1, 2, 4, 8});
      pod.age = Between(10 * kMinute, 7 * kDay);
      pod.checkpointing = Below(4) != 0;
      if (pod.checkpointing) {
        pod.checkpoint_age = Below(Between(5 * kMinute, 60 * kMinute));
        if (Below(10) == 0) *pod.checkpoint_age += Below(10 * kHour);
        if (Below(30) == 0) pod.checkpoint_age = -Between(kMinute, kDay);
      }
      if (Below(5) < 2) pod.end_age = Between(-2 * kDay, kHour);
    } else if (dice < 80) {
      pod.type = Type::kInference;
      pod.priority = OneOf<int32_t>({100, 100, 100, 500, 500, 500, 500, 500, 900, 900});
      pod.gpus = Between(1, 2);
      pod.age = Between(kHour, 30 * kDay);
      pod.app = static_cast<int>(Below(3)) - 1;
    } else {
      pod.priority = OneOf<int32_t>({0, 100});
      pod.gpus = Below(2) == 0 ? 0 : Between(1, 2);
      pod.age = Between(kHour, 2 * kDay);
    }
    pod.cpus = pod.gpus > 0 ? pod.gpus * 2 : Between(1, 4);
    if (Below(4) == 0) pod.restart_seconds = Between(0, 20 * kMinute);
    return pod;
  }

  Gang MakeGang() {
    Gang gang;
    gang.style =
        OneOf<Gang::Style>({Gang::Style::kJob, Gang::Style::kJob, Gang::Style::kKoordinator,
                            Gang::Style::kSchedulerPlugins, Gang::Style::kSchedulerPlugins,
                            Gang::Style::kDisruptedAsWhole, Gang::Style::kWithoutObject});
    gang.member = MakePod();
    // A node with more pods than the limit has no optimum to compare with.
    gang.member.gpus = std::clamp<int64_t>(gang.member.gpus, 1, 4);
    gang.member.cpus = gang.member.gpus * 2;
    gang.mixed = Below(3) == 0;
    return gang;
  }
  Truth MakeMember(const std::vector<Gang>& gangs) {
    const int64_t which = Below(static_cast<int64_t>(gangs.size()));
    const Gang& gang = gangs[static_cast<size_t>(which)];
    Truth pod = gang.member;
    pod.gang = static_cast<int>(which);
    if (gang.mixed) {
      pod.gpus = OneOf<int64_t>({1, 2, 4});
      pod.cpus = pod.gpus * 2;
    }
    if (Below(4) == 0) pod.restart_seconds = Between(0, 20 * kMinute);
    if (pod.checkpoint_age && Below(8) == 0) *pod.checkpoint_age += kHour;
    return pod;
  }

  std::mt19937_64 random_;
  const int64_t max_nodes_;
  const bool with_gangs_;
};

std::string Rfc3339(int64_t age) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", absl::FromUnixSeconds(kNow - age),
                          absl::UTCTimeZone());
}

void WriteGang(const Gang& gang, int number, PodBuilder* pod) {
  const std::string name = absl::StrCat("gang-", number);
  switch (gang.style) {
    case Gang::Style::kJob:
      pod->Label("job-name", name).Annotation("outboard/min-replicas", absl::StrCat(gang.min));
      break;
    case Gang::Style::kKoordinator:
      pod->Annotation("gang.scheduling.koordinator.sh/name", name)
          .Annotation("gang.scheduling.koordinator.sh/min-available", absl::StrCat(gang.min));
      break;
    case Gang::Style::kSchedulerPlugins:
      pod->Label("scheduling.x-k8s.io/pod-group", name);
      break;
    case Gang::Style::kDisruptedAsWhole:
      pod->proto().set_pod_group_name(name);
      break;
    case Gang::Style::kWithoutObject:
      pod->Annotation("scheduling.k8s.io/group-name", name);
      break;
  }
}

// nullopt: the dialect has no object, or it is missing.
std::optional<v1beta1::ClusterObject> GangObject(const Gang& gang, int number) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& custom = *object.mutable_generic_object();
  custom.set_namespace_("default");
  custom.set_name(absl::StrCat("gang-", number));
  custom.set_uid(custom.name());
  custom.set_resource_version("1");
  if (gang.style == Gang::Style::kSchedulerPlugins) {
    custom.set_resource("podgroups.v1alpha1.scheduling.x-k8s.io");
    custom.set_json(absl::StrCat(R"({"spec": {"minMember": )", gang.min, "}}"));
    return object;
  }
  if (gang.style == Gang::Style::kDisruptedAsWhole) {
    custom.set_resource("podgroups.v1alpha2.scheduling.k8s.io");
    custom.set_json(absl::StrCat(R"({"spec": {"disruptionMode": "PodGroup", "schedulingPolicy": )",
                                 R"({"gang": {"minCount": )", gang.min, "}}}}"));
    return object;
  }
  return std::nullopt;
}

// The pod as written to the cluster.
v1beta1::Pod Written(const Cluster& cluster, const Truth& truth, uint64_t style) {
  PodBuilder pod(truth.name);
  pod.Priority(truth.priority);
  pod.Requests({{"cpu", absl::StrCat(truth.cpus)}});
  if (truth.gpus > 0)
    pod.Requests({{"cpu", absl::StrCat(truth.cpus)}, {"nvidia.com/gpu", absl::StrCat(truth.gpus)}});
  v1beta1::Container& container = *pod.proto().mutable_containers(0);
  container.set_image("example.com/app:1");
  const bool trains = truth.type == Type::kTraining;
  if (truth.type != Type::kOther) {
    if (style % 4 < 2) {
      pod.Label("workload-type", trains ? "training" : "inference");
    } else if (style % 4 == 2) {
      pod.proto().mutable_controller()->set_kind(trains ? "PyTorchJob" : "InferenceService");
    } else {
      container.set_image(trains ? "example.com/bert-train:1" : "vllm/vllm-openai:v0.8");
    }
  }
  if (truth.gang >= 0) {
    // Members have equal types of work, too.
    if (style % 4 == 2 && truth.type != Type::kOther)
      pod.Label("workload-type", trains ? "training" : "inference");
    pod.proto().clear_controller();
    WriteGang(cluster.gangs[static_cast<size_t>(truth.gang)], truth.gang, &pod);
  }
  if (truth.app >= 0) pod.Label("app", absl::StrCat("app-", truth.app));
  // Starts and checkpoints are declared in one of two ways each.
  if (style % 3 == 0) {
    pod.Annotation("outboard/start-time", Rfc3339(truth.age));
    pod.proto().set_start_unix_seconds(kNow - 1);
  } else {
    pod.proto().set_start_unix_seconds(kNow - truth.age);
  }
  if (truth.checkpointing) pod.Annotation("outboard/checkpointing", "true");
  if (truth.checkpoint_age)
    pod.Annotation(
        style % 5 < 3 ? "outboard/last-checkpoint-time" : "volcano.sh/last-checkpoint-time",
        Rfc3339(*truth.checkpoint_age));
  if (truth.end_age) pod.Annotation("outboard/estimated-end", Rfc3339(*truth.end_age));
  if (truth.restart_seconds)
    pod.Annotation("outboard/restart-seconds", absl::StrCat(*truth.restart_seconds));
  return pod;
}

// Why a pod must not be evicted; empty: it may be.
std::string Forbidden(const Truth& victim, const Truth& preemptor) {
  if (victim.priority >= preemptor.priority) return "not less important";
  if (victim.type != Type::kTraining) return "";
  if (victim.priority >= 1000) return "training of priority 1000";
  if (!victim.checkpointing) return "no checkpointing";
  if (!victim.checkpoint_age || *victim.checkpoint_age < 0) return "no checkpoint";
  if (*victim.checkpoint_age > 1800) return "old checkpoint";
  if (victim.end_age && *victim.end_age >= -7200 && *victim.end_age <= 7200) return "near its end";
  return "";
}

// Thousandths of GPU-seconds that are done again; `serving`: includes what inference has run.
int64_t WorkLost(const Truth& pod, bool serving = false) {
  if (pod.type == Type::kInference && !serving) return 0;
  int64_t since = pod.age;
  if (pod.checkpoint_age && *pod.checkpoint_age >= 0) since = std::min(since, *pod.checkpoint_age);
  return since * (pod.gpus > 0 ? pod.gpus * 1000 : pod.cpus * 10);
}
int64_t Cost(const Truth& pod) {
  return WorkLost(pod) +
         pod.restart_seconds.value_or(300) * (pod.gpus > 0 ? pod.gpus * 1000 : pod.cpus * 10);
}

bool Fits(const Cluster& cluster, int node, const std::vector<const Truth*>& gone) {
  int64_t gpus = kNodeGpus, cpus = kNodeCpus;
  for (const Truth& pod : cluster.pods) {
    if (pod.node != node || std::find(gone.begin(), gone.end(), &pod) != gone.end()) continue;
    gpus -= pod.gpus;
    cpus -= pod.cpus;
  }
  return cluster.preemptor.gpus <= gpus && cluster.preemptor.cpus <= cpus;
}

// Violated budgets, then whether a victim is not inference, then the cost.
using Outcome = std::tuple<int, bool, int64_t>;
Outcome OutcomeOf(const Cluster& cluster, const std::vector<const Truth*>& victims) {
  std::map<int, int> left = cluster.allowed;
  Outcome outcome = {0, false, 0};
  for (const Truth* victim : victims) {
    if (left.contains(victim->app) && --left[victim->app] < 0) ++std::get<0>(outcome);
    std::get<1>(outcome) |= victim->type != Type::kInference;
    std::get<2>(outcome) += Cost(*victim);
  }
  return outcome;
}

std::vector<const Truth*> MembersOf(const Cluster& cluster, int gang) {
  std::vector<const Truth*> members;
  for (const Truth& pod : cluster.pods) {
    if (pod.gang == gang) members.push_back(&pod);
  }
  return members;
}

// How many of the gang may stay if any member leaves; 0: none.
size_t MayStay(const Gang& gang, size_t members) {
  switch (gang.style) {
    case Gang::Style::kDisruptedAsWhole:
    case Gang::Style::kWithoutObject:
      return members;
    default:
      return static_cast<size_t>(gang.min);
  }
}

size_t Leaving(const Cluster& cluster, int gang, const std::vector<const Truth*>& victims) {
  return static_cast<size_t>(std::count_if(victims.begin(), victims.end(),
                                           [&](const Truth* pod) { return pod->gang == gang; }));
}

// The gang that would be left in part; -1: none.
int BrokenGang(const Cluster& cluster, const std::vector<const Truth*>& victims) {
  for (size_t g = 0; g < cluster.gangs.size(); ++g) {
    const size_t leaving = Leaving(cluster, static_cast<int>(g), victims);
    const size_t all = MembersOf(cluster, static_cast<int>(g)).size();
    if (leaving > 0 && leaving < all && all - leaving < MayStay(cluster.gangs[g], all))
      return static_cast<int>(g);
  }
  return -1;
}

// Adds the other members of gangs that would be left in part; nullopt: they may not leave.
std::optional<std::vector<const Truth*>> WithOthers(const Cluster& cluster,
                                                    std::vector<const Truth*> victims) {
  for (int gang = BrokenGang(cluster, victims); gang >= 0; gang = BrokenGang(cluster, victims)) {
    for (const Truth* member : MembersOf(cluster, gang)) {
      if (std::find(victims.begin(), victims.end(), member) != victims.end()) continue;
      if (!Forbidden(*member, cluster.preemptor).empty()) return std::nullopt;
      victims.push_back(member);
    }
  }
  return victims;
}

// Over all nodes and all sets of allowed victims.
std::optional<Outcome> Optimum(const Cluster& cluster) {
  std::optional<Outcome> best;
  for (int node = 0; node < cluster.nodes; ++node) {
    std::vector<const Truth*> allowed;
    for (const Truth& pod : cluster.pods) {
      if (pod.node == node && Forbidden(pod, cluster.preemptor).empty()) allowed.push_back(&pod);
    }
    for (uint32_t mask = 1; mask < (1u << allowed.size()); ++mask) {
      std::vector<const Truth*> victims;
      for (size_t i = 0; i < allowed.size(); ++i) {
        if ((mask >> i & 1) != 0) victims.push_back(allowed[i]);
      }
      // Further members only add to the price.
      if (best && !(OutcomeOf(cluster, victims) < *best)) continue;
      if (!Fits(cluster, node, victims)) continue;
      const auto all = WithOthers(cluster, victims);
      if (!all) continue;
      const Outcome outcome = OutcomeOf(cluster, *all);
      if (!best || outcome < *best) best = outcome;
    }
  }
  return best;
}

struct Choice {
  int node = 0;
  int budget_violations = 0;
  std::vector<const Truth*> victims;  // Including companions.
  size_t companions = 0;
};

// A plugin's answer, best first. Empty: no candidates.
std::vector<Choice> Ask(const sdk::PluginDescriptor& plugin, const Cluster& cluster) {
  auto made = PreemptionHarness::Create(plugin, {sdk::testing::RoomFilter()});
  EXPECT_TRUE(made.ok()) << made.status();
  PreemptionHarness& harness = **made;
  harness.SetNow(absl::FromUnixSeconds(kNow));
  for (int node = 0; node < cluster.nodes; ++node) {
    harness.AddNode(NodeBuilder(absl::StrCat("node-", node))
                        .Allocatable({{"cpu", absl::StrCat(kNodeCpus)},
                                      {"nvidia.com/gpu", absl::StrCat(kNodeGpus)},
                                      {"pods", "110"}}));
  }
  std::map<std::string, const Truth*> by_uid;
  for (const Truth& truth : cluster.pods) {
    v1beta1::Pod pod =
        Written(cluster, truth, by_uid.size() * 7 + static_cast<uint64_t>(truth.age));
    pod.set_node_name(absl::StrCat("node-", truth.node));
    by_uid[pod.uid()] = &truth;
    harness.AddPod(pod);
  }
  for (size_t g = 0; g < cluster.gangs.size(); ++g) {
    if (const auto object = GangObject(cluster.gangs[g], static_cast<int>(g)))
      harness.AddObject(*object);
  }
  for (const auto& [app, allowed] : cluster.allowed) {
    v1beta1::PodDisruptionBudget budget;
    budget.set_namespace_("default");
    budget.set_name(absl::StrCat("app-", app));
    (*budget.mutable_selector()->mutable_match_labels())["app"] = budget.name();
    budget.set_disruptions_allowed(allowed);
    harness.AddBudget(budget);
  }
  std::vector<Choice> choices;
  const v1beta1::PostFilterResponse response =
      harness.Attempt(Written(cluster, cluster.preemptor, 1));
  for (const v1beta1::PreemptionCandidate& candidate : response.candidates().candidates()) {
    Choice choice;
    choice.node = static_cast<int>(candidate.slot());
    choice.budget_violations = static_cast<int>(candidate.budget_violations());
    for (const std::string& uid : candidate.victim_uids()) {
      choice.victims.push_back(by_uid.at(uid));
      EXPECT_EQ(choice.victims.back()->node, choice.node);
    }
    for (const std::string& uid : candidate.companion_uids()) {
      choice.victims.push_back(by_uid.at(uid));
      EXPECT_NE(choice.victims.back()->node, choice.node);
      ++choice.companions;
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

void CompareWithOptimum(bool with_gangs) {
  int compared = 0, with_training = 0, with_budgets = 0, with_several = 0, nothing = 0, whole = 0,
      surplus = 0, elsewhere = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    const Cluster cluster = Generator(seed, 3, with_gangs).Make();
    const std::optional<Outcome> optimum = Optimum(cluster);
    const std::vector<Choice> choices = Ask(Descriptor(), cluster);
    ASSERT_EQ(!choices.empty(), optimum.has_value()) << "seed " << seed;
    if (!optimum) {
      ++nothing;
      continue;
    }
    const std::vector<const Truth*>& victims = choices[0].victims;
    ASSERT_EQ(OutcomeOf(cluster, victims), *optimum) << "seed " << seed;
    ++compared;
    with_budgets += !cluster.allowed.empty();
    with_several += victims.size() > 1;
    with_training += std::any_of(victims.begin(), victims.end(), [](const Truth* victim) {
      return victim->type == Type::kTraining;
    });
    elsewhere += choices[0].companions > 0;
    for (size_t g = 0; g < cluster.gangs.size(); ++g) {
      const size_t leaving = Leaving(cluster, static_cast<int>(g), victims);
      const size_t all = MembersOf(cluster, static_cast<int>(g)).size();
      whole += leaving > 0 && leaving == all;
      surplus += leaving > 0 && leaving < all;
    }
  }
  std::printf(
      "%d clusters: the optimum in all (%d with budgets, %d where training leaves, %d "
      "with several victims); nothing can be done in %d\n",
      compared, with_budgets, with_training, with_several, nothing);
  EXPECT_GT(compared, 1500);
  EXPECT_GT(with_training, 100);
  EXPECT_GT(with_several, 100);
  if (!with_gangs) return;
  std::printf(
      "gangs that leave whole: %d, with members elsewhere: %d; of which surplus leaves: %d\n",
      whole, elsewhere, surplus);
  EXPECT_GT(whole, 100);
  EXPECT_GT(elsewhere, 100);
  EXPECT_GT(surplus, 100);
}

TEST(RandomClustersTest, TheChoiceIsAsCheapAsTheBestOfAllSets) { CompareWithOptimum(false); }
TEST(RandomClustersTest, WithGangsTheChoiceIsAsCheapAsTheBestOfAllSets) {
  CompareWithOptimum(true);
}

// Thousandths of GPU-seconds that are done again if these leave, including gangs that are left in
// part.
int64_t AllWorkLost(const Cluster& cluster, std::vector<const Truth*> victims, bool serving) {
  for (size_t g = 0; g < cluster.gangs.size(); ++g) {
    // Whether or not all must leave together: the gang goes on while enough members stay.
    const std::vector<const Truth*> members = MembersOf(cluster, static_cast<int>(g));
    const size_t leaving = Leaving(cluster, static_cast<int>(g), victims);
    if (leaving == 0 || members.size() - leaving >= static_cast<size_t>(cluster.gangs[g].min))
      continue;
    for (const Truth* member : members) {
      if (std::find(victims.begin(), victims.end(), member) == victims.end())
        victims.push_back(member);
    }
  }
  int64_t lost = 0;
  for (const Truth* victim : victims) lost += WorkLost(*victim, serving);
  return lost;
}

void CompareWithDefaultPreemption(bool with_gangs) {
  sdk::PluginRegistry registry;
  ASSERT_TRUE(RegisterBuiltinPlugins(&registry).ok());
  const sdk::PluginDescriptor& by_default = *registry.Find("DefaultPreemption");
  constexpr int kClusters = 10000;
  int64_t candidates = 0, victims = 0, both = 0, default_only = 0, ours_only = 0, forbidden = 0,
          companions = 0, broken = 0;
  // Sums of lost work, ours and DefaultPreemption's; without and with what inference has run.
  std::array<double, 2> ours = {}, theirs = {};
  std::array<int64_t, 3> our_types = {}, their_types = {};
  for (uint64_t seed = 1; seed <= kClusters; ++seed) {
    const Cluster cluster = Generator(seed + 1000000, 8, with_gangs).Make();
    const std::vector<Choice> mine = Ask(Descriptor(), cluster);
    for (const Choice& choice : mine) {
      ++candidates;
      ASSERT_FALSE(choice.victims.empty());
      for (const Truth* victim : choice.victims) {
        ++victims;
        ASSERT_EQ(Forbidden(*victim, cluster.preemptor), "") << "seed " << seed << victim->name;
      }
      companions += static_cast<int64_t>(choice.companions);
      ASSERT_TRUE(Fits(cluster, choice.node, choice.victims)) << "seed " << seed;
      ASSERT_EQ(BrokenGang(cluster, choice.victims), -1) << "seed " << seed;
      ASSERT_EQ(choice.budget_violations, std::get<0>(OutcomeOf(cluster, choice.victims)));
    }
    const std::vector<Choice> others = Ask(by_default, cluster);
    if (mine.empty() || others.empty()) {
      default_only += mine.empty() && !others.empty();
      ours_only += !mine.empty() && others.empty();
      continue;
    }
    ++both;
    for (const size_t serving : {0, 1}) {
      ours[serving] +=
          static_cast<double>(AllWorkLost(cluster, mine[0].victims, serving == 1)) / 1000;
      theirs[serving] +=
          static_cast<double>(AllWorkLost(cluster, others[0].victims, serving == 1)) / 1000;
    }
    broken += BrokenGang(cluster, others[0].victims) >= 0;
    for (const Truth* victim : mine[0].victims) ++our_types[static_cast<size_t>(victim->type)];
    for (const Truth* victim : others[0].victims) {
      ++their_types[static_cast<size_t>(victim->type)];
      forbidden += !Forbidden(*victim, cluster.preemptor).empty();
    }
  }
  std::printf("%d clusters: %lld candidates with %lld victims, none of them forbidden\n", kClusters,
              static_cast<long long>(candidates), static_cast<long long>(victims));
  std::printf(
      "both choose in %lld (DefaultPreemption alone in %lld, for whose victims the rules "
      "have no other place; CostAwarePreemptor alone in %lld)\n",
      static_cast<long long>(both), static_cast<long long>(default_only),
      static_cast<long long>(ours_only));
  std::printf("GPU-hours of work lost: %.0f, DefaultPreemption %.0f: %.3f\n", ours[0] / 3600,
              theirs[0] / 3600, ours[0] / theirs[0]);
  std::printf(
      "the same with all that inference pods have run: %.0f, DefaultPreemption %.0f: %.3f\n",
      ours[1] / 3600, theirs[1] / 3600, ours[1] / theirs[1]);
  std::printf(
      "victims (training, inference, other): %lld %lld %lld, DefaultPreemption %lld %lld "
      "%lld, of which %lld are forbidden here\n",
      static_cast<long long>(our_types[0]), static_cast<long long>(our_types[1]),
      static_cast<long long>(our_types[2]), static_cast<long long>(their_types[0]),
      static_cast<long long>(their_types[1]), static_cast<long long>(their_types[2]),
      static_cast<long long>(forbidden));
  EXPECT_GT(both, kClusters / 2);
  EXPECT_EQ(ours_only, 0);
  EXPECT_LE(ours[0], 0.3 * theirs[0]);
  if (!with_gangs) return;
  std::printf(
      "no gang is left in parts (%lld companions elsewhere); by DefaultPreemption in %lld\n",
      static_cast<long long>(companions), static_cast<long long>(broken));
  EXPECT_GT(companions, 1000);
  EXPECT_GT(broken, both / 10);
}

TEST(RandomClustersTest, NoForbiddenVictimAndLessWorkLostThanByDefaultPreemption) {
  CompareWithDefaultPreemption(false);
}
TEST(RandomClustersTest, WithGangsNoForbiddenVictimAndLessWorkLostThanByDefaultPreemption) {
  CompareWithDefaultPreemption(true);
}

}  // namespace
}  // namespace outboard::cost_aware_preemptor::random_clusters_test
