#include "plugin_host/metrics/prometheus_metrics.h"

#include <glog/logging.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "plugin_host/metrics/process_metrics.h"

namespace outboard::host_metrics {
namespace {

constexpr char kOther[] = "other";

// Prometheus' names; prometheus-cpp throws on others.
bool IsName(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         !absl::StartsWith(name, "__") && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

bool IsSound(const sdk::MetricSpec& spec) {
  return IsName(spec.name) &&
         std::all_of(spec.labels.begin(), spec.labels.end(),
                     [](const std::string& label) {
                       return IsName(label) && label != "le" && label != "quantile";
                     }) &&
         std::is_sorted(spec.buckets.begin(), spec.buckets.end()) && spec.max_children > 0;
}

bool SameShape(const sdk::MetricSpec& a, const sdk::MetricSpec& b) {
  return a.type == b.type && a.labels == b.labels && a.buckets == b.buckets;
}

}  // namespace

// The registry and its metrics. Children keep it alive.
class PrometheusMetrics::Families : public std::enable_shared_from_this<Families> {
 public:
  std::shared_ptr<prometheus::Registry> registry() const { return registry_; }

  // Null if Prometheus does not accept it.
  template <typename T>
  T* Bind(const sdk::MetricSpec& spec, const std::vector<std::string>& values, std::string* key) {
    absl::MutexLock lock(&mutex_);
    Entry* entry = FindOrMake<T>(spec);
    if (entry == nullptr || values.size() != spec.labels.size()) return nullptr;
    std::vector<std::string> shown = values;
    *key = absl::StrJoin(shown, absl::string_view("\0", 1));
    if (entry->children.count(*key) == 0 && entry->children.size() >= entry->spec.max_children) {
      if constexpr (std::is_same_v<T, prometheus::Gauge>) return nullptr;
      std::fill(shown.begin(), shown.end(), kOther);
      *key = absl::StrJoin(shown, absl::string_view("\0", 1));
    }
    Child& child = entry->children[*key];
    if (child.metric == nullptr) {
      prometheus::Labels labels;
      for (size_t i = 0; i < shown.size(); ++i) labels.emplace(spec.labels[i], shown[i]);
      auto* const family = std::get<prometheus::Family<T>*>(entry->family);
      if constexpr (std::is_same_v<T, prometheus::Histogram>) {
        child.metric = &family->Add(labels, entry->spec.buckets);
      } else {
        child.metric = &family->Add(labels);
      }
    }
    ++child.users;
    return static_cast<T*>(child.metric);
  }

  // A gauge disappears with its last owner.
  void Release(const std::string& name, const std::string& key) {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_.at(name);
    const auto child = entry.children.find(key);
    if (--child->second.users > 0) return;
    std::get<prometheus::Family<prometheus::Gauge>*>(entry.family)
        ->Remove(static_cast<prometheus::Gauge*>(child->second.metric));
    entry.children.erase(child);
  }

 private:
  struct Child {
    void* metric = nullptr;  // Has the family's type.
    int users = 0;
  };
  struct Entry {
    sdk::MetricSpec spec;
    std::variant<prometheus::Family<prometheus::Counter>*, prometheus::Family<prometheus::Gauge>*,
                 prometheus::Family<prometheus::Histogram>*>
        family;
    std::map<std::string, Child> children;  // By label values.
  };

  template <typename T>
  Entry* FindOrMake(const sdk::MetricSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = entries_.find(spec.name);
    if (found != entries_.end()) {
      if (SameShape(found->second.spec, spec)) return &found->second;
      LOG(ERROR) << "Metric " << spec.name << " already exists with another type, labels or "
                 << "buckets; ignoring this one";
      return nullptr;
    }
    if (!IsSound(spec)) {
      LOG(ERROR) << "Metric " << spec.name << " has a name, labels or buckets that Prometheus "
                 << "does not accept; ignoring it";
      return nullptr;
    }
    Entry& entry = entries_[spec.name];
    entry.spec = spec;
    if constexpr (std::is_same_v<T, prometheus::Counter>) {
      entry.family =
          &prometheus::BuildCounter().Name(spec.name).Help(spec.help).Register(*registry_);
    } else if constexpr (std::is_same_v<T, prometheus::Gauge>) {
      entry.family = &prometheus::BuildGauge().Name(spec.name).Help(spec.help).Register(*registry_);
    } else {
      entry.family =
          &prometheus::BuildHistogram().Name(spec.name).Help(spec.help).Register(*registry_);
    }
    return &entry;
  }

  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

namespace {

template <typename Families>
class CounterChild : public sdk::Counter {
 public:
  CounterChild(std::shared_ptr<Families> families, prometheus::Counter* counter)
      : families_(std::move(families)), counter_(counter) {}
  void Add(double amount) override { counter_->Increment(amount); }

