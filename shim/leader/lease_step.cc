#include "shim/leader/lease_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::leader {
namespace {

// A standby checks twice as often as a leader renews, with jitter between standbys. A released
// lease is acquired at the next check; the lease of a dead holder expires according to the last
// check.
constexpr double kStandbyPause = 0.5;
constexpr double kStandbyJitter = 0.2;

}  // namespace

LeaseStep::LeaseStep(std::string identity, LeaseTimings timings, uint64_t seed)
    : identity_(std::move(identity)),
      timings_(timings),
      random_(seed != 0 ? seed : std::random_device{}()) {}

absl::Time LeaseStep::leading_until() const {
  return state_ == State::kLeading ? renewed_at_ + timings_.renew_deadline : absl::InfinitePast();
}

bool LeaseStep::HeldByOther(absl::Time now) const {
  if (!lease_.has_value() || lease_->record.holder.empty()) return false;
  if (lease_->record.holder == identity_) return false;
  return now < OtherExpires();
}

absl::Time LeaseStep::OtherExpires() const {
  return observed_at_ + absl::Seconds(lease_->record.duration_seconds);
}

LeaseRecord LeaseStep::OwnRecord(absl::Time wall) const {
  LeaseRecord record;
  record.holder = identity_;
  record.duration_seconds = static_cast<int>(absl::ToInt64Seconds(timings_.lease_duration));
  record.renew_time = FormatMicroTime(wall);
  record.acquire_time = record.renew_time;
  if (lease_.has_value()) {
    if (lease_->record.holder == identity_) {
      record.acquire_time = lease_->record.acquire_time;
      record.transitions = lease_->record.transitions;
    } else {
      record.transitions = lease_->record.transitions + 1;
    }
  }
  return record;
}

LeaseRecord LeaseStep::ReleaseRecord(absl::Time wall) const {
  LeaseRecord record;
  record.duration_seconds = 1;
  record.renew_time = FormatMicroTime(wall);
  record.acquire_time = record.renew_time;
  if (lease_.has_value()) record.transitions = lease_->record.transitions;
  return record;
}

LeaseAction LeaseStep::Next(absl::Time now, absl::Time wall) {
  LeaseAction action;
  if (state_ == State::kLeading && now >= leading_until()) state_ = State::kLost;
  if (state_ == State::kLost) {
    action.kind = LeaseAction::Kind::kLost;
    return action;
  }
  if (phase_ == Phase::kIdle) {
    if (now < next_attempt_) {
      action.kind = LeaseAction::Kind::kWait;
      action.until = next_attempt_;
      if (state_ == State::kLeading && leading_until() < action.until) {
        action.until = leading_until();
      }
      return action;
    }
    // The leader knows its lease and updates it without a read.
    optimistic_ = state_ == State::kLeading && lease_.has_value();
    phase_ = optimistic_ ? Phase::kMustWrite : Phase::kMustRead;
  }
  if (phase_ == Phase::kMustRead) {
    action.kind = LeaseAction::Kind::kRead;
    return action;
  }
  action.kind = lease_.has_value() ? LeaseAction::Kind::kUpdate : LeaseAction::Kind::kCreate;
  action.record = written_ = OwnRecord(wall);
  write_began_ = now;
  return action;
}

void LeaseStep::Observe(const Lease& lease, absl::Time now) {
  if (!lease_.has_value() || !(lease_->record == lease.record)) observed_at_ = now;
  lease_ = lease;
}

void LeaseStep::AttemptEnded(absl::Time now) {
  phase_ = Phase::kIdle;
  optimistic_ = false;
  if (state_ != State::kFollowing) {
    next_attempt_ = now + timings_.retry_period;
    return;
  }
  const double jitter = std::uniform_real_distribution<double>(0.0, kStandbyJitter)(random_);
  next_attempt_ = now + timings_.retry_period * kStandbyPause * (1 + jitter);
  if (HeldByOther(now)) next_attempt_ = std::min(next_attempt_, OtherExpires());
}

void LeaseStep::OnRead(const absl::StatusOr<Lease>& lease, absl::Time now) {
  if (lease.ok()) {
    Observe(*lease, now);
    if (state_ == State::kLeading && lease->record.holder != identity_) {
      state_ = State::kLost;
      return;
    }
    if (HeldByOther(now)) {
      AttemptEnded(now);
      return;
    }
    phase_ = Phase::kMustWrite;
    return;
  }
  if (absl::IsNotFound(lease.status())) {
    // The lease was deleted or never existed.
    lease_.reset();
    phase_ = Phase::kMustWrite;
    return;
  }
  AttemptEnded(now);
}

void LeaseStep::OnWritten(const absl::StatusOr<Lease>& lease, absl::Time now) {
  if (lease.ok() && lease->record.holder == identity_) {
    Observe(*lease, now);
    state_ = State::kLeading;
    renewed_at_ = write_began_;
    AttemptEnded(now);
    return;
  }
  if (optimistic_) {
    // The local copy may have been outdated: read it again.
    optimistic_ = false;
    phase_ = Phase::kMustRead;
    return;
  }
  AttemptEnded(now);
}

}  // namespace outboard::leader
