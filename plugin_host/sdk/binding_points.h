// The extension points after a node is selected: Reserve, Permit, PreBind, Bind and PostBind. Part
// of plugin.h.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_BINDING_POINTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_BINDING_POINTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/effect.pb.h"
#include "plugin_host/sdk/attempt.h"
#include "plugin_host/sdk/verdict.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

// A decision on a pod that waits at Permit. The host fills in `plugin`.
struct WaitDecision {
  uint64_t attempt_id = 0;
  std::string pod_uid;
  bool allow = false;
  std::string message;  // REQUIRED unless allow.
};

// In addition to the verdict of Reserve.
struct ReserveAnswer {
  // Effects that the shim carries out before it binds the pod. From the next change of the cache
  // on, also after a restart, the pod's record has them; plugins treat them as done from there. The
  // host fills in `plugin`.
  std::vector<v1beta1::Effect> effects;
  // What the plugin keeps for the pod until it is bound or loses its place, for example the device
  // that it chose: at most 4 KiB, and 16 KiB of all plugins of the host together; empty: nothing.
  // From the next change of the cache on, also in a host that starts later, the pod's record has it
  // (PodRecord::StateOf): Permit, PreBind, Bind and Unreserve read it there, and observers see it.
  // Not in PostBind, when the cache may know the pod as bound.
  std::string state;
};

class ReservePlugin {
 public:
  virtual ~ReservePlugin() = default;
  virtual Verdict Reserve(const Attempt& attempt, const NodeView& node, ReserveAnswer* answer) = 0;
  // Also called if Reserve was not, on removed nodes, and after a restart with empty state.
  // Idempotent.
  virtual void Unreserve(const Attempt& attempt, absl::string_view node_name,
                         std::vector<WaitDecision>* decisions) = 0;
};

// In addition to the verdict of Permit.
struct PermitAnswer {
  absl::Duration timeout = absl::ZeroDuration();  // With WAIT; without it the attempt fails.
  std::string wait_reason;                        // With WAIT, OPTIONAL.
  std::vector<WaitDecision> decisions;            // On other pods that wait.
};

class PermitPlugin {
 public:
  virtual ~PermitPlugin() = default;
  // SUCCESS, WAIT (with answer->timeout), or a rejection.
  virtual Verdict Permit(const Attempt& attempt, const NodeView& node, PermitAnswer* answer) = 0;
};

// The effects of a pod, all carried out; none for a pod that the plugin is only interested in.
struct PreBindProgress {
  absl::Span<const v1beta1::Effect* const> effects;
  absl::Span<const v1beta1::EffectResult* const> results;  // In the same order.
  absl::Duration elapsed;  // Since the last of them; without effects, since PreBind began.
  // Further effects that the shim carries out before it asks again; new keys, in at most 8 answers
  // of an attempt. The host fills in `plugin`. Never null.
  std::vector<v1beta1::Effect>* further;
};

class PreBindPlugin {
 public:
  virtual ~PreBindPlugin() = default;
  // Whether the pod may be bound: SUCCESS, WAIT (called again in a second), or a rejection. Called
  // for pods whose Reserve named effects; with an interest for PRE_BIND (InterestIn,
  // InterestInEveryPodAtPreBind) also for others. Must use only the cache and the arguments: the
  // host may have started after Reserve.
  virtual Verdict PreBind(const Attempt& attempt, absl::string_view node_name,
                          const PreBindProgress& progress) = 0;
};

// With SUCCESS of Bind: who binds the pod.
struct BindAnswer {
  enum class By {
    kShim,    // the shim sends the Binding, with `annotations`
    kPlugin,  // the plugin has bound the pod; the shim believes only the API server
    kNext,    // the plugin does not handle the pod: the profile's next Bind plugin is asked
  };
  By by = By::kNext;
  // For the Binding's metadata; the API server copies them to the pod.
  std::map<std::string, std::string> annotations;
};

class BindPlugin {
 public:
  virtual ~BindPlugin() = default;
  // SUCCESS, with *answer; or a rejection: the pod is not bound, and will not be by this call. The
  // call holds up the whole host and other pods. A plugin that binds itself must not do so after
  // the call has returned. Must use only the cache and the arguments: the host may have started
  // after Reserve.
  virtual Verdict Bind(const Attempt& attempt, absl::string_view node_name, BindAnswer* answer) = 0;
};

class PostBindPlugin {
 public:
  virtual ~PostBindPlugin() = default;
  // The pod is bound. Information only, at most once for each bind, and sometimes lost.
  virtual void PostBind(const Attempt& attempt, absl::string_view node_name) = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_BINDING_POINTS_H_
