#include "plugins/cost_optimized/price_reader.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/shared_readers.h"

namespace outboard::cost_optimized {
namespace {

// pkg/costmodel/metrics.go of opencost/opencost. Where the scraped target has a label `node` of its
// own, Prometheus renames OpenCost's.
constexpr char kOpenCost[] = "node_total_hourly_cost";
constexpr char kNode[] = "node";
constexpr char kRenamedNode[] = "exported_node";
// pkg/providers/instancetype/metrics.go of aws/karpenter-provider-aws; Oracle's provider has it
// too.
constexpr char kKarpenter[] = "karpenter_cloudprovider_instance_type_offering_price_estimate";
constexpr char kInstanceType[] = "instance_type";
constexpr char kCapacityType[] = "capacity_type";
constexpr char kZone[] = "zone";

// Distinguishes the kinds of rows.
constexpr char kKind[] = "outboard";
constexpr char kOfNode[] = "node";
constexpr char kOfOffering[] = "offering";

// The highest of several, as replicas of an exporter may differ while prices change.
std::string Row(const char* metric, const prometheus::Matchers& matchers, const std::string& labels,
                const char* kind) {
  return absl::StrCat("label_replace(max by (", labels, ") (", metric,
                      prometheus::SelectorOf(matchers), "), \"", kKind, "\", \"", kind,
                      "\", \"\", \"\")");
}

bool IsReserved(const prometheus::Sample& sample) {
  return sample.Label(kCapacityType) == sdk::CapacityTypeName(sdk::CapacityType::kReserved);
}

// None where the publisher knows none.
std::optional<double> PriceOf(const prometheus::Sample& sample) {
  const std::optional<double> price = sample.Number();
  if (!price || *price < 0 || *price > sdk::kMaxPrice) return std::nullopt;
  if (IsReserved(sample)) return 0;
  return *price > 0 ? price : std::nullopt;
}

prometheus::ReadOptions ReadOptionsOf(const PriceReaderOptions& options) {
  prometheus::ReadOptions read;
  read.server = options.server;
  read.query = PriceQueryText(options.matchers);
  read.period = options.period;
  return read;
}

prometheus::ReportOptions Report() {
  prometheus::ReportOptions report;
  report.plugin = "CostOptimized";
  report.what = "prices";
  report.consequence = "prices read before are used until maxAge";
  report.metric = kPriceReadsMetric;
  return report;
}

}  // namespace

std::string PriceQueryText(const prometheus::Matchers& matchers) {
  return absl::StrCat(
      Row(kOpenCost, matchers, absl::StrCat(kRenamedNode, ",", kNode), kOfNode), " or ",
      Row(kKarpenter, matchers, absl::StrCat(kInstanceType, ",", kCapacityType, ",", kZone),
          kOfOffering));
}

PriceReading ReadPriceSamples(const std::vector<prometheus::Sample>& samples) {
  PriceReading reading;
  for (const prometheus::Sample& sample : samples) {
    const std::optional<double> price = PriceOf(sample);
    const std::string& kind = sample.Label(kKind);
    const std::vector<std::string> nodes = sample.Values({kRenamedNode, kNode});
    if (price && kind == kOfNode && !nodes.empty()) {
      reading.prices.by_node[nodes[0]] = *price;
    } else if (price && kind == kOfOffering && !sample.Label(kInstanceType).empty()) {
      reading.prices.by_offering[{sample.Label(kInstanceType), sample.Label(kCapacityType),
                                  sample.Label(kZone)}] = *price;
    } else {
      ++reading.ignored;
    }
  }
  return reading;
}

PriceReader::PriceReader(PriceReaderOptions options, sdk::Metrics* metrics)
    : reader_(ReadOptionsOf(options), Report(), metrics,
              [this](absl::Time asked, const std::vector<prometheus::Sample>& samples) {
                return Publish(asked, samples);
              }) {}

std::shared_ptr<PriceSource> PriceReader::Shared(const PriceReaderOptions& options,
                                                 sdk::Metrics* metrics) {
  static auto& readers = *new prometheus::SharedReaders<PriceReaderOptions, PriceReader>();
  return readers.Get(options, [&] { return std::make_shared<PriceReader>(options, metrics); });
}

std::shared_ptr<const PriceSnapshot> PriceReader::Latest() const {
  absl::MutexLock lock(&mutex_);
  return latest_;
}

absl::Status PriceReader::Publish(absl::Time asked,
                                  const std::vector<prometheus::Sample>& samples) {
  PriceReading reading = ReadPriceSamples(samples);
  if (reading.prices.by_node.empty() && reading.prices.by_offering.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no prices of ", kOpenCost, " and ", kKarpenter,
        reading.ignored == 0 ? "" : absl::StrCat(", ", reading.ignored, " rows without a price")));
  }
  auto snapshot = std::make_shared<PriceSnapshot>();
  snapshot->asked = asked;
  snapshot->prices = std::move(reading.prices);
  absl::MutexLock lock(&mutex_);
  latest_ = std::move(snapshot);
  return absl::OkStatus();
}

}  // namespace outboard::cost_optimized
