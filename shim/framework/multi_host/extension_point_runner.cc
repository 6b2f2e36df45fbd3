#include "shim/framework/multi_host/extension_point_runner.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/clock.h"
#include "shim/framework/multi_host/merge_answers.h"
#include "shim/framework/multi_host/staged_filter.h"
#include "shim/framework/rejections.h"
#include "shim/framework/select_node.h"

namespace outboard::framework {
namespace {

using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::NodeSearch;
using v1beta1::PluginStatus;
using v1beta1::PreFilterRequest;
using v1beta1::PreFilterResponse;
using v1beta1::PreScoreRequest;
using v1beta1::PreScoreResponse;
using v1beta1::ScoreRequest;
using v1beta1::ScoreResponse;

// A host answers for its own plugins only.
absl::Status CheckOwn(const std::vector<std::string>& own, const std::string& plugin,
                      absl::string_view point) {
  if (std::find(own.begin(), own.end(), plugin) != own.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(point, " answers for \"", plugin,
                                          "\", which this host does not serve in the profile"));
}

absl::Status CheckOwnPreFilter(const HostProfile& share, const PreFilterResponse& answer) {
  absl::Status checked = CheckPreFilter(answer);
  for (const std::string& plugin : answer.restricted_by()) {
    checked.Update(CheckOwn(share.pre_filter_plugins, plugin, "PreFilter"));
  }
  for (const std::string& plugin : answer.rejected_by()) {
    checked.Update(CheckOwn(share.pre_filter_plugins, plugin, "PreFilter"));
  }
  if (!answer.rejection().plugin().empty()) {
    checked.Update(CheckOwn(share.pre_filter_plugins, answer.rejection().plugin(), "PreFilter"));
  }
  return checked;
}

absl::Status CheckOwnFilter(const HostProfile& share, uint32_t num_nodes, uint32_t num_to_find,
                            const FilterResponse& answer) {
  std::vector<uint32_t> feasible;
  absl::Status checked = CheckFilter(answer, num_nodes, num_to_find, &feasible);
  for (const PluginStatus& status : answer.reasons()) {
    checked.Update(CheckOwn(share.filter_plugins, status.plugin(), "Filter"));
  }
  if (answer.has_error()) {
    checked.Update(CheckOwn(share.filter_plugins, answer.error().plugin(), "Filter"));
  }
  return checked;
}

// A host that did not answer at Filter cannot score either: its state of the pod was lost.
bool IsOpenAtFilter(const HostProfile& share) {
  return share.filter_fail_open && share.score_fail_open;
}

// An answer that is already here; it outlives the closure.
template <typename Response>
PendingAnswer<Response> Known(const Response& answer) {
  return [&answer]() -> absl::StatusOr<Response> { return answer; };
}

template <typename Pending, typename Answer>
void Insert(size_t host, Answer answer, Pending* pending) {
  const auto behind = std::find_if(pending->begin(), pending->end(),
                                   [host](const auto& other) { return other.first > host; });
  pending->emplace(behind, host, std::move(answer));
}

}  // namespace

void ExtensionPointRunner::FillHeader(size_t host, v1beta1::CallHeader* header) const {
  header->set_attempt_id(attempt_id_);
  header->set_exact_version(hosts_[host].version);
  header->set_profile(profile_.name);
}

template <typename Question>
void ExtensionPointRunner::NameNominated(Question* question) {
  if (cluster_ == nullptr) return;
  if (!nominated_.has_value()) nominated_ = NominatedBeside(*cluster_, *pod_);
  AddNominated(*nominated_, question);
}

bool ExtensionPointRunner::IsIgnored(size_t host) const {
  return std::any_of(ignored_failures_.begin(), ignored_failures_.end(),
                     [host](const IgnoredFailure& failure) { return failure.host == host; });
}

// For a single host.
template <typename Response>
absl::StatusOr<Response> ExtensionPointRunner::Recorded(absl::StatusOr<Response> answer) {
  if (recorder_ != nullptr && answer.ok()) recorder_->Answers(0, *answer);
  return answer;
}

template <typename Response, typename Request, typename TakesPart>
ExtensionPointRunner::Pending<Response> ExtensionPointRunner::StartAll(const Request& request,
                                                                       TakesPart takes_part) {
  Pending<Response> pending;
  for (size_t host = 0; host < hosts_.size(); ++host) {
    if (!takes_part(host) || IsIgnored(host)) continue;
    if (hosts_[host].client == nullptr) {
      pending.emplace_back(host, []() -> absl::StatusOr<Response> {
        return absl::UnavailableError("the host is unavailable");
      });
      continue;
    }
    Request own = request;
    FillHeader(host, own.mutable_header());
    pending.emplace_back(host, hosts_[host].client->Start(std::move(own), deadline_));
  }
  return pending;
}

template <typename Response, typename Request, typename TakesPart>
ExtensionPointRunner::Pending<Response> ExtensionPointRunner::StartOrRecall(
    const Request& request, TakesPart takes_part,
    const Response& (v1beta1::CycleEvaluation::*part)() const) {
  std::map<size_t, const v1beta1::CycleEvaluation*> known;
  if (at_once_.scores_stand) {
    known[*profile_.main_host] = &at_once_.answer->evaluation();
    for (const auto& [host, answer] : at_once_.late) known[host] = &answer.evaluation();
  }
  Pending<Response> pending = StartAll<Response>(
      request, [&](size_t host) { return known.count(host) == 0 && takes_part(host); });
  for (const auto& [host, answer] : known) {
    if (takes_part(host) && !IsIgnored(host)) Insert(host, Known((answer->*part)()), &pending);
  }
  return pending;
}

template <typename Response, typename IsOpen, typename Check>
absl::StatusOr<ExtensionPointRunner::Answers<Response>> ExtensionPointRunner::TakeAll(
    v1beta1::ExtensionPoint point, Pending<Response> pending, IsOpen fail_open, Check check,
    bool answer_required) {
  Answers<Response> answered;
  for (auto& [host, answer] : pending) {
    absl::StatusOr<Response> taken = std::move(answer)();
    absl::Status usable = taken.ok() ? check(host, *taken) : taken.status();
    if (usable.ok()) {
      if (recorder_ != nullptr) recorder_->Answers(host, *taken);
      answered.hosts.push_back(host);
      answered.answers.push_back(*std::move(taken));
      continue;
    }
    failed_host_ = host;
    if (!fail_open(profile_.shares[host])) return usable;
    ignored_failures_.push_back({host, point, false, std::move(usable)});
  }
  if (answered.hosts.empty() && !pending.empty() && answer_required)
    return ignored_failures_.back().status;
  return answered;
}

PendingAnswer<PreFilterResponse> ExtensionPointRunner::AskMain(PreFilterRequest request) {
  const size_t main = *profile_.main_host;
  HostClient* const client = hosts_[main].client;
  absl::Status called = CallCycle(client, *at_once_.request, deadline_, at_once_.answer);
  at_once_.answered = called.ok();
  if (called.ok()) return Known(PreFilterOf(*at_once_.answer));
  VLOG(2) << "The main host is called point by point: " << called;
  FillHeader(main, request.mutable_header());
  return client->Start(std::move(request), deadline_);
}

absl::StatusOr<PreFilterResponse> ExtensionPointRunner::PreFilter(const std::string& pod_uid) {
  PreFilterRequest request;
  request.set_pod_uid(pod_uid);
  if (alone()) {
    FillHeader(0, request.mutable_header());
    return Recorded(hosts_[0].client->PreFilter(std::move(request), deadline_));
  }
  const size_t main = at_once_.request == nullptr ? hosts_.size() : *profile_.main_host;
  auto pending = StartAll<PreFilterResponse>(request, [&](size_t host) { return host != main; });
  // The other hosts work in parallel with the main host.
  if (at_once_.request != nullptr) Insert(main, AskMain(request), &pending);
  auto asked = TakeAll<PreFilterResponse>(
      v1beta1::EXTENSION_POINT_PRE_FILTER, std::move(pending),
      [](const HostProfile& share) { return share.is_optional(); },
      [this](size_t host, const PreFilterResponse& answer) {
        return CheckOwnPreFilter(profile_.shares[host], answer);
      },
      /*answer_required=*/true);
  if (!asked.ok()) return asked.status();
  at_once_.search_stands = at_once_.answered && !IsIgnored(main);
  for (size_t i = 0; i < asked->hosts.size(); ++i) {
    const PreFilterResponse& answer = asked->answers[i];
    if (asked->hosts[i] != main && (answer.has_node_names() || answer.has_rejection()))
      at_once_.search_stands = false;
  }
  return MergePreFilter(profile_.pre_filter_plugins, std::move(asked->answers));
}

absl::StatusOr<FilterResponse> ExtensionPointRunner::Simulate(v1beta1::NodeSimulation simulation) {
  FilterRequest request;
  FillHeader(0, request.mutable_header());
  NameNominated(&simulation);
  *request.mutable_simulation() = std::move(simulation);
  return hosts_[0].client->Filter(std::move(request), deadline_);
}

absl::StatusOr<FilterResponse> ExtensionPointRunner::Filter(v1beta1::NodeSearch search,
                                                            absl::Span<const uint32_t> candidates,
                                                            uint32_t num_to_find) {
  if (alone()) {
    NameNominated(&search);
    if (recorder_ != nullptr) recorder_->Asks(search, candidates);
    FilterRequest request;
    FillHeader(0, request.mutable_header());
    *request.mutable_search() = std::move(search);
    return Recorded(hosts_[0].client->Filter(std::move(request), deadline_));
  }
  const uint32_t num_nodes = static_cast<uint32_t>(candidates.size());
  // The position of the first plugin of a late host.
  const std::vector<std::string>& order = profile_.filter_plugins;
  size_t first_late = order.size();
  for (size_t host = 0; host < profile_.shares.size(); ++host) {
    const std::vector<std::string>& own = profile_.shares[host].filter_plugins;
    if (host == profile_.main_host || own.empty()) continue;
    const auto first = std::find(order.begin(), order.end(), own.front());
    first_late = std::min(first_late, static_cast<size_t>(first - order.begin()));
  }
  const bool any_late = first_late < order.size();
  absl::StatusOr<FilterResponse> early;
  if (at_once_.search_stands) {
    early = TakeMainSearch(num_nodes, num_to_find, /*must_answer=*/!any_late);
    at_once_.scores_stand =
        !IsIgnored(*profile_.main_host) && !at_once_.answer->evaluation().filter().has_error();
  } else {
    // The sample depends on the answers of all hosts.
    search.set_num_feasible_nodes_to_find(std::max(num_nodes, 1u));
    early = AskFilter(search, candidates, any_late ? num_nodes : num_to_find, /*late=*/false,
                      /*sample=*/0,
                      /*answer_required=*/!any_late);
  }
  if (!any_late || !early.ok()) return early;
  // The nodes of the main host's sample, and the node at which its search ended.
  bool is_first = true;
  const uint32_t sample = at_once_.scores_stand ? CountSetBits(early->feasible()) : 0;
  const uint32_t sample_and_end = sample + (early->processed() < num_nodes ? 1 : 0);
  const bool main_is_heard = profile_.main_host.has_value() && !IsIgnored(*profile_.main_host);
  const auto ask = [&](const std::vector<uint32_t>& positions, bool late) {
    std::vector<uint32_t> slots;
    for (const uint32_t i : positions)
      slots.push_back(candidates[(search.start_offset() + i) % num_nodes]);
    // The first question to late hosts is about all that the main host's search may have left.
    const bool about_sample =
        late && std::exchange(is_first, false) && sample > 1 && slots.size() == sample_and_end;
    return AskFilter(SearchEach(slots), slots, static_cast<uint32_t>(slots.size()), late,
                     about_sample ? sample : 0,
                     /*answer_required=*/!late || !main_is_heard);
  };
  absl::StatusOr<FilterResponse> merged = StagedFilter(
      order, first_late, *std::move(early), num_nodes, num_to_find,
      [&](const std::vector<uint32_t>& positions) { return ask(positions, /*late=*/false); },
      [&](const std::vector<uint32_t>& positions) { return ask(positions, /*late=*/true); });
  if (merged.ok() && at_once_.scores_stand)
    at_once_.scores_stand = merged->feasible() == at_once_.answer->evaluation().filter().feasible();
  return merged;
}

absl::StatusOr<FilterResponse> ExtensionPointRunner::TakeMainSearch(uint32_t num_nodes,
                                                                    uint32_t num_to_find,
                                                                    bool must_answer) {
  Pending<FilterResponse> pending;
  Insert(*profile_.main_host, Known(at_once_.answer->evaluation().filter()), &pending);
  auto asked = TakeAll<FilterResponse>(
      v1beta1::EXTENSION_POINT_FILTER, std::move(pending), IsOpenAtFilter,
      [&](size_t host, const FilterResponse& answer) {
        return CheckOwnFilter(profile_.shares[host], num_nodes, num_to_find, answer);
      },
      must_answer);
  if (!asked.ok()) return asked.status();
  if (!asked->answers.empty()) return std::move(asked->answers.front());
  // The missing answer counts as: every node feasible.
  return MergeFilter({}, {}, num_nodes, num_nodes,
                     [](size_t, uint32_t) { return absl::InternalError("no host answered"); });
}

absl::StatusOr<FilterResponse> ExtensionPointRunner::AskFilter(
    NodeSearch nodes, absl::Span<const uint32_t> candidates, uint32_t num_to_find, bool late,
    uint32_t sample, bool answer_required) {
  FilterRequest request;
  NameNominated(&nodes);
  *request.mutable_search() = std::move(nodes);
  const NodeSearch& search = request.search();
  if (recorder_ != nullptr) recorder_->Asks(search, candidates);
  const uint32_t num_nodes = static_cast<uint32_t>(candidates.size());
  const auto takes_part = [&](size_t host) {
    return !profile_.shares[host].filter_plugins.empty() && late == (host != profile_.main_host);
  };
  const auto is_asked_at_once = [&](size_t host) {
    return sample > 0 && profile_.shares[host].can_fuse && hosts_[host].client != nullptr;
  };
  Pending<FilterResponse> pending = StartAll<FilterResponse>(
      request, [&](size_t host) { return takes_part(host) && !is_asked_at_once(host); });
  for (size_t host = 0; host < hosts_.size(); ++host) {
    if (takes_part(host) && is_asked_at_once(host) && !IsIgnored(host))
      Insert(host, AskAtOnce(host, search, sample), &pending);
  }
  auto asked = TakeAll<FilterResponse>(
      v1beta1::EXTENSION_POINT_FILTER, std::move(pending), IsOpenAtFilter,
      [&](size_t host, const FilterResponse& answer) {
        return CheckOwnFilter(profile_.shares[host], num_nodes, num_nodes, answer);
      },
      answer_required);
  if (!asked.ok()) return asked.status();
  if (asked->answers.size() == 1 && num_to_find >= num_nodes)
    return std::move(asked->answers.front());
  const auto more = [&](size_t index, uint32_t first) -> absl::StatusOr<FilterResponse> {
    FilterRequest rest;
    const size_t host = asked->hosts[index];
    FillHeader(host, rest.mutable_header());
    std::vector<uint32_t> slots;
    for (uint32_t i = first; i < num_nodes; ++i)
      slots.push_back(candidates[(search.start_offset() + i) % num_nodes]);
    *rest.mutable_search() = SearchEach(slots);
    NameNominated(rest.mutable_search());
    absl::StatusOr<FilterResponse> answer = hosts_[host].client->Filter(std::move(rest), deadline_);
    absl::Status usable = answer.ok() ? CheckOwnFilter(profile_.shares[host], num_nodes - first,
                                                       num_nodes - first, *answer)
                                      : answer.status();
    if (usable.ok()) return answer;
    failed_host_ = host;
    return usable;
  };
  return MergeFilter(profile_.filter_plugins, std::move(asked->answers), num_nodes, num_to_find,
                     more);
}

PendingAnswer<FilterResponse> ExtensionPointRunner::AskAtOnce(size_t host, const NodeSearch& search,
                                                              uint32_t sample) {
  v1beta1::PlanRequest request;
  v1beta1::CycleRequest& cycle = *request.mutable_cycle();
  FillHeader(host, cycle.mutable_header());
  const absl::Duration left = std::min(deadline_ - SteadyNow(), absl::Hours(1));
  cycle.set_deadline_micros(std::max<int64_t>(absl::ToInt64Microseconds(left), 1));
  cycle.set_explain(explain_);
  cycle.set_pod_uid(at_once_.request->cycle().pod_uid());
  *cycle.mutable_search() = search;
  cycle.mutable_search()->clear_nominated();
  cycle.mutable_search()->set_num_feasible_nodes_to_find(sample);
  v1beta1::PlanResponse& answer = at_once_.late[host];
  const absl::Status called = CallCycle(hosts_[host].client, request, deadline_, &answer);
  // PreFilter let the pod pass before.
  if (!called.ok() || !answer.has_evaluation() ||
      answer.evaluation().pre_filter().has_node_names()) {
    VLOG(2) << "A late host is called point by point: " << called;
    at_once_.late.erase(host);
    FilterRequest plain;
    FillHeader(host, plain.mutable_header());
    *plain.mutable_search() = search;
    return hosts_[host].client->Start(std::move(plain), deadline_);
  }
  FilterResponse filter = answer.evaluation().filter();
  const bool all =
      filter.rejected().empty() && filter.rejected_for().empty() && !filter.has_error();
  if (all && filter.processed() == sample + 1) {
    at_once_.late.erase(host);  // It did not stop, and also scored the node after the sample.
  } else if (all && filter.processed() == sample && filter.feasible().size() == (sample + 7) / 8 &&
             search.nodes().slots_size() == static_cast<int>(sample) + 1) {
    // The search ended at a feasible node, the last.
    filter.set_processed(sample + 1);
    std::string& bits = *filter.mutable_feasible();
    bits.resize(sample / 8 + 1);
    bits[sample / 8] = static_cast<char>(bits[sample / 8] | (1 << (sample % 8)));
  }
  return [filter = std::move(filter)]() mutable -> absl::StatusOr<FilterResponse> {
    return std::move(filter);
  };
}

absl::StatusOr<PreScoreResponse> ExtensionPointRunner::PreScore(const v1beta1::NodeSet& nodes) {
  if (recorder_ != nullptr) recorder_->Asks(nodes);
  PreScoreRequest request;
  *request.mutable_nodes() = nodes;
  if (alone()) {
    FillHeader(0, request.mutable_header());
    return Recorded(hosts_[0].client->PreScore(std::move(request), deadline_));
  }
  auto asked = TakeAll<PreScoreResponse>(
      v1beta1::EXTENSION_POINT_PRE_SCORE,
      StartOrRecall(
          request, [this](size_t host) { return !profile_.shares[host].pre_score_plugins.empty(); },
          &v1beta1::CycleEvaluation::pre_score),
      [](const HostProfile& share) { return share.score_fail_open; },
      [this](size_t host, const PreScoreResponse& answer) {
        const std::vector<std::string>& own = profile_.shares[host].pre_score_plugins;
        return answer.has_error() ? CheckOwn(own, answer.error().plugin(), "PreScore")
                                  : absl::OkStatus();
      },
      /*answer_required=*/false);
  if (!asked.ok()) return asked.status();
  return MergePreScore(profile_.pre_score_plugins, asked->answers);
}

absl::StatusOr<ScoreResponse> ExtensionPointRunner::Score(const v1beta1::NodeSet& nodes) {
  if (recorder_ != nullptr) recorder_->Asks(nodes);
  ScoreRequest request;
  *request.mutable_nodes() = nodes;
  request.set_explain(explain_);
  if (alone()) {
    FillHeader(0, request.mutable_header());
    return Recorded(hosts_[0].client->Score(std::move(request), deadline_));
  }
  auto asked = TakeAll<ScoreResponse>(
      v1beta1::EXTENSION_POINT_SCORE,
      StartOrRecall(
          request, [this](size_t host) { return !profile_.shares[host].score_plugins.empty(); },
          &v1beta1::CycleEvaluation::score),
      [](const HostProfile& share) { return share.score_fail_open; },
      [&](size_t host, const ScoreResponse& answer) {
        std::vector<int64_t> unused;
        return CheckScores(answer, static_cast<uint32_t>(nodes.slots_size()),
                           profile_.shares[host].score_plugins, &unused);
      },
      /*answer_required=*/false);
  if (!asked.ok()) return asked.status();
  if (last_scores_ != nullptr && !owner_.empty()) {
    const absl::Time now = SteadyNow();
    const auto key = [this](size_t host) {
      return absl::StrCat(profile_.name, "/", host, "/", owner_);
    };
    for (size_t i = 0; i < asked->hosts.size(); ++i) {
      const size_t host = asked->hosts[i];
      if (profile_.shares[host].score_uses_last && !asked->answers[i].has_error())
        last_scores_->Keep(key(host), nodes, asked->answers[i], now);
    }
    for (IgnoredFailure& failure : ignored_failures_) {
      if (!profile_.shares[failure.host].score_uses_last) continue;
      auto last = last_scores_->Find(key(failure.host), nodes, now);
      if (!last.has_value()) continue;
      failure.used_last = true;
      asked->answers.push_back(*std::move(last));
    }
  }
  return MergeScore(profile_.score_plugins, std::move(asked->answers));
}

void LastScores::Keep(const std::string& key, const v1beta1::NodeSet& nodes,
                      const ScoreResponse& scores, absl::Time now) {
  if (entries_.size() >= kMaxEntries && entries_.count(key) == 0) {
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.time < b.second.time; }));
  }
  Entry& entry = entries_[key];
  entry.time = now;
  entry.scores = scores;
  entry.position.clear();
  for (int i = 0; i < nodes.slots_size(); ++i)
    entry.position[nodes.slots(i)] = static_cast<size_t>(i);
}

