#include "cli/conformance/kit.h"

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/conformance/test_cluster.h"
#include "proto/short_names.h"
#include "shim/config/nearest.h"
#include "shim/hosts/shim_info.h"

namespace outboard::conformance {

using v1beta1::ConfigureRequest;
using v1beta1::ConfigureResponse;
using v1beta1::ExtensionPoint;
using v1beta1::PluginInfo;

namespace {

constexpr char kWellFormed[] = "well-formed";
constexpr int64_t kCycleDeadlineMicros = 5'000'000;
constexpr absl::Duration kFirstAnswer = absl::Seconds(5);

// Why a case about sessions does not apply to the host; empty: it applies.
std::string WhyNotSessions(const Kit& kit, const std::string& name) {
  static const auto* const kTwoSessions = new std::set<std::string>{
      "PluginHostService/sessions-in-turn", "PluginHostService/end-session",
      "ClusterStateService/two-sessions",   "ClusterStateService/slot-reused",
      "ClusterStateService/pod-places",     "ClusterStateService/unknown-node",
      "PlanService/equals-cycle",           "PlanService/batch"};
  const bool is_single = kit.Can(v1beta1::CAPABILITY_SINGLE_SESSION);
  if (is_single && kTwoSessions->count(name) > 0)
    return "it needs two sessions at a time, which a host with SINGLE_SESSION does not have";
  if (!is_single && absl::StartsWith(name, "PluginHostService/single-session"))
    return "without the capability SINGLE_SESSION";
  return "";
}

// Why a case does not apply to the host; empty: it applies.
std::string WhyNot(const Kit& kit, const Case& one) {
  const std::string service = one.service;
  const std::vector<std::pair<std::string, ExtensionPoint>> points = {
      {"QueueSortService", v1beta1::EXTENSION_POINT_QUEUE_SORT},
      {"PreEnqueueService", v1beta1::EXTENSION_POINT_PRE_ENQUEUE},
      {"ReserveService", v1beta1::EXTENSION_POINT_RESERVE},
      {"PermitService", v1beta1::EXTENSION_POINT_PERMIT},
      {"PreBindService", v1beta1::EXTENSION_POINT_PRE_BIND},
      {"BindService", v1beta1::EXTENSION_POINT_BIND},
      {"PostBindService", v1beta1::EXTENSION_POINT_POST_BIND},
      {"FilterService", v1beta1::EXTENSION_POINT_FILTER},
      {"ScoreService", v1beta1::EXTENSION_POINT_SCORE}};
  for (const auto& [name, point] : points) {
    if (service == name && !kit.Has(point)) return absl::StrCat("no plugin at ", ShortName(point));
  }
  if (service == "PostFilterService") {
    const ExtensionPoint point = one.name == std::string("group-post-filter")
                                     ? v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER
                                     : v1beta1::EXTENSION_POINT_POST_FILTER;
    if (!kit.Has(point)) return absl::StrCat("no plugin at ", ShortName(point));
  }
  if (service == "GroupService" && !kit.Has(v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE) &&
      !kit.Has(v1beta1::EXTENSION_POINT_PLACEMENT_SCORE))
    return "no plugin at PLACEMENT_GENERATE or PLACEMENT_SCORE";
  if (service == "PreFilterService" && !kit.HasAlgorithm())
    return "no plugin from PRE_FILTER to SCORE";
  if (service == "CycleService" && !kit.Can(v1beta1::CAPABILITY_FUSED_CYCLE))
    return "without the capability FUSED_CYCLE";
  if (service == "PlanService" && !kit.Can(v1beta1::CAPABILITY_BATCH) &&
      !kit.Can(v1beta1::CAPABILITY_GROUP_PLAN))
    return "without the capability BATCH or GROUP_PLAN";
  if (one.name == std::string("columns") && !kit.Can(v1beta1::CAPABILITY_NODE_COLUMNS))
    return "without the capability NODE_COLUMNS";
  if (service == "QueueingHintService" && !kit.Can(v1beta1::CAPABILITY_QUEUEING_HINTS))
    return "without the capability QUEUEING_HINTS";
  const std::string name = absl::StrCat(service, "/", one.name);
  if (std::string why_not = WhyNotSessions(kit, name); !why_not.empty()) return why_not;
  if (!kit.Can(v1beta1::CAPABILITY_INLINE_NODES) || service == "PluginHostService") return "";
  static const auto* const kWithoutCache = new std::set<std::string>{
      "PreFilterService/well-formed",   "PreFilterService/again",
      "PreFilterService/wrong-headers", "PreFilterService/missing-fields",
      "FilterService/well-formed",      "FilterService/again",
      "FilterService/given-nodes",      "FilterService/errors",
      "FilterService/hypotheses",       "FilterService/simulated-failure",
      "FilterService/columns",          "ScoreService/columns",
      "ScoreService/well-formed",       "ScoreService/again",
      "ScoreService/some-nodes",        "ScoreService/errors",
      "ReserveService/reserve",         "PermitService/permit",
      "PermitService/permit-resumed",   "BindService/bind",
      "PostBindService/post-bind",      "QueueSortService/sort-keys",
      "PreEnqueueService/pre-enqueue",  "ClusterStateService/fuzzed-calls"};
  if (kWithoutCache->count(name) == 0)
    return "it needs a cache, which a host with INLINE_NODES does not have";
  return "";
}

// Whether the host answers.
bool IsAlive(const Kit& kit) {
  const absl::StatusOr<Channel> channel = kit.Dial();
  if (!channel.ok()) return false;
  return Call(*channel, handshake::v1::HandshakeRequest(), kFirstAnswer).status.ok();
}

}  // namespace

bool Matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

absl::StatusOr<std::unique_ptr<Kit>> Kit::Connect(Options options) {
  std::unique_ptr<Kit> kit(new Kit());
  kit->options_ = std::move(options);
  std::random_device random;
  kit->run_ = absl::StrFormat("kit-%08x", random());
  absl::StatusOr<Channel> channel = kit->Dial();
  if (!channel.ok()) return channel.status();
  handshake::v1::HandshakeRequest handshake;
  handshake.add_contract_versions(kContractVersion);
  handshake.set_build("outboard conformance");
  const auto identity = Call(*channel, handshake, kFirstAnswer);
  if (!identity.status.ok()) {
    return absl::UnavailableError(absl::StrCat(
        kit->options_.endpoint.address, " does not answer Handshake: ", Describe(identity.status)));
  }
  kit->identity_ = identity.message;
  const auto info = Call(*channel, v1beta1::GetHostInfoRequest(), kFirstAnswer);
  if (!info.status.ok()) {
    return absl::UnavailableError(absl::StrCat(
        kit->options_.endpoint.address, " does not answer GetHostInfo: ", Describe(info.status)));
  }
  kit->info_ = info.message;
  if (absl::Status found = kit->FindConfiguration(); !found.ok()) return found;
  return kit;
}

absl::Status Kit::FindConfiguration() {
  std::vector<std::string> names;
  for (const PluginInfo& plugin : info_.plugins()) names.push_back(plugin.name());
  for (const std::string& wanted : options_.plugins) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      const std::string near = config::DidYouMean(wanted, names);
      return absl::InvalidArgumentError(absl::StrCat(
          "--plugin ", wanted, ": the host does not serve this plugin",
          near.empty() ? absl::StrCat("; it serves ", absl::StrJoin(names, ", ")) : near));
    }
  }
  if (!options_.plugins.empty()) names = options_.plugins;
  const absl::StatusOr<Channel> channel = Dial();
  if (!channel.ok()) return channel.status();
  while (true) {
    configuration_.Clear();
    configuration_.set_cycle_deadline_micros(kCycleDeadlineMicros);
    configuration_.set_instance(identity_.instance());
    *configuration_.mutable_shim() = hosts::ThisShim();
    v1beta1::ProfileConfig* profile = configuration_.add_profiles();
    profile->set_name(kProfile);
    for (int point = v1beta1::EXTENSION_POINT_PRE_ENQUEUE;
         point <= v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER; ++point) {
      v1beta1::PointConfig config;
      config.set_extension_point(static_cast<ExtensionPoint>(point));
      for (const std::string& name : names) {
        const auto plugin = std::find_if(info_.plugins().begin(), info_.plugins().end(),
                                         [&](const PluginInfo& p) { return p.name() == name; });
        if (std::find(plugin->extension_points().begin(), plugin->extension_points().end(),
                      point) == plugin->extension_points().end()) {
          continue;
        }
        // Only one plugin can sort the queue, and only one can generate placements.
        if ((point == v1beta1::EXTENSION_POINT_QUEUE_SORT ||
             point == v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE) &&
            !config.plugins().empty())
          continue;
        config.add_plugins(name);
        if (point == v1beta1::EXTENSION_POINT_SCORE &&
            (Can(v1beta1::CAPABILITY_BATCH) || Can(v1beta1::CAPABILITY_GROUP_PLAN)))
          config.add_weights(1);
      }
      if (!config.plugins().empty()) *profile->add_points() = config;
    }
    for (const auto& [name, json] : options_.args) {
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      v1beta1::PluginArgs* args = profile->add_args();
      args->set_plugin(name);
      args->set_args_json(json);
    }
    if (profile->points().empty()) {
      return absl::FailedPreconditionError(
          left_out_.empty() ? "the host serves no plugin at any extension point of the contract"
                            : absl::StrCat("no plugin can be configured; ", left_out_[0].first,
                                           ": ", left_out_[0].second,
                                           "; give arguments with --plugin NAME --args JSON"));
    }
    ConfigureRequest request = configuration_;
    request.set_session_id(NewSessionId());
    const auto answer = Call(*channel, request);
    if (!answer.status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("Configure with all plugins returns ", Describe(answer.status)));
    }
    const v1beta1::ConfigProblem* const error = FirstError(answer.message);
    if (error == nullptr) return absl::OkStatus();
    const v1beta1::ConfigProblem& problem = *error;
    const std::string said = problem.field().empty()
                                 ? problem.message()
                                 : absl::StrCat(problem.field(), ": ", problem.message());
    const auto named = std::find(names.begin(), names.end(), problem.plugin());
    if (named == names.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "Configure with all plugins has a problem with \"", problem.plugin(), "\": ", said));
    }
    names.erase(named);
    left_out_.emplace_back(problem.plugin(), said);
  }
}

