// Answers' rejections in the forms that the contract has for them, for tests.
#ifndef OUTBOARD_SHIM_CYCLE_TESTING_REJECTION_REASONS_H_
#define OUTBOARD_SHIM_CYCLE_TESTING_REJECTION_REASONS_H_

#include <string>
#include <vector>

#include "proto/outboard/v1alpha1/filter.pb.h"

namespace outboard::cycle::testing {

// Gives the nodes of the answer's first `bitmaps` reasons in bitmaps, where the answer has none
// yet.
inline void PutIntoBitmaps(int bitmaps, v1alpha1::FilterResponse* answer) {
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

// Of each node, null where it is feasible.
inline std::vector<const v1alpha1::PluginStatus*> ReasonsByNode(
    const v1alpha1::FilterResponse& answer) {
  std::vector<const v1alpha1::PluginStatus*> reasons(answer.processed(), nullptr);
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

}  // namespace outboard::cycle::testing

#endif  // OUTBOARD_SHIM_CYCLE_TESTING_REJECTION_REASONS_H_
