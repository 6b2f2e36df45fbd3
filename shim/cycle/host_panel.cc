#include "shim/cycle/host_panel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/cycle/late_filter.h"
#include "shim/cycle/merge_answers.h"

namespace outboard::cycle {
namespace {

using v1alpha1::FilterRequest;
using v1alpha1::FilterResponse;
using v1alpha1::PluginStatus;
using v1alpha1::PreFilterRequest;
using v1alpha1::PreFilterResponse;
using v1alpha1::PreScoreRequest;
using v1alpha1::PreScoreResponse;
using v1alpha1::ScoreRequest;
using v1alpha1::ScoreResponse;

// A host speaks for its own plugins only.
absl::Status CheckOwn(const std::vector<std::string>& own, const std::string& plugin,
                      absl::string_view point) {
  if (std::find(own.begin(), own.end(), plugin) != own.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(point, " answers for \"", plugin,
                                          "\", which this host does not serve in the profile"));
}

absl::Status CheckOwnPreFilter(const AlgorithmShare& share, const PreFilterResponse& answer) {
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

absl::Status CheckOwnFilter(const AlgorithmShare& share, uint32_t num_nodes,
                            const FilterResponse& answer) {
  std::vector<uint32_t> feasible;
  absl::Status checked = CheckFilter(answer, num_nodes, num_nodes, &feasible);
  for (const PluginStatus& status : answer.reasons()) {
    checked.Update(CheckOwn(share.filter_plugins, status.plugin(), "Filter"));
  }
  if (answer.has_error()) {
    checked.Update(CheckOwn(share.filter_plugins, answer.error().plugin(), "Filter"));
  }
  return checked;
}

}  // namespace

void HostPanel::FillHeader(size_t host, v1alpha1::CallHeader* header) const {
  header->set_attempt_id(attempt_id_);
  header->set_snapshot_version(hosts_[host].version);
  header->set_profile(profile_.name);
}

bool HostPanel::IsLeftOut(size_t host) const {
  return std::any_of(left_out_.begin(), left_out_.end(),
                     [host](const LeftOut& left_out) { return left_out.host == host; });
}

// Of the host that is alone.
template <typename Response>
absl::StatusOr<Response> HostPanel::Recorded(absl::StatusOr<Response> answer) {
  if (recorder_ != nullptr && answer.ok()) recorder_->Answers(0, *answer);
  return answer;
}

template <typename Response, typename Request, typename TakesPart, typename IsOpen, typename Check>
absl::StatusOr<HostPanel::Answers<Response>> HostPanel::AskAll(v1alpha1::ExtensionPoint point,
                                                               const Request& request,
                                                               TakesPart takes_part, IsOpen is_open,
                                                               Check check,
                                                               bool somebody_must_answer) {
  std::vector<std::pair<size_t, PendingAnswer<Response>>> pending;
  for (size_t host = 0; host < hosts_.size(); ++host) {
    if (!takes_part(host) || IsLeftOut(host)) continue;
    if (hosts_[host].client == nullptr) {
      pending.emplace_back(host, []() -> absl::StatusOr<Response> {
        return absl::UnavailableError("the host is away");
      });
      continue;
    }
    Request own = request;
    FillHeader(host, own.mutable_header());
    pending.emplace_back(host, hosts_[host].client->Start(std::move(own), deadline_));
  }
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
    silent_host_ = host;
    if (!is_open(profile_.shares[host])) return usable;
    left_out_.push_back({host, point, false, std::move(usable)});
  }
  if (answered.hosts.empty() && !pending.empty() && somebody_must_answer)
    return left_out_.back().status;
  return answered;
}

absl::StatusOr<PreFilterResponse> HostPanel::PreFilter(const std::string& pod_uid) {
  PreFilterRequest request;
  request.set_pod_uid(pod_uid);
  if (alone()) {
    FillHeader(0, request.mutable_header());
    return Recorded(hosts_[0].client->PreFilter(std::move(request), deadline_));
  }
  auto asked = AskAll<PreFilterResponse>(
      v1alpha1::PRE_FILTER, request, [](size_t) { return true; },
      [](const AlgorithmShare& share) { return share.is_optional(); },
      [this](size_t host, const PreFilterResponse& answer) {
        return CheckOwnPreFilter(profile_.shares[host], answer);
      },
      /*somebody_must_answer=*/true);
  if (!asked.ok()) return asked.status();
  return MergePreFilter(profile_.pre_filter_plugins, std::move(asked->answers));
}

absl::StatusOr<FilterResponse> HostPanel::Filter(FilterRequest request,
                                                 absl::Span<const uint32_t> candidates,
                                                 uint32_t num_to_find) {
  if (alone()) {
    if (recorder_ != nullptr) recorder_->Asks(request, candidates);
    FillHeader(0, request.mutable_header());
    return Recorded(hosts_[0].client->Filter(std::move(request), deadline_));
  }
  // Which nodes the sample has depends on what all say.
  request.set_percentage_of_nodes_to_score(100);
  request.set_first_feasible_only(false);
  const uint32_t num_nodes = static_cast<uint32_t>(candidates.size());
  const bool any_late = std::any_of(profile_.shares.begin(), profile_.shares.end(),
                                    [](const AlgorithmShare& share) { return share.filters_late; });
  const bool any_early =
      std::any_of(profile_.shares.begin(), profile_.shares.end(), [](const AlgorithmShare& share) {
        return !share.filters_late && !share.filter_plugins.empty();
      });
  absl::StatusOr<FilterResponse> early =
      AskFilter(request, candidates, any_late ? num_nodes : num_to_find, /*late=*/false,
                /*somebody_must_answer=*/true);
  if (!any_late || !early.ok()) return early;
  return FilterLate(*early, num_nodes, num_to_find, [&](const std::vector<uint32_t>& positions) {
    FilterRequest left;
    left.set_percentage_of_nodes_to_score(100);
    std::vector<uint32_t> slots;
    for (const uint32_t i : positions)
      slots.push_back(candidates[(request.start_offset() + i) % num_nodes]);
    left.mutable_nodes()->mutable_slots()->Add(slots.begin(), slots.end());
    return AskFilter(left, slots, static_cast<uint32_t>(slots.size()), /*late=*/true,
                     /*somebody_must_answer=*/!any_early);
  });
}

absl::StatusOr<FilterResponse> HostPanel::AskFilter(const FilterRequest& request,
                                                    absl::Span<const uint32_t> candidates,
                                                    uint32_t num_to_find, bool late,
                                                    bool somebody_must_answer) {
  if (recorder_ != nullptr) recorder_->Asks(request, candidates);
  const uint32_t num_nodes = static_cast<uint32_t>(candidates.size());
  auto asked = AskAll<FilterResponse>(
      v1alpha1::FILTER, request,
      [&](size_t host) {
        const AlgorithmShare& share = profile_.shares[host];
        return !share.filter_plugins.empty() && share.filters_late == late;
      },
      // What it knows of the pod went with it, so it does not score either.
      [](const AlgorithmShare& share) { return share.filter_is_open && share.score_is_open; },
      [&](size_t host, const FilterResponse& answer) {
        return CheckOwnFilter(profile_.shares[host], num_nodes, answer);
      },
      somebody_must_answer);
  if (!asked.ok()) return asked.status();
  const auto more = [&](size_t index, uint32_t first) -> absl::StatusOr<FilterResponse> {
    FilterRequest rest;
    const size_t host = asked->hosts[index];
    FillHeader(host, rest.mutable_header());
    rest.set_percentage_of_nodes_to_score(100);
    for (uint32_t i = first; i < num_nodes; ++i) {
      rest.mutable_nodes()->add_slots(candidates[(request.start_offset() + i) % num_nodes]);
    }
    absl::StatusOr<FilterResponse> answer = hosts_[host].client->Filter(std::move(rest), deadline_);
    absl::Status usable = answer.ok()
                              ? CheckOwnFilter(profile_.shares[host], num_nodes - first, *answer)
                              : answer.status();
    if (usable.ok()) return answer;
    silent_host_ = host;
    return usable;
  };
  return MergeFilter(profile_.filter_plugins, std::move(asked->answers), num_nodes, num_to_find,
                     more);
}

absl::StatusOr<PreScoreResponse> HostPanel::PreScore(const v1alpha1::NodeSet& nodes) {
  if (recorder_ != nullptr) recorder_->Asks(nodes);
  PreScoreRequest request;
  *request.mutable_nodes() = nodes;
  if (alone()) {
    FillHeader(0, request.mutable_header());
    return Recorded(hosts_[0].client->PreScore(std::move(request), deadline_));
  }
  auto asked = AskAll<PreScoreResponse>(
      v1alpha1::PRE_SCORE, request,
      [this](size_t host) { return !profile_.shares[host].pre_score_plugins.empty(); },
      [](const AlgorithmShare& share) { return share.score_is_open; },
      [this](size_t host, const PreScoreResponse& answer) {
        const std::vector<std::string>& own = profile_.shares[host].pre_score_plugins;
        return answer.has_error() ? CheckOwn(own, answer.error().plugin(), "PreScore")
                                  : absl::OkStatus();
      },
      /*somebody_must_answer=*/false);
  if (!asked.ok()) return asked.status();
  return MergePreScore(profile_.pre_score_plugins, asked->answers);
}

absl::StatusOr<ScoreResponse> HostPanel::Score(const v1alpha1::NodeSet& nodes) {
  if (recorder_ != nullptr) recorder_->Asks(nodes);
  ScoreRequest request;
  *request.mutable_nodes() = nodes;
  if (alone()) {
    FillHeader(0, request.mutable_header());
    return Recorded(hosts_[0].client->Score(std::move(request), deadline_));
  }
  auto asked = AskAll<ScoreResponse>(
      v1alpha1::SCORE, request,
      [this](size_t host) { return !profile_.shares[host].score_plugins.empty(); },
      [](const AlgorithmShare& share) { return share.score_is_open; },
      [&](size_t host, const ScoreResponse& answer) {
        std::vector<int64_t> unused;
        return CheckScores(answer, static_cast<uint32_t>(nodes.slots_size()),
                           profile_.shares[host].score_plugins, &unused);
      },
      /*somebody_must_answer=*/false);
  if (!asked.ok()) return asked.status();
  if (last_scores_ != nullptr && !owner_.empty()) {
    const absl::Time now = absl::Now();
    const auto key = [this](size_t host) {
      return absl::StrCat(profile_.name, "/", host, "/", owner_);
    };
    for (size_t i = 0; i < asked->hosts.size(); ++i) {
      const size_t host = asked->hosts[i];
      if (profile_.shares[host].score_uses_last && !asked->answers[i].has_error())
        last_scores_->Keep(key(host), nodes, asked->answers[i], now);
    }
    for (LeftOut& left_out : left_out_) {
      if (!profile_.shares[left_out.host].score_uses_last) continue;
      auto last = last_scores_->Find(key(left_out.host), nodes, now);
      if (!last.has_value()) continue;
      left_out.used_last = true;
      asked->answers.push_back(*std::move(last));
    }
  }
  return MergeScore(profile_.score_plugins, std::move(asked->answers));
}

void LastScores::Keep(const std::string& key, const v1alpha1::NodeSet& nodes,
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

std::optional<ScoreResponse> LastScores::Find(const std::string& key,
                                              const v1alpha1::NodeSet& nodes,
                                              absl::Time now) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || now - found->second.time > kMaxAge) return std::nullopt;
  const Entry& entry = found->second;
  ScoreResponse scores;
  for (const v1alpha1::PluginScores& old : entry.scores.plugins()) {
    v1alpha1::PluginScores* plugin = scores.add_plugins();
    plugin->set_plugin(old.plugin());
    for (const uint32_t slot : nodes.slots()) {
      const auto position = entry.position.find(slot);
      if (position == entry.position.end()) return std::nullopt;
      plugin->mutable_scores()->push_back(old.scores()[position->second]);
    }
  }
  return scores;
}

