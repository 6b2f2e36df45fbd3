#include "plugins/cost_optimized/price_list_watch.h"

#include <glog/logging.h>

#include <map>
#include <utility>

#include "absl/time/clock.h"

namespace outboard::cost_optimized {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(10);

// Watches in use, by path.
struct Watches {
  absl::Mutex mutex;
  std::map<std::string, std::weak_ptr<PriceListWatch>> all ABSL_GUARDED_BY(mutex);
};

}  // namespace

PriceListWatch::PriceListWatch(std::string path, absl::Duration period, sdk::Metrics* metrics)
    : path_(std::move(path)),
      period_(period),
      failures_(metrics->NewCounter(kPriceListFailuresMetric, {})) {
  Read();
  thread_ = std::thread([this] { Run(); });
}

PriceListWatch::~PriceListWatch() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

std::shared_ptr<PriceListWatch> PriceListWatch::Shared(const std::string& path,
                                                       sdk::Metrics* metrics) {
  static auto& watches = *new Watches();
  absl::MutexLock lock(&watches.mutex);
  std::weak_ptr<PriceListWatch>& known = watches.all[path];
  std::shared_ptr<PriceListWatch> watch = known.lock();
  if (watch == nullptr) {
    watch = std::make_shared<PriceListWatch>(path, kPeriod, metrics);
    known = watch;
  }
  return watch;
}

std::shared_ptr<const sdk::PriceList> PriceListWatch::Latest() const {
  absl::MutexLock lock(&mutex_);
  return latest_;
}

void PriceListWatch::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithDeadline(absl::Condition(&stopped_), absl::Now() + period_);
      if (stopped_) return;
    }
    Read();
  }
}

void PriceListWatch::Read() {
  absl::StatusOr<std::string> text = sdk::PriceList::ReadText(path_);
  absl::Status failure = text.status();
  if (!text.ok()) {
    text_.reset();
  } else {
    // Also a wrong text is parsed only once.
    if (text_ == *text) return;
    text_ = *std::move(text);
    absl::StatusOr<sdk::PriceList> list = sdk::PriceList::Parse(*text_, path_);
    failure = list.status();
    if (list.ok()) {
      LOG(INFO) << "CostOptimized: price list " << path_ << " with " << list->size() << " prices";
      absl::MutexLock lock(&mutex_);
      latest_ = std::make_shared<const sdk::PriceList>(*std::move(list));
    }
  }
  if (std::exchange(failure_, failure) == failure || failure.ok()) return;
  failures_->Add();
  LOG(WARNING) << "CostOptimized: price list not used: " << failure.message() << "; "
               << (Latest() == nullptr ? "prices from it are unknown"
                                       : "keeping the prices read before");
}

}  // namespace outboard::cost_optimized
