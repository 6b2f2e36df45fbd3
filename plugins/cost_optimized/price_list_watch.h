// A price list file, read again when it changes.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_PRICE_LIST_WATCH_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_PRICE_LIST_WATCH_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/node_facts/price_list.h"

namespace outboard::cost_optimized {

// Counts contents of the file that could not be used.
inline constexpr char kPriceListFailuresMetric[] =
    "outboard_cost_optimized_price_list_failures_total";

// Reads the file when it is created, then on its own thread once a period: also through links that
// change, as Kubernetes mounts ConfigMaps. A file that is missing or wrong is logged once, and
// counted; the list before it stays in use.
//
// Threading: thread-safe.
// Lifetime:  the destructor joins the thread.
// Errors:    none; see the metric and the log.
class PriceListWatch {
 public:
  PriceListWatch(std::string path, absl::Duration period, sdk::Metrics* metrics);
  ~PriceListWatch();
  PriceListWatch(const PriceListWatch&) = delete;
  PriceListWatch& operator=(const PriceListWatch&) = delete;

  // The process's shared watch of this file, while it is referenced.
  static std::shared_ptr<PriceListWatch> Shared(const std::string& path, sdk::Metrics* metrics);

  // Null before the first readable list; the same object until the file changes.
  std::shared_ptr<const sdk::PriceList> Latest() const;

 private:
  void Run();
  void Read();

  const std::string path_;
  const absl::Duration period_;
  const std::shared_ptr<sdk::Counter> failures_;
  // Of the last reading; used by one thread at a time.
  std::optional<std::string> text_;
  absl::Status failure_;
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const sdk::PriceList> latest_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last member: it uses the others.
};

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_PRICE_LIST_WATCH_H_
