// The first header for plugin authors. A plugin is a descriptor and a class that implements
// extension points.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PLUGIN_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PLUGIN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/binding_points.h"
#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/queue_points.h"
#include "plugin_host/sdk/verdict.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

using ExtensionPoint = v1beta1::ExtensionPoint;

// The highest score, also after Normalize.
inline constexpr int64_t kMaxScore = 100;

// A plugin of a profile: one object per profile and session. Derive from this and from the points
// below.
//
// Threading: all calls come on one thread. They must not block, sleep or read the clock.
// Lifetime: from Configure to the next Configure. Its state must be reconstructible from the
// cache.
// Errors: verdicts; never an exception.
class Plugin {
 public:
  virtual ~Plugin() = default;
};

// A restriction to some nodes by name; absent: every node.
struct PreFilterResult {
  std::optional<std::set<std::string>> node_names;
};

class PreFilterPlugin {
 public:
  virtual ~PreFilterPlugin() = default;
  // Once per attempt. SKIP: Filter, AddPod and RemovePod of this plugin are not called.
  virtual Verdict PreFilter(const Attempt& attempt, PreFilterResult* result) const = 0;
  // Updates the state as if `pod` ran (no longer ran) on `node`, which already has it (no longer
  // has it). Only called on clones, so the state must implement Clone.
  virtual Verdict AddPod(const Attempt& attempt, const PodView& pod, const NodeView& node) const {
    return Verdict::Success();
  }
  virtual Verdict RemovePod(const Attempt& attempt, const PodView& pod,
                            const NodeView& node) const {
    return Verdict::Success();
  }
};

class FilterPlugin {
 public:
  virtual ~FilterPlugin() = default;
  // Rejects the candidates of the block that the pod does not fit on. Must read each node through
  // the views of this call.
  virtual void Filter(const Attempt& attempt, const NodeBlock& block, FilterSink& sink) const = 0;
};

// A FilterPlugin that evaluates one node at a time; for plugins where this is fast enough.
class NodeFilterPlugin : public FilterPlugin {
 public:
  virtual Verdict FilterNode(const Attempt& attempt, const NodeView& node) const = 0;
  void Filter(const Attempt& attempt, const NodeBlock& block, FilterSink& sink) const final {
    block.ForEach([&](int i, Slot slot) {
      Verdict verdict = FilterNode(attempt, attempt.cluster().node(slot));
      if (!verdict.ok()) sink.RejectWith(i, verdict);
    });
  }
};

class PreScorePlugin {
 public:
  virtual ~PreScorePlugin() = default;
  // Once per attempt, with the feasible nodes. SKIP: Score of this plugin is not called.
  virtual Verdict PreScore(const Attempt& attempt, absl::Span<const Slot> nodes) const = 0;
};

// A term of a raw score: a name that is unique in the plugin, and what it adds.
struct ScoreTerm {
  std::string name;
  double value = 0;
};

class ScorePlugin {
 public:
  virtual ~ScorePlugin() = default;
  // Fills raw[i] for nodes[i]; anything but success ends the attempt with an error.
  virtual Verdict Score(const Attempt& attempt, absl::Span<const Slot> nodes,
                        absl::Span<int64_t> raw) const = 0;
  // Brings the scores of all nodes into 0..kMaxScore; see NormalizeScores in score.h.
  virtual Verdict Normalize(const Attempt& attempt, absl::Span<const Slot> nodes,
                            absl::Span<int64_t> scores) const {
    return Verdict::Success();
  }
  // OPTIONAL. How the plugin breaks ties: larger is better. True if it filled `keys`.
  virtual bool TieKeys(const Attempt& attempt, absl::Span<const Slot> nodes,
                       absl::Span<int64_t> keys) const {
    return false;
  }
  // OPTIONAL. The terms of each node's raw score, in the order of the formula, to explain single
  // pods; called after Score with the same nodes. Empty: not supported.
  virtual std::vector<std::vector<ScoreTerm>> Explain(const Attempt& attempt,
                                                      absl::Span<const Slot> nodes) const {
    return {};
  }
};

// A ScorePlugin that scores one node at a time.
class NodeScorePlugin : public ScorePlugin {
 public:
  virtual int64_t ScoreNode(const Attempt& attempt, const NodeView& node) const = 0;
  Verdict Score(const Attempt& attempt, absl::Span<const Slot> nodes,
                absl::Span<int64_t> raw) const final {
    for (size_t i = 0; i < nodes.size(); ++i) {
      raw[i] = ScoreNode(attempt, attempt.cluster().node(nodes[i]));
    }
    return Verdict::Success();
  }
};