std::optional<ScoreResponse> LastScores::Find(const std::string& key, const v1beta1::NodeSet& nodes,
                                              absl::Time now) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || now - found->second.time > kMaxAge) return std::nullopt;
  const Entry& entry = found->second;
  ScoreResponse scores;
  for (const v1beta1::PluginScores& old : entry.scores.plugins()) {
    v1beta1::PluginScores* plugin = scores.add_plugins();
    plugin->set_plugin(old.plugin());
    for (const uint32_t slot : nodes.slots()) {
      const auto position = entry.position.find(slot);
      if (position == entry.position.end()) return std::nullopt;
      plugin->mutable_scores()->push_back(old.scores()[position->second]);
    }
  }
  return scores;
}

absl::StatusOr<std::vector<std::vector<PluginStatus>>> ExtensionPointRunner::EvaluateHypotheses(
    const google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode>& hypotheses, size_t excepted) {
  FilterRequest request;
  *request.mutable_simulation()->mutable_nodes() = hypotheses;
  NameNominated(request.mutable_simulation());
  const uint32_t count = static_cast<uint32_t>(hypotheses.size());
  std::vector<std::vector<PluginStatus>> objections(count);
  auto asked = TakeAll<FilterResponse>(
      v1beta1::EXTENSION_POINT_FILTER,
      StartAll<FilterResponse>(request,
                               [&](size_t host) {
                                 return host != excepted &&
                                        !profile_.shares[host].filter_plugins.empty();
                               }),
      IsOpenAtFilter,
      [&](size_t host, const FilterResponse& answer) {
        if (answer.has_error()) return absl::InternalError("Filter failed for all hypotheses");
        return CheckOwnFilter(profile_.shares[host], count, count, answer);
      },
      /*answer_required=*/true);
  if (!asked.ok()) return asked.status();
  for (const FilterResponse& answer : asked->answers) {
    RejectedNodes rejected;
    for (uint32_t i = 0; i < count; ++i) {
      if ((answer.feasible()[i / 8] >> (i % 8)) & 1) continue;
      objections[i].push_back(answer.reasons(static_cast<int>(*rejected.NextReason(answer, i))));
    }
  }
  return objections;
}

absl::StatusOr<std::vector<PluginStatus>> ExtensionPointRunner::AnswerQuestions(
    const google::protobuf::RepeatedPtrField<v1beta1::PreemptionQuestion>& questions,
    size_t asking) {
  google::protobuf::RepeatedPtrField<v1beta1::SimulatedNode> hypotheses;
  for (const auto& question : questions) *hypotheses.Add() = question.simulated_node();
  auto objections = EvaluateHypotheses(hypotheses, asking);
  if (!objections.ok()) return objections.status();
  const auto position = [this](const PluginStatus& status) {
    const std::vector<std::string>& order = profile_.filter_plugins;
    return std::find(order.begin(), order.end(), status.plugin()) - order.begin();
  };
  std::vector<PluginStatus> verdicts(objections->size());
  for (size_t i = 0; i < verdicts.size(); ++i) {
    std::vector<PluginStatus>& all = (*objections)[i];
    const auto& question = questions[static_cast<int>(i)];
    if (question.has_own()) all.push_back(question.own());
    if (all.empty()) {
      verdicts[i].set_code(v1beta1::CODE_SUCCESS);
      continue;
    }
    verdicts[i] = *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return position(a) < position(b);
    });
  }
  return verdicts;
}

}  // namespace outboard::framework
