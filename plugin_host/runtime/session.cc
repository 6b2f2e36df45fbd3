#include "plugin_host/runtime/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/group_search.h"
#include "plugin_host/runtime/plugin_info.h"
#include "plugin_host/runtime/shim_problems.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::runtime {
namespace {

using v1beta1::CallError;

constexpr int kMaxPodsPerCall = 4096;
constexpr int kMaxHypotheses = 65536;
constexpr int kMaxHintsPerPush = 4096;
constexpr size_t kMaxSortKeyBytes = 64;
constexpr size_t kMaxUnusedAttempts = 64;

CallStatus UnknownPod(const std::string& uid) {
  return CallStatus(CallError::REASON_OBJECT_UNKNOWN, absl::StrCat("unknown pod ", uid));
}

}  // namespace

Session::Session(std::string id, const sdk::PluginRegistry* registry, MetricSink* metrics)
    : id_(std::move(id)), registry_(registry), metrics_(metrics), evaluator_(&cache_) {}

Session::~Session() {
  EndAll();
  profiles_.clear();
}

bool Session::Configure(const v1beta1::ConfigureRequest& request,
                        v1beta1::ConfigureResponse* response) {
  absl::flat_hash_map<std::string, std::shared_ptr<const Profile>> profiles;
  for (const v1beta1::ProfileConfig& config : request.profiles()) {
    std::unique_ptr<Profile> profile =
        Profile::Create(config, *registry_, &cache_, this, response->mutable_problems(), metrics_);
    if (profile == nullptr) continue;
    // Shims of older builds do not say what they can do.
    for (const ProfilePlugin& plugin : profile->plugins()) {
      if (!request.has_shim()) break;
      for (v1beta1::ConfigProblem& problem :
           ShimProblems(config, PluginInfoOf(*registry_->Find(plugin.name)), request.shim()))
        *response->add_problems() = std::move(problem);
    }
    if (!profiles.emplace(config.name(), std::move(profile)).second) {
      v1beta1::ConfigProblem* problem = response->add_problems();
      problem->set_profile(config.name());
      problem->set_message("two profiles have this name");
      problem->set_severity(v1beta1::ConfigProblem::SEVERITY_ERROR);
    }
  }
  if (HasErrors(response->problems())) return false;
  // Attempts in progress keep the profile that they began with.
  profiles_.swap(profiles);
  signatures_.Clear();
  hints_.ProfilesChanged();
  configured_ = true;
  return true;
}

void Session::BeginSync() {
  EndAll();
  hints_.Reset();
  write_results_.Reset();
  cache_.Reset();
  session_time_.reset();
}

absl::Status Session::Apply(const v1beta1::SyncRequest& request, absl::Time now) {
  // States may point into the cache, so none may outlive it.
  if (request.phase() == v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN) {
    EndAll();
    hints_.Reset();
  }
  write_results_.Take(request);
  for (uint64_t id : request.ended_attempts()) End(id);
  const bool time_passes = request.time_unix_micros() != 0;
  if (time_passes) session_time_ = absl::FromUnixMicros(request.time_unix_micros());
  now = Clock(now);
  hints_.BeforeChange(request);
  if (absl::Status status = cache_.Apply(request, now); !status.ok()) return status;
  hints_.AfterChange(request, &unsent_hints_);
  if (!unsent_hints_.empty()) PushHints();
  if (time_passes && cache_.complete()) cache_.Tick(now);
  return absl::OkStatus();
}

void Session::PushHints() {
  v1beta1::SyncResponse response;
  for (size_t i = 0; i < unsent_hints_.size(); ++i) {
    *response.mutable_queue_hints()->add_hints() = std::move(unsent_hints_[i]);
    if (i + 1 < unsent_hints_.size() && response.queue_hints().hints_size() < kMaxHintsPerPush)
      continue;
    if (push_) push_(response);
    response.Clear();
  }
  unsent_hints_.clear();
}

