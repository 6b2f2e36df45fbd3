// Which pods are interchangeable for a profile's plugins.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_SIGNATURES_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_SIGNATURES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/runtime/profile.h"

namespace outboard::runtime {

// A signature is the number of a class of pods with equal values in all parts that the plugins
// read. The full values are kept, so that two classes never share a number. Numbers are never
// reused.
//
// Threading: thread-compatible.
// Lifetime: signatures of one object can be compared.
class Signatures {
 public:
  // Limit of kept classes; beyond it, a class may get another number.
  explicit Signatures(size_t max_kept = 4096) : max_kept_(max_kept) {}

  // Empty: interchangeable with no other pod.
  std::string Of(const Profile& profile, const v1beta1::Pod& pod);
  // After a change of the configuration.
  void Clear() { numbers_.clear(); }

 private:
  const size_t max_kept_;
  absl::flat_hash_map<std::string, uint64_t> numbers_;
  uint64_t last_ = 0;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_SIGNATURES_H_
