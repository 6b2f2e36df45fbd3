#include "shim/hosts/shadow_cycle_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/clock.h"

namespace outboard::hosts {

template <typename Request, typename Response>
absl::StatusOr<bool> ShadowCycleRunner::Advance(const char* point, std::optional<Request>* question,
                                                Pending<Response>* pending, Response* answer) {
  if (question->has_value()) {
    // By the machine's clock, as in gRPC. The caller may be busy with other cycles for a while, so
    // each answer has its own deadline: a serving instance would be called at once.
    *pending = client_->Start(*std::exchange(*question, std::nullopt), SteadyNow() + timeout_);
  }
  if (!pending->has_value()) return true;
  if (!(*pending)->IsThere()) return false;
  absl::StatusOr<Response> taken = (**pending)();
  pending->reset();
  if (taken.ok()) {
    *answer = *std::move(taken);
    return true;
  }
  return absl::Status(taken.status().code(), absl::StrCat(point, ": ",
                                                          absl::IsDeadlineExceeded(taken.status())
                                                              ? "it did not answer in time"
                                                              : taken.status().message()));
}

absl::StatusOr<bool> ShadowCycleRunner::AdvanceAll() {
  auto passed =
      Advance("PreFilter", &questions_.pre_filter, &pre_filter_, answers_.mutable_pre_filter());
  if (!passed.ok() || !*passed || answers_.pre_filter().has_rejection()) return passed;
  passed = Advance("Filter", &questions_.filter, &filter_, answers_.mutable_filter());
  if (!passed.ok() || !*passed || answers_.filter().has_error()) return passed;
  passed = Advance("PreScore", &questions_.pre_score, &pre_score_, answers_.mutable_pre_score());
  if (!passed.ok() || !*passed || answers_.pre_score().has_error()) return passed;
  return Advance("Score", &questions_.score, &score_, answers_.mutable_score());
}

std::optional<absl::StatusOr<v1beta1::CycleEvaluation>> ShadowCycleRunner::Take() {
  const absl::StatusOr<bool> ended = AdvanceAll();
  if (!ended.ok()) return ended.status();
  if (!*ended) return std::nullopt;
  return std::move(answers_);
}

}  // namespace outboard::hosts
