// Pods that wait for an event, and the events that help them.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_QUEUEING_HINTS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_QUEUEING_HINTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/queueing_hint.pb.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/profile.h"

namespace outboard::runtime {

// Whether a change of an object helps a pod that the plugin rejected. Pure except for the plugin.
bool Helps(const ProfilePlugin& plugin, const sdk::PodRecord& pod, const sdk::ObjectChange& change);

// Evaluates the events of a Sync stream for waiting pods.
//
//   hints.BeforeChange(request);   // keeps the objects before the change
//   cache.Apply(request, now);
//   hints.AfterChange(request, &queue_hints);
//
// An event costs work only for the plugins that registered it and the pods that these rejected.
// Events are kept, at most kMaxHistory, while an attempt in progress may have missed them, as the
// shim reports; a pod that needs older ones is requeued.
//
// Threading: thread-compatible; the engine's thread.
// Lifetime:  the cache must outlive it; profiles too, until ProfilesChanged.
// Errors:    none; ignores events about unknown objects.
class QueueingHints {
 public:
  static constexpr size_t kMaxHistory = 8192;
  using FindProfile = std::function<const Profile*(const std::string& name)>;

  QueueingHints(const host_cache::ClusterCache* cache, FindProfile find_profile)
      : cache_(cache), find_profile_(std::move(find_profile)) {}
  void BeforeChange(const v1beta1::SyncRequest& request);
  void AfterChange(const v1beta1::SyncRequest& request, std::vector<v1beta1::QueueHint>* hints);
  // Profiles were replaced; the old ones are still there.
  void ProfilesChanged();
  // Drops all waiting pods and events.
  void Reset();
  size_t waiting() const { return waiting_.size(); }
  size_t history() const { return history_.size(); }

 private:
  // An event with its object, before and after.
  struct Event {
    v1beta1::QueueEvent told;
    std::unique_ptr<v1beta1::Node> old_node, new_node;
    std::unique_ptr<v1beta1::Pod> old_pod, new_pod;
    std::unique_ptr<v1beta1::ClusterObject> old_object, new_object;

    absl::string_view resource() const { return told.event().resource(); }
    v1beta1::ClusterEvent::Action action() const { return told.event().actions(0); }
    bool concerns_only_its_pod() const;
    bool complete() const;
    sdk::ObjectChange change() const;
  };
  struct Waiting {
    v1beta1::UnschedulablePod told;
    std::string profile;
    // In the order of evaluation, PENDING first; null: unknown plugin.
    std::vector<const ProfilePlugin*> rejectors;
    const ProfilePlugin* gate = nullptr;
    uint64_t last_evaluated = 0;  // The last evaluated event.
  };

  void Keep(bool after, Event* event) const;
  void Resolve(Waiting* waiting) const;
  void StopWaiting(const std::string& uid);
  // Also evaluates earlier events for it.
  void BeginWaiting(const v1beta1::UnschedulablePod& told, std::vector<v1beta1::QueueHint>* hints);
  void EvaluateAll(const Event& event, std::vector<v1beta1::QueueHint>* hints);
  // The plugin whose rejection the event may end; null: none.
  const ProfilePlugin* Evaluate(const Waiting& waiting, const Event& event) const;

  const host_cache::ClusterCache* const cache_;
  const FindProfile find_profile_;
  absl::flat_hash_map<std::string, Waiting> waiting_;
  // Uids of pods that a plugin rejected.
  absl::flat_hash_map<const ProfilePlugin*, absl::flat_hash_set<std::string>> by_rejector_;
  std::deque<Event> history_;
  // Events before this are not in history_.
  uint64_t history_from_ = 0;
  std::vector<Event> pending_;  // Events of the message that is being applied.
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_QUEUEING_HINTS_H_
