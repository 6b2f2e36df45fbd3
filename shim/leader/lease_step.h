// Leader election without I/O: computes the next request from the known state and the time.
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
#include "shim/leader/lease_timings.h"

namespace outboard::leader {

struct LeaseAction {
  enum class Kind {
    kRead,    // GET the lease
    kCreate,  // POST `record`
    kUpdate,  // PUT `record` over the last seen lease
    kWait,    // wait until `until`
    kLost,    // leadership was lost; final
  };
  Kind kind = Kind::kRead;
  LeaseRecord record;
  absl::Time until;
};

// client-go's LeaderElector as a state machine.
//
// Stricter than client-go:
// - Leadership ends `renew_deadline` after the last successful renewal *started*, not one retry
//   period later.
// - It ends at once if another holder appears in the lease.
// Faster than client-go:
// - A standby checks every half retry period plus up to a fifth (client-go: every retry period plus
//   up to 1.2 of it).
// - It also checks at the moment when the lease expires.
//
// `now` is from a monotonic clock that counts suspension (SteadyNow). `wall` is only written into
// the lease. Another holder's lease expires when it was seen unchanged for the duration that its
// holder published.
//
// Use: Next; execute it; report its end with OnRead or OnWritten (nothing after kWait); Next.
//
// Threading: thread-compatible.
// Errors: as input.
class LeaseStep {
 public:
  LeaseStep(std::string identity, LeaseTimings timings, uint64_t seed = 0);

  LeaseAction Next(absl::Time now, absl::Time wall);

  // The read has ended: with the lease, NOT_FOUND or another failure.
  void OnRead(const absl::StatusOr<Lease>& lease, absl::Time now);
  // The create or update has ended: with the current lease or a failure.
  void OnWritten(const absl::StatusOr<Lease>& lease, absl::Time now);

  bool leading() const { return state_ == State::kLeading; }
  // The end of leadership; InfinitePast when not leading.
  absl::Time leading_until() const;
  // The last seen lease. Empty before the first answer and without a lease.
  const std::optional<Lease>& lease() const { return lease_; }
  // The record that releases the lease.
  LeaseRecord ReleaseRecord(absl::Time wall) const;

 private:
  enum class State { kFollowing, kLeading, kLost };
  enum class Phase { kIdle, kMustRead, kMustWrite };

  bool HeldByOther(absl::Time now) const;
  // When the last seen lease expires unless its holder renews it. Requires a lease.
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
  // Whether the pending write uses the lease of the last success, without a new read.
  bool optimistic_ = false;
  LeaseRecord written_;
  absl::Time write_began_;
  absl::Time renewed_at_ = absl::InfinitePast();
};

}  // namespace outboard::leader

#endif  // OUTBOARD_SHIM_LEADER_LEASE_STEP_H_
