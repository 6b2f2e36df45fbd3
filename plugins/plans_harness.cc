#include "plugins/plans_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "plugins/builtin_plugins.h"

namespace outboard::plans {
PlansHarness::PlansHarness(std::vector<std::string> plugins) {
  EXPECT_TRUE(RegisterBuiltinPlugins(&registry_).ok());
  session_ = std::make_unique<runtime::Session>("s", &registry_);
  v1beta1::ConfigureRequest request;
  auto* profile = request.add_profiles();
  profile->set_name("p");
  for (const auto point : {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_POST_FILTER, v1beta1::EXTENSION_POINT_PRE_SCORE,
                           v1beta1::EXTENSION_POINT_SCORE, v1beta1::EXTENSION_POINT_RESERVE,
                           v1beta1::EXTENSION_POINT_PERMIT}) {
    auto* config = profile->add_points();
    config->set_extension_point(point);
    for (size_t i = 0; i < plugins.size(); ++i) {
      const auto& points = registry_.Find(plugins[i])->extension_points;
      if (std::find(points.begin(), points.end(), point) == points.end()) continue;
      config->add_plugins(plugins[i]);
      if (point != v1beta1::EXTENSION_POINT_SCORE) continue;
      config->add_weights(static_cast<int32_t>(1 + i % 3));
      weights_.emplace_back(plugins[i], 1 + i % 3);
    }
  }
  v1beta1::ConfigureResponse response;
  session_->Configure(request, &response);
  EXPECT_TRUE(response.problems().empty()) << response.DebugString();
  session_->SetPush([this](const v1beta1::SyncResponse& pushed) {
    if (pushed.has_effect()) written_.push_back(pushed.effect());
  });
}

std::vector<v1beta1::Effect> PlansHarness::Tick() {
  session_->Tick(now + absl::Seconds(++ticks_));
  return std::exchange(written_, {});
}

v1beta1::SyncRequest PlansHarness::Next(v1beta1::SyncRequest::Phase phase) {
  v1beta1::SyncRequest request;
  request.set_version(++version_);
  request.set_phase(phase);
  return request;
}

void PlansHarness::Apply(const v1beta1::SyncRequest& request) {
  const absl::Status applied = session_->Apply(request, now);
  ASSERT_TRUE(applied.ok()) << applied;
}

void PlansHarness::SetCluster(const std::vector<v1beta1::Node>& nodes,
                              const std::vector<v1beta1::Pod>& pods,
                              const std::vector<v1beta1::ClusterObject>& objects) {
  nodes_ = nodes;
  session_->BeginSync();
  v1beta1::SyncRequest request = Next(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto* upsert = request.add_changes()->mutable_node_upsert();
    upsert->set_slot(static_cast<uint32_t>(i));
    *upsert->mutable_node() = nodes[i];
    request.mutable_node_order()->add_slots(static_cast<uint32_t>(i));
  }
  for (const v1beta1::ClusterObject& object : objects)
    *request.add_changes()->mutable_object_upsert() = object;
  for (const v1beta1::Pod& pod : pods)
    *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
  Apply(request);
  request.Clear();
  request.set_version(version_);
  request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  Apply(request);
}

void PlansHarness::UpsertPod(const v1beta1::Pod& pod) {
  v1beta1::SyncRequest request = Next(v1beta1::SyncRequest::PHASE_DELTA);
  *request.add_changes()->mutable_pod_upsert()->mutable_pod() = pod;
  Apply(request);
}

void PlansHarness::RemovePod(const std::string& uid) {
  v1beta1::SyncRequest request = Next(v1beta1::SyncRequest::PHASE_DELTA);
  request.add_changes()->mutable_pod_remove()->set_uid(uid);
  Apply(request);
}

void PlansHarness::Assume(const std::string& uid, const std::string& node) {
  v1beta1::SyncRequest request = Next(v1beta1::SyncRequest::PHASE_DELTA);
  auto* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid(uid);
  placement->set_state(v1beta1::PLACEMENT_STATE_ASSUMED);
  const auto at = std::find_if(nodes_.begin(), nodes_.end(),
                               [&](const v1beta1::Node& other) { return other.name() == node; });
  placement->set_slot(static_cast<uint32_t>(at - nodes_.begin()));
  Apply(request);
}

void PlansHarness::SetNode(size_t slot, const v1beta1::Node& node) {
  nodes_.at(slot) = node;
  v1beta1::SyncRequest request = Next(v1beta1::SyncRequest::PHASE_DELTA);
  auto* upsert = request.add_changes()->mutable_node_upsert();
  upsert->set_slot(static_cast<uint32_t>(slot));
  *upsert->mutable_node() = node;
  Apply(request);
}

void PlansHarness::Nominate(const std::string& uid, const std::string& node) {
  v1beta1::SyncRequest request = Next(v1beta1::SyncRequest::PHASE_DELTA);
  auto* placement = request.add_changes()->mutable_pod_placement();
  placement->set_uid(uid);
  placement->set_state(v1beta1::PLACEMENT_STATE_NOMINATED);
  const auto at = std::find_if(nodes_.begin(), nodes_.end(),
                               [&](const v1beta1::Node& other) { return other.name() == node; });
  placement->set_slot(static_cast<uint32_t>(at - nodes_.begin()));
  Apply(request);
}

v1beta1::PlanResponse PlansHarness::Plan(const std::string& uid, uint32_t start_offset,
                                         const std::vector<std::string>& next, bool place_group) {
  v1beta1::PlanRequest request;
  v1beta1::CycleRequest& cycle = *request.mutable_cycle();
  attempt_ += 10'000;
  cycle.mutable_header()->set_attempt_id(attempt_);
  cycle.mutable_header()->set_exact_version(version_);
  cycle.mutable_header()->set_profile("p");
  cycle.set_deadline_micros(60'000'000);
  cycle.set_pod_uid(uid);
  cycle.mutable_search()->set_start_offset(start_offset);
  cycle.set_percentage_of_nodes_to_score(percentage);
  cycle.set_explain(explain);
  for (const std::string& other : next) request.add_next_pod_uids(other);
  request.set_place_group(place_group);
  v1beta1::PlanResponse response;
  const runtime::CallStatus status = session_->Plan(request, now, &response);
  EXPECT_TRUE(status.ok()) << status.message();
  return response;
}

v1beta1::PostFilterResponse PlansHarness::PostFilter() {
  v1beta1::PostFilterRequest request;
  request.mutable_header()->set_attempt_id(attempt_);
  request.mutable_header()->set_exact_version(version_);
  request.mutable_header()->set_profile("p");
  v1beta1::PostFilterResponse response;
  const runtime::CallStatus status = session_->PostFilter(request, now, &response);
  EXPECT_TRUE(status.ok()) << status.message();
  return response;
}

Place PlansHarness::Choose(const std::string& uid, uint32_t start_offset,
                           const v1beta1::PlanResponse& response) const {
  Place place;
  place.pod = uid;
  if (response.has_rejection()) return place;
  std::vector<size_t> nodes;  // allowed by PreFilter
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto& names = response.evaluation().pre_filter().node_names().names();
    if (!response.evaluation().pre_filter().has_node_names() ||
        std::find(names.begin(), names.end(), nodes_[i].name()) != names.end()) {
      nodes.push_back(i);
    }
  }
  const v1beta1::FilterResponse& filter = response.evaluation().filter();
  if (filter.has_error()) return place;
  std::vector<size_t> feasible;
  for (uint32_t i = 0; i < filter.processed(); ++i) {
    if ((static_cast<uint8_t>(filter.feasible()[i / 8]) >> (i % 8) & 1) != 0)
      feasible.push_back(nodes[(start_offset + i) % nodes.size()]);
  }
  place.processed = filter.processed();
  place.feasible = static_cast<uint32_t>(feasible.size());
  if (feasible.empty() || response.evaluation().pre_score().has_error() ||
      response.evaluation().score().has_error())
    return place;
  place.node = nodes_[feasible[Select(response.evaluation().score(), feasible.size())]].name();
  return place;
}

