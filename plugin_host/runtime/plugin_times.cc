#include "plugin_host/runtime/plugin_times.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "absl/strings/ascii.h"
#include "proto/short_names.h"

namespace outboard::runtime {
namespace {

constexpr std::chrono::minutes kWarningPeriod{1};

std::atomic<int64_t> slow_nanos{50'000'000};

// kube-scheduler's name: PreFilter.
std::string PointName(sdk::ExtensionPoint point) {
  std::string name;
  bool begins_word = true;
  for (const char c : ShortName(point)) {
    if (c != '_') name += begins_word ? c : absl::ascii_tolower(static_cast<unsigned char>(c));
    begins_word = c == '_';
  }
  return name;
}

}  // namespace

void SetSlowPluginCall(absl::Duration limit) { slow_nanos = absl::ToInt64Nanoseconds(limit); }

const sdk::MetricSpec& PluginDurationMetric() {
  static const sdk::MetricSpec& spec = *[] {
    auto* const made = new sdk::MetricSpec{
        "outboard_plugin_host_plugin_duration_seconds",
        sdk::MetricType::kHistogram,
        {"plugin", "extension_point"},
        "Time that a plugin took at a point for a pod; at Filter and Score for all its nodes. Of "
        "PreFilter, Filter, PreScore and Score at most one pod in 2 ms is measured."};
    for (int i = 0; i < PluginTimes::kBuckets - 1; ++i)
      made->buckets.push_back(1e-6 * static_cast<double>(int64_t{1} << i));
    made->max_children = 500;
    return made;
  }();
  return spec;
}

PluginTimes::PluginTimes(MetricSink* metrics, Clock::time_point (*now)())
    : metrics_(metrics),
      now_(now),
      slow_nanos_(slow_nanos == 0 ? std::numeric_limits<int64_t>::max() : slow_nanos.load()),
      enabled_(metrics != nullptr || slow_nanos != 0) {}

void PluginTimes::Add(uint32_t index, std::string plugin) {
  if (plugins_.size() <= index) plugins_.resize(index + 1);
  plugins_[index].name = std::move(plugin);
}

PluginTimes::Evaluation::Evaluation(PluginTimes* times, sdk::ExtensionPoint point,
                                    const sdk::LogName& pod)
    : times_(*times), point_(point), pod_(pod) {
  if (!times_.enabled_) return;
  begin_ = last_ = times_.now_();
  Clock::time_point& sampled = times_.sampled_[static_cast<size_t>(point)];
  measures_ = begin_ - sampled >= kSamplePeriod || begin_ < times_.attention_until_;
  if (!measures_) return;
  sampled = begin_;
  times_.nanos_.assign(times_.plugins_.size(), 0);
}

PluginTimes::Evaluation::~Evaluation() {
  if (!times_.enabled_) return;
  if (measures_) {
    for (uint32_t index = 0; index < times_.nanos_.size(); ++index) {
      const int64_t nanos = times_.nanos_[index];
      if (nanos > 0) times_.Record(index, point_, nanos, last_, pod_);
    }
    return;
  }
  const Clock::time_point end = times_.now_();
  const int64_t nanos = (end - begin_) / std::chrono::nanoseconds(1);
  if (nanos <= times_.slow_nanos_) return;
  LOG(WARNING) << "All plugins together took " << absl::Nanoseconds(nanos) << " at "
               << PointName(point_) << " for " << pod_ << "; from now on each is measured for "
               << absl::FromChrono(kAttention);
  times_.attention_until_ = end + kAttention;
}

void PluginTimes::Warn(const std::string& plugin, sdk::ExtensionPoint point, int64_t nanos,
                       Clock::time_point now, const sdk::LogName& pod, Point* its) {
  if (its->warned != Clock::time_point() && now - its->warned < kWarningPeriod) {
    ++its->silent;
    return;
  }
  LOG(WARNING) << "Plugin " << plugin << " took " << absl::Nanoseconds(nanos) << " at "
               << PointName(point) << " for " << pod << ", and longer than "
               << absl::Nanoseconds(slow_nanos.load()) << " for " << its->silent
               << " pods since its last warning";
  its->warned = now;
  its->silent = 0;
}

void PluginTimes::Flush() {
  if (metrics_ == nullptr) return;
  for (Plugin& plugin : plugins_) {
    for (size_t point = 0; point < kPoints; ++point) {
      Point& its = plugin.points[point];
      if (std::all_of(its.counts.begin(), its.counts.end(), [](uint32_t n) { return n == 0; }))
        continue;
      if (its.histogram == nullptr) {
        its.histogram = metrics_->NewCountedHistogram(
            PluginDurationMetric(),
            {plugin.name, PointName(static_cast<sdk::ExtensionPoint>(point))});
      }
      if (its.histogram != nullptr)
        its.histogram->Add(its.counts, 1e-9 * static_cast<double>(its.sum_nanos));
      its.counts = {};
      its.sum_nanos = 0;
    }
  }
}

}  // namespace outboard::runtime
