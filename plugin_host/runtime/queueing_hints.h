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
#include "plugin_host/mirror/mirror.h"
#include "plugin_host/runtime/profile.h"
#include "proto/outboard/v1alpha1/cluster_state.pb.h"
#include "proto/outboard/v1alpha1/queueing_hint.pb.h"

namespace outboard::runtime {

// Whether a change of an object helps a pod that the plugin rejected. Pure but for the plugin.
bool Helps(const ProfilePlugin& plugin, const sdk::PodRecord& pod, const sdk::ObjectChange& change);

// Judges the events of a Sync stream for the pods that wait.
//
//   hints.BeforeChange(request);   // what events are about, as it was
//   mirror.Apply(request, now);
//   hints.AfterChange(request, &wakes);
//
// An event costs the plugins that registered it and the pods that these rejected. Events are kept
// while the shim says that an attempt is under way which may have missed them, at most
// kMaxHistory; a pod that needs more is woken.
//
// Threading: thread-compatible; the engine's thread.
// Lifetime:  the mirror must outlive it; profiles too, until ProfilesChanged.
// Errors:    none; events about objects that the mirror does not have are ignored.
class QueueingHints {
 public:
  static constexpr size_t kMaxHistory = 8192;
  using FindProfile = std::function<const Profile*(const std::string& name)>;

  QueueingHints(const mirror::Mirror* mirror, FindProfile find_profile)
      : mirror_(mirror), find_profile_(std::move(find_profile)) {}
  void BeforeChange(const v1alpha1::SyncRequest& request);
  void AfterChange(const v1alpha1::SyncRequest& request, std::vector<v1alpha1::Wake>* wakes);
  // Profiles were replaced; the old ones are still there.
  void ProfilesChanged();
  // Nobody waits, nothing happened.
  void Reset();
  size_t waiting() const { return waiting_.size(); }
  size_t history() const { return history_.size(); }

 private:
  // An event with what it is about, before and after.
  struct Event {
    v1alpha1::QueueEvent told;
    std::unique_ptr<v1alpha1::Node> old_node, new_node;
    std::unique_ptr<v1alpha1::Pod> old_pod, new_pod;
    std::unique_ptr<v1alpha1::ClusterObject> old_object, new_object;

    absl::string_view resource() const { return told.event().resource(); }
    v1alpha1::ClusterEvent::Action action() const { return told.event().actions(0); }
    bool concerns_only_its_pod() const;
    bool complete() const;
    sdk::ObjectChange change() const;
  };
  struct Waiting {
    v1alpha1::WaitingPod told;
    std::string profile;
    // Those that answered PENDING first, which is the order of judging; null: there is none of that
    // name.
    std::vector<const ProfilePlugin*> rejectors;
    const ProfilePlugin* gate = nullptr;
    uint64_t judged = 0;  // The last event judged.
  };

  void Keep(bool after, Event* event) const;
  void Resolve(Waiting* waiting) const;
  void StopWaiting(const std::string& uid);
  // Judges what happened before it was told.
  void BeginWaiting(const v1alpha1::WaitingPod& told, std::vector<v1alpha1::Wake>* wakes);
  void JudgeAll(const Event& event, std::vector<v1alpha1::Wake>* wakes);
  // The plugin that the event helps; null: none.
  const ProfilePlugin* Judge(const Waiting& waiting, const Event& event) const;

  const mirror::Mirror* const mirror_;
  const FindProfile find_profile_;
  absl::flat_hash_map<std::string, Waiting> waiting_;
  // Uids of those that a plugin rejected.
  absl::flat_hash_map<const ProfilePlugin*, absl::flat_hash_set<std::string>> by_rejector_;
  std::deque<Event> history_;
  // Events before this are not in history_ any more, or never were.
  uint64_t history_from_ = 0;
  std::vector<Event> pending_;  // Of the message that is being applied.
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_QUEUEING_HINTS_H_
