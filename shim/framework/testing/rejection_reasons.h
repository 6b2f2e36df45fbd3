// Converts an answer's rejections between the two forms of the contract; for tests.
#ifndef OUTBOARD_SHIM_FRAMEWORK_TESTING_REJECTION_REASONS_H_
#define OUTBOARD_SHIM_FRAMEWORK_TESTING_REJECTION_REASONS_H_

#include <string>
#include <vector>

#include "outboard/v1beta1/filter.pb.h"

namespace outboard::framework::testing {

// Moves the nodes of the answer's first `bitmaps` reasons into bitmaps. The answer must not have
// bitmaps yet.
inline void PutIntoBitmaps(int bitmaps, v1beta1::FilterResponse* answer) {
  const std::vector<uint32_t> listed(answer->rejected().begin(), answer->rejected().end());
  answer->clear_rejected();
  for (int k = 0; k < bitmaps; ++k)
    answer->add_rejected_for()->assign(answer->feasible().size(), '\0');
  size_t next = 0;
  for (uint32_t i = 0; i < answer->processed(); ++i) {
    if ((answer->feasible()[i / 8] >> (i % 8)) & 1) continue;
    const uint32_t reason = listed[next++];
    if (reason >= static_cast<uint32_t>(bitmaps)) {
      answer->add_rejected(reason);
      continue;
    }
    char& byte = (*answer->mutable_rejected_for(static_cast<int>(reason)))[i / 8];
    byte = static_cast<char>(byte | (1 << (i % 8)));
  }
}

// By node; null if it is feasible.
inline std::vector<const v1beta1::PluginStatus*> ReasonsByNode(
    const v1beta1::FilterResponse& answer) {
  std::vector<const v1beta1::PluginStatus*> reasons(answer.processed(), nullptr);
  int listed = 0;
  for (uint32_t i = 0; i < answer.processed(); ++i) {
    if ((answer.feasible()[i / 8] >> (i % 8)) & 1) continue;
    int reason = 0;
    while (reason < answer.rejected_for_size() &&
           ((answer.rejected_for(reason)[i / 8] >> (i % 8)) & 1) == 0)
      ++reason;
    if (reason == answer.rejected_for_size()) reason = static_cast<int>(answer.rejected(listed++));
    reasons[i] = &answer.reasons(reason);
  }
  return reasons;
}

}  // namespace outboard::framework::testing

#endif  // OUTBOARD_SHIM_FRAMEWORK_TESTING_REJECTION_REASONS_H_
