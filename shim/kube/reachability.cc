#include "shim/kube/reachability.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace outboard::kube {
namespace {

constexpr absl::Duration kFirstInterval = absl::Seconds(10);
constexpr absl::Duration kLastInterval = absl::Minutes(5);

std::string Seconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

}  // namespace

void Reachability::OnAnswer(absl::Time now) {
  if (!failing_) return;
  absl::MutexLock lock(&mutex_);
  failing_ = false;
  if (std::exchange(failures_, 0) < kFailures) return;
  log_(absl::StrCat("API server ", server_, " answers again, after ", Seconds(now - since_)));
}

void Reachability::OnFailure(absl::string_view error, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  failing_ = true;
  if (failures_++ == 0) since_ = now;
  error_ = std::string(error);
  if (failures_ == kFailures) {
    interval_ = kFirstInterval;
  } else if (failures_ < kFailures || now < next_line_) {
    return;
  } else {
    interval_ = std::min(interval_ * 2, kLastInterval);
  }
  next_line_ = now + interval_;
  log_(absl::StrCat(Describe(now), "; trying again"));
}

absl::Status Reachability::Check(absl::Time now) const {
  if (!failing_) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (failures_ < kFailures) return absl::OkStatus();
  return absl::UnavailableError(Describe(now));
}

std::string Reachability::Describe(absl::Time now) const {
  const absl::Duration elapsed = now - since_;
  return absl::StrCat("API server ", server_,
                      elapsed < absl::Seconds(1)
                          ? " does not answer"
                          : absl::StrCat(" has not answered for ", Seconds(elapsed)),
                      ": ", error_);
}

}  // namespace outboard::kube