Session::Readiness Session::Reached(const v1beta1::CallHeader& header) const {
  using v1beta1::CallHeader;
  switch (header.version_case()) {
    case CallHeader::kExactVersion:
      if (version() > header.exact_version()) return Readiness::kPast;
      return version() == header.exact_version() ? Readiness::kReady : Readiness::kNotYet;
    case CallHeader::kMinVersion:
      return version() >= header.min_version() ? Readiness::kReady : Readiness::kNotYet;
    case CallHeader::VERSION_NOT_SET:
      break;
  }
  return cache_.complete() ? Readiness::kReady : Readiness::kNotYet;
}

std::shared_ptr<const Profile> Session::FindProfile(const std::string& name) const {
  auto it = profiles_.find(name);
  return it == profiles_.end() ? nullptr : it->second;
}

AttemptRecord* Session::Begin(uint64_t id, const std::string& pod_uid,
                              std::shared_ptr<const Profile> profile) {
  std::unique_ptr<AttemptRecord>& attempt = attempts_[id];
  if (attempt == nullptr) {
    if (unused_attempts_.empty()) {
      attempt = std::make_unique<AttemptRecord>();
    } else {
      attempt = std::move(unused_attempts_.back());
      unused_attempts_.pop_back();
    }
  }
  attempt->Begin(id, pod_uid, std::move(profile));
  return attempt.get();
}

void Session::End(uint64_t id) {
  auto it = attempts_.find(id);
  if (it == attempts_.end()) return;
  std::unique_ptr<AttemptRecord> attempt = std::move(it->second);
  attempts_.erase(it);
  planned_.erase(attempt->pod_uid);
  attempt->states.clear();
  attempt->profile.reset();
  if (unused_attempts_.size() < kMaxUnusedAttempts) unused_attempts_.push_back(std::move(attempt));
}

void Session::EndAll() {
  attempts_.clear();
  unused_attempts_.clear();
  planned_.clear();
}

CallStatus Session::FindAttempt(const v1beta1::CallHeader& header, Target* target) {
  target->leader_epoch = header.leader_epoch();
  auto it = attempts_.find(header.attempt_id());
  if (it == attempts_.end()) {
    return CallStatus(CallError::REASON_ATTEMPT_UNKNOWN,
                      absl::StrCat("unknown attempt ", header.attempt_id()));
  }
  target->attempt = it->second.get();
  planned_.erase(target->attempt->pod_uid);
  target->pod = cache_.FindPod(target->attempt->pod_uid);
  if (target->pod == nullptr) return UnknownPod(target->attempt->pod_uid);
  return CallStatus::Ok();
}

CallStatus Session::FindOrBegin(const v1beta1::CallHeader& header, const std::string& pod_uid,
                                bool began_elsewhere, Target* target) {
  CallStatus status = FindAttempt(header, target);
  if (status.reason() != CallError::REASON_ATTEMPT_UNKNOWN) return status;
  std::shared_ptr<const Profile> profile = FindProfile(header.profile());
  if (profile == nullptr) return CallStatus(CallError::REASON_NOT_CONFIGURED, header.profile());
  for (auto point : {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                     v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE}) {
    if (!began_elsewhere && !profile->at(point).empty()) return status;
  }
  target->pod = cache_.FindPod(pod_uid);
  if (target->pod == nullptr) return UnknownPod(pod_uid);
  target->attempt = Begin(header.attempt_id(), pod_uid, std::move(profile));
  return CallStatus::Ok();
}

CallStatus Session::TakeNodes(const v1beta1::NodeSet& set) {
  const sdk::NodeTable& nodes = cache_.view().nodes();
  seen_.resize(nodes.occupied.size(), 0);
  if (++seen_call_ == 0) {  // Wrapped around.
    std::fill(seen_.begin(), seen_.end(), 0);
    seen_call_ = 1;
  }
  nodes_.clear();
  for (uint32_t slot : set.slots()) {
    if (slot >= nodes.occupied.size() || !nodes.occupied[slot]) {
      return CallStatus(CallError::REASON_OBJECT_UNKNOWN, absl::StrCat("no node in slot ", slot));
    }
    if (std::exchange(seen_[slot], seen_call_) == seen_call_) {
      return CallStatus(CallError::REASON_INVALID, absl::StrCat("slot ", slot, " occurs twice"));
    }
    nodes_.push_back(slot);
  }
  return CallStatus::Ok();
}

