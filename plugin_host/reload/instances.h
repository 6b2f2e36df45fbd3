// The instances of one host process, one for each set of plugins that it has served.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_INSTANCES_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_INSTANCES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plugin_host/reload/plugin_set.h"
#include "plugin_host/services/engine.h"

namespace outboard::reload {

// Starts a further instance for each set of plugins, each with its own id, socket, registry and
// sessions. A shim that watches the sockets' directory treats a new instance like a new process: it
// connects, sends a snapshot, compares answers, switches between two cycles, and then drains the
// old one. An old instance without connected shims ends here, with its objects.
//
// A shim keeps predecessors warm, each with a cache of the cluster. With more than kMaxWarm
// instances the oldest drains.
//
// Threading: one thread; engines have their own.
// Lifetime:  owns instances and their sets. `builtin` and what `Options` refers to outlive it.
// Errors:    a method that fails changes nothing.
class Instances {
 public:
  static constexpr size_t kMaxWarm = 4;
  // With so many none is started: plugins of old instances do not return.
  static constexpr size_t kMaxInstances = 8;

  struct Options {
    std::string listen;  // `unix:PATH` with `{instance}`, or any address if there is no directory
    std::string directory;  // of objects; empty: none
    // Shared by all instances; Instances fills in address, socket path and identity.
    services::Engine::Options engine;
    std::string version;  // of the program, for people
    std::string program_digest;
    PluginSet::Choose choose;
  };
  Instances(Options options, const sdk::PluginRegistry* builtin);
  ~Instances();

  // Reads the directory and starts an instance, unless the newest one already serves this set. True
  // if one was started.
  // Errors: as ReadDirectory, PluginSet::Load and Engine::Start.
  absl::StatusOr<bool> Refresh();

  // Ends old instances that had no connection for a while, or that have drained. Call about once a
  // second if `superseded()`. Returns how many ended.
  int Retire(absl::Time now);
  // Whether there are instances besides the newest.
  bool superseded() const { return instances_.size() > 1; }

  // Rejects new attempts on all instances and waits, at most `timeout` in total, for those in
  // progress; true if none is left.
  bool Drain(absl::Duration timeout);

  // The warning for people in every Probe response of the newest instance; empty: none.
  void SetWarning(absl::string_view warning);

  // Oldest first.
  std::vector<std::string> ids() const;

 private:
  struct Instance {
    // In this order: the engine is destroyed before the code that it runs.
    std::unique_ptr<PluginSet> plugins;
    std::unique_ptr<services::Engine> engine;
    std::string id;
    std::string listen;
    bool draining = false;
    absl::Time idle_since = absl::InfiniteFuture();
  };
  absl::Status Start(std::unique_ptr<PluginSet> plugins);

  const Options options_;
  const sdk::PluginRegistry* const builtin_;
  std::vector<std::unique_ptr<Instance>> instances_;  // oldest first
};

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_INSTANCES_H_
