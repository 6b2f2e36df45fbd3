// Readers of a process that profiles, sessions and configurations share.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SHARED_READERS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SHARED_READERS_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace outboard::prometheus {

// One reader for each set of options, while it is referenced.
//
// Threading: thread-safe.
// Lifetime: holds no reader.
// Errors: none.
template <typename Options, typename Reader>
class SharedReaders {
 public:
  // The reader with these options, or a new one: `make()` returns a shared pointer.
  template <typename Make>
  std::shared_ptr<Reader> Get(const Options& options, Make&& make) {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<Reader> found;
    readers_.erase(std::remove_if(readers_.begin(), readers_.end(),
                                  [&](const auto& entry) {
                                    std::shared_ptr<Reader> reader = entry.second.lock();
                                    if (reader != nullptr && entry.first == options) found = reader;
                                    return reader == nullptr;
                                  }),
                   readers_.end());
    if (found == nullptr) {
      found = make();
      readers_.emplace_back(options, found);
    }
    return found;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::pair<Options, std::weak_ptr<Reader>>> readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SHARED_READERS_H_