CallStatus Session::TakeHypotheses(const v1beta1::NodeSimulation& simulation,
                                   std::vector<NodeChange>* hypotheses) const {
  if (simulation.nodes_size() > kMaxHypotheses) {
    return CallStatus(CallError::REASON_INVALID,
                      absl::StrCat(simulation.nodes_size(), " hypotheses"));
  }
  const sdk::NodeTable& nodes = cache_.view().nodes();
  absl::flat_hash_map<absl::string_view, sdk::PodRecord*> on_node;
  absl::flat_hash_map<absl::string_view, sdk::PodRecord*> off_node;
  const auto move = [](const std::string& uid, auto* from, auto* to) -> sdk::PodRecord* {
    auto pod = from->extract(uid);
    if (pod.empty()) return nullptr;
    sdk::PodRecord* const record = pod.mapped();
    to->insert(std::move(pod));
    return record;
  };
  for (const v1beta1::SimulatedNode& told : simulation.nodes()) {
    NodeChange& change = hypotheses->emplace_back();
    change.slot = told.slot();
    change.continues = told.continues();
    if (change.slot >= nodes.occupied.size() || !nodes.occupied[change.slot]) {
      return CallStatus(CallError::REASON_OBJECT_UNKNOWN,
                        absl::StrCat("no node in slot ", change.slot));
    }
    if (change.continues) {
      if (hypotheses->size() < 2 || (*hypotheses)[hypotheses->size() - 2].slot != change.slot) {
        return CallStatus(CallError::REASON_INVALID,
                          "a hypothesis continues a hypothesis about another node");
      }
    } else {
      on_node.clear();
      off_node.clear();
      for (sdk::PodRecord* pod : nodes.pods[change.slot]) on_node[pod->pod.uid()] = pod;
    }
    for (const std::string& uid : told.removed_pod_uids()) {
      change.removed.push_back(move(uid, &on_node, &off_node));
      if (change.removed.back() == nullptr) {
        return CallStatus(CallError::REASON_OBJECT_UNKNOWN,
                          absl::StrCat("pod ", uid, " is not on the node"));
      }
    }
    for (const std::string& uid : told.added_pod_uids()) {
      change.added.push_back(move(uid, &off_node, &on_node));
      if (change.added.back() == nullptr) {
        return CallStatus(CallError::REASON_OBJECT_UNKNOWN,
                          absl::StrCat("pod ", uid, " was not removed before"));
      }
    }
  }
  return CallStatus::Ok();
}

CallStatus Session::PreFilter(const v1beta1::CallHeader& header, const std::string& pod_uid,
                              absl::Time now, v1beta1::PreFilterResponse* response) {
  if (draining_) return CallStatus(CallError::REASON_DRAINING, "the host accepts no new attempts");
  if (header.attempt_id() == 0)
    return CallStatus(CallError::REASON_INVALID, "attempt_id is required");
  std::shared_ptr<const Profile> profile = FindProfile(header.profile());
  if (profile == nullptr) {
    return CallStatus(CallError::REASON_NOT_CONFIGURED,
                      absl::StrCat("profile ", header.profile(), " is not configured"));
  }
  const sdk::PodRecord* pod = cache_.FindPod(pod_uid);
  if (pod == nullptr) return UnknownPod(pod_uid);
  AttemptRecord* attempt = Begin(header.attempt_id(), pod_uid, std::move(profile));
  evaluator_.PreFilter(*attempt, *pod, Clock(now), response);
  return CallStatus::Ok();
}

