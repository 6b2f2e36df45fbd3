// A plugin's metrics in tests. For the harnesses, not for plugins' tests.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_FIGURES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_FIGURES_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin_host/runtime/metric_sink.h"

namespace outboard::sdk::testing {

// The values of a plugin's metrics: a counter's sum, a gauge's value, a histogram's number of
// observations.
//
// Threading: values may change on any thread; all else on one thread.
// Lifetime: outlives the metrics that it returns.
// Errors: none.
class Figures : public runtime::MetricSink {
 public:
  using Key = std::pair<std::string, std::vector<std::string>>;
  std::shared_ptr<Counter> NewCounter(const MetricSpec& spec,
                                      const std::vector<std::string>& label_values) override {
    return std::make_shared<Child>(&values_[{spec.name, label_values}]);
  }
  std::shared_ptr<Gauge> NewGauge(const MetricSpec& spec,
                                  const std::vector<std::string>& label_values) override {
    return std::make_shared<Child>(&values_[{spec.name, label_values}]);
  }
  std::shared_ptr<Histogram> NewHistogram(const MetricSpec& spec,
                                          const std::vector<std::string>& label_values) override {
    return std::make_shared<Child>(&values_[{spec.name, label_values}]);
  }
  std::optional<double> Find(const Key& key) const {
    const auto it = values_.find(key);
    if (it == values_.end()) return std::nullopt;
    return it->second;
  }

 private:
  // A plugin's own threads may count too.
  struct Child : Counter, Gauge, Histogram {
    explicit Child(std::atomic<double>* where) : value(where) {}
    void Add(double amount) override { value->fetch_add(amount); }
    void Set(double to) override { value->store(to); }
    void Observe(double) override { value->fetch_add(1); }
    std::atomic<double>* value;
  };
  std::map<Key, std::atomic<double>> values_;  // Addresses are stable.
};

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_FIGURES_H_