// For plugins that keep an index over the cluster. Notified of every change right after the cache
// applied it, on the same thread.
class ClusterObserver {
 public:
  virtual ~ClusterObserver() = default;
  // Forget everything; notifications of every node and pod follow.
  virtual void OnReset() {}
  virtual void OnNodeChanged(Slot slot) {}
  virtual void OnNodeRemoved(Slot slot, const std::string& name) {}
  // A pod gets a place on a node, or is about to lose it. An update of a placed pod is a removal
  // and an addition. Some placements are trials that are undone: do not push or write because of
  // them.
  virtual void OnPodAddedToNode(const PodRecord& pod, Slot slot) {}
  virtual void OnPodRemovedFromNode(const PodRecord& pod, Slot slot) {}
  // A pod was added, changed (also its place), or is about to be removed.
  virtual void OnPodChanged(const PodRecord& pod) {}
  virtual void OnPodRemoved(const PodRecord& pod) {}
  virtual void OnNamespaceChanged(const std::string& name) {}
  // An object of another kind was added (`old` is null), changed, or was removed. It is the whole
  // object, also of a removed one.
  virtual void OnObjectChanged(const v1beta1::ClusterObject* old,
                               const v1beta1::ClusterObject& object) {}
  virtual void OnObjectRemoved(const v1beta1::ClusterObject& object) {}
  // About once a second.
  virtual void OnTick(absl::Time now) {}
};

// Lets a plugin notify the shim on its own initiative. Drops calls without a stream, because the
// shim asks again after a reconnect.
class ShimNotifier {
 public:
  virtual ~ShimNotifier() = default;
  virtual void Decide(const WaitDecision& decision) = 0;
  // Empty: all pods.
  virtual void SortKeysChanged(absl::Span<const std::string> pod_uids) = 0;
  virtual void GateChanged(absl::Span<const std::string> pod_uids) = 0;
  // Schedules these pods at once, if this plugin rejected them and they wait for an event or the
  // end of their backoff.
  virtual void Activate(absl::Span<const std::string> pod_uids) = 0;
  // Writes or deletes an object of a custom resource that the plugin declared, independently of any
  // pod that is being placed. The outcome shows in the cache; to retry, call again after a second
  // at the earliest (OnTick). The host fills in `plugin`.
  virtual void Write(v1beta1::Effect effect) = 0;
};

// What a plugin gets when it is created.
struct PluginContext {
  std::string profile;
  // Read every field that the plugin supports; the reader collects problems with their paths.
  ArgsReader* args = nullptr;
  ShimNotifier* pushes = nullptr;
  ClusterView cluster;
  Metrics* metrics = NoMetrics();  // With the names of the descriptor's `metrics`.
  // Where the profile enables the plugin; it is called at no other point. A plugin that cannot work
  // with these points returns INVALID_ARGUMENT from `create`: the configuration is refused.
  std::set<ExtensionPoint> points{};
};

// A plugin's maturity; shown in the table of plugins.
enum class Maturity { kSample, kAlpha, kBeta, kStable };

// Describes and creates a plugin. Each plugin folder exposes one: `sdk::PluginDescriptor
// Descriptor();`
struct PluginDescriptor {
  std::string name;  // Unique; in configurations and metrics.
  std::vector<ExtensionPoint> extension_points;
  int32_t default_weight = 1;
  std::string args_schema;  // A JSON schema; empty: no args.
  std::vector<v1beta1::ClusterEvent> wake_up_events;
  // Fields that it reads beyond the contract's own, see plugin_host.proto.
  std::vector<std::string> needed_fields;
  std::vector<std::string> optional_fields;  // The same; it works without them.
  std::vector<v1beta1::Interest> interests;
  // Parts of a pod (pod_parts.h) that, with the cluster, determine the plugin's answers from
  // PreFilter to Score: pods with equal parts are interchangeable. Absent: no two pods are.
  std::optional<std::vector<std::string>> signature;
  // Resources whose objects the cache has, and writes that the plugin may want.
  std::vector<v1beta1::DeclaredResource> declared_resources;
  std::vector<MetricSpec> metrics;  // All of its metrics.
  Maturity maturity = Maturity::kAlpha;
  std::function<absl::StatusOr<std::unique_ptr<Plugin>>(const PluginContext&)> create;
};

// Shorthands for descriptors.
v1beta1::ClusterEvent WakeOn(std::string resource,
                             std::initializer_list<v1beta1::ClusterEvent::Action> actions);
// `resource` as in GenericObject.resource.
v1beta1::DeclaredResource UsesResource(
    std::string resource, std::initializer_list<v1beta1::DeclaredResource::Verb> verbs);
// For PluginDescriptor::signature: these parts, and those of `needed_fields` that may differ
// between pending pods and that `parts` does not have: annotations, names in the spec, conditions.
std::vector<std::string> SignedParts(const std::vector<std::string>& needed_fields,
                                     std::initializer_list<std::string> parts);
// No fields: no pod, the plugin is never called at the point.
v1beta1::Interest InterestIn(ExtensionPoint point, std::initializer_list<std::string> fields);
// PreBind is asked for every pod, not only for those whose Reserve named effects.
v1beta1::Interest InterestInEveryPodAtPreBind();
// Refuses profiles with the plugin at `point` and not at `earlier`, where it prepares what it reads
// at `point`: there every pod would fail. Call it after `create` is set.
void RequireEarlierPoint(PluginDescriptor* descriptor, ExtensionPoint point,
                         ExtensionPoint earlier);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PLUGIN_H_