CallStatus Session::Filter(const v1beta1::CallHeader& header, const v1beta1::FilterRequest& request,
                           absl::Time now, v1beta1::FilterResponse* response) {
  Target target;
  if (CallStatus status = FindAttempt(header, &target); !status.ok()) return status;
  if (request.has_simulation()) {
    std::vector<NodeChange> hypotheses;
    CallStatus status = TakeHypotheses(request.simulation(), &hypotheses);
    if (!status.ok()) return status;
    evaluator_.FilterHypotheses(*target.attempt, *target.pod, Clock(now), hypotheses, response);
    return CallStatus::Ok();
  }
  const v1beta1::NodeSearch& search = request.search();
  if (search.num_feasible_nodes_to_find() == 0) {
    return CallStatus(CallError::REASON_INVALID,
                      "neither a simulation nor a search with num_feasible_nodes_to_find");
  }
  absl::Span<const sdk::Slot> nodes = cache_.view().node_order();
  if (search.has_nodes()) {
    if (CallStatus status = TakeNodes(search.nodes()); !status.ok()) return status;
    nodes = nodes_;
  }
  const SearchOptions options{.start_offset = search.start_offset(),
                              .num_to_find = search.num_feasible_nodes_to_find()};
  evaluator_.Filter(*target.attempt, *target.pod, Clock(now), nodes, options, response, &feasible_);
  return CallStatus::Ok();
}

CallStatus Session::PostFilter(const v1beta1::PostFilterRequest& request, absl::Time now,
                               v1beta1::PostFilterResponse* response) {
  const std::shared_ptr<const Profile> profile = FindProfile(request.header().profile());
  if (request.has_group() && profile != nullptr &&
      !profile->at(v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER).empty())
    return PodGroupPostFilter(request, now, response);
  Target target;
  if (CallStatus status = FindAttempt(request.header(), &target); !status.ok()) return status;
  if (request.answers().empty()) target.attempt->questions.clear();
  if (request.answers_size() != static_cast<int>(target.attempt->questions.size())) {
    return CallStatus(CallError::REASON_INVALID,
                      absl::StrCat(request.answers_size(), " answers to ",
                                   target.attempt->questions.size(), " questions"));
  }
  if (target.attempt->group_plugin &&
      PostFilterGroup(target, v1beta1::EXTENSION_POINT_POST_FILTER, now, response))
    return CallStatus::Ok();
  evaluator_.PostFilter(*target.attempt, *target.pod, Clock(now), request, response);
  return CallStatus::Ok();
}

CallStatus Session::PreScore(const v1beta1::CallHeader& header,
                             const v1beta1::PreScoreRequest& request, absl::Time now,
                             v1beta1::PreScoreResponse* response) {
  Target target;
  if (CallStatus status = FindAttempt(header, &target); !status.ok()) return status;
  if (CallStatus status = TakeNodes(request.nodes()); !status.ok()) return status;
  evaluator_.PreScore(*target.attempt, *target.pod, Clock(now), nodes_, response);
  return CallStatus::Ok();
}

CallStatus Session::Score(const v1beta1::CallHeader& header, const v1beta1::ScoreRequest& request,
                          absl::Time now, v1beta1::ScoreResponse* response) {
  Target target;
  if (CallStatus status = FindAttempt(header, &target); !status.ok()) return status;
  if (CallStatus status = TakeNodes(request.nodes()); !status.ok()) return status;
  evaluator_.Score(*target.attempt, *target.pod, Clock(now), nodes_, request.explain(), response);
  return CallStatus::Ok();
}

template <typename Response>
CallStatus Session::BeginCycle(const v1beta1::CycleRequest& request, absl::Time now,
                               Response* response, Target* target) {
  // The caller may reuse the response, so that a call allocates nothing.
  v1beta1::CycleEvaluation& evaluation = *response->mutable_evaluation();
  evaluation.Clear();
  v1beta1::PreFilterResponse& pre_filter = *evaluation.mutable_pre_filter();
  if (CallStatus status = PreFilter(request.header(), request.pod_uid(), now, &pre_filter);
      !status.ok())
    return status;
  if (pre_filter.has_rejection()) {
    v1beta1::PreFilterResponse rejected = std::move(pre_filter);
    *response->mutable_rejection()->mutable_pre_filter() = std::move(rejected);
    return CallStatus::Ok();
  }
  return FindAttempt(request.header(), target);
}

