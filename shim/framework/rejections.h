// Reads from an answer why nodes were rejected.
#ifndef OUTBOARD_SHIM_FRAMEWORK_REJECTIONS_H_
#define OUTBOARD_SHIM_FRAMEWORK_REJECTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "outboard/v1beta1/filter.pb.h"

namespace outboard::framework {

// Iterates over the rejected nodes of one answer, in order.
//
// Threading: thread-compatible.
// Lifetime: keeps no reference.
// Errors: none if the answer passed CheckFilter.
class RejectedNodes {
 public:
  // Node i's reason, an index into the answer's `reasons`; nullopt if the answer has none. Call it
  // once for each rejected node, in order.
  std::optional<uint32_t> NextReason(const v1beta1::FilterResponse& answer, uint32_t i) {
    ++taken_;
    for (int reason = 0; reason < answer.rejected_for_size(); ++reason) {
      const std::string& nodes = answer.rejected_for(reason);
      if (i / 8 < nodes.size() && ((nodes[i / 8] >> (i % 8)) & 1) != 0)
        return static_cast<uint32_t>(reason);
    }
    if (listed_ == answer.rejected_size()) return std::nullopt;
    return answer.rejected(listed_++);
  }
  // The number of calls so far.
  uint32_t taken() const { return taken_; }

 private:
  int listed_ = 0;
  uint32_t taken_ = 0;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_REJECTIONS_H_
