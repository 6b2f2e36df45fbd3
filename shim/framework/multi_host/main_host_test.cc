// A profile on several hosts, with a main host that answers all points in one message. Whatever the
// other hosts answer, the outcome equals that of point-by-point calls, and that of a single host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/algorithm.h"
#include "shim/framework/select_node.h"
#include "shim/framework/testing/rejection_reasons.h"
#include "shim/framework/testing/scripted_host.h"

namespace outboard::framework {
namespace {

using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::PluginStatus;
using v1beta1::PreFilterResponse;

using Random = std::mt19937;

bool Chance(double p, Random* random) {
  return std::uniform_real_distribution<double>(0, 1)(*random) < p;
}

// The answers of a plugin in one attempt.
struct Plugin {
  enum Verdict : uint8_t { kOk, kRejects, kNever, kFails };
  std::string name;
  size_t host = 0;
  bool pre_filters = false;
  Verdict pre_filter = kOk;
  std::vector<std::string> only_nodes;  // empty: all
  bool filters = false;
  // By slot: with the pods nominated to the node (only some have any), and without.
  std::vector<Verdict> with_nominated, as_it_is;
  bool pre_scores = false;
  bool pre_score_fails = false;
  bool scores = false;
  bool score_fails = false;

  PluginStatus Status(Verdict verdict, const std::string& what) const {
    PluginStatus status;
    status.set_plugin(name);
    status.set_code(verdict == kRejects ? v1beta1::CODE_UNSCHEDULABLE
                    : verdict == kNever ? v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
                                        : v1beta1::CODE_ERROR);
    status.add_reasons(absl::StrCat(name, " ", what));
    return status;
  }
};

// How a host fails in one attempt.
enum class Fault { kNone, kSilent, kUnusable };

struct World {
  std::vector<Plugin> plugins;          // in the profile's order
  std::vector<bool> nominated;          // by slot
  std::map<std::string, Fault> faults;  // by host and point
  const cache::ClusterState* cluster = nullptr;

  Fault FaultOf(size_t host, const char* point) const {
    const auto found = faults.find(absl::StrCat(host, point));
    return found == faults.end() ? Fault::kNone : found->second;
  }
};

// Runs the plugins of one host of the world, or all plugins, as a plugin host does.
class ModelHost {
 public:
  ModelHost(const World* world, std::optional<size_t> index, bool fused)
      : world_(*world), index_(index) {
    client_.pre_filter = [this](const v1beta1::PreFilterRequest& request) {
      Begin(request.header());
      return Faulty<PreFilterResponse>("PreFilter", PreFilter());
    };
    client_.filter = [this](const FilterRequest& request) {
      ++filter_calls;
      Expect(request.header());
      return Faulty<FilterResponse>("Filter", Filter(request.search(), 0, Nodes(request.search())));
    };
    client_.pre_score = [this](const v1beta1::PreScoreRequest& request) {
      ++score_calls;
      Expect(request.header());
      return Faulty<v1beta1::PreScoreResponse>("PreScore", PreScore());
    };
    client_.score = [this](const v1beta1::ScoreRequest& request) {
      ++score_calls;
      Expect(request.header());
      return Faulty<v1beta1::ScoreResponse>(
          "Score", Score({request.nodes().slots().begin(), request.nodes().slots().end()}));
    };
    client_.cycle = [this, fused](const v1beta1::PlanRequest& request,
                                  v1beta1::PlanResponse* response) {
      if (!fused) return absl::FailedPreconditionError("not served");
      Begin(request.cycle().header());
      return Cycle(request.cycle(), response);
    };
  }
  HostClient* client() { return &client_; }

  int filter_calls = 0;
  int score_calls = 0;

 private:
  template <typename Condition>
  std::vector<const Plugin*> Own(Condition condition) const {
    std::vector<const Plugin*> own;
    for (const Plugin& plugin : world_.plugins) {
      if ((!index_.has_value() || plugin.host == *index_) && condition(plugin))
        own.push_back(&plugin);
    }
    return own;
  }
  Fault FaultAt(const char* point) const {
    return index_.has_value() ? world_.FaultOf(*index_, point) : Fault::kNone;
  }
  void Begin(const v1beta1::CallHeader& header) { attempt_ = header.attempt_id(); }
  void Expect(const v1beta1::CallHeader& header) const {
    EXPECT_EQ(header.attempt_id(), attempt_) << "the attempt did not begin here";
  }

