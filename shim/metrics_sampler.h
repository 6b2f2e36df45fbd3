// Reads figures of the shim's parts into metrics, about once a second.
#ifndef OUTBOARD_SHIM_METRICS_SAMPLER_H_
#define OUTBOARD_SHIM_METRICS_SAMPLER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shim/bind/api_writer.h"
#include "shim/bind/event_recorder.h"
#include "shim/cache/cluster_state.h"
#include "shim/config/config.h"
#include "shim/hosts/host_registry.h"
#include "shim/informer/reflector.h"
#include "shim/metrics/metrics.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::shim {

// For gauges, and for what the parts count themselves.
//
// Threading: scheduling thread.
// Lifetime: the metrics outlive this object.
class MetricsSampler {
 public:
  explicit MetricsSampler(metrics::Metrics* metrics);

  void SampleScheduler(const scheduler::Scheduler& scheduler, const cache::ClusterState& cluster);
  // `views`: what `hosts` describes.
  void SampleHosts(const hosts::HostRegistry& hosts, const std::vector<hosts::InstanceView>& views);
  // Those of the configuration, from now on.
  void WatchCertificates(const config::Config& config);
  void SampleWrites(const bind::ApiWriterStats& writes, const bind::EventRecorderStats& events);
  // `undecoded`: how many objects exist but cannot be decoded.
  void SampleInformer(const std::string& resource, size_t objects, size_t undecoded,
                      const informer::ReflectorStats& stats);
  // Another informer of the name will count from 0 again.
  void ForgetInformer(const std::string& resource);

 private:
  // A counter for a total that another part keeps.
  struct Follower {
    void Follow(uint64_t total);
    metrics::Counter* counter = nullptr;
    uint64_t counted = 0;
  };
  struct Informer {
    metrics::Gauge* objects = nullptr;
    metrics::Gauge* undecoded = nullptr;
    std::array<Follower, informer::kListReasons.size()> lists;
    std::array<Follower, 3> events;
    Follower bookmarks;
  };
  Informer& InformerOf(const std::string& resource);
  void SampleRecordedEvents(const queue::SchedulingQueue& queue);

  metrics::Metrics* const metrics_;
  std::string instances_;  // those of the last sample, with all that labels say of them
  std::map<std::pair<std::string, std::string>, Follower> switches_;
  std::set<std::string> recorded_events_;  // labels that have a child
  Follower status_written_, status_failed_, status_outdated_, status_dropped_;
  Follower events_written_, events_merged_, events_rejected_, events_dropped_;
  std::map<std::string, Informer> informers_;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_METRICS_SAMPLER_H_
