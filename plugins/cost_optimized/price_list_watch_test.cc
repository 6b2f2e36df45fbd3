#include "plugins/cost_optimized/price_list_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/clock.h"

namespace outboard::cost_optimized::price_list_watch_test {
namespace {

// Counts failures.
class FakeMetrics : public sdk::Metrics {
 public:
  bool enabled() const override { return true; }
  std::shared_ptr<sdk::Counter> NewCounter(absl::string_view,
                                           const std::vector<std::string>&) override {
    return std::make_shared<Child>(this);
  }
  std::shared_ptr<sdk::Gauge> NewGauge(absl::string_view name,
                                       const std::vector<std::string>& values) override {
    return sdk::NoMetrics()->NewGauge(name, values);
  }
  std::shared_ptr<sdk::Histogram> NewHistogram(absl::string_view name,
                                               const std::vector<std::string>& values) override {
    return sdk::NoMetrics()->NewHistogram(name, values);
  }
  bool Await(int failures) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return failures_ >= failures; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(20));
  }
  int failures() const {
    absl::MutexLock lock(&mutex_);
    return failures_;
  }

 private:
  struct Child : sdk::Counter {
    explicit Child(FakeMetrics* owner) : owner(owner) {}
    void Add(double) override {
      absl::MutexLock lock(&owner->mutex_);
      ++owner->failures_;
    }
    FakeMetrics* const owner;
  };
  mutable absl::Mutex mutex_;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

class PriceListWatchTest : public ::testing::Test {
 protected:
  PriceListWatchTest() { std::filesystem::create_directories(folder_); }
  ~PriceListWatchTest() override { std::filesystem::remove_all(folder_); }
  // As Kubernetes replaces a mounted ConfigMap: another file behind the link.
  void Replace(const std::string& text) {
    const std::string target = folder_ + "/" + std::to_string(++version_) + ".csv";
    std::ofstream(target) << text;
    std::filesystem::create_symlink(target, folder_ + "/new");
    std::filesystem::rename(folder_ + "/new", path_);
  }
  // The number of prices once it is `size`; else, after a while, what it is.
  static size_t AwaitSize(const PriceListWatch& watch, size_t size) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (true) {
      const auto list = watch.Latest();
      const size_t now = list == nullptr ? 0 : list->size();
      if (now == size || absl::Now() > end) return now;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  const std::string folder_ =
      ::testing::TempDir() + "/price_list_watch_" + std::to_string(getpid());
  const std::string path_ = folder_ + "/prices.csv";
  int version_ = 0;
  FakeMetrics metrics_;
};

TEST_F(PriceListWatchTest, ReadsAtOnceAndAgainWhenTheFileChanges) {
  Replace("instanceType,price\na,1\n");
  PriceListWatch watch(path_, absl::Milliseconds(1), &metrics_);
  ASSERT_NE(watch.Latest(), nullptr);
  EXPECT_EQ(watch.Latest()->size(), 1u);
  Replace("instanceType,price\na,1\nb,2\n");
  EXPECT_EQ(AwaitSize(watch, 2), 2u);
  EXPECT_EQ(metrics_.failures(), 0);
}

TEST_F(PriceListWatchTest, KeepsTheListWhereTheNewOneIsWrong) {
  Replace("instanceType,price\na,1\n");
  PriceListWatch watch(path_, absl::Milliseconds(1), &metrics_);
  const auto list = watch.Latest();
  Replace("instanceType,price\na,much\n");
  EXPECT_TRUE(metrics_.Await(1));
  EXPECT_EQ(watch.Latest(), list);
  std::filesystem::remove(path_);
  EXPECT_TRUE(metrics_.Await(2));
  EXPECT_EQ(watch.Latest(), list);
  Replace("instanceType,price\na,1\nb,2\n");
  EXPECT_EQ(AwaitSize(watch, 2), 2u);
  EXPECT_EQ(metrics_.failures(), 2) << "each failure counts once";
}

TEST_F(PriceListWatchTest, AFileMayAppearLater) {
  PriceListWatch watch(path_, absl::Milliseconds(1), &metrics_);
  EXPECT_EQ(watch.Latest(), nullptr);
  EXPECT_EQ(metrics_.failures(), 1);
  Replace("instanceType,price\na,1\n");
  EXPECT_EQ(AwaitSize(watch, 1), 1u);
}

TEST_F(PriceListWatchTest, IsSharedByPath) {
  auto one = PriceListWatch::Shared(path_, &metrics_);
  EXPECT_EQ(PriceListWatch::Shared(path_, &metrics_), one);
  EXPECT_NE(PriceListWatch::Shared(path_ + "2", &metrics_), one);
  one = nullptr;
  Replace("instanceType,price\na,1\n");
  EXPECT_NE(PriceListWatch::Shared(path_, &metrics_)->Latest(), nullptr) << "a new one";
}

}  // namespace
}  // namespace outboard::cost_optimized::price_list_watch_test
