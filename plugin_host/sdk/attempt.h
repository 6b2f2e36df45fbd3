// One pod's attempt, as a plugin sees it.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_ATTEMPT_H_
#define OUTBOARD_PLUGIN_HOST_SDK_ATTEMPT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// A plugin's state between the calls of an attempt. Derive, and keep values in it.
class AttemptState {
 public:
  virtual ~AttemptState() = default;
  // A copy that AddPod and RemovePod may change; null if the plugin has neither: the state is then
  // shared.
  virtual std::unique_ptr<AttemptState> Clone() const { return nullptr; }
};

// The states of one plugin in one attempt. The host keeps them by the attempt's id.
struct PluginState {
  std::unique_ptr<AttemptState> filter;
  std::unique_ptr<AttemptState> score;
};

// The pod to place, the cluster to place it in, the time, and the plugin's own state.
//
// All attempts share a plugin object, with one call at a time; data of one attempt goes into a
// state:
//   struct MyState : sdk::AttemptState { int64_t wanted = 0; };
//   attempt.NewFilterState<MyState>().wanted = 3;       // in PreFilter
//   attempt.filter_state<MyState>()->wanted             // in Filter; null if PreFilter made none
//
// Threading: within the call.
// Lifetime:  within the call; states live until the attempt ends.
// Errors:    none.
class Attempt {
 public:
  Attempt(uint64_t id, PodView pod, ClusterView cluster, absl::Time now, PluginState* state,
          int64_t leader_epoch = 0)
      : id_(id),
        pod_(pod),
        cluster_(cluster),
        now_(now),
        state_(state),
        leader_epoch_(leader_epoch) {}
  uint64_t id() const { return id_; }
  const PodView& pod() const { return pod_; }
  const ClusterView& cluster() const { return cluster_; }
  absl::Time now() const { return now_; }
  // From Reserve to PostBind: grows with each change of leader among the shim's replicas. A plugin
  // that writes with credentials of its own sends it along, so that its store can refuse the write
  // of a replica that no longer leads. 0: the shim runs without leader election.
  int64_t leader_epoch() const { return leader_epoch_; }

  // Set by PreFilter for Filter, AddPod, RemovePod and later points.
  template <typename T, typename... Args>
  T& NewFilterState(Args&&... args) const {
    auto state = std::make_unique<T>(std::forward<Args>(args)...);
    T& result = *state;
    state_->filter = std::move(state);
    return result;
  }
  template <typename T>
  T* filter_state() const {
    return static_cast<T*>(state_->filter.get());
  }
  // Set by PreScore for Score and later points.
  template <typename T, typename... Args>
  T& NewScoreState(Args&&... args) const {
    auto state = std::make_unique<T>(std::forward<Args>(args)...);
    T& result = *state;
    state_->score = std::move(state);
    return result;
  }
  template <typename T>
  T* score_state() const {
    return static_cast<T*>(state_->score.get());
  }

 private:
  uint64_t id_;
  PodView pod_;
  ClusterView cluster_;
  absl::Time now_;
  PluginState* state_;
  int64_t leader_epoch_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_ATTEMPT_H_