std::vector<std::string> Kit::At(ExtensionPoint point) const {
  for (const v1beta1::PointConfig& config : configuration_.profiles(0).points()) {
    if (config.extension_point() == point)
      return {config.plugins().begin(), config.plugins().end()};
  }
  return {};
}

bool Kit::HasAlgorithm() const {
  return Has(v1beta1::EXTENSION_POINT_PRE_FILTER) || Has(v1beta1::EXTENSION_POINT_FILTER) ||
         Has(v1beta1::EXTENSION_POINT_PRE_SCORE) || Has(v1beta1::EXTENSION_POINT_SCORE);
}

bool Kit::Can(v1beta1::Capability capability) const {
  return std::find(info_.capabilities().begin(), info_.capabilities().end(), capability) !=
         info_.capabilities().end();
}

absl::StatusOr<Channel> Kit::Dial() const { return hosts::Dial(options_.endpoint, {}); }

std::string Kit::NewSessionId() const {
  static std::atomic<int> next{0};
  return absl::StrCat(run_, "-", ++next);
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (auto cases :
       {PluginHostCases, SessionCases, SingleSessionCases, ClusterStateCases, CacheCases,
        TraceCases, QueueCases, AttemptCases, FilterCases, ScoreCases, ColumnCases, CycleCases,
        PlanCases, GroupCases, PlacementCases, PostFilterCases, FuzzCases}) {
    for (const Case& one : cases()) all.push_back(one);
  }
  // The cases that others depend on run first.
  std::stable_partition(all.begin() + PluginHostCases().size(), all.end(),
                        [](const Case& one) { return one.name == std::string(kWellFormed); });
  return all;
}