absl::StatusOr<std::vector<std::vector<PluginStatus>>> HostPanel::Judge(
    const google::protobuf::RepeatedPtrField<v1alpha1::Hypothesis>& hypotheses, size_t excepted) {
  FilterRequest request;
  *request.mutable_hypotheses() = hypotheses;
  const uint32_t count = static_cast<uint32_t>(hypotheses.size());
  std::vector<std::vector<PluginStatus>> objections(count);
  auto asked = AskAll<FilterResponse>(
      v1alpha1::FILTER, request,
      [&](size_t host) {
        return host != excepted && !profile_.shares[host].filter_plugins.empty();
      },
      [](const AlgorithmShare& share) { return share.filter_is_open && share.score_is_open; },
      [&](size_t host, const FilterResponse& answer) {
        if (answer.has_error()) return absl::InternalError("Filter fails a hypothesis as a whole");
        return CheckOwnFilter(profile_.shares[host], count, answer);
      },
      /*somebody_must_answer=*/true);
  if (!asked.ok()) return asked.status();
  for (const FilterResponse& answer : asked->answers) {
    int rejected = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if ((answer.feasible()[i / 8] >> (i % 8)) & 1) continue;
      objections[i].push_back(answer.reasons(static_cast<int>(answer.rejected(rejected++))));
    }
  }
  return objections;
}

absl::StatusOr<std::vector<PluginStatus>> HostPanel::AnswerQuestions(
    const google::protobuf::RepeatedPtrField<v1alpha1::PreemptionQuestion>& questions,
    size_t asking) {
  google::protobuf::RepeatedPtrField<v1alpha1::Hypothesis> hypotheses;
  for (const auto& question : questions) *hypotheses.Add() = question.hypothesis();
  auto objections = Judge(hypotheses, asking);
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
    if (all.empty()) continue;
    verdicts[i] = *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return position(a) < position(b);
    });
  }
  return verdicts;
}

}  // namespace outboard::cycle
