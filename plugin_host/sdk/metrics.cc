#include "plugin_host/sdk/metrics.h"

namespace outboard::sdk {
namespace {

class Nothing : public Counter, public Gauge, public Histogram {
 public:
  void Add(double) override {}
  void Set(double) override {}
  void Observe(double) override {}
};

class DisabledMetrics : public Metrics {
 public:
  bool enabled() const override { return false; }
  std::shared_ptr<Counter> NewCounter(absl::string_view, const std::vector<std::string>&) override {
    return nothing_;
  }
  std::shared_ptr<Gauge> NewGauge(absl::string_view, const std::vector<std::string>&) override {
    return nothing_;
  }
  std::shared_ptr<Histogram> NewHistogram(absl::string_view,
                                          const std::vector<std::string>&) override {
    return nothing_;
  }

 private:
  const std::shared_ptr<Nothing> nothing_ = std::make_shared<Nothing>();
};

}  // namespace

Metrics* NoMetrics() {
  static Metrics* const disabled = new DisabledMetrics();
  return disabled;
}

}  // namespace outboard::sdk
