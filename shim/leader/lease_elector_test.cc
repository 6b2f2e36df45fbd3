#include "shim/leader/lease_elector.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::leader {
namespace {

using kube::testing::FakeApiServer;
using kube::testing::Fault;

// Renewals come quickly. A leader that can renew keeps the lease on any machine: a minute of delay
// would have to pass first.
constexpr LeaseTimings kPatient = {absl::Seconds(90), absl::Seconds(60), absl::Milliseconds(50)};
// For tests in which renewals fail: the leader gives up after a second.
constexpr LeaseTimings kBrief = {absl::Seconds(2), absl::Seconds(1), absl::Milliseconds(100)};

class Candidate {
 public:
  Candidate(FakeApiServer& server, const std::string& identity, LeaseTimings timings = kPatient)
      : Candidate(server, Options(identity, timings)) {}
  Candidate(FakeApiServer& server, LeaseElectorOptions options)
      : client_(server.Config(), {}), elector_(client_, std::move(options), Callbacks()) {
    elector_.Start();
  }

  static LeaseElectorOptions Options(const std::string& identity, LeaseTimings timings = kPatient) {
    LeaseElectorOptions options;
    options.lease_name = "outboard";
    options.identity = identity;
    options.timings = timings;
    return options;
  }
  LeaseCallbacks Callbacks() {
    LeaseCallbacks callbacks;
    callbacks.on_started = [this](int transitions) {
      transitions_ = transitions;
      started_at_epoch_ = elector_.epoch();
      EXPECT_TRUE(elector_.leading());
      started.Notify();
    };
    callbacks.on_stopped = [this] {
      EXPECT_FALSE(elector_.leading());
      stopped.Notify();
    };
    return callbacks;
  }

