// How long plugins take: a histogram for each plugin and point, and a warning about slow calls.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_PLUGIN_TIMES_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_PLUGIN_TIMES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "plugin_host/runtime/metric_sink.h"
#include "plugin_host/sdk/log_name.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::runtime {

// The limit above which a call is slow, for all sessions of the process; 50 ms unless set. Zero: no
// call is.
// Threading: before the first session.
void SetSlowPluginCall(absl::Duration limit);

// outboard_plugin_host_plugin_duration_seconds.
const sdk::MetricSpec& PluginDurationMetric();

// The times of one profile's plugins. Counts them itself, so that a call costs readings of the
// clock and no lock; Flush hands the counts on.
//
// A cycle has a hundred calls, and a reading of the clock takes some 40 ns. So of the points that
// each cycle has (PreFilter, Filter, PreScore, Score) a sample is measured: at most one evaluation
// of a point in kSamplePeriod. An evaluation outside the sample that takes long is a reason to
// measure all of them for a while, since then the time of the readings does not matter.
//
// Threading: thread-compatible; the thread that owns the profile.
// Lifetime:  of the profile; the sink (may be null) outlives it. The destructor flushes.
// Errors:    none.
class PluginTimes {
 public:
  using Clock = std::chrono::steady_clock;
  // Upper bounds: 1 us, 2 us, 4 us, …, 2.1 s; and all above.
  static constexpr int kBuckets = 23;
  // The bucket of an amount of nanoseconds.
  static int BucketOf(int64_t nanos) {
    if (nanos <= 0) return 0;
    return std::min(kBuckets - 1,
                    static_cast<int>(std::bit_width(static_cast<uint64_t>(nanos - 1) / 1000)));
  }

  // Far below the scrape interval of any monitoring, far above the time of a cycle.
  static constexpr std::chrono::milliseconds kSamplePeriod{2};
  static constexpr std::chrono::minutes kAttention{1};

  // `now`: another clock, for tests.
  explicit PluginTimes(MetricSink* metrics, Clock::time_point (*now)() = &Clock::now);
  ~PluginTimes() { Flush(); }
  PluginTimes(const PluginTimes&) = delete;
  PluginTimes& operator=(const PluginTimes&) = delete;

  // Before the plugin's times: `index` counts from 0, without gaps.
  void Add(uint32_t index, std::string plugin);
  // Whether calls are measured: not without metrics and a limit for slow calls.
  bool enabled() const { return enabled_; }
  // A call took `nanos`, until `end`.
  void Record(uint32_t index, sdk::ExtensionPoint point, int64_t nanos, Clock::time_point end,
              const sdk::LogName& pod) {
    Point& its = plugins_[index].points[static_cast<size_t>(point)];
    ++its.counts[BucketOf(nanos)];
    its.sum_nanos += nanos;
    if (nanos > slow_nanos_) Warn(plugins_[index].name, point, nanos, end, pod, &its);
  }
  // Calls and measures.
  template <typename Call>
  auto Measure(uint32_t index, sdk::ExtensionPoint point, const sdk::LogName& pod, Call call) {
    if (!enabled_) return call();
    const Clock::time_point begin = now_();
    auto result = call();
    const Clock::time_point end = now_();
    Record(index, point, (end - begin) / std::chrono::nanoseconds(1), end, pod);
    return result;
  }

  // All plugins of a point, one after the other, for one pod. They follow each other without a gap,
  // so that one reading of the clock ends a call and begins the next. Not inside another one.
  class Evaluation {
   public:
    Evaluation(PluginTimes* times, sdk::ExtensionPoint point, const sdk::LogName& pod);
    ~Evaluation();
    Evaluation(const Evaluation&) = delete;
    Evaluation& operator=(const Evaluation&) = delete;

    // What comes next is the plugins' time again; what came since the last call is not.
    void Continue() {
      if (measures_) last_ = times_.now_();
    }
    // A call of the plugin ended. Its calls are added up.
    void Ended(uint32_t index) {
      if (!measures_) return;
      const Clock::time_point now = times_.now_();
      times_.nanos_[index] += (now - last_) / std::chrono::nanoseconds(1);
      last_ = now;
    }

   private:
    PluginTimes& times_;
    const sdk::ExtensionPoint point_;
    const sdk::LogName pod_;
    bool measures_ = false;
    Clock::time_point begin_, last_;
  };
  // Hands what was counted since the last time to the sink.
  void Flush();

 private:
  static constexpr size_t kPoints = 16;
  struct Point {
    std::array<uint32_t, kBuckets> counts = {};
    int64_t sum_nanos = 0;
    std::shared_ptr<CountedHistogram> histogram;  // Null: nothing was flushed yet.
    // One warning a minute.
    Clock::time_point warned;
    int64_t silent = 0;  // Slow calls since, without a warning.
  };
  struct Plugin {
    std::string name;
    std::array<Point, kPoints> points;
  };
  static void Warn(const std::string& plugin, sdk::ExtensionPoint point, int64_t nanos,
                   Clock::time_point now, const sdk::LogName& pod, Point* its);

  MetricSink* const metrics_;
  Clock::time_point (*const now_)();
  const int64_t slow_nanos_;
  const bool enabled_;
  std::vector<Plugin> plugins_;
  std::vector<int64_t> nanos_;  // By plugin, of the evaluation in progress.
  std::array<Clock::time_point, kPoints> sampled_ = {};  // When an evaluation was last measured.
  Clock::time_point attention_until_ = Clock::time_point::min();
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_PLUGIN_TIMES_H_
