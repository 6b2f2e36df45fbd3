// The builds of one host that may not serve.
#ifndef OUTBOARD_SHIM_HOSTS_QUARANTINE_H_
#define OUTBOARD_SHIM_HOSTS_QUARANTINE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace outboard::hosts {

// The latest builds that failed, with the reason. A host that fails again and again, each time as
// another build, must not fill the memory: the oldest build is forgotten, and then tried again if
// it comes back.
//
// Threading: thread-compatible.
class Quarantine {
 public:
  static constexpr size_t kMaxBuilds = 64;

  void Add(const std::string& build, std::string why) {
    Remove(build);
    if (builds_.size() == kMaxBuilds) builds_.erase(builds_.begin());
    builds_.emplace_back(build, std::move(why));
  }
  // Why the build may not serve; null if it may.
  const std::string* Find(const std::string& build) const {
    for (const auto& [key, why] : builds_) {
      if (key == build) return &why;
    }
    return nullptr;
  }
  void Clear() { builds_.clear(); }
  size_t size() const { return builds_.size(); }

 private:
  void Remove(const std::string& build) {
    std::erase_if(builds_, [&](const auto& entry) { return entry.first == build; });
  }

  std::vector<std::pair<std::string, std::string>> builds_;  // oldest first
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_QUARANTINE_H_
