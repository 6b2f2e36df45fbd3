// How an instance is compared with the serving one.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/framework/select_node.h"
#include "shim/hosts/host_registry.h"

namespace outboard::hosts {
namespace {

// Makes Filter evaluate exactly the examined nodes.
void LimitToExaminedNodes(framework::HostCallTrace::Filter* filter) {
  filter->slots.resize(std::min<size_t>(filter->slots.size(), filter->response.processed()));
  filter->search = framework::SearchEach(filter->slots);
}

// Positions of the nodes that this host finds feasible; the cycle's result may be that of several
// hosts.
std::vector<uint32_t> FeasibleOf(const v1beta1::FilterResponse& filter) {
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < filter.processed(); ++i) {
    if ((filter.feasible()[i / 8] >> (i % 8) & 1) != 0) positions.push_back(i);
  }
  return positions;
}

// An answer in one message, as if the host had been called point by point. The message does not
// list the nodes of its Filter.
framework::HostCallTrace TraceOf(const framework::AnsweredCycle& cycle) {
  framework::HostCallTrace trace;
  const v1beta1::CycleEvaluation answers = framework::AnswersOf(cycle.response);
  trace.pre_filter = answers.pre_filter();
  if (answers.pre_filter().has_rejection()) return trace;
  trace.filter.emplace();
  trace.filter->slots = cycle.result.examined_slots;
  trace.filter->response = answers.filter();
  LimitToExaminedNodes(&*trace.filter);
  if (!answers.has_pre_score() && !answers.has_score()) return trace;
  for (const uint32_t position : FeasibleOf(answers.filter())) {
    // If other hosts ended the search earlier, the scored nodes are unknown.
    if (position >= trace.filter->slots.size()) {
      trace.scored.Clear();
      return trace;
    }
    trace.scored.add_slots(trace.filter->slots[position]);
  }
  if (answers.has_pre_score()) trace.pre_score = answers.pre_score();
  if (answers.has_score()) trace.score = answers.score();
  return trace;
}

// The answers of one message about all points.
std::optional<absl::StatusOr<v1beta1::CycleEvaluation>> TakeFused(Instance* instance) {
  auto answer = instance->grpc_client->TakeCycle();
  if (!answer.has_value()) return std::nullopt;
  if (!answer->ok()) return answer->status();
  const framework::HostProfile& own = instance->shadow_cycle->own;
  absl::Status usable = framework::CheckCycle(**answer);
  usable.Update(framework::CheckPreFilterOf(**answer, own.pre_filter_plugins, own.filter_plugins));
  if (!usable.ok()) return usable;
  return framework::AnswersOf(**answer);
}

}  // namespace

bool HostRegistry::EnterShadow(const std::string& name, Instance* instance, absl::Time now) {
  absl::StatusOr<Plans> plans = PlansWith(name, instance);
  if (!plans.ok() || SharesOf(*plans_, name).empty()) return false;
  instance->shares = SharesOf(*plans, name);
  if (instance->shares.empty()) return false;
  instance->shadow = ShadowReport();
  Enter(name, instance, InstanceState::kShadow,
        absl::StrCat("it is compared with ", hosts_[name].serving->id()), now);
  return true;
}

std::vector<std::string> HostRegistry::NamesOf(absl::Span<const uint32_t> slots) const {
  std::vector<std::string> names;
  names.reserve(slots.size());
  for (const uint32_t slot : slots) {
    const kube::NodePtr& node = scheduler_->cluster()->NodeAt(slot);
    names.push_back(node == nullptr ? absl::StrCat("#", slot) : node->key());
  }
  return names;
}

template <typename Answered>
ShadowCycle HostRegistry::ServedCycle(const Answered& answered, const Instance& instance) const {
  ShadowCycle served;
  served.pod = answered.pod.key();
  served.own = instance.shares.at(answered.profile.name);
  served.decides = answered.profile.shares.size() <= 1;
  if (answered.result.outcome == framework::AlgorithmResult::Outcome::kPlaced)
    served.placed = NamesOf({answered.result.slot}).front();
  served.sample = answered.num_to_find;
  return served;
}

void HostRegistry::OnCycle(const framework::AnsweredCycle& cycle, absl::Time now) {
  const auto host = hosts_.find(cycle.host_name);
  if (host == hosts_.end()) return;
  for (const auto& instance : host->second.instances) {
    if (!instance->awaits_shadow_cycle() || instance->shares.count(cycle.profile.name) == 0)
      continue;
    const uint64_t attempt_id = cycle.request.cycle().header().attempt_id();
    if (!instance->is_fused()) {
      const framework::HostCallTrace trace = TraceOf(cycle);
      StartChain({cycle.host_name, cycle.pod, cycle.profile, attempt_id, trace, cycle.result,
                  cycle.num_candidates, cycle.num_to_find},
                 instance.get(), now);
      continue;
    }
    Follow(instance.get(), now);
    v1beta1::PlanRequest request = cycle.request;
    request.mutable_cycle()->mutable_header()->set_exact_version(
        scheduler_->cluster()->VersionOf(instance->cursor));
    if (!instance->grpc_client->StartCycle(request)) continue;
    ShadowCycle served = ServedCycle(cycle, *instance);
    served.attempt_id = attempt_id;
    served.answers = framework::AnswersOf(cycle.response);
    served.is_fused = true;
    served.examined = NamesOf(cycle.result.examined_slots);
    for (const uint32_t position : FeasibleOf(served.answers.filter()))
      served.scored.push_back(served.NodeAt(position));
    served.num_nodes = cycle.num_candidates;
    served.num_to_find = cycle.num_to_find;
    instance->shadow_cycle = std::move(served);
    // The serving instance had the same time.
    instance->shadow_deadline = now + config_->shim.deadlines.cycle;
  }
}