 private:
  const std::shared_ptr<Families> families_;
  prometheus::Counter* const counter_;
};

template <typename Families>
class HistogramChild : public sdk::Histogram {
 public:
  HistogramChild(std::shared_ptr<Families> families, prometheus::Histogram* histogram)
      : families_(std::move(families)), histogram_(histogram) {}
  void Observe(double value) override { histogram_->Observe(value); }

 private:
  const std::shared_ptr<Families> families_;
  prometheus::Histogram* const histogram_;
};

template <typename Families>
class CountedHistogramChild : public runtime::CountedHistogram {
 public:
  CountedHistogramChild(std::shared_ptr<Families> families, prometheus::Histogram* histogram)
      : families_(std::move(families)), histogram_(histogram) {}
  void Add(absl::Span<const uint32_t> counts, double sum) override {
    histogram_->ObserveMultiple(std::vector<double>(counts.begin(), counts.end()), sum);
  }

 private:
  const std::shared_ptr<Families> families_;
  prometheus::Histogram* const histogram_;
};

template <typename Families>
class GaugeChild : public sdk::Gauge {
 public:
  GaugeChild(std::shared_ptr<Families> families, std::string name, std::string key,
             prometheus::Gauge* gauge)
      : families_(std::move(families)),
        name_(std::move(name)),
        key_(std::move(key)),
        gauge_(gauge) {}
  ~GaugeChild() override { families_->Release(name_, key_); }
  void Set(double value) override { gauge_->Set(value); }

 private:
  const std::shared_ptr<Families> families_;
  const std::string name_;
  const std::string key_;
  prometheus::Gauge* const gauge_;
};

}  // namespace

const std::vector<sdk::MetricSpec>& ProcessMetricSpecs() {
  using Type = sdk::MetricType;
  static const auto& specs = *new std::vector<sdk::MetricSpec>{
      {"outboard_build_info", Type::kGauge, {"version"}, "1 for the build that runs."},
      {"process_cpu_seconds_total", Type::kCounter, {}, "User and system CPU time of the process."},
      {"process_resident_memory_bytes", Type::kGauge, {}, "Resident memory of the process."},
      {"process_open_fds", Type::kGauge, {}, "Open file descriptors of the process."},
      {"process_start_time_seconds",
       Type::kGauge,
       {},
       "Start of the process, seconds since the Unix epoch."},
      {"outboard_log_lines_dropped_total",
       Type::kCounter,
       {},
       "Log lines dropped because stderr took none: its reader stopped, or its disk is full."}};
  return specs;
}

PrometheusMetrics::PrometheusMetrics(absl::string_view version)
    : families_(std::make_shared<Families>()), process_(std::make_shared<ProcessMetrics>()) {
  build_info_ = NewGauge(ProcessMetricSpecs()[0], {std::string(version)});
  build_info_->Set(1);
}

PrometheusMetrics::~PrometheusMetrics() = default;

std::shared_ptr<sdk::Counter> PrometheusMetrics::NewCounter(
    const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) {
  std::string key;
  auto* counter = families_->Bind<prometheus::Counter>(spec, label_values, &key);
  if (counter == nullptr) return sdk::NoMetrics()->NewCounter(spec.name, label_values);
  return std::make_shared<CounterChild<Families>>(families_, counter);
}

std::shared_ptr<sdk::Gauge> PrometheusMetrics::NewGauge(
    const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) {
  std::string key;
  auto* gauge = families_->Bind<prometheus::Gauge>(spec, label_values, &key);
  if (gauge == nullptr) return sdk::NoMetrics()->NewGauge(spec.name, label_values);
  return std::make_shared<GaugeChild<Families>>(families_, spec.name, std::move(key), gauge);
}

std::shared_ptr<sdk::Histogram> PrometheusMetrics::NewHistogram(
    const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) {
  std::string key;
  auto* histogram = families_->Bind<prometheus::Histogram>(spec, label_values, &key);
  if (histogram == nullptr) return sdk::NoMetrics()->NewHistogram(spec.name, label_values);
  return std::make_shared<HistogramChild<Families>>(families_, histogram);
}

std::shared_ptr<runtime::CountedHistogram> PrometheusMetrics::NewCountedHistogram(
    const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) {
  std::string key;
  auto* histogram = families_->Bind<prometheus::Histogram>(spec, label_values, &key);
  if (histogram == nullptr) return nullptr;
  return std::make_shared<CountedHistogramChild<Families>>(families_, histogram);
}

std::vector<std::shared_ptr<prometheus::Collectable>> PrometheusMetrics::collectables() const {
  return {families_->registry(), process_};
}

std::string PrometheusMetrics::Text() const {
  std::vector<prometheus::MetricFamily> all;
  for (const auto& collectable : collectables()) {
    for (prometheus::MetricFamily& family : collectable->Collect())
      all.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace outboard::host_metrics