  absl::Notification started;
  absl::Notification stopped;
  std::atomic<int> transitions_{-1};
  std::atomic<int64_t> started_at_epoch_{-1};
  kube::CurlApiClient client_;
  LeaseElector elector_;
};

bool Await(absl::Notification& notification) {
  return notification.WaitForNotificationWithTimeout(absl::Seconds(20));
}

TEST(LeaseElector, LeadsRenewsReleasesAndTheNextTakesOver) {
  FakeApiServer server;
  Candidate first(server, "first");
  ASSERT_TRUE(Await(first.started));
  EXPECT_GT(first.elector_.BindDeadline(), SteadyNow());
  EXPECT_EQ(server.Get("leases", "kube-system/outboard")["spec"]["holderIdentity"], "first");
  Candidate second(server, "second");
  // The first candidate keeps renewing while the second watches.
  ASSERT_TRUE(server.AwaitCount("PUT", "/leases/outboard", 15));
  EXPECT_FALSE(second.started.HasBeenNotified());
  EXPECT_TRUE(first.elector_.leading());
  first.elector_.Stop();
  EXPECT_TRUE(first.stopped.HasBeenNotified());
  EXPECT_EQ(first.elector_.BindDeadline(), absl::InfinitePast());
  ASSERT_TRUE(Await(second.started));
  EXPECT_EQ(second.transitions_, 1);
  EXPECT_EQ(server.Get("leases", "kube-system/outboard")["spec"]["leaseTransitions"], 1);
  EXPECT_TRUE(second.elector_.Check(absl::ZeroDuration()).ok());
}

TEST(LeaseElector, TheEpochGrowsWithEachChangeOfHolder) {
  FakeApiServer server;
  Candidate first(server, "first");
  ASSERT_TRUE(Await(first.started));
  const int64_t first_epoch = first.started_at_epoch_;
  EXPECT_GT(first_epoch, 0);
  // The same while it renews, although each renewal has a resource version of its own.
  const int before = server.Count("PUT", "/leases/outboard");
  ASSERT_TRUE(server.AwaitCount("PUT", "/leases/outboard", before + 5));
  EXPECT_GT(server.version(), first_epoch);
  EXPECT_EQ(first.elector_.epoch(), first_epoch);
  Candidate second(server, "second");
  EXPECT_EQ(second.elector_.epoch(), 0) << "it has never led";
  first.elector_.Stop();
  ASSERT_TRUE(Await(second.started));
  EXPECT_GT(second.started_at_epoch_, first_epoch);
  EXPECT_EQ(first.elector_.epoch(), first_epoch) << "what it still sends has an old epoch";
  // A deleted lease begins again with no transitions.
  second.elector_.Stop();
  ASSERT_TRUE(server.Delete("leases", "kube-system/outboard"));
  Candidate third(server, "third");
  ASSERT_TRUE(Await(third.started));
  EXPECT_EQ(third.transitions_, 0);
  EXPECT_GT(third.started_at_epoch_, second.started_at_epoch_);
}

TEST(LeaseElector, ADeletedLeaseThatItsHolderWritesAgainHasTheSameEpoch) {
  FakeApiServer server;
  Candidate candidate(server, "me");
  ASSERT_TRUE(Await(candidate.started));
  const int64_t epoch = candidate.elector_.epoch();
  const int before = server.Count("POST", "/leases");
  ASSERT_TRUE(server.Delete("leases", "kube-system/outboard"));
  ASSERT_TRUE(server.AwaitCount("POST", "/leases", before + 1));
  const int renewals = server.Count("PUT", "/leases/outboard");
  ASSERT_TRUE(server.AwaitCount("PUT", "/leases/outboard", renewals + 2));
  EXPECT_TRUE(candidate.elector_.leading());
  EXPECT_EQ(candidate.elector_.epoch(), epoch);
}

TEST(LeaseElector, LeavesAFreeLeaseToThoseWhoCanUseIt) {
  FakeApiServer server;
  std::atomic<bool> useful{false};
  std::atomic<int> asked{0};
  LeaseElectorOptions options = Candidate::Options("without a host");
  options.patience = absl::InfiniteDuration();
  options.useful = [&] {
    ++asked;
    return useful.load();
  };
  Candidate waiting(server, options);
  // It has read that there is no lease, and has called `useful`.
  ASSERT_TRUE(server.AwaitCount("GET", "/leases/outboard", 1));
  while (asked < 3) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(waiting.started.HasBeenNotified());
  {
    Candidate ready(server, "ready");
    ASSERT_TRUE(Await(ready.started));
    // Useful or not: another replica leads.
    useful = true;
    ASSERT_TRUE(server.AwaitCount("PUT", "/leases/outboard", 5));
    EXPECT_FALSE(waiting.started.HasBeenNotified());
    useful = false;
  }
  // The other candidate has released the lease.
  const int before = asked;
  while (asked < before + 20) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(waiting.started.HasBeenNotified());
  useful = true;
  ASSERT_TRUE(Await(waiting.started));
  // `useful` does not matter once this candidate leads.
  useful = false;
  const int renewals = server.Count("PUT", "/leases/outboard");
  ASSERT_TRUE(server.AwaitCount("PUT", "/leases/outboard", renewals + 3));
  EXPECT_TRUE(waiting.elector_.leading());
}

TEST(LeaseElector, LeadsInTheEndIfNobodyCanUseTheLease) {
  FakeApiServer server;
  LeaseElectorOptions options = Candidate::Options("without a host");
  options.patience = absl::Milliseconds(300);
  options.useful = [] { return false; };
  const absl::Time began = SteadyNow();
  Candidate candidate(server, options);
  ASSERT_TRUE(Await(candidate.started));
  EXPECT_GE(SteadyNow() - began, options.patience);
}

TEST(LeaseElector, StopsByTheDeadlineWhenRenewalsFail) {
  FakeApiServer server;
  Candidate candidate(server, "me", kBrief);
  ASSERT_TRUE(Await(candidate.started));
  Fault outage;
  outage.path_part = "/leases";
  outage.http_status = 500;
  outage.times = 1 << 20;
  server.Inject(outage);
  ASSERT_TRUE(Await(candidate.stopped));
  EXPECT_FALSE(candidate.elector_.leading());
}

TEST(LeaseElector, StopsByTheDeadlineWhenTheServerHangs) {
  FakeApiServer server;
  Candidate candidate(server, "me", kBrief);
  ASSERT_TRUE(Await(candidate.started));
  Fault hanging;
  hanging.path_part = "/leases";
  hanging.delay = absl::Minutes(5);
  hanging.times = 1 << 20;
  server.Inject(hanging);
  ASSERT_TRUE(Await(candidate.stopped));
  // The fence had expired before, by itself.
  EXPECT_FALSE(candidate.elector_.leading());
}

TEST(LeaseElector, ALostAnswerToARenewalIsNoLoss) {
  FakeApiServer server;
  Candidate candidate(server, "me");
  ASSERT_TRUE(Await(candidate.started));
  Fault lost;
  lost.method = "PUT";
  lost.drop_answer = true;
  lost.times = 3;
  server.Inject(lost);
  const int before = server.Count("PUT", "/leases");
  ASSERT_TRUE(server.AwaitCount("PUT", "/leases", before + 12));
  EXPECT_TRUE(candidate.elector_.leading());
  EXPECT_FALSE(candidate.stopped.HasBeenNotified());
}

TEST(LeaseElector, AStolenLeaseIsNoticed) {
  FakeApiServer server;
  Candidate candidate(server, "me");
  ASSERT_TRUE(Await(candidate.started));
  auto lease = server.Get("leases", "kube-system/outboard");
  lease["spec"]["holderIdentity"] = "thief";
  lease["metadata"].erase("resourceVersion");
  server.Put("leases", lease);
  ASSERT_TRUE(Await(candidate.stopped));
  EXPECT_EQ(server.Get("leases", "kube-system/outboard")["spec"]["holderIdentity"], "thief");
}

TEST(LeaseElector, ALeaderThatHangsLetsItsLeaseExpire) {
  FakeApiServer server;
  std::atomic<bool> alive{true};
  LeaseElectorOptions options = Candidate::Options("first", kBrief);
  options.alive = [&] { return alive.load(); };
  Candidate first(server, options);
  ASSERT_TRUE(Await(first.started));
  Candidate second(server, "second", kBrief);
  alive = false;
  ASSERT_TRUE(Await(first.stopped));
  ASSERT_TRUE(Await(second.started));
}

}  // namespace
}  // namespace outboard::leader
