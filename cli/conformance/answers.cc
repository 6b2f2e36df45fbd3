#include "cli/conformance/answers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/call_errors/call_errors.h"
#include "proto/short_names.h"

namespace outboard::conformance {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

namespace {

constexpr int kMaxReasons = 16;
constexpr uint8_t kMaxScore = 100;
constexpr size_t kMaxStateBytes = 4 << 10;
constexpr size_t kMaxStatesBytes = 16 << 10;  // of an answer

bool Contains(const Plugins& plugins, const std::string& name) {
  return std::find(plugins.begin(), plugins.end(), name) != plugins.end();
}

absl::Status CheckConfigured(const std::string& plugin, const std::string& where,
                             const Plugins& plugins, const Rule& rule) {
  if (Contains(plugins, plugin)) return absl::OkStatus();
  return Wrong(
      rule, absl::StrCat(where, " names plugin \"", plugin, "\", which is not configured there (",
                         absl::StrJoin(plugins, ", "), ")"));
}

// Whether the names are in the profile's order, without duplicates.
bool InOrder(const Plugins& names, const Plugins& profile) {
  auto from = profile.begin();
  for (const std::string& name : names) {
    from = std::find(from, profile.end(), name);
    if (from == profile.end()) return false;
    ++from;
  }
  return true;
}

Plugins ListOf(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return {names.begin(), names.end()};
}

absl::Status CheckBitmap(const FilterResponse& response) {
  const std::string& bits = response.feasible();
  if (bits.size() != (size_t{response.processed()} + 7) / 8) {
    return Wrong(kFeasibleSize,
                 absl::StrCat(bits.size(), " bytes for ", response.processed(), " nodes"));
  }
  for (size_t bit = response.processed(); bit < bits.size() * 8; ++bit) {
    if ((static_cast<unsigned char>(bits[bit / 8]) >> (bit % 8)) & 1) {
      return Wrong(kFeasibleUnused,
                   absl::StrCat("bit ", bit, " is set, of ", response.processed(), " nodes"));
    }
  }
  return absl::OkStatus();
}

// The index of the reason of each rejected node.
absl::Status TakeRejected(const FilterResponse& response, std::vector<uint32_t>* rejected) {
  const auto has = [](const std::string& bitmap, uint32_t i) {
    return ((static_cast<unsigned char>(bitmap[i / 8]) >> (i % 8)) & 1) != 0;
  };
  if (response.rejected_for_size() > response.reasons_size()) {
    return Wrong(kRejectedFor, absl::StrCat(response.rejected_for_size(), " bitmaps for ",
                                            response.reasons_size(), " reasons"));
  }
  for (int k = 0; k < response.rejected_for_size(); ++k) {
    const std::string& bitmap = response.rejected_for(k);
    if (bitmap.size() != response.feasible().size()) {
      return Wrong(kRejectedFor, absl::StrCat("bitmap ", k, " has ", bitmap.size(), " bytes for ",
                                              response.processed(), " nodes"));
    }
    for (uint32_t i = response.processed(); i < bitmap.size() * 8; ++i) {
      if (has(bitmap, i)) return Wrong(kRejectedFor, absl::StrCat("bitmap ", k, " has bit ", i));
    }
  }
  int listed = 0;
  rejected->clear();
  for (uint32_t i = 0; i < response.processed(); ++i) {
    std::vector<uint32_t> reasons;
    for (int k = 0; k < response.rejected_for_size(); ++k) {
      if (has(response.rejected_for(k), i)) reasons.push_back(static_cast<uint32_t>(k));
    }
    const bool is_feasible = has(response.feasible(), i);
    if (reasons.size() + (is_feasible ? 1 : 0) > 1)
      return Wrong(kRejectedFor, absl::StrCat("node ", i, " of the answer has two verdicts"));
    if (is_feasible) continue;
    if (reasons.empty()) {
      if (listed == response.rejected_size())
        return Wrong(kRejected, absl::StrCat("node ", i, " of the answer has no verdict"));
      reasons.push_back(response.rejected(listed++));
    }
    rejected->push_back(reasons[0]);
  }
  if (listed != response.rejected_size()) {
    return Wrong(kRejected, absl::StrCat(response.rejected_size(), " rejections for ", listed,
                                         " rejected nodes that are in no bitmap"));
  }
  return absl::OkStatus();
}

absl::Status CheckReasons(const Kit& kit, const FilterResponse& response, size_t num_rejected) {
  std::set<std::string> distinct;
  for (int i = 0; i < response.reasons_size(); ++i) {
    CONFORMANCE_TRY(CheckStatus(
        response.reasons(i), absl::StrCat("FilterResponse.reasons[", i, "]"),
        kit.At(EXTENSION_POINT_FILTER),
        {CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING}, kReasonsCodes));
    if (!distinct.insert(response.reasons(i).SerializeAsString()).second)
      return Wrong(kReasonsOnce, absl::StrCat("reason ", i, " is a duplicate"));
  }
  int64_t before = -1;
  const int64_t end = static_cast<int64_t>(num_rejected) + (response.has_error() ? 1 : 0);
  for (const uint32_t position : response.only_without_nominated()) {
    if (position <= before || position >= end) {
      return Wrong(kOnlyWithout,
                   absl::StrCat("position ", position, " after ", before, ", of ", end));
    }
    before = position;
  }
  if (!response.has_error()) return absl::OkStatus();
  return CheckStatus(response.error(), "FilterResponse.error", kit.At(EXTENSION_POINT_FILTER),
                     {CODE_ERROR}, kFilterError);
}

}  // namespace

absl::Status CheckStatus(const PluginStatus& status, const std::string& where,
                         const Plugins& plugins, std::initializer_list<Code> codes,
                         const Rule& codes_rule, size_t max_reason_bytes) {
  CONFORMANCE_TRY(CheckConfigured(status.plugin(), where, plugins, kStatusPlugin));
  if (std::find(codes.begin(), codes.end(), status.code()) == codes.end()) {
    return Wrong(codes_rule, absl::StrCat(where, " has code ", static_cast<int>(status.code()), " ",
                                          ShortName(status.code())));
  }
  if (status.reasons().empty())
    return Wrong(kStatusReasons,
                 absl::StrCat(where, " of ", status.plugin(), " has an empty list of reasons"));
  if (status.reasons_size() > kMaxReasons)
    return Wrong(kStatusLimits, absl::StrCat(where, " gives ", status.reasons_size(), " reasons"));
  for (const std::string& reason : status.reasons()) {
    if (reason.empty() || reason.size() > max_reason_bytes)
      return Wrong(kStatusLimits,
                   absl::StrCat(where, " gives a reason of ", reason.size(), " bytes"));
  }
  return absl::OkStatus();
}

static absl::Status PreFilterFault(const Kit& kit, const PreFilterResponse& response) {
  const Plugins plugins = kit.At(EXTENSION_POINT_PRE_FILTER);
  for (const std::string& name : response.rejected_by())
    CONFORMANCE_TRY(CheckConfigured(name, "PreFilterResponse.rejected_by", plugins, kRejectedBy));
  const Plugins restricting = ListOf(response.restricted_by());
  for (const std::string& name : restricting)
    CONFORMANCE_TRY(
        CheckConfigured(name, "PreFilterResponse.restricted_by", plugins, kRestrictedBy));
  if (!InOrder(restricting, plugins)) {
    return Wrong(kRestrictedBy,
                 absl::StrCat(absl::StrJoin(restricting, ", "), " is not the profile's order"));
  }
  if (response.has_node_names()) {
    const auto& names = response.node_names().names();
    for (int i = 1; i < names.size(); ++i) {
      if (names[i - 1] >= names[i])
        return Wrong(kNodeNames, absl::StrCat("\"", names[i - 1], "\" before \"", names[i], "\""));
    }
    if (restricting.empty()) return Wrong(kRestrictedBy, "nodes are restricted by no plugin");
  }
  if (!response.has_rejection()) {
    if (!response.rejected_by().empty())
      return Wrong(kRejectedBy, "rejecting plugins without a rejection");
    return absl::OkStatus();
  }
  const PluginStatus& rejection = response.rejection();
  // Disjoint node sets: not the rejection of a single plugin.
  if (rejection.plugin().empty()) {
    if (response.rejected_by().empty() || rejection.code() != CODE_UNSCHEDULABLE_AND_UNRESOLVABLE)
      return Wrong(kStatusPlugin, "PreFilterResponse.rejection names no plugin");
    return absl::OkStatus();
  }
  CONFORMANCE_TRY(CheckStatus(
      rejection, "PreFilterResponse.rejection", plugins,
      {CODE_ERROR, CODE_UNSCHEDULABLE, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, CODE_PENDING},
      kPreFilterRejection));
  if (rejection.code() != CODE_ERROR &&
      !Contains(ListOf(response.rejected_by()), rejection.plugin())) {
    return Wrong(kRejectedBy, absl::StrCat(rejection.plugin(), " of `rejection` is missing"));
  }
  return absl::OkStatus();
}

static absl::Status FilterFault(const Kit& kit, const FilterResponse& response,
                                const std::vector<uint32_t>& list, size_t wanted,
                                Verdicts* verdicts, std::vector<uint32_t>* feasible) {
  verdicts->clear();
  feasible->clear();
  if (!response.verdicts().empty())
    return Wrong(kFilterVerdicts, "verdicts in two forms, or in a Cycle answer");
  if (response.processed() > list.size()) {
    return Wrong(kProcessed, absl::StrCat(response.processed(), " nodes of ", list.size()));
  }
  CONFORMANCE_TRY(CheckBitmap(response));
  std::vector<uint32_t> reasons;  // of the rejected nodes
  CONFORMANCE_TRY(TakeRejected(response, &reasons));
  CONFORMANCE_TRY(CheckReasons(kit, response, reasons.size()));
  size_t rejected = 0;
  for (uint32_t i = 0; i < response.processed(); ++i) {
    if ((static_cast<unsigned char>(response.feasible()[i / 8]) >> (i % 8)) & 1) {
      (*verdicts)[list[i]] = "";
      feasible->push_back(list[i]);
      continue;
    }
    const uint32_t index = reasons[rejected++];
    if (index >= static_cast<uint32_t>(response.reasons_size())) {
      return Wrong(kRejected, absl::StrCat("reason ", index, " of ", response.reasons_size()));
    }
    (*verdicts)[list[i]] = response.reasons(static_cast<int>(index)).SerializeAsString();
  }
  if (feasible->size() > wanted) {
    return Wrong(kFilterEnough,
                 absl::StrCat(feasible->size(), " feasible nodes; ", wanted, " are enough"));
  }
  if (!response.has_error() && response.processed() < list.size() && feasible->size() < wanted) {
    return Wrong(kFilterEnough,
                 absl::StrCat("it ended after ", response.processed(), " of ", list.size(),
                              " nodes with ", feasible->size(), " of ", wanted, " feasible ones"));
  }
  return absl::OkStatus();
}

static absl::Status ScoreFault(const Kit& kit, const PreScoreResponse& before,
                               const ScoreResponse& response, size_t nodes) {
  const Plugins skipped = ListOf(before.skipped());
  const Plugins pre_score = kit.At(EXTENSION_POINT_PRE_SCORE);
  for (const std::string& name : skipped) {
    if (!Contains(pre_score, name) && !Contains(kit.At(EXTENSION_POINT_SCORE), name))
      return Wrong(kScoreSkipped, absl::StrCat("\"", name, "\" is not configured there"));
  }
  if (before.has_error()) {
    return CheckStatus(before.error(), "PreScoreResponse.error", pre_score, {CODE_ERROR},
                       kScoreSkipped);
  }
  if (response.has_error()) {
    return CheckStatus(response.error(), "ScoreResponse.error", kit.At(EXTENSION_POINT_SCORE),
                       {CODE_ERROR}, kScoreAll);
  }
  Plugins expected;
  for (const std::string& name : kit.At(EXTENSION_POINT_SCORE)) {
    if (!Contains(skipped, name)) expected.push_back(name);
  }
  Plugins given;
  for (const PluginScores& scores : response.plugins()) given.push_back(scores.plugin());
  if (given != expected) {
    Plugins sorted = given;
    Plugins wanted = expected;
    std::sort(sorted.begin(), sorted.end());
    std::sort(wanted.begin(), wanted.end());
    return Wrong(sorted == wanted ? kScorePlugins : kScoreAll,
                 absl::StrCat("scores of [", absl::StrJoin(given, " "), "] instead of [",
                              absl::StrJoin(expected, " "), "]"));
  }
  for (const PluginScores& scores : response.plugins()) {
    if (scores.scores().size() != nodes) {
      return Wrong(kScoreBytes, absl::StrCat(scores.plugin(), " gives ", scores.scores().size(),
                                             " scores for ", nodes, " nodes"));
    }
    for (const char score : scores.scores()) {
      if (static_cast<uint8_t>(score) > kMaxScore) {
        return Wrong(kScoreRange,
                     absl::StrCat(scores.plugin(), " gives ", static_cast<uint8_t>(score)));
      }
    }
    if (!scores.tie_keys().empty() && static_cast<size_t>(scores.tie_keys_size()) != nodes) {
      return Wrong(kTieKeys, absl::StrCat(scores.plugin(), " gives ", scores.tie_keys_size(),
                                          " for ", nodes, " nodes"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEffects(const Kit& kit, const ReserveResponse& response) {
  std::set<std::string> keys;
  for (const Effect& effect : response.effects()) {
    CONFORMANCE_TRY(CheckConfigured(effect.plugin(), "ReserveResponse.effects",
                                    kit.At(EXTENSION_POINT_RESERVE), kEffectPlugin));
    const bool is_key = !effect.key().empty() && effect.key().size() <= 63 &&
                        std::all_of(effect.key().begin(), effect.key().end(), [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                        });
    if (!is_key || !keys.insert(effect.key()).second)
      return Wrong(kEffectKey,
                   absl::StrCat("\"", effect.key(), "\" is not a key, or not the only one"));
  }
  return absl::OkStatus();
}

absl::Status CheckStates(const Kit& kit, const ReserveResponse& response) {
  std::set<std::string> plugins;
  size_t bytes = 0;
  for (const PluginState& its : response.states()) {
    CONFORMANCE_TRY(CheckConfigured(its.plugin(), "ReserveResponse.states",
                                    kit.At(EXTENSION_POINT_RESERVE), kStatePlugin));
    if (its.state().empty() || its.state().size() > kMaxStateBytes)
      return Wrong(kStateBytes,
                   absl::StrCat(its.plugin(), " keeps ", its.state().size(), " bytes"));
    if (!plugins.insert(its.plugin()).second)
      return Wrong(kReserveStates, absl::StrCat("two states of ", its.plugin()));
    bytes += its.state().size();
  }
  if (bytes <= kMaxStatesBytes) return absl::OkStatus();
  return Wrong(kReserveStates, absl::StrCat("states of ", bytes, " bytes"));
}

absl::Status CheckDecision(const WaitDecision& decision, const Plugins& plugins) {
  CONFORMANCE_TRY(
      CheckConfigured(decision.plugin(), "WaitDecision.plugin", plugins, kDecisionComplete));
  if (decision.attempt_id() == 0 || decision.pod_uid().empty())
    return Wrong(kDecisionComplete, "a decision without an attempt or a pod");
  if (!decision.allow() && (decision.message().empty() || decision.message().size() > 1024))
    return Wrong(kDecisionComplete, "a rejection without a reason, or with more than 1 KiB");
  return absl::OkStatus();
}

size_t ProcessedNodes(const Round& full, const std::vector<uint32_t>& list, size_t wanted) {
  size_t processed = 0;
  size_t feasible = 0;
  for (; processed < list.size(); ++processed) {
    if (!full.verdicts.at(list[processed]).empty()) continue;
    if (feasible == wanted) break;
    ++feasible;
  }
  return processed;
}

size_t EnoughNodes(size_t nodes, uint32_t percentage) {
  if (nodes < 100) return nodes;
  const int64_t adaptive = std::max<int64_t>(50 - static_cast<int64_t>(nodes) / 125, 5);
  const size_t share = nodes * (percentage == 0 ? static_cast<size_t>(adaptive) : percentage) / 100;
  return std::max<size_t>(share, 100);
}

absl::Status RunRound(const Session& session, uint64_t attempt, const std::string& uid,
                      const std::vector<uint32_t>& order, Round* round, NodeSearch search,
                      Until until) {
  *round = Round();
  const Kit& kit = session.kit();
  auto pre_filter = session.PreFilter(attempt, uid);
  CONFORMANCE_TRY(ExpectOk(pre_filter));
  CONFORMANCE_TRY(CheckPreFilter(kit, pre_filter.message));
  round->pre_filter = std::move(pre_filter.message);
  if (round->pre_filter.has_rejection()) return absl::OkStatus();

  round->list = order;
  if (search.has_nodes()) {
    round->list.assign(search.nodes().slots().begin(), search.nodes().slots().end());
  } else if (round->pre_filter.has_node_names()) {
    const auto& names = round->pre_filter.node_names().names();
    std::erase_if(round->list, [&](uint32_t slot) {
      return std::find(names.begin(), names.end(), session.cluster().nodes[slot].name()) ==
             names.end();
    });
    search.mutable_nodes()->mutable_slots()->Add(round->list.begin(), round->list.end());
  }
  if (!round->list.empty()) {
    std::rotate(round->list.begin(),
                round->list.begin() + search.start_offset() % round->list.size(),
                round->list.end());
  }
  // A host without a Filter plugin gets no Filter call; every node is feasible.
  if (!kit.Has(EXTENSION_POINT_FILTER)) {
    round->feasible = round->list;
  } else {
    size_t wanted = search.num_feasible_nodes_to_find();
    if (session.is_inline() || wanted == 0) wanted = round->list.size();
    auto filter = session.Filter(attempt, std::move(search));
    CONFORMANCE_TRY(ExpectOk(filter));
    CONFORMANCE_TRY(
        CheckFilter(kit, filter.message, round->list, wanted, &round->verdicts, &round->feasible));
    round->filter = std::move(filter.message);
    round->filtered = true;
    if (round->filter.has_error()) return absl::OkStatus();
  }
  if (until == Until::kFilter || round->feasible.size() < 2 ||
      (!kit.Has(EXTENSION_POINT_SCORE) && !kit.Has(EXTENSION_POINT_PRE_SCORE)))
    return absl::OkStatus();
  if (kit.Has(EXTENSION_POINT_PRE_SCORE)) {
    auto pre_score = session.PreScore(attempt, round->feasible);
    CONFORMANCE_TRY(ExpectOk(pre_score));
    round->pre_score = std::move(pre_score.message);
  }
  if (kit.Has(EXTENSION_POINT_SCORE) && !round->pre_score.has_error()) {
    auto score = session.Score(attempt, round->feasible);
    CONFORMANCE_TRY(ExpectOk(score));
    round->score = std::move(score.message);
  }
  round->scored = true;
  return CheckScore(kit, round->pre_score, round->score, round->feasible.size());
}

absl::Status RunRound(const Session& session, uint64_t attempt, const std::string& uid,
                      Round* round, Until until) {
  return RunRound(session, attempt, uid,
                  FirstSlots(static_cast<int>(session.cluster().nodes.size())), round, {}, until);
}

absl::Status ExpectSame(const Round& one, const Round& other, const Rule& rule,
                        const std::string& what) {
  const auto same = [](const google::protobuf::Message& a, const google::protobuf::Message& b) {
    return a.SerializeAsString() == b.SerializeAsString();
  };
  if (!same(one.pre_filter, other.pre_filter))
    return Wrong(rule, absl::StrCat("PreFilter differs ", what));
  if (!same(one.filter, other.filter)) return Wrong(rule, absl::StrCat("Filter differs ", what));
  if (!same(one.pre_score, other.pre_score))
    return Wrong(rule, absl::StrCat("PreScore differs ", what));
  if (!same(one.score, other.score)) return Wrong(rule, absl::StrCat("Score differs ", what));
  return absl::OkStatus();
}

absl::Status CheckPreFilter(const Kit& kit, const PreFilterResponse& response) {
  return Malformed("PreFilterService", PreFilterFault(kit, response));
}

absl::Status CheckFilter(const Kit& kit, const FilterResponse& response,
                         const std::vector<uint32_t>& list, size_t wanted, Verdicts* verdicts,
                         std::vector<uint32_t>* feasible) {
  return Malformed("FilterService", FilterFault(kit, response, list, wanted, verdicts, feasible));
}

absl::Status CheckScore(const Kit& kit, const PreScoreResponse& before,
                        const ScoreResponse& response, size_t nodes) {
  return Malformed("ScoreService", ScoreFault(kit, before, response, nodes));
}

absl::Status ExpectAlive(const Session& session, uint64_t attempt) {
  if (!session.kit().HasAlgorithm() || session.is_inline()) return session.AwaitReady();
  const std::vector<Pod>& pending = session.cluster().pending;
  // Cases that send their own snapshot send that of MakeCluster.
  return ExpectOk(
      session.PreFilter(attempt, (pending.empty() ? MakePod("plain") : pending[0]).uid()));
}

absl::Status ExpectStreamRefused(Session* session, const std::string& what) {
  const bool asked_again = session->sync().Await(
      [](const std::vector<SyncResponse>& received) {
        return std::any_of(received.begin(), received.end(),
                           [](const SyncResponse& response) { return response.has_resync(); });
      },
      kSoon);
  // Requesting a snapshot is allowed instead of ending the stream.
  if (!asked_again) {
    grpc::Status status;
    if (!session->sync().AwaitEnd(absl::ZeroDuration(), &status))
      return Wrong(kSyncRefuses, absl::StrCat(what, " is accepted"));
    const auto error = call_errors::CallErrorOf(status);
    if (status.error_code() != grpc::StatusCode::FAILED_PRECONDITION || !error.has_value() ||
        error->reason() != CallError::REASON_INVALID) {
      return Wrong(kSyncRefuses, absl::StrCat(what, " ends the stream with ", Describe(status)));
    }
  }
  // After that, a snapshot must work.
  session->OpenStream();
  session->SendSnapshot(MakeCluster(5), 20);
  return ExpectAlive(*session, 1);
}

}  // namespace outboard::conformance
