// What a plugin is: a descriptor and a class with the extension points that it wants. All that a
// plugin author includes first.
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
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/verdict.h"
#include "plugin_host/sdk/views.h"
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"

namespace outboard::sdk {

using ExtensionPoint = v1alpha1::ExtensionPoint;

// The highest score, and the highest that Normalize may leave.
inline constexpr int64_t kMaxScore = 100;

// A plugin of a profile: one object a profile and session. Derive from this and from the points
// below.
//
// Threading: all calls come on one thread. They must not block, sleep or ask for the time.
// Lifetime:  from Configure to the next Configure. Whatever it keeps must be rebuilt from the
//            mirror alone.
// Errors:    verdicts; never an exception.
class Plugin {
 public:
  virtual ~Plugin() = default;
};

class QueueSortPlugin {
 public:
  virtual ~QueueSortPlugin() = default;
  // At most 64 bytes; smaller (compared as unsigned bytes) is popped first, then the time of
  // queueing decides.
  virtual std::string SortKey(const PodView& pod, const ClusterView& cluster) const = 0;
};

class PreEnqueuePlugin {
 public:
  virtual ~PreEnqueuePlugin() = default;
  virtual Verdict PreEnqueue(const PodView& pod, const ClusterView& cluster,
                             absl::Time now) const = 0;
};

// A restriction to some nodes by name; absent: every node.
struct PreFilterResult {
  std::optional<std::set<std::string>> node_names;
};

class PreFilterPlugin {
 public:
  virtual ~PreFilterPlugin() = default;
  // Once an attempt. Skip: Filter, AddPod and RemovePod of this plugin are not called.
  virtual Verdict PreFilter(const Attempt& attempt, PreFilterResult* result) const = 0;
  // The state is to be changed as if `pod` ran (no longer ran) on `node`, which already has it (has
  // it no more).
  // Only called on clones, so the state's Clone must be implemented.
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
  // Rejects those candidates of the block that cannot take the pod. Must judge each node by what
  // the views say of it in this call.
  virtual void Filter(const Attempt& attempt, const NodeBlock& block, FilterSink& sink) const = 0;
};

// A FilterPlugin that judges a node at a time; for plugins where this is fast enough.
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
  // Once an attempt, with the feasible nodes. Skip: Score of this plugin is not called.
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
  // OPTIONAL. How the plugin would break ties: larger is better. True if it filled `keys`.
  virtual bool TieKeys(const Attempt& attempt, absl::Span<const Slot> nodes,
                       absl::Span<int64_t> keys) const {
    return false;
  }
  // OPTIONAL. What the raw score of each node is made of, in the order of the formula; for people
  // who look at single pods, after Score of the same nodes. Empty: it does not say.
  virtual std::vector<std::vector<ScoreTerm>> Explain(const Attempt& attempt,
                                                      absl::Span<const Slot> nodes) const {
    return {};
  }
};

// A ScorePlugin that scores a node at a time.
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

// A decision on a pod that waits at Permit. `plugin` is filled in by the host.
struct WaitDecision {
  uint64_t attempt_id = 0;
  std::string pod_uid;
  bool allow = false;
  std::string message;  // REQUIRED unless allow.
};

// Beside the verdict of Reserve.
struct ReserveAnswer {
  // What the shim is to carry out before it binds the pod. From the next change of the mirror on
  // they stand in the pod's record, which is where plugins count with them; after a restart too.
  // `plugin` is filled in by the host.
  std::vector<v1alpha1::Effect> effects;
};

class ReservePlugin {
 public:
  virtual ~ReservePlugin() = default;
  virtual Verdict Reserve(const Attempt& attempt, const NodeView& node, ReserveAnswer* answer) = 0;
  // Also called if Reserve never was, on nodes that are gone, and after a restart with empty state.
  // Idempotent.
  virtual void Unreserve(const Attempt& attempt, absl::string_view node_name,
                         std::vector<WaitDecision>* decisions) = 0;
};

// Beside the verdict of Permit.
struct PermitAnswer {
  absl::Duration timeout = absl::ZeroDuration();  // With WAIT.
  std::string wait_reason;                        // With WAIT, OPTIONAL.
  std::vector<WaitDecision> decisions;            // On other pods that wait.
};

class PermitPlugin {
 public:
  virtual ~PermitPlugin() = default;
  // SUCCESS, WAIT (with answer->timeout), or a rejection.
  virtual Verdict Permit(const Attempt& attempt, const NodeView& node, PermitAnswer* answer) = 0;
};

// The effects of a pod, all carried out.
struct PreBindProgress {
  absl::Span<const v1alpha1::Effect* const> effects;
  absl::Span<const v1alpha1::EffectResult* const> results;  // In the same order.
  absl::Duration elapsed;                                   // Since the last of them.
};