size_t PlansHarness::Select(const v1beta1::ScoreResponse& response, size_t num_nodes) const {
  std::vector<int64_t> totals(num_nodes, 0);
  for (const v1beta1::PluginScores& scores : response.plugins()) {
    const auto weight = std::find_if(weights_.begin(), weights_.end(), [&](const auto& entry) {
      return entry.first == scores.plugin();
    });
    for (size_t i = 0; i < totals.size(); ++i)
      totals[i] += weight->second * static_cast<uint8_t>(scores.scores()[i]);
  }
  // kube-scheduler pushes equals into a max-heap in this order: the first best one on the way down,
  // left before right.
  const int64_t best = *std::max_element(totals.begin(), totals.end());
  const std::function<size_t(size_t)> first_best = [&](size_t i) {
    if (i >= totals.size() || totals[i] == best) return i;
    const size_t left = first_best(2 * i + 1);
    return left < totals.size() ? left : first_best(2 * i + 2);
  };
  return first_best(0);
}

std::string PlansHarness::BestScored(const v1beta1::PlannedPlacement& placement) const {
  const auto& slots = placement.scored().slots();
  const size_t best = Select(placement.score(), static_cast<size_t>(slots.size()));
  return nodes_.at(slots[static_cast<int>(best)]).name();
}

Place PlansHarness::PlaceOf(const v1beta1::PlannedPlacement& placement) const {
  return {placement.pod_uid(), nodes_.at(placement.slot()).name(), placement.processed(),
          placement.feasible()};
}

}  // namespace outboard::plans