bool HostRegistry::RecordsCalls(const std::string& host_name) const {
  const auto host = hosts_.find(host_name);
  return host != hosts_.end() &&
         std::any_of(host->second.instances.begin(), host->second.instances.end(),
                     [](const auto& instance) { return instance->awaits_shadow_cycle(); });
}

void HostRegistry::OnCallsRecorded(const framework::AnsweredPoints& points, absl::Time now) {
  const auto host = hosts_.find(points.host_name);
  if (host == hosts_.end()) return;
  // By index, from the end: an instance that cannot be called may be removed.
  for (size_t i = host->second.instances.size(); i-- > 0;) {
    Instance* const instance = host->second.instances[i].get();
    if (instance->awaits_shadow_cycle() && instance->shares.count(points.profile.name) > 0)
      StartChain(points, instance, now);
  }
}

void HostRegistry::StartChain(const framework::AnsweredPoints& points, Instance* instance,
                              absl::Time now) {
  Follow(instance, now);
  hosts::InlineHost* const inline_host = instance->Inline(scheduler_->cluster());
  const framework::HostCallTrace& trace = points.trace;
  ShadowCycle served = ServedCycle(points, *instance);
  served.attempt_id = points.attempt_id;
  *served.answers.mutable_pre_filter() = *trace.pre_filter;
  v1beta1::CallHeader header;
  header.set_attempt_id(points.attempt_id);
  header.set_exact_version(scheduler_->cluster()->VersionOf(instance->cursor));
  header.set_profile(points.profile.name);
  ChainQuestions questions;
  absl::Status complete;
  // The content for a host without a cluster cache is added now: the cluster may change as soon as
  // this returns.
  const auto finish = [&](auto* request) {
    *request->mutable_header() = header;
    if (inline_host != nullptr) complete.Update(inline_host->Complete(request));
  };

  questions.pre_filter.emplace().set_pod_uid(points.pod.uid());
  finish(&*questions.pre_filter);
  if (inline_host != nullptr && !inline_host->HasPreFilter(points.profile.name))
    questions.pre_filter.reset();
  // A host that is alone and keeps a cluster cache is always called there.
  const bool is_alone = points.profile.shares.empty() && inline_host == nullptr;
  served.asks_filter = trace.filter.has_value() && !trace.filter->slots.empty() &&
                       (is_alone || !served.own.filter_plugins.empty());
  if (served.asks_filter) {
    framework::HostCallTrace::Filter filter = *trace.filter;
    if (inline_host != nullptr && points.profile.shares.empty()) LimitToExaminedNodes(&filter);
    served.examined = NamesOf(filter.slots);
    served.is_whole = filter.slots.size() == points.num_candidates;
    served.num_nodes = static_cast<uint32_t>(filter.slots.size());
    served.num_to_find = filter.search.num_feasible_nodes_to_find();
    *served.answers.mutable_filter() = std::move(filter.response);
    *questions.filter.emplace().mutable_search() = std::move(filter.search);
    finish(&*questions.filter);
  }
  served.scored = NamesOf(trace.scored.slots());
  if (trace.pre_score.has_value()) *served.answers.mutable_pre_score() = *trace.pre_score;
  if (!served.scored.empty() && !served.own.pre_score_plugins.empty()) {
    *questions.pre_score.emplace().mutable_nodes() = trace.scored;
    finish(&*questions.pre_score);
  }
  served.asks_score = trace.score.has_value() && !served.own.score_plugins.empty();
  if (served.asks_score) {
    *served.answers.mutable_score() = *trace.score;
    *questions.score.emplace().mutable_nodes() = trace.scored;
    finish(&*questions.score);
  }
  if (!complete.ok()) {
    return Quarantine(points.host_name, instance,
                      absl::StrCat("in the shadow, pod ", served.pod, ": ", complete.message()),
                      now);
  }
  instance->chain = std::make_unique<ShadowCycleRunner>(
      instance->grpc_client.get(), std::move(questions), config_->shim.deadlines.cycle);
  instance->shadow_cycle = std::move(served);
}

void HostRegistry::DropShadowCycle(Instance* instance) {
  instance->chain = nullptr;
  instance->grpc_client->DropCycle();
  if (instance->shadow_cycle.has_value())
    scheduler_->cluster()->EndAttempt(instance->cursor, instance->shadow_cycle->attempt_id);
  instance->shadow_cycle.reset();
}

bool HostRegistry::ShadowIsOver(const std::string& name, Instance* instance, absl::Time now) {
  if (instance->shadow_cycle.has_value()) {
    auto answer = instance->chain != nullptr ? instance->chain->Take() : TakeFused(instance);
    if (!answer.has_value()) {
      // Each call of a chain has its own deadline.
      if (instance->chain != nullptr || now < instance->shadow_deadline) return false;
      answer = absl::DeadlineExceededError("it did not answer in time");
    }
    absl::Status compared = answer->status();
    if (answer->ok()) compared = CompareCycle(*instance->shadow_cycle, **answer, &instance->shadow);
    const std::string pod = instance->shadow_cycle->pod;
    DropShadowCycle(instance);
    if (!compared.ok()) {
      Quarantine(name, instance, absl::StrCat("in the shadow, pod ", pod, ": ", compared.message()),
                 now);
      return false;
    }
  }
  const config::Replacement& replacement = config_->shim.replacement;
  if (instance->shadow.cycles >= replacement.shadow_cycles) return true;
  if (instance->acceptance == Acceptance::kNotAsked)
    return now - instance->since >= replacement.shadow_timeout;
  if (!accepted_pods_.leads()) return !instance->unproven();
  return now - std::max(instance->since, accepted_pods_.leads_since()) >=
         replacement.shadow_timeout;
}

}  // namespace outboard::hosts
