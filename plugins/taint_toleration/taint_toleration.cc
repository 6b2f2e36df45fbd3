#include "plugins/taint_toleration/taint_toleration.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "plugin_host/sdk/node_local_plugin.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/score.h"
#include "plugin_host/sdk/tolerations.h"

namespace outboard::taint_toleration {
namespace {

// What was found for each set of taints so far in this call: nodes of a pool share their set.
class PerTaintSet {
 public:
  template <typename Compute>
  int64_t Get(uint32_t set, Compute&& compute) {
    for (const auto& [known, value] : found_) {
      if (known == set) return value;
    }
    const int64_t value = compute();
    if (found_.size() < kMost) found_.emplace_back(set, value);
    return value;
  }

 private:
  static constexpr size_t kMost = 16;  // A longer list would take longer to search than to compute.
  std::vector<std::pair<uint32_t, int64_t>> found_;
};

class TaintToleration : public sdk::Plugin,
                        public sdk::NodeLocalPlugin,
                        public sdk::FilterPlugin,
                        public sdk::PreScorePlugin,
                        public sdk::ScorePlugin,
                        public sdk::QueueingHintPlugin {
 public:
  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const sdk::NodeTable& table = attempt.cluster().nodes();
    const sdk::Tolerations& tolerations = attempt.pod().proto().tolerations();
    PerTaintSet found;
    block.ForEach([&](int i, sdk::Slot slot) {
      const uint32_t set = table.taint_set[slot];
      if (set == 0) return;
      const bool untolerated = found.Get(set, [&] {
        return sdk::FindUntoleratedTaint(table.taint_sets[set], tolerations) != nullptr ? 1 : 0;
      });
      if (untolerated) sink.Reject(i, untolerated_);
    });
  }

  // Never skips, as in kube-scheduler: without soft taints every node scores 100.
  sdk::Verdict PreScore(const sdk::Attempt& attempt,
                        absl::Span<const sdk::Slot> nodes) const override {
    return sdk::Verdict::Success();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const sdk::NodeTable& table = attempt.cluster().nodes();
    const sdk::Tolerations& tolerations = attempt.pod().proto().tolerations();
    PerTaintSet found;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const uint32_t set = table.taint_set[nodes[i]];
      raw[i] = set == 0 ? 0 : found.Get(set, [&] {
        const std::vector<v1beta1::Taint>& taints = table.taint_sets[set];
        return std::count_if(taints.begin(), taints.end(), [&](const v1beta1::Taint& taint) {
          return taint.effect() == v1beta1::TAINT_EFFECT_PREFER_NO_SCHEDULE &&
                 !sdk::ToleratesAny(tolerations, taint);
        });
      });
    }
    return sdk::Verdict::Success();
  }

  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    sdk::NormalizeScores(sdk::kMaxScore, /*reverse=*/true, scores);
    return sdk::Verdict::Success();
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    bool helps;
    if (change.new_pod != nullptr) {
      helps = change.new_pod->uid() == pod.uid();
    } else {
      const sdk::Tolerations& tolerations = pod.proto().tolerations();
      const bool was_untolerated =
          change.old_node == nullptr ||
          sdk::FindUntoleratedTaint(change.old_node->taints(), tolerations) != nullptr;
      helps = was_untolerated &&
              sdk::FindUntoleratedTaint(change.new_node->taints(), tolerations) == nullptr;
    }
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

 private:
  const sdk::Verdict untolerated_ = sdk::Verdict::Unresolvable("node(s) had untolerated taint(s)");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "TaintToleration";
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_PRE_SCORE,
                        v1beta1::EXTENSION_POINT_SCORE};
  d.default_weight = 3;
  d.wake_up_events = {sdk::WakeOn("Node", {v1beta1::ClusterEvent::ACTION_ADD,
                                           v1beta1::ClusterEvent::ACTION_UPDATE_NODE_TAINT}),
                      sdk::WakeOn("Pod", {v1beta1::ClusterEvent::ACTION_UPDATE_POD_TOLERATION})};
  d.signature = {{"spec.tolerations"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<TaintToleration>();
  };
  return d;
}

}  // namespace outboard::taint_toleration
