// Internal to the sources of shim/: what the parts of the process take from the configuration.
#ifndef OUTBOARD_SHIM_SHIM_SETTINGS_H_
#define OUTBOARD_SHIM_SHIM_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "shim/config/config.h"
#include "shim/informer/resources.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::shim {

// The reporter of events that no profile causes.
inline constexpr char kReporter[] = "outboard-shim";

// Identifies one version of a file. All zero: the file does not exist.
struct FileStamp {
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified_nanos = 0;
  bool operator==(const FileStamp&) const = default;
};

FileStamp StampOf(const std::string& path);

// Checks for settings that this version does not support: returns an error where ignoring the
// setting would be unsafe, otherwise warns.
absl::Status CheckServed(const config::Config& config);

scheduler::SchedulerOptions SchedulerOptionsOf(const config::Config& config);
std::vector<std::string> ProfileNames(const config::Config& config);
// The custom resources of the configuration that are listed and watched.
std::vector<kube::CustomResourceName> WatchedResources(const config::Config& config);
// Of the extender; 0 without one.
size_t MaxExternalBinds(const config::Config& config);
// The pods to watch, with those of the schedulers that ask the extender as the profile's.
informer::Resource<kube::PodObject> WatchedPods(const config::Config& config);

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_SHIM_SETTINGS_H_