  template <typename Response>
  absl::StatusOr<Response> Faulty(const char* point, Response answer) const {
    if (FaultAt(point) == Fault::kSilent) return absl::UnavailableError(point);
    if (FaultAt(point) == Fault::kUnusable) Spoil(&answer);
    return answer;
  }
  static void Spoil(PreFilterResponse* answer) { answer->add_rejected_by("Stranger"); }
  static void Spoil(FilterResponse* answer) {
    PluginStatus* const status = answer->add_reasons();
    status->set_plugin("Stranger");
    status->set_code(v1beta1::CODE_UNSCHEDULABLE);
  }
  static void Spoil(v1beta1::PreScoreResponse* answer) {
    answer->mutable_error()->set_plugin("Stranger");
  }
  static void Spoil(v1beta1::ScoreResponse* answer) { answer->add_plugins(); }

  PreFilterResponse PreFilter() const {
    PreFilterResponse response;
    std::optional<std::set<std::string>> left;
    std::vector<std::string> restricting;
    for (const Plugin* plugin : Own([](const Plugin& p) { return p.pre_filters; })) {
      if (plugin->pre_filter == Plugin::kFails) {
        response.Clear();
        *response.mutable_rejection() = plugin->Status(Plugin::kFails, "PreFilter");
        return response;
      }
      if (plugin->pre_filter != Plugin::kOk) {
        *response.mutable_rejection() = plugin->Status(plugin->pre_filter, "PreFilter");
        response.add_rejected_by(plugin->name);
        if (plugin->pre_filter == Plugin::kNever) return response;
        continue;
      }
      if (plugin->only_nodes.empty()) continue;
      restricting.push_back(plugin->name);
      std::set<std::string> both(plugin->only_nodes.begin(), plugin->only_nodes.end());
      if (left.has_value())
        std::erase_if(both, [&](const std::string& node) { return !left->contains(node); });
      left = both;
      if (!both.empty()) continue;
      PluginStatus* rejection = response.mutable_rejection();
      rejection->Clear();
      rejection->set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
      std::vector<std::string> sorted = restricting;
      std::sort(sorted.begin(), sorted.end());
      rejection->add_reasons(absl::StrCat("node(s) didn't satisfy plugin(s) [",
                                          absl::StrJoin(sorted, " "), "] simultaneously"));
      for (const std::string& name : restricting) {
        response.add_rejected_by(name);
        response.add_restricted_by(name);
      }
      response.mutable_node_names();
      return response;
    }
    if (!left.has_value()) return response;
    for (const std::string& node : *left) response.mutable_node_names()->add_names(node);
    for (const std::string& name : restricting) response.add_restricted_by(name);
    return response;
  }

  std::vector<uint32_t> Nodes(const v1beta1::NodeSearch& search) const {
    if (!search.has_nodes())
      return {world_.cluster->node_order().begin(), world_.cluster->node_order().end()};
    return {search.nodes().slots().begin(), search.nodes().slots().end()};
  }
  // `percentage` applies if the search has no number.
  FilterResponse Filter(const v1beta1::NodeSearch& search, uint32_t percentage,
                        const std::vector<uint32_t>& nodes) {
    FilterResponse response;
    feasible_.clear();
    const uint32_t n = static_cast<uint32_t>(nodes.size());
    const uint32_t wanted = search.num_feasible_nodes_to_find() > 0
                                ? std::min(n, search.num_feasible_nodes_to_find())
                                : NumFeasibleNodesToFind(n, percentage);
    std::string bits;
    uint32_t i = 0;
    for (; i < n; ++i) {
      const uint32_t slot = nodes[(search.start_offset() + i) % n];
      bool only_without_nominated = false;
      const PluginStatus status = VerdictOn(slot, &only_without_nominated);
      const bool is_feasible = status.code() == v1beta1::CODE_SUCCESS;
      if (is_feasible && feasible_.size() == wanted) break;
      if (only_without_nominated)
        response.add_only_without_nominated(static_cast<uint32_t>(response.rejected_size()));
      if (status.code() == v1beta1::CODE_ERROR) {
        *response.mutable_error() = status;
        break;
      }
      if (i % 8 == 0) bits.push_back('\0');
      if (is_feasible) {
        feasible_.push_back(slot);
        bits.back() = static_cast<char>(bits.back() | (1 << (i % 8)));
        continue;
      }
      int reason = 0;
      while (reason < response.reasons_size() &&
             (response.reasons(reason).plugin() != status.plugin() ||
              response.reasons(reason).code() != status.code()))
        ++reason;
      if (reason == response.reasons_size()) *response.add_reasons() = status;
      response.add_rejected(static_cast<uint32_t>(reason));
    }
    response.set_processed(i);
    response.set_feasible(bits);
    // Alternates between the two forms of rejections.
    testing::PutIntoBitmaps(static_cast<int>(n) % (response.reasons_size() + 1), &response);
    return response;
  }
  PluginStatus VerdictOn(uint32_t slot, bool* only_without_nominated) const {
    const auto own = Own([](const Plugin& p) { return p.filters; });
    if (world_.nominated[slot]) {
      for (const Plugin* plugin : own) {
        const Plugin::Verdict verdict = plugin->with_nominated[slot];
        if (verdict != Plugin::kOk) return plugin->Status(verdict, "Filter");
      }
    }
    for (const Plugin* plugin : own) {
      const Plugin::Verdict verdict = plugin->as_it_is[slot];
      if (verdict == Plugin::kOk) continue;
      *only_without_nominated = world_.nominated[slot];
      return plugin->Status(verdict, "Filter");
    }
    PluginStatus feasible;
    feasible.set_code(v1beta1::CODE_SUCCESS);
    return feasible;
  }

