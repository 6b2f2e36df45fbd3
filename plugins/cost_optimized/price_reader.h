// Reads OpenCost's and Karpenter's prices from Prometheus periodically.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_PRICE_READER_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_PRICE_READER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/node_facts/node_prices.h"
#include "plugin_host/sdk/prometheus/client.h"
#include "plugin_host/sdk/prometheus/matchers.h"
#include "plugin_host/sdk/prometheus/periodic_reader.h"
#include "plugin_host/sdk/prometheus/samples.h"

namespace outboard::cost_optimized {

struct PriceReaderOptions {
  prometheus::ServerOptions server;  // An empty address: no reader.
  prometheus::Matchers matchers;
  absl::Duration period = absl::Minutes(1);

  friend bool operator==(const PriceReaderOptions&, const PriceReaderOptions&) = default;
};

// One PromQL expression for both publishers: a row per node, and a row per offering.
std::string PriceQueryText(const prometheus::Matchers& matchers);

struct PriceReading {
  sdk::PublishedPrices prices;
  size_t ignored = 0;  // Rows without a price, or with an invalid one.
};
// Reads the answer to that query. Pure. A price of 0 is not a price: OpenCost and Karpenter write 0
// where they know none. For reserved capacity Karpenter writes a ten-millionth of the on-demand
// price, to sort: it is paid for already, so it counts as 0.
PriceReading ReadPriceSamples(const std::vector<prometheus::Sample>& samples);

// The result of one reading; immutable.
struct PriceSnapshot {
  absl::Time asked;  // By this machine's clock.
  sdk::PublishedPrices prices;
};

// Where snapshots come from; a seam for tests.
//
// Threading: thread-safe.
class PriceSource {
 public:
  virtual ~PriceSource() = default;
  // Null before the first reading; the same object until the next one.
  virtual std::shared_ptr<const PriceSnapshot> Latest() const = 0;
};

// Counts readings by result.
inline constexpr char kPriceReadsMetric[] = "outboard_cost_optimized_price_reads_total";

// A failed reading, and one without prices, publishes nothing: prices grow old.
//
// Threading: thread-safe.
// Lifetime: the destructor cancels a running query.
// Errors: none; see the metric and the log.
class PriceReader : public PriceSource {
 public:
  PriceReader(PriceReaderOptions options, sdk::Metrics* metrics);
  PriceReader(const PriceReader&) = delete;
  PriceReader& operator=(const PriceReader&) = delete;

  // The process's shared reader with these options, while it is referenced.
  static std::shared_ptr<PriceSource> Shared(const PriceReaderOptions& options,
                                             sdk::Metrics* metrics);

  std::shared_ptr<const PriceSnapshot> Latest() const override;

 private:
  absl::Status Publish(absl::Time asked, const std::vector<prometheus::Sample>& samples);

  mutable absl::Mutex mutex_;
  std::shared_ptr<const PriceSnapshot> latest_ ABSL_GUARDED_BY(mutex_);
  prometheus::PeriodicReader reader_;  // Last member: it uses the others.
};

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_PRICE_READER_H_