CallStatus Session::EvaluateNodes(const v1beta1::CycleRequest& request, const Target& target,
                                  absl::Time now, v1beta1::CycleEvaluation* evaluation) {
  absl::Span<const sdk::Slot> nodes = NodesLeft(evaluation->pre_filter(), cache_.view().nodes(),
                                                cache_.view().node_order(), &nodes_);
  if (request.search().has_nodes()) {
    if (CallStatus status = TakeNodes(request.search().nodes()); !status.ok()) return status;
    nodes = nodes_;
  }
  evaluator_.Filter(*target.attempt, *target.pod, Clock(now), nodes, SearchOf(request),
                    evaluation->mutable_filter(), &feasible_);
  if (evaluation->filter().has_error()) return CallStatus::Ok();
  if (feasible_.size() < (request.score_single_node() ? 1 : 2)) return CallStatus::Ok();
  evaluator_.PreScore(*target.attempt, *target.pod, Clock(now), feasible_,
                      evaluation->mutable_pre_score());
  if (evaluation->pre_score().has_error()) return CallStatus::Ok();
  evaluator_.Score(*target.attempt, *target.pod, Clock(now), feasible_, request.explain(),
                   evaluation->mutable_score());
  return CallStatus::Ok();
}

CallStatus Session::Cycle(const v1beta1::CycleRequest& request, absl::Time now,
                          v1beta1::CycleResponse* response) {
  Target target;
  CallStatus status = BeginCycle(request, now, response, &target);
  if (!status.ok() || response->has_rejection()) return status;
  return EvaluateNodes(request, target, now, response->mutable_evaluation());
}

CallStatus Session::Plan(const v1beta1::PlanRequest& request, absl::Time now,
                         v1beta1::PlanResponse* response) {
  const v1beta1::CycleRequest& cycle = request.cycle();
  Target target;
  CallStatus status = BeginCycle(cycle, now, response, &target);
  if (!status.ok() || response->has_rejection()) return status;
  const bool searches_all = !cycle.search().has_nodes();
  if (request.place_group() && searches_all && request.has_group_step()) {
    bool is_answered = false;
    status = TakeGroupStep(request, target, now, response, &is_answered);
    if (!status.ok() || is_answered) return status;
  } else if (request.place_group() && searches_all && PlaceGroup(cycle, target, now, response))
    return CallStatus::Ok();
  v1beta1::CycleEvaluation* const evaluation = response->mutable_evaluation();
  status = EvaluateNodes(cycle, target, now, evaluation);
  if (!status.ok() || request.next_pod_uids().empty() || !searches_all) return status;
  const bool is_selectable = !evaluation->filter().has_error() && !feasible_.empty() &&
                             !evaluation->pre_score().has_error() &&
                             !evaluation->score().has_error();
  if (is_selectable) PlaceNext(request, target, now, response);
  return CallStatus::Ok();
}

CallStatus Session::SortKeys(const v1beta1::SortKeysRequest& request,
                             v1beta1::SortKeysResponse* response) {
  std::shared_ptr<const Profile> profile = FindProfile(request.header().profile());
  if (profile == nullptr || profile->at(v1beta1::EXTENSION_POINT_QUEUE_SORT).size() != 1) {
    return CallStatus(CallError::REASON_NOT_CONFIGURED, "the profile has no queueSort plugin here");
  }
  if (request.pod_uids_size() > kMaxPodsPerCall) {
    return CallStatus(CallError::REASON_INVALID, "at most 4096 pods a call");
  }
  if (!request.queued().empty() && request.queued_size() != request.pod_uids_size())
    return CallStatus(CallError::REASON_INVALID, "queued has another number of pods");
  const uint32_t index = profile->at(v1beta1::EXTENSION_POINT_QUEUE_SORT)[0];
  const ProfilePlugin& plugin = profile->plugins()[index];
  const v1beta1::QueuedPodInfo nothing;
  for (int i = 0; i < request.pod_uids_size(); ++i) {
    const std::string& uid = request.pod_uids(i);
    const sdk::PodRecord* pod = cache_.FindPod(uid);
    if (pod == nullptr) return UnknownPod(uid);
    const sdk::PodView view(pod);
    std::string key = profile->times().Measure(
        index, v1beta1::EXTENSION_POINT_QUEUE_SORT, sdk::LogName(view), [&] {
          return plugin.queue_sort->SortKeyOfQueued(
              view, request.queued().empty() ? nothing : request.queued(i), cache_.view());
        });
    if (key.size() > kMaxSortKeyBytes) key.resize(kMaxSortKeyBytes);
    response->add_keys(std::move(key));
  }
  return CallStatus::Ok();
}

