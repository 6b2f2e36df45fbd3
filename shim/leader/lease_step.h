// Leader election without I/O: from what is known and what time it is to the next request.
#ifndef OUTBOARD_SHIM_LEADER_LEASE_STEP_H_
#define OUTBOARD_SHIM_LEADER_LEASE_STEP_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/leader/lease_record.h"

namespace outboard::leader {

struct LeaseTimings {
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
};

// client-go's rules: lease > renew deadline > 1.2 × retry period > 0, and a lease of whole seconds.
absl::Status ValidateTimings(const LeaseTimings& timings);

struct LeaseAction {
  enum class Kind {
    kRead,    // GET the lease
    kCreate,  // POST `record`
    kUpdate,  // PUT `record` over the lease last seen
    kWait,    // nothing until `until`
    kLost,    // we were the leader and are no more; final
  };
  Kind kind = Kind::kRead;
  LeaseRecord record;
  absl::Time until;
};

// What client-go's LeaderElector does, as a state machine. Two things are stricter: leadership ends
// `renew_deadline` after the last successful renewal *began*, not one retry period later, and at
// once when the lease is seen in another's hands. Two make a takeover faster: a standby looks every
// half retry period and up to a fifth more (client-go: every retry period and up to 1.2 more), and
// at the very moment when the lease expires.
//
// `now` is of a clock that only goes forward and counts suspension (BootTimeNow); `wall` is only
// written into the lease. Whether another's lease has expired is judged by how long we have seen it
// unchanged and by the duration that its holder published.
//
// Use: Next; carry it out; tell its end with OnRead or OnWritten (nothing after kWait); Next.
// Threading: thread-compatible. Errors: as input.
class LeaseStep {
 public:
  LeaseStep(std::string identity, LeaseTimings timings, uint64_t seed = 0);

  LeaseAction Next(absl::Time now, absl::Time wall);

  // The read has ended: with the lease, with NOT_FOUND, or with another failure.
  void OnRead(const absl::StatusOr<Lease>& lease, absl::Time now);
  // The create or update has ended: with the lease as it is now, or with a failure.
  void OnWritten(const absl::StatusOr<Lease>& lease, absl::Time now);

  bool leading() const { return state_ == State::kLeading; }
  // Until when we may act as the leader; InfinitePast when we are not.
  absl::Time leading_until() const;
  // The lease last seen; nothing before the first answer and where there is none.
  const std::optional<Lease>& lease() const { return lease_; }
  // What to write to give the lease up.
  LeaseRecord ReleaseRecord(absl::Time wall) const;

 private:
  enum class State { kFollowing, kLeading, kLost };
  enum class Phase { kIdle, kMustRead, kMustWrite };

  bool HeldByOther(absl::Time now) const;
  // When the lease last seen runs out unless its holder renews it; there must be one.
  absl::Time OtherExpires() const;
  LeaseRecord OwnRecord(absl::Time wall) const;
  void Observe(const Lease& lease, absl::Time now);
  void AttemptEnded(absl::Time now);

  const std::string identity_;
  const LeaseTimings timings_;
  std::mt19937_64 random_;

  State state_ = State::kFollowing;
  Phase phase_ = Phase::kMustRead;
  absl::Time next_attempt_ = absl::InfinitePast();
  std::optional<Lease> lease_;
  absl::Time observed_at_ = absl::InfinitePast();
  // Whether the write in progress uses the lease of the last success, without having read it again.
  bool optimistic_ = false;
  LeaseRecord written_;
  absl::Time write_began_;
  absl::Time renewed_at_ = absl::InfinitePast();
};

// CLOCK_BOOTTIME as an absl::Time: goes forward through suspension, unmoved by clock changes. Only
// to be compared with itself.
absl::Time BootTimeNow();

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_LEASE_STEP_H_