  v1beta1::PreScoreResponse PreScore() const {
    v1beta1::PreScoreResponse response;
    for (const Plugin* plugin : Own([](const Plugin& p) { return p.pre_scores; })) {
      if (!plugin->pre_score_fails) continue;
      *response.mutable_error() = plugin->Status(Plugin::kFails, "PreScore");
      break;
    }
    return response;
  }
  // A node's score depends on the whole set.
  v1beta1::ScoreResponse Score(const std::vector<uint32_t>& nodes) const {
    v1beta1::ScoreResponse response;
    for (const Plugin* plugin : Own([](const Plugin& p) { return p.scores; })) {
      if (plugin->score_fails) {
        response.Clear();
        *response.mutable_error() = plugin->Status(Plugin::kFails, "Score");
        return response;
      }
      auto* scores = response.add_plugins();
      scores->set_plugin(plugin->name);
      size_t sum = plugin->name.back();
      for (const uint32_t slot : nodes) sum = sum * 31 + slot;
      for (const uint32_t slot : nodes)
        scores->mutable_scores()->push_back(static_cast<char>((sum + slot * 7) % 101));
    }
    return response;
  }

  absl::Status Cycle(const v1beta1::CycleRequest& request, v1beta1::PlanResponse* response) {
    const auto put = [](auto answer, auto* field) {
      if (answer.ok()) *field = *std::move(answer);
      return answer.status();
    };
    v1beta1::CycleEvaluation& evaluation = *response->mutable_evaluation();
    absl::Status done = put(Faulty("PreFilter", PreFilter()), evaluation.mutable_pre_filter());
    if (!done.ok()) return done;
    if (evaluation.pre_filter().has_rejection()) {
      const PreFilterResponse rejected = evaluation.pre_filter();
      *response->mutable_rejection()->mutable_pre_filter() = rejected;
      return done;
    }
    std::vector<uint32_t> nodes = Nodes(request.search());
    if (!request.search().has_nodes() && evaluation.pre_filter().has_node_names()) {
      const auto& names = evaluation.pre_filter().node_names().names();
      std::erase_if(nodes, [&](uint32_t slot) {
        return std::find(names.begin(), names.end(), world_.cluster->NodeAt(slot)->key()) ==
               names.end();
      });
    }
    done = put(
        Faulty("Filter", Filter(request.search(), request.percentage_of_nodes_to_score(), nodes)),
        evaluation.mutable_filter());
    if (!done.ok() || evaluation.filter().has_error() || feasible_.size() < 2) return done;
    const bool pre_scores = !Own([](const Plugin& p) { return p.pre_scores; }).empty();
    if (pre_scores) {
      done = put(Faulty("PreScore", PreScore()), evaluation.mutable_pre_score());
      if (!done.ok() || evaluation.pre_score().has_error()) return done;
    }
    if (Own([](const Plugin& p) { return p.scores; }).empty()) return absl::OkStatus();
    return put(Faulty("Score", Score(feasible_)), evaluation.mutable_score());
  }

