#include "plugin_host/runtime/planner.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/time/clock.h"
#include "plugin_host/runtime/group_parts.h"
#include "plugin_host/runtime/group_search.h"

namespace outboard::runtime {
namespace {

using sdk::PodRecord;
using sdk::Slot;

// How long a failure is valid without changes: plugins may depend on the time, or on data outside
// the cache.
constexpr absl::Duration kFailureCounts = absl::Seconds(1);
constexpr size_t kMaxFailures = 1024;

}  // namespace

GroupOutcome GroupOutcome::Copy() const {
  GroupOutcome copy;
  copy.fitting = fitting;
  copy.reason = reason;
  copy.rejected_by = rejected_by;
  copy.error = error;
  return copy;
}

Planner::Planner(host_cache::ClusterCache* cache, Evaluator* evaluator, Signatures* signatures)
    : cache_(cache), evaluator_(evaluator), signatures_(signatures), domains_(cache) {}

GroupOutcome Planner::PlaceGroup(const PlanContext& context, const sdk::GroupToPlace& group,
                                 const PodRecord& first) {
  GroupSearch search({cache_, evaluator_, signatures_, &domains_}, context, group, first);
  if (!context.remembers) return search.Run();
  const std::string shape = search.Shape();
  if (failures_room_version_ != cache_->room_version() || failures_.size() >= kMaxFailures) {
    failures_.clear();
    failures_room_version_ = cache_->room_version();
  }
  if (const auto known = failures_.find(shape);
      known != failures_.end() && context.now < known->second.until) {
    GroupOutcome outcome = known->second.outcome.Copy();
    outcome.also = search.LikeFirst();
    return outcome;
  }
  GroupOutcome outcome = search.Run();
  // Without `also`: the next group of this shape may be another one.
  if (outcome.placed.empty() && outcome.error.empty() && !search.late())
    failures_[shape] = {context.now + kFailureCounts, outcome.Copy()};
  return outcome;
}

namespace {

class CacheGroupDryRun final : public sdk::GroupDryRun {
 public:
  CacheGroupDryRun(Planner* planner, host_cache::ClusterCache* cache, const PlanContext& context,
                   const sdk::GroupToPlace& group, const PodRecord& first)
      : planner_(planner),
        context_(context),
        within_(context.among.begin(), context.among.end()),
        group_(group),
        first_(first),
        absence_(cache) {
    context_.remembers = false;
    // Members with nominated nodes come first, so that they use the same room again.
    const auto rank = [&](const PodRecord* pod) {
      return pod == &first ? 0 : pod->place == sdk::Place::kNominated ? 1 : 2;
    };
    std::stable_sort(group_.pending.begin(), group_.pending.end(),
                     [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    std::vector<const PodRecord*>& pods = group_.pending;
    GroupParts(group).PutNeededFirst(&pods);
    size_t enough = static_cast<size_t>(group_.needed);
    const auto at = std::find(pods.begin(), pods.end(), &first);
    // One more, if the first belongs to a part that has enough without it.
    if (at >= pods.begin() + group_.needed) ++enough;
    std::rotate(pods.begin(), at, at + 1);
    for (size_t i = enough; i < pods.size(); ++i) {
      if (rank(pods[i]) == 1) others_.push_back(pods[i]);
    }
    pods.resize(enough);
  }

  void Remove(const PodRecord& pod) override { absence_.Remove(pod); }
  void Return(const PodRecord& pod) override { absence_.Return(pod); }
  sdk::GroupPlaces Place(absl::Span<const Slot> among) override {
    std::vector<Slot> allowed = within_;
    if (!within_.empty() && !among.empty()) {
      std::erase_if(allowed, [&](Slot slot) { return !absl::c_linear_search(among, slot); });
      // To the search an empty list is every node.
      if (allowed.empty()) return {};
    }
    context_.among = within_.empty() ? among : absl::MakeConstSpan(allowed);
    // Nominations of other members do not block it.
    for (const PodRecord* other : std::exchange(others_, {})) absence_.Remove(*other);
    sdk::GroupPlaces places;
    for (const PlannedPod& planned : planner_->PlaceGroup(context_, group_, first_).placed)
      places.emplace_back(planned.pod, planned.slot);
    return places;
  }

 private:
  Planner* const planner_;
  PlanContext context_;
  const std::vector<Slot> within_;  // empty: any nodes
  sdk::GroupToPlace group_;
  const PodRecord& first_;
  std::vector<const PodRecord*> others_;  // with nominated nodes, beyond the needed ones
  host_cache::ClusterCache::Absence absence_;
};

}  // namespace

std::unique_ptr<sdk::GroupDryRun> Planner::MakeDryRun(const PlanContext& context,
                                                      const sdk::GroupToPlace& group,
                                                      const PodRecord& first) {
  return std::make_unique<CacheGroupDryRun>(this, cache_, context, group, first);
}

std::vector<PlannedPod> Planner::PlaceNext(const PlanContext& context, const PlannedPod& placed,
                                           absl::Span<const PodRecord* const> pods,
                                           uint64_t first_id) {
  const sdk::NodeTable& nodes = cache_->view().nodes();
  std::vector<PlannedPod> result;
  host_cache::ClusterCache::Trial trial(cache_);
  trial.Place(*placed.pod, placed.slot);
  SearchOptions options = context.options;
  v1beta1::PreFilterResponse pre_filter;
  v1beta1::FilterResponse filter;
  std::vector<Slot> left;
  for (const PodRecord* pod : pods) {
    if (absl::Now() > context.deadline) break;
    const std::string signature = signatures_->Of(*context.profile, pod->pod);
    if (!signature.empty()) PrepareVerdictCache(context.profile, signature);
    PlannedPod planned;
    planned.pod = pod;
    planned.attempt = std::make_unique<AttemptRecord>();
    planned.attempt->Begin(first_id + result.size(), pod->pod.uid(), context.profile);
    evaluator_->PreFilter(*planned.attempt, *pod, context.now, &pre_filter);
    if (pre_filter.has_rejection()) break;
    const absl::Span<const Slot> among =
        NodesLeft(pre_filter, nodes, cache_->view().node_order(), &left);
    const Evaluator::Choice choice =
        signature.empty()
            ? evaluator_->Choose(*planned.attempt, *pod, context.now, among, options, &filter)
            : evaluator_->ChooseAgain(*planned.attempt, *pod, context.now, among, options,
                                      &verdict_cache_);
    if (choice.slot == sdk::kNoSlot) break;
    planned.slot = choice.slot;
    planned.processed = choice.processed;
    planned.feasible = choice.feasible;
    options.start_offset = (options.start_offset + choice.processed) %
                           static_cast<uint32_t>(cache_->view().node_order().size());
    trial.Place(*pod, planned.slot);
    result.push_back(std::move(planned));
  }
  return result;
}

void Planner::PrepareVerdictCache(const std::shared_ptr<const Profile>& profile,
                                  const std::string& signature) {
  const uint64_t version = cache_->surroundings_version();
  if (verdict_cache_of_.signature == signature &&
      verdict_cache_of_.surroundings_version == version &&
      verdict_cache_of_.profile.lock() == profile) {
    return;
  }
  verdict_cache_.Forget();
  verdict_cache_of_ = {profile, signature, version};
}

}  // namespace outboard::runtime
