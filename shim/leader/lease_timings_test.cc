#include "shim/leader/lease_timings.h"

#include <gtest/gtest.h>

namespace outboard::leader {
namespace {

LeaseTimings Timings(double lease, double renew, double retry) {
  return {absl::Seconds(lease), absl::Seconds(renew), absl::Seconds(retry)};
}
std::string FieldOf(const LeaseTimings& timings) {
  const auto error = ValidateTimings(timings);
  return error.has_value() ? error->field : "";
}

TEST(LeaseTimings, AreValidatedAsInClientGo) {
  EXPECT_EQ(FieldOf({}), "");
  EXPECT_EQ(FieldOf(Timings(10, 10, 2)), "leaseDuration");
  EXPECT_EQ(FieldOf(Timings(15, 2.4, 2)), "renewDeadline");
  EXPECT_EQ(FieldOf(Timings(15, 10, 0)), "retryPeriod");
}

// A bind that is sent just before the renew deadline needs time to end.
TEST(LeaseTimings, MustLeaveRoomForABind) {
  EXPECT_EQ(FieldOf(Timings(11, 10, 2)), "");
  EXPECT_EQ(FieldOf(Timings(10.5, 10, 2)), "leaseDuration");
  EXPECT_EQ(FieldOf(Timings(15, 14.5, 2)), "leaseDuration");
  // The lease says 11 s: others do not wait for more.
  EXPECT_EQ(FieldOf(Timings(11.9, 10.2, 2)), "leaseDuration");
}

TEST(LeaseTimings, ABindEndsBeforeAnotherReplicaLeads) {
  EXPECT_EQ(WriteGrace({}), absl::Seconds(4.5));
  EXPECT_EQ(WriteGrace(Timings(15.9, 10, 2)), absl::Seconds(4.5));
  // Whatever is allowed leaves room.
  for (int renew = 30; renew < 120; ++renew) {  // tenths of a second
    for (int lease = 30; lease < 140; ++lease) {
      const LeaseTimings timings = {absl::Milliseconds(100) * lease,
                                    absl::Milliseconds(100) * renew, absl::Seconds(2)};
      if (ValidateTimings(timings).has_value()) continue;
      EXPECT_GT(WriteGrace(timings), absl::ZeroDuration()) << lease << " " << renew;
      EXPECT_LT(timings.renew_deadline + WriteGrace(timings), absl::Seconds(lease / 10));
    }
  }
}

}  // namespace
}  // namespace outboard::leader