std::vector<Result> RunCases(const Kit& kit, const std::vector<Case>& cases,
                             void (*report)(const Result&)) {
  std::vector<Result> results;
  std::string died_in, over;
  std::set<std::string> malformed_of;
  const absl::Time give_up = absl::Now() + kit.options().time_limit;
  for (const auto& [plugin, why] : kit.left_out()) {
    results.push_back(
        {"PluginHostService",
         absl::StrCat("plugin ", plugin),
         Result::Outcome::kSkipped,
         absl::StrCat("it cannot be configured without arguments (--plugin, --args): ", why),
         {}});
    report(results.back());
  }
  for (const Case& one : cases) {
    const std::string name = absl::StrCat(one.service, "/", one.name);
    if (!kit.options().only.empty() && !Matches(kit.options().only, name)) continue;
    Result result{one.service, one.name, Result::Outcome::kPassed, "", {}};
    const absl::Time began = absl::Now();
    if (began > give_up && over.empty()) {
      over = absl::StrCat("all cases had ", absl::FormatDuration(kit.options().time_limit),
                          " (--minutes), which are over");
      result.outcome = Result::Outcome::kFailed;
      result.what = over;
      results.push_back(std::move(result));
      report(results.back());
      continue;
    }
    const std::string why_not = !over.empty()     ? over
                                : died_in.empty() ? WhyNot(kit, one)
                                                  : absl::StrCat("the host died in ", died_in);
    absl::Status status = why_not.empty() ? one.run(kit) : Skipped(why_not);
    for (int again = 0; again < 2 && IsLate(status); ++again) status = one.run(kit);
    const std::string malformed = MalformedService(status);
    if (malformed_of.count(malformed) > 0) {
      status = Skipped(absl::StrCat(malformed, "/", kWellFormed,
                                    " failed, and this case depends on such answers"));
    } else if (!status.ok() && !IsSkipped(status) && one.name == std::string(kWellFormed)) {
      malformed_of.insert(one.service);
    }
    result.took = absl::Now() - began;
    if (!status.ok()) {
      result.outcome = IsSkipped(status) ? Result::Outcome::kSkipped : Result::Outcome::kFailed;
      result.what = std::string(status.message());
      if (result.outcome == Result::Outcome::kFailed && !IsAlive(kit)) {
        died_in = name;
        absl::StrAppend(&result.what, "; the host no longer answers");
      }
    }
    results.push_back(std::move(result));
    report(results.back());
  }
  return results;
}

}  // namespace outboard::conformance