  const World& world_;
  const std::optional<size_t> index_;  // none: all plugins are here
  ScriptedHost client_;
  uint64_t attempt_ = 0;
  std::vector<uint32_t> feasible_;
};

const cache::ClusterState& ClusterOf(uint32_t num_nodes) {
  static auto& clusters = *new std::map<uint32_t, std::unique_ptr<cache::ClusterState>>;
  std::unique_ptr<cache::ClusterState>& cluster = clusters[num_nodes];
  if (cluster != nullptr) return *cluster;
  cluster = std::make_unique<cache::ClusterState>();
  for (uint32_t i = 0; i < num_nodes; ++i) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", i));
    node->node.set_name(absl::StrCat("n", i));
    node->resource_version = "1";
    cluster->UpsertNode(node);
  }
  return *cluster;
}

// Draws the plugins, their hosts and the profile.
struct Setting {
  AlgorithmProfile profile;
  std::vector<Plugin> plugins;
  size_t num_hosts = 0;
  uint32_t num_nodes = 0;
  bool has_policies = false;
};

Setting DrawSetting(Random* random) {
  Setting setting;
  setting.num_hosts = 2 + (*random)() % 2;
  setting.num_nodes = std::vector<uint32_t>{1, 2, 9, 90, 150, 300, 600}[(*random)() % 7];
  setting.has_policies = Chance(0.5, random);
  AlgorithmProfile& profile = setting.profile;
  profile.name = "p";
  profile.percentage_of_nodes_to_score = std::vector<uint32_t>{0, 10, 30, 60, 100}[(*random)() % 5];
  profile.shares.resize(setting.num_hosts);
  const size_t count = setting.num_hosts + (*random)() % 4;
  for (size_t i = 0; i < count; ++i) {
    Plugin& plugin = setting.plugins.emplace_back();
    plugin.name = std::string(1, static_cast<char>('A' + i));
    plugin.host = (*random)() % setting.num_hosts;
    plugin.pre_filters = Chance(0.5, random);
    plugin.filters = Chance(0.7, random);
    plugin.pre_scores = Chance(0.4, random);
    plugin.scores = Chance(0.5, random);
    HostProfile& share = profile.shares[plugin.host];
    for (auto* at : {&profile.pre_filter_plugins, &share.pre_filter_plugins})
      if (plugin.pre_filters) at->push_back(plugin.name);
    for (auto* at : {&profile.filter_plugins, &share.filter_plugins})
      if (plugin.filters) at->push_back(plugin.name);
    for (auto* at : {&profile.pre_score_plugins, &share.pre_score_plugins})
      if (plugin.pre_scores) at->push_back(plugin.name);
    for (auto* at : {&profile.score_plugins, &share.score_plugins})
      if (plugin.scores) at->push_back({plugin.name, static_cast<int64_t>(1 + i % 3)});
    if (plugin.filters && !profile.main_host.has_value()) profile.main_host = plugin.host;
  }
  for (HostProfile& share : profile.shares) share.can_fuse = Chance(0.5, random);
  if (!setting.has_policies) return setting;
  for (HostProfile& share : profile.shares) {
    share.pre_filter_fail_open = Chance(0.6, random);
    share.filter_fail_open = Chance(0.6, random);
    share.score_fail_open = Chance(0.7, random);
    share.score_uses_last = Chance(0.5, random);
  }
  return setting;
}

World DrawWorld(const Setting& setting, Random* random) {
  World world;
  const uint32_t num_nodes = setting.num_nodes;
  world.cluster = &ClusterOf(num_nodes);
  world.plugins = setting.plugins;
  const double nominated = Chance(0.3, random) ? 0.2 : 0;
  for (uint32_t i = 0; i < num_nodes; ++i) world.nominated.push_back(Chance(nominated, random));
  for (Plugin& plugin : world.plugins) {
    if (Chance(0.05, random)) plugin.pre_filter = static_cast<Plugin::Verdict>(1 + (*random)() % 3);
    if (Chance(0.06, random)) {
      const double kept = std::vector<double>{0.02, 0.5, 0.95}[(*random)() % 3];
      for (uint32_t i = 0; i < num_nodes; ++i)
        if (Chance(kept, random)) plugin.only_nodes.push_back(absl::StrCat("n", i));
      if (Chance(0.2, random)) plugin.only_nodes.push_back("elsewhere");
    }
    const double rejects =
        std::vector<double>{0, 0, 0, 0.003, 0.02, 0.1, 0.5, 0.97}[(*random)() % 8];
    const double fails = Chance(0.1, random) ? 0.004 : 0;
    for (auto* verdicts : {&plugin.as_it_is, &plugin.with_nominated}) {
      for (uint32_t i = 0; i < num_nodes; ++i) {
        verdicts->push_back(Chance(fails, random) ? Plugin::kFails
                            : Chance(rejects, random)
                                ? Chance(0.3, random) ? Plugin::kNever : Plugin::kRejects
                                : Plugin::kOk);
      }
    }
    plugin.pre_score_fails = Chance(0.02, random);
    plugin.score_fails = Chance(0.02, random);
  }
  if (!setting.has_policies) return world;
  for (size_t host = 0; host < setting.num_hosts; ++host) {
    for (const char* point : {"PreFilter", "Filter", "PreScore", "Score"}) {
      if (Chance(0.1, random))
        world.faults[absl::StrCat(host, point)] =
            Chance(0.5, random) ? Fault::kSilent : Fault::kUnusable;
    }
  }
  return world;
}

// All results of an attempt; `alone`: only what a single host can also know.
std::string Text(const Algorithm& algorithm, const AlgorithmResult& result, bool alone) {
  std::string text = absl::StrCat(
      "outcome ", static_cast<int>(result.outcome), " slot ", result.slot, " evaluated ",
      result.evaluated_nodes, " feasible ", result.feasible_nodes, " processed ",
      result.processed_nodes, "\n", result.status.ToString(), "\nfeasible at ",
      absl::StrJoin(result.feasible_positions, " "), "\ntotals ", absl::StrJoin(result.totals, " "),
      "\nexamined ", absl::StrJoin(result.examined_slots, " "), "\n",
      FitErrorMessage(result.diagnosis), " | ",
      absl::StrJoin(result.diagnosis.unschedulable_plugins, " "), " | ",
      absl::StrJoin(result.diagnosis.pending_plugins, " "), "\n", "\n");
  if (result.outcome == AlgorithmResult::Outcome::kUnschedulable)
    absl::StrAppend(&text, algorithm.JudgedNodes().ShortDebugString(), "\n");
  const FilterResponse& filter = algorithm.response().evaluation().filter();
  if (filter.feasible().size() * 8 >= filter.processed()) {
    for (const PluginStatus* status : testing::ReasonsByNode(filter))
      absl::StrAppend(&text, " ", status == nullptr ? "+" : status->ShortDebugString());
  }
  absl::StrAppend(&text, " error ", filter.error().ShortDebugString(), "\n",
                  algorithm.response().evaluation().score().ShortDebugString(), "\n");
  if (alone) return text;
  absl::StrAppend(&text, "silent ", result.failed_host, "\n",
                  PreFilterOf(algorithm.response()).ShortDebugString(), "\n",
                  algorithm.response().evaluation().pre_score().ShortDebugString(), "\n");
  for (const IgnoredFailure& failure : result.ignored_failures) {
    absl::StrAppend(&text, "without ", failure.host, " at ", failure.point, " ", failure.used_last,
                    " ", failure.status.ToString(), "\n");
  }
  return text;
}

// How often each case occurred, to prove that the cases are covered.
struct Counts {
  int cases = 0, alone = 0, stood = 0, all_at_once = 0, continued = 0, restricted = 0,
      ignored_failures = 0, used_last = 0;
  std::map<AlgorithmResult::Outcome, int> outcomes;
};

void RunCases(uint32_t seed, Counts* counts) {
  Random random(seed);
  const Setting setting = DrawSetting(&random);
  AlgorithmProfile alone_profile = setting.profile;
  alone_profile.shares.clear();
  alone_profile.main_host.reset();
  // Scores are remembered from one pod to the next.
  Algorithm at_once(&ClusterOf(setting.num_nodes));
  Algorithm by_point(&ClusterOf(setting.num_nodes));
  for (int pod_index = 0; pod_index < 8; ++pod_index) {
    const World world = DrawWorld(setting, &random);
    kube::PodObject pod;
    pod.pod.set_uid("uid");
    pod.pod.mutable_controller()->set_uid("owner");
    if (Chance(0.05, &random))
      pod.pod.set_nominated_node_name(absl::StrCat("n", random() % world.nominated.size()));
    AlgorithmRequest request;
    request.pod = &pod;
    request.attempt_id = static_cast<uint64_t>(pod_index + 1);
    request.start_offset = random() % static_cast<uint32_t>(world.nominated.size());
    std::vector<std::unique_ptr<ModelHost>> hosts;
    const AlgorithmResult* result = nullptr;
    const auto run = [&](bool fused, Algorithm* algorithm) {
      request.profile = &setting.profile;
      request.hosts.clear();
      hosts.clear();
      for (size_t host = 0; host < setting.num_hosts; ++host) {
        hosts.push_back(std::make_unique<ModelHost>(&world, host, fused));
        request.hosts.push_back({hosts.back()->client(), static_cast<int64_t>(host + 1)});
        if (world.FaultOf(host, "PreFilter") == Fault::kSilent &&
            setting.profile.shares[host].is_optional())
          request.hosts.back().client = nullptr;  // It is unavailable.
      }
      result = &algorithm->Run(request);
      return Text(*algorithm, *result, /*alone=*/false);
    };
    const std::string expected = run(/*fused=*/false, &by_point);
    const std::string actual = run(/*fused=*/true, &at_once);
    const std::string where = absl::StrCat("seed ", seed, ", pod ", pod_index);
    ASSERT_EQ(actual, expected) << where;
    ++counts->cases;
    ++counts->outcomes[result->outcome];
    counts->ignored_failures += result->ignored_failures.empty() ? 0 : 1;
    for (const IgnoredFailure& failure : result->ignored_failures)
      counts->used_last += failure.used_last;
    if (setting.profile.main_host.has_value()) {
      const ModelHost& main = *hosts[*setting.profile.main_host];
      if (at_once.fused_answer().has_value()) {
        main.filter_calls + main.score_calls == 0 ? ++counts->stood : ++counts->continued;
        const bool none_by_point = std::all_of(hosts.begin(), hosts.end(), [](const auto& host) {
          return host->filter_calls + host->score_calls == 0;
        });
        if (none_by_point && result->feasible_nodes > 1) ++counts->all_at_once;
      } else {
        ++counts->restricted;
      }
    }
    if (setting.has_policies) continue;
    // One host with all plugins answers the same.
    ModelHost all(&world, std::nullopt, /*fused=*/true);
    request.profile = &alone_profile;
    request.hosts = {{all.client(), 1}};
    Algorithm alone(world.cluster);
    const AlgorithmResult& alone_result = alone.Run(request);
    ++counts->alone;
    ASSERT_EQ(at_once.response().has_rejection(), alone.response().has_rejection()) << where;
    // merge_answers_test.cc covers the merging of PreFilter answers.
    if (alone.response().has_rejection()) continue;
    ASSERT_EQ(Text(at_once, *result, true), Text(alone, alone_result, true)) << where;
  }
}

TEST(MainHostTest, TheOutcomeIsThatOfAskingPointByPointAndThatOfOneHost) {
  Counts counts;
  for (uint32_t seed = 0; seed < 2500 && !::testing::Test::HasFailure(); ++seed)
    RunCases(seed, &counts);
  EXPECT_EQ(counts.cases, 20000);
  EXPECT_GT(counts.alone, 5000);
  EXPECT_GT(counts.stood, 2000);
  EXPECT_GT(counts.all_at_once, 1000);
  EXPECT_GT(counts.continued, 2000);
  EXPECT_GT(counts.restricted, 500);
  EXPECT_GT(counts.ignored_failures, 500);
  EXPECT_GT(counts.used_last, 50);
  for (const auto outcome :
       {AlgorithmResult::Outcome::kPlaced, AlgorithmResult::Outcome::kUnschedulable,
        AlgorithmResult::Outcome::kError, AlgorithmResult::Outcome::kNoAnswer})
    EXPECT_GT(counts.outcomes[outcome], 500) << static_cast<int>(outcome);
  std::printf(
      "%d cases, %d also alone: stood %d, of these without any other call %d, continued %d, "
      "restricted %d, left out %d, "
      "last scores %d\n",
      counts.cases, counts.alone, counts.stood, counts.all_at_once, counts.continued,
      counts.restricted, counts.ignored_failures, counts.used_last);
}

}  // namespace
}  // namespace outboard::framework
