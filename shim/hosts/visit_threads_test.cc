#include "shim/hosts/visit_threads.h"

#include <atomic>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace outboard::hosts {
namespace {

// Counts the threads that it makes; beyond `limit` it fails as a process does at RLIMIT_NPROC.
struct Maker {
  std::thread operator()(std::function<void()> run) {
    if (*made >= limit) throw std::system_error(EAGAIN, std::generic_category());
    ++*made;
    return std::thread(std::move(run));
  }
  size_t limit;
  std::shared_ptr<size_t> made = std::make_shared<size_t>(0);
};

class Visits {
 public:
  std::function<void()> Ends() {
    return [this] { Count(); };
  }
  // A visit that lasts until Release.
  std::function<void()> Hangs() {
    return [this] {
      Count();
      released_.WaitForNotification();
    };
  }
  void Release() { released_.Notify(); }
  void AwaitCount(int count) {
    absl::MutexLock lock(&mu_);
    const auto is_there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return count_ >= count; };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&is_there), absl::Seconds(30))) << count_;
  }
  int count() {
    absl::MutexLock lock(&mu_);
    return count_;
  }

 private:
  void Count() {
    absl::MutexLock lock(&mu_);
    ++count_;
  }
  absl::Mutex mu_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Notification released_;
};

TEST(VisitThreads, ManyVisitsNeedFewThreads) {
  Visits visits;
  Maker maker{1000};
  {
    VisitThreads threads(4, maker);
    for (int i = 0; i < 1000; ++i) threads.Request(absl::StrCat("unix:/", i), visits.Hangs());
    visits.AwaitCount(4);
    EXPECT_EQ(threads.pending(), 1000u);
    visits.Release();
    visits.AwaitCount(1000);
  }
  EXPECT_EQ(*maker.made, 4u);
}

TEST(VisitThreads, AnAddressIsVisitedOnceAtATime) {
  Visits hanging, others;
  {
    VisitThreads threads(4);
    threads.Request("a", hanging.Hangs());
    hanging.AwaitCount(1);
    threads.Request("a", hanging.Hangs());
    threads.Request("b", others.Ends());
    others.AwaitCount(1);
    EXPECT_EQ(hanging.count(), 1);
    hanging.Release();
  }
  EXPECT_EQ(hanging.count(), 1);
}

TEST(VisitThreads, ALimitOnThreadsDoesNotEndTheProcess) {
  Visits visits;
  VisitThreads threads(32, Maker{1});
  for (int i = 0; i < 100; ++i) threads.Request(absl::StrCat("unix:/", i), visits.Ends());
  visits.AwaitCount(100);
}

TEST(VisitThreads, WithoutAnyThreadVisitsWaitForTheNextRequest) {
  Visits visits;
  Maker maker{0};
  auto limit = std::make_shared<std::atomic<size_t>>(0);
  VisitThreads threads(32, [limit, maker](std::function<void()> run) mutable {
    maker.limit = *limit;
    return maker(std::move(run));
  });
  threads.Request("a", visits.Ends());
  threads.Request("b", visits.Ends());
  EXPECT_EQ(threads.pending(), 2u);
  *limit = 1;
  threads.Request("a", visits.Ends());  // as HostConnector does every 200 ms
  visits.AwaitCount(2);
}

}  // namespace
}  // namespace outboard::hosts
