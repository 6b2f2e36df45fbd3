#include "plugins/training_job_placement/training_job_placement.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/score.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/training_job_placement/job_index.h"

namespace outboard::training_job_placement {
namespace {

using nlohmann::json;

constexpr char kName[] = "TrainingJobPlacement";
constexpr size_t kMaxLevels = 8;
constexpr double kShareScale = 1000;
constexpr int64_t kPinned = 2000;  // more than any shares
// The maximum number of jobs per tick, so that a tick stays short.
constexpr int kMaxJobsPerTick = 500;

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "levels": {"type": "array", "maxItems": 8, "items": {"type": "string"},
      "default": ["nvlink-fabric-id", "nvidia.com/gpu.clique", "topology.kubernetes.io/rack",
                  "topology.kubernetes.io/zone"],
      "description": "Node labels whose values name domains, the tightest first."},
    "retention": {"type": "string", "default": "24h",
      "description": "How long an object outlives the last pod of its job."}}})json";

struct Args {
  std::vector<std::string> levels;
  absl::Duration retention;
};

// The weighted share of the job's pods in each domain, per mille.
struct Shares : sdk::AttemptState {
  std::vector<absl::flat_hash_map<uint32_t, double>> by_value;  // by level
  size_t pinned_level = 0;
  uint32_t pinned_value = sdk::StringTable::kNone;
};