class PreBindPlugin {
 public:
  virtual ~PreBindPlugin() = default;
  // Whether the pod may be bound: SUCCESS, WAIT (asked again in a second), or a rejection. Only
  // called for pods whose Reserve named effects. Must judge by the mirror and what it is given: the
  // host may have started after Reserve.
  virtual Verdict PreBind(const Attempt& attempt, absl::string_view node_name,
                          const PreBindProgress& progress) = 0;
};

// For plugins that keep an index over the cluster: told of every change right after the mirror made
// it, on the same thread.
class ClusterObserver {
 public:
  virtual ~ClusterObserver() = default;
  // Forget everything; then every node and pod is told anew.
  virtual void OnReset() {}
  virtual void OnNodeChanged(Slot slot) {}
  virtual void OnNodeRemoved(Slot slot, const std::string& name) {}
  // A pod takes a place on a node, or is about to lose it. An update of a placed pod is a removal
  // and an addition. Some places are only tried, and taken back: say and write nothing about them.
  virtual void OnPodAddedToNode(const PodRecord& pod, Slot slot) {}
  virtual void OnPodRemovedFromNode(const PodRecord& pod, Slot slot) {}
  // A pod appeared, changed (also its place), or goes.
  virtual void OnPodChanged(const PodRecord& pod) {}
  virtual void OnPodRemoved(const PodRecord& pod) {}
  virtual void OnNamespaceChanged(const std::string& name) {}
  // An object of another kind appeared or changed; `old` is null if it is new. Or it goes.
  virtual void OnObjectChanged(const v1alpha1::ClusterObject* old,
                               const v1alpha1::ClusterObject& object) {}
  virtual void OnObjectRemoved(const v1alpha1::ClusterObject& object) {}
  // About once a second.
  virtual void OnTick(absl::Time now) {}
};

// Lets a plugin speak of its own accord. Calls outside a stream are dropped, because the shim asks
// again after a reconnect.
class Pushes {
 public:
  virtual ~Pushes() = default;
  virtual void Decide(const WaitDecision& decision) = 0;
  // Empty: all pods.
  virtual void SortKeysChanged(absl::Span<const std::string> pod_uids) = 0;
  virtual void GateChanged(absl::Span<const std::string> pod_uids) = 0;
  // Of these pods, those that this plugin rejected and that wait for an event or the end of their
  // backoff are tried at once.
  virtual void Activate(absl::Span<const std::string> pod_uids) = 0;
  // An object of a custom resource that the plugin declared is to be written or deleted, for no pod
  // that is being placed. How it ended shows in the mirror; whoever still wants what did not come
  // asks again, not within a second (OnTick). `plugin` is filled in by the host.
  virtual void Write(v1alpha1::Effect effect) = 0;
};

// What a plugin gets when it is made.
struct PluginContext {
  std::string profile;
  // Read every field that the plugin knows; problems are collected there and reported with their
  // paths.
  ArgsReader* args = nullptr;
  Pushes* pushes = nullptr;
  ClusterView cluster;
  Metrics* metrics = NoMetrics();  // By the names of the descriptor's `metrics`.
};

// How far a plugin is proven; copied into the table of plugins.
enum class Maturity { kSample, kAlpha, kBeta, kStable };

// A plugin before it is made. Each plugin folder exposes one: `sdk::PluginDescriptor Descriptor();`
struct PluginDescriptor {
  std::string name;  // Unique; in configurations and metrics.
  std::vector<ExtensionPoint> extension_points;
  int32_t default_weight = 1;
  std::string args_schema;  // A JSON schema; empty: takes no args.
  std::vector<v1alpha1::ClusterEvent> wake_up_events;
  std::vector<std::string> needed_fields;  // Annotations it reads, see plugin_host.proto.
  std::vector<v1alpha1::Interest> interests;
  // Parts of a pod (pod_parts.h) that decide, with the cluster, what the plugin says of it from
  // PreFilter to Score: pods that agree in them are interchangeable. Absent: no two pods are.
  std::optional<std::vector<std::string>> signature;
  // Whose objects the mirror is to have, and what the plugin may want done with them.
  std::vector<v1alpha1::CustomResource> custom_resources;
  std::vector<MetricSpec> metrics;  // All that it keeps.
  Maturity maturity = Maturity::kAlpha;
  std::function<absl::StatusOr<std::unique_ptr<Plugin>>(const PluginContext&)> create;
};

// Shorthands for descriptors.
v1alpha1::ClusterEvent WakeOn(std::string resource,
                              std::initializer_list<v1alpha1::ClusterEvent::Action> actions);
// `resource` as in CustomObject.resource.
v1alpha1::CustomResource UsesResource(std::string resource,
                                      std::initializer_list<v1alpha1::CustomResource::Verb> verbs);
// For PluginDescriptor::signature: these parts, and the pods' annotations of `needed_fields`.
std::vector<std::string> SignedParts(const std::vector<std::string>& needed_fields,
                                     std::initializer_list<std::string> parts);
v1alpha1::Interest InterestIn(ExtensionPoint point, std::initializer_list<std::string> fields);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PLUGIN_H_