CallStatus Session::PreEnqueue(const v1beta1::PreEnqueueRequest& request, absl::Time now,
                               v1beta1::PreEnqueueResponse* response) {
  std::shared_ptr<const Profile> profile = FindProfile(request.header().profile());
  if (profile == nullptr)
    return CallStatus(CallError::REASON_NOT_CONFIGURED, request.header().profile());
  if (request.pod_uids_size() > kMaxPodsPerCall) {
    return CallStatus(CallError::REASON_INVALID, "at most 4096 pods a call");
  }
  for (const std::string& uid : request.pod_uids()) {
    const sdk::PodRecord* pod = cache_.FindPod(uid);
    if (pod == nullptr) return UnknownPod(uid);
    v1beta1::PluginStatus* status = response->add_verdicts();
    status->set_code(v1beta1::CODE_SUCCESS);
    for (uint32_t index : profile->at(v1beta1::EXTENSION_POINT_PRE_ENQUEUE)) {
      const ProfilePlugin& plugin = profile->plugins()[index];
      const sdk::PodView view(pod);
      const sdk::Verdict verdict = profile->times().Measure(
          index, v1beta1::EXTENSION_POINT_PRE_ENQUEUE, sdk::LogName(view),
          [&] { return plugin.pre_enqueue->PreEnqueue(view, cache_.view(), Clock(now)); });
      if (verdict.ok()) continue;
      if (verdict.rejected()) {
        FillStatus(plugin.name, verdict, status);
      } else {
        FillErrorStatus(plugin.name,
                        absl::StrCat("running PreEnqueue plugin ", sdk::Quote(plugin.name), ": ",
                                     ErrorText(verdict)),
                        status);
      }
      break;
    }
  }
  return CallStatus::Ok();
}

void Session::FlushTimes() {
  for (const auto& [name, profile] : profiles_) profile->times().Flush();
}

void Session::SortKeysChanged(absl::Span<const std::string> pod_uids) {
  if (!push_) return;
  v1beta1::SyncResponse response;
  auto* changed = response.mutable_sort_keys_changed();
  changed->set_all_pods(pod_uids.empty());
  for (const std::string& uid : pod_uids) changed->add_pod_uids(uid);
  push_(response);
}

void Session::GateChanged(absl::Span<const std::string> pod_uids) {
  if (!push_) return;
  v1beta1::SyncResponse response;
  auto* changed = response.mutable_gate_changed();
  changed->set_all_pods(pod_uids.empty());
  for (const std::string& uid : pod_uids) changed->add_pod_uids(uid);
  push_(response);
}

void Session::Activate(const std::string& plugin, absl::Span<const std::string> pod_uids) {
  if (!push_ || pod_uids.empty()) return;
  v1beta1::SyncResponse response;
  response.mutable_activate()->set_plugin(plugin);
  // The shim is about to place these; they need no call.
  for (const std::string& uid : pod_uids) {
    if (!planned_.contains(uid)) response.mutable_activate()->add_pod_uids(uid);
  }
  if (!response.activate().pod_uids().empty()) push_(response);
}

void Session::Write(const std::string& plugin, v1beta1::Effect effect) {
  if (!push_) return;
  v1beta1::SyncResponse response;
  *response.mutable_effect() = std::move(effect);
  response.mutable_effect()->set_plugin(plugin);
  response.set_push_id(write_results_.Push(response.effect()));
  push_(response);
}

}  // namespace outboard::runtime
