// The last configuration that served, kept in a file for a start with a bad one.
#ifndef OUTBOARD_SHIM_RELOAD_LAST_GOOD_CONFIG_H_
#define OUTBOARD_SHIM_RELOAD_LAST_GOOD_CONFIG_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "shim/config/config.h"

namespace outboard::reload {

// Writes configurations on a thread of its own: a slow disk delays no pod.
//
// Threading: Save and the destructor on one thread.
// Lifetime: the destructor waits for a write under way.
// Errors: logged; the previous file stays.
class LastGoodConfig {
 public:
  // `path` empty: keeps none.
  explicit LastGoodConfig(std::string path) : path_(std::move(path)) {}
  ~LastGoodConfig();
  LastGoodConfig(const LastGoodConfig&) = delete;
  LastGoodConfig& operator=(const LastGoodConfig&) = delete;

  // Keeps the configuration as it is in force, unless it was saved last. False: a
  // write is still under way; call again later.
  bool Save(const config::Config& config);

 private:
  const std::string path_;
  std::string saved_;  // its text
  std::atomic<bool> is_writing_{false};
  std::thread writer_;
};

// Replaces the file at once, or leaves it as it is; only its owner may read it.
// Errors: UNKNOWN with the path and the cause.
absl::Status ReplaceFile(const std::string& path, const std::string& text);

}  // namespace outboard::reload

#endif  // OUTBOARD_SHIM_RELOAD_LAST_GOOD_CONFIG_H_
