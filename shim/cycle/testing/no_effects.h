// For tests that look at something else than what a scheduler has done in the API.
#ifndef OUTBOARD_SHIM_CYCLE_TESTING_NO_EFFECTS_H_
#define OUTBOARD_SHIM_CYCLE_TESTING_NO_EFFECTS_H_

#include <optional>
#include <string>

#include "shim/cycle/effects.h"

namespace outboard::cycle {

// Does nothing; a test overrides what it is about.
class NoEffects : public Effects {
 public:
  void Bind(const BindOrder&, absl::Time) override {}
  void Evict(const EvictOrder&, absl::Time) override {}
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Write(const EffectOrder&, absl::Time) override {}
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string&,
                    absl::Time) override {}
  void PatchStatus(const kube::PodObject&, const std::optional<PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {}
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_TESTING_NO_EFFECTS_H_
