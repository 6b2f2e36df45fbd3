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

// Starts an instance for each set of plugins beside those that are there, each with an id, a
// socket, a registry and sessions of its own. To a shim that watches the sockets' directory a new
// instance is what a new process is: it is met, filled, compared, and takes over between two
// cycles; then the old one is told to drain. An old instance that no shim is connected to any more
// ends here, and its objects with it.
//
// A shim keeps predecessors warm, each with a mirror of the cluster. Of more than kMaxWarm
// instances the oldest is told to drain.
//
// Threading: one thread; engines have their own.
// Lifetime:  owns instances and their sets. `builtin` and what `Options` refers to outlive it.
// Errors:    of methods: nothing has changed then.
class Instances {
 public:
  static constexpr size_t kMaxWarm = 4;
  // With so many no further one is started: their plugins do not come to an end.
  static constexpr size_t kMaxInstances = 8;

  struct Options {
    std::string listen;  // `unix:PATH` with `{instance}`, or any address if there is no directory
    std::string directory;  // of objects; empty: none
    // What all instances share; address, socket path and identity are filled in here.
    services::Engine::Options engine;
    std::string version;  // of the program, for people
    std::string program_digest;
    PluginSet::Choose choose;
  };
  Instances(Options options, const sdk::PluginRegistry* builtin);
  ~Instances();

  // Reads the directory and starts an instance, unless the newest one already serves just that.
  // True if one was started. Errors: as ReadDirectory, PluginSet::Load and Engine::Start.
  absl::StatusOr<bool> Refresh();

  // Ends old instances that nobody has been connected to for a while, or that were told to drain
  // and have; to be called about once a second if `superseded()`. Returns how many ended.
  int Retire(absl::Time now);
  // Whether there are instances besides the newest.
  bool superseded() const { return instances_.size() > 1; }

  // Refuses new attempts on all instances and waits, at most `timeout` in all, for those under way;
  // true if none is left.
  bool Drain(absl::Duration timeout);

  // What the newest instance tells people with every probe; empty: nothing.
  void SetWarning(absl::string_view warning);

  // Oldest first.
  std::vector<std::string> ids() const;

 private:
  struct Instance {
    // In this order: the engine goes before the code that it runs.
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