class TrainingJobPlacement : public sdk::Plugin,
                             public sdk::PreScorePlugin,
                             public sdk::ScorePlugin,
                             public sdk::ClusterObserver {
 public:
  TrainingJobPlacement(Args args, const sdk::PluginContext& context)
      : retention_(args.retention),
        profile_(context.profile),
        cluster_(context.cluster),
        pushes_(context.pushes),
        jobs_(context.profile, std::move(args.levels), context.cluster) {}

  sdk::Verdict PreScore(const sdk::Attempt& attempt,
                        absl::Span<const sdk::Slot> nodes) const override {
    const Job* job = jobs_.Find(attempt.pod().proto());
    if (job == nullptr) return sdk::Verdict::Skip();
    auto shares = std::make_unique<Shares>();
    FillShares(*job, shares.get());
    const bool any = shares->pinned_value != sdk::StringTable::kNone ||
                     std::any_of(shares->by_value.begin(), shares->by_value.end(),
                                 [](const auto& by_value) { return !by_value.empty(); });
    if (!any) return sdk::Verdict::Skip();
    attempt.NewScoreState<Shares>() = std::move(*shares);
    return sdk::Verdict::Success();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const auto* shares = attempt.score_state<Shares>();
    for (size_t i = 0; i < nodes.size(); ++i) {
      raw[i] = shares == nullptr ? 0 : RawScore(*shares, nodes[i]);
      VLOG(4) << kName << ": node " << cluster_.node(nodes[i]).name() << " pod "
              << attempt.pod().uid() << ": " << raw[i];
    }
    return sdk::Verdict::Success();
  }

  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    sdk::NormalizeScores(sdk::kMaxScore, /*reverse=*/false, scores);
    return sdk::Verdict::Success();
  }

  std::vector<std::vector<sdk::ScoreTerm>> Explain(
      const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const override {
    const auto* shares = attempt.score_state<Shares>();
    if (shares == nullptr) return {};
    std::vector<std::vector<sdk::ScoreTerm>> explained;
    for (const sdk::Slot slot : nodes) {
      std::vector<sdk::ScoreTerm>& terms = explained.emplace_back();
      if (shares->pinned_value != sdk::StringTable::kNone)
        terms.push_back({"pinned", IsPinned(*shares, slot) ? double{kPinned} : 0});
      for (size_t level = 0; level < jobs_.levels().size(); ++level)
        terms.push_back({jobs_.levels()[level].substr(0, 64), ShareAt(*shares, level, slot)});
    }
    return explained;
  }

  void OnReset() override {
    jobs_.Clear();
    pace_.Clear();
    later_.clear();
  }
  void OnNodeChanged(sdk::Slot slot) override { jobs_.SetNode(slot); }
  void OnNodeRemoved(sdk::Slot slot, const std::string&) override { jobs_.RemoveNode(slot); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    jobs_.AddToNode(pod, slot);
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    jobs_.RemoveFromNode(pod, slot);
  }
  void OnPodChanged(const sdk::PodRecord& pod) override { jobs_.SetPod(pod); }
  void OnPodRemoved(const sdk::PodRecord& pod) override { jobs_.RemovePod(pod); }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (!IsPlacement(object)) return;
    jobs_.SetObject(object.generic_object());
    pace_.Changed(KeyOf(object.generic_object()));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (!IsPlacement(object)) return;
    jobs_.RemoveObject(object.generic_object());
    pace_.Changed(KeyOf(object.generic_object()));
  }

  // Compares pods with objects, so that nothing depends on what an earlier host has written.
  void OnTick(absl::Time now) override {
    while (!later_.empty() && later_.begin()->first <= now) {
      jobs_.changed().insert(later_.begin()->second);
      later_.erase(later_.begin());
    }
    std::vector<std::string> keys(jobs_.changed().begin(), jobs_.changed().end());
    if (keys.size() > kMaxJobsPerTick) {
      std::rotate(keys.begin(), keys.begin() + next_job_++ * kMaxJobsPerTick % keys.size(),
                  keys.end());
      keys.resize(kMaxJobsPerTick);
    }
    for (const std::string& key : keys) {
      if (Keep(key, now)) {
        jobs_.changed().erase(key);
        pace_.Forget(key);
      }
      jobs_.DropIfEmpty(key);
    }
  }

 private:
  static bool IsPlacement(const v1beta1::ClusterObject& object) {
    return object.has_generic_object() && object.generic_object().resource() == kResource;
  }
  static std::string KeyOf(const v1beta1::GenericObject& object) {
    return sdk::NamespacedKey(object.namespace_(), object.name());
  }

  // Returns true if there is nothing to do until the next change.
  bool Keep(const std::string& key, absl::Time now) {
    const Job* job = jobs_.Find(key);
    if (job == nullptr) return true;
    if (!pace_.MayBeDue(key, now)) return false;
    const size_t slash = key.find('/');
    const std::string name = key.substr(slash + 1);
    const auto* stored =
        cluster_.objects().Find<v1beta1::GenericObject>(sdk::CustomKey(kResource, job->ns, name));
    const bool has_pods = !job->pods.empty();
    if (stored == nullptr) {
      if (!has_pods) return true;
      if (pace_.IsDue(key, now)) {
        pushes_->Write(
            sdk::CreateObject(kResource, job->ns, name, MakeObject(job->id, OwnershipOf(*job))));
      }
      return false;
    }
    if (stored->deleting()) return true;
    // Another profile's plugin owns the object.
    if (!job->object.keeper.empty() && job->object.keeper != profile_) return true;
    if (job->object.keeper.empty() && !has_pods) return true;
    json whole = sdk::ParseCustomObject(*stored);
    if (Own(OwnershipOf(*job), &whole)) return Push(key, sdk::ReplaceObject(*stored, whole), now);
    const json* present = sdk::JsonAt(whole, {"status"});
    json status = MakeStatus(whole, job->object, jobs_.Observe(*job), job->good_status, now);
    if (present == nullptr || *present != status) {
      whole["status"] = std::move(status);
      return Push(key, sdk::ReplaceStatus(*stored, whole), now);
    }
    if (has_pods || !job->object.made_by_plugin || job->object.pinned) return true;
    const absl::Time gone_since =
        sdk::TransitionTime(*sdk::FindCondition(*present, "Active")).value_or(now);
    if (now - gone_since >= retention_) return Push(key, sdk::DeleteObject(*stored), now);
    later_.emplace(gone_since + retention_, key);
    return true;
  }
  bool Push(const std::string& key, v1beta1::Effect effect, absl::Time now) {
    if (pace_.IsDue(key, now)) pushes_->Write(std::move(effect));
    return false;
  }
  Ownership OwnershipOf(const Job& job) const { return {profile_, jobs_.ControllersOf(job)}; }

  // Placed pods count; without any, the placements in the object.
  void FillShares(const Job& job, Shares* shares) const {
    const size_t levels = jobs_.levels().size();
    shares->by_value.resize(levels);
    std::vector<absl::flat_hash_map<uint32_t, int64_t>> counts(levels);
    int64_t total = 0;
    for (const auto& [slot, pods] : job.on_node) {
      total += pods;
      for (size_t level = 0; level < levels; ++level) {
        const uint32_t value = jobs_.ValueOn(level, slot);
        if (value != sdk::StringTable::kNone) counts[level][value] += pods;
      }
    }
    if (total == 0) {
      for (size_t level = 0; level < levels; ++level) {
        int64_t of_level = 0;
        for (const auto& [domain, pods] : job.object.domains) {
          if (domain.level != jobs_.levels()[level]) continue;
          of_level += pods;
          const uint32_t value = cluster_.nodes().label_values.Find(domain.value);
          if (value != sdk::StringTable::kNone) counts[level][value] += pods;
        }
        total = std::max(total, of_level);
      }
    }
    const double all_weights = static_cast<double>((int64_t{1} << levels) - 1);
    for (size_t level = 0; level < levels; ++level) {
      const double weight = static_cast<double>(int64_t{1} << (levels - 1 - level)) / all_weights;
      for (const auto& [value, pods] : counts[level]) {
        shares->by_value[level][value] =
            kShareScale * weight * static_cast<double>(pods) / static_cast<double>(total);
      }
    }
    if (!job.object.pinned) return;
    const auto level =
        std::find(jobs_.levels().begin(), jobs_.levels().end(), job.object.pinned->level);
    shares->pinned_level = static_cast<size_t>(level - jobs_.levels().begin());
    shares->pinned_value = cluster_.nodes().label_values.Find(job.object.pinned->value);
  }

  bool IsPinned(const Shares& shares, sdk::Slot slot) const {
    return shares.pinned_value != sdk::StringTable::kNone &&
           jobs_.ValueOn(shares.pinned_level, slot) == shares.pinned_value;
  }
  double ShareAt(const Shares& shares, size_t level, sdk::Slot slot) const {
    const auto it = shares.by_value[level].find(jobs_.ValueOn(level, slot));
    return it == shares.by_value[level].end() ? 0 : it->second;
  }
  int64_t RawScore(const Shares& shares, sdk::Slot slot) const {
    double share = 0;
    for (size_t level = 0; level < shares.by_value.size(); ++level)
      share += ShareAt(shares, level, slot);
    return (IsPinned(shares, slot) ? kPinned : 0) + static_cast<int64_t>(share);
  }

  const absl::Duration retention_;
  const std::string profile_;
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  JobIndex jobs_;
  sdk::WritePace pace_;
  size_t next_job_ = 0;
  std::multimap<absl::Time, std::string> later_;  // jobs to check again without a change
};

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  args.levels =
      root.Strings("levels", {"nvlink-fabric-id", "nvidia.com/gpu.clique",
                              "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"});
  if (args.levels.empty() || args.levels.size() > kMaxLevels)
    root.Problem("levels", absl::StrCat("Invalid value: must have 1 to ", kMaxLevels, " levels"));
  for (size_t i = 0; i < args.levels.size(); ++i) {
    const std::string field = absl::StrCat("levels[", i, "]");
    for (const std::string& error : sdk::QualifiedNameErrors(args.levels[i]))
      root.Problem(field, sdk::InvalidValue(args.levels[i], error));
    if (std::count(args.levels.begin(), args.levels.begin() + i, args.levels[i]) > 0)
      root.Problem(field, sdk::DuplicateValue(args.levels[i]));
  }
  args.retention = root.Duration("retention", absl::Hours(24));
  if (args.retention < absl::ZeroDuration())
    root.Problem("retention", "Invalid value: must not be negative");
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Resource = v1beta1::DeclaredResource;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = kArgsSchema;
  d.declared_resources = {
      sdk::UsesResource(kResource, {Resource::VERB_CREATE, Resource::VERB_UPDATE,
                                    Resource::VERB_UPDATE_STATUS, Resource::VERB_DELETE})};
  d.signature = {{"metadata.namespace", absl::StrCat("metadata.labels['", kJobLabel, "']")}};
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<TrainingJobPlacement>(ReadArgs(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::training_job_placement
