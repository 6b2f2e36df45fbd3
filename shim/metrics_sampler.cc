#include "shim/metrics_sampler.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::shim {
namespace {

// kube-scheduler's label of the pods among the events in flight.
constexpr char kPodPopped[] = "PodPopped";
// The API's names, by kube::WatchEventType.
constexpr const char* kWatchEvents[] = {"ADDED", "MODIFIED", "DELETED"};

}  // namespace

void MetricsSampler::Follower::Follow(uint64_t total) {
  counter->Increment(static_cast<double>(total - counted));
  counted = total;
}

MetricsSampler::MetricsSampler(metrics::Metrics* metrics) : metrics_(metrics) {
  status_written_.counter = &metrics->status_patches.With({"written"});
  status_failed_.counter = &metrics->status_patches.With({"failed"});
  status_outdated_.counter = &metrics->status_patches.With({"outdated"});
  status_dropped_.counter = &metrics->status_patches.With({"dropped"});
  events_written_.counter = &metrics->events.With({"written"});
  events_merged_.counter = &metrics->events.With({"merged"});
  events_rejected_.counter = &metrics->events.With({"rejected"});
  events_dropped_.counter = &metrics->events.With({"dropped"});
}

void MetricsSampler::SampleScheduler(const scheduler::Scheduler& scheduler,
                                     const cache::ClusterState& cluster) {
  const queue::QueueCounts counts = scheduler.queue().counts();
  metrics_->pending_active.Set(static_cast<double>(counts.active));
  metrics_->pending_backoff.Set(static_cast<double>(counts.backoff));
  metrics_->pending_unschedulable.Set(static_cast<double>(counts.unschedulable));
  metrics_->pending_gated.Set(static_cast<double>(counts.gated));
  metrics_->parked_pods.Set(static_cast<double>(counts.parked));
  metrics_->cache_nodes.Set(static_cast<double>(cluster.node_count()));
  metrics_->cache_pods.Set(static_cast<double>(cluster.pod_count()));
  metrics_->cache_assumed_pods.Set(static_cast<double>(cluster.assumed_count()));
  metrics_->snapshot_version.Set(static_cast<double>(cluster.version()));
  metrics_->binds_in_flight.Set(
      static_cast<double>(scheduler.attempts_in_flight() - scheduler.waiting_pods()));
  SampleRecordedEvents(scheduler.queue());
}

void MetricsSampler::SampleRecordedEvents(const queue::SchedulingQueue& queue) {
  std::map<std::string, size_t> numbers;
  for (const std::string& label : recorded_events_) numbers[label] = 0;
  numbers[kPodPopped] = queue.counts().recording;
  queue.ForEachRecordedEvent([&](const queue::ClusterEvent& event) { ++numbers[event.Label()]; });
  for (const auto& [label, number] : numbers) {
    metrics_->in_flight_events.With({label}).Set(static_cast<double>(number));
    recorded_events_.insert(label);
  }
}

void MetricsSampler::SampleHosts(const hosts::HostRegistry& hosts,
                                 const std::vector<hosts::InstanceView>& views) {
  metrics_->hosts_ready.Set(hosts.AllReady() ? 1 : 0);
  std::string instances;
  for (const hosts::HostRegistry::View& view : views) {
    absl::StrAppend(&instances, view.host, " ", view.instance, " ", hosts::StateName(view.state),
                    " ", view.build, " ", view.build_digest, "\n");
  }
  // Only then, because a scrape in between would see none of them.
  if (instances != instances_) {
    metrics_->host_state.Clear();
    metrics_->host_info.Clear();
    metrics_->host_acked_version.Clear();
    instances_ = std::move(instances);
  }
  for (const hosts::HostRegistry::View& view : views) {
    metrics_->host_state.With({view.host, view.instance, hosts::StateName(view.state)}).Set(1);
    if (view.state != hosts::InstanceState::kServing) continue;
    metrics_->host_info.With({view.host, view.instance, view.build, view.build_digest}).Set(1);
    metrics_->host_acked_version.With({view.host})
        .Set(static_cast<double>(view.acknowledged_version));
  }
  for (const auto& [key, count] : hosts.switches()) {
    Follower& follower = switches_[key];
    if (follower.counter == nullptr)
      follower.counter = &metrics_->host_switches.With({key.first, key.second});
    follower.Follow(static_cast<uint64_t>(count));
  }
}

void MetricsSampler::WatchCertificates(const config::Config& config) {
  std::vector<std::string> files;
  for (const config::HostSpec& host : config.shim.hosts) {
    if (host.tls.has_value()) files.insert(files.end(), {host.tls->cert_file, host.tls->ca_file});
  }
  if (const auto& secure = config.shim.secure_serving; secure.has_value())
    files.insert(files.end(), {secure->cert_file, secure->client_ca_file});
  if (const auto& extender = config.shim.extender; extender.has_value() && extender->tls)
    files.insert(files.end(), {extender->tls->cert_file, extender->tls->client_ca_file});
  metrics_->certificates.SetFiles(std::move(files));
}

void MetricsSampler::SampleWrites(const bind::ApiWriterStats& writes,
                                  const bind::EventRecorderStats& events) {
  status_written_.Follow(writes.status_written);
  status_failed_.Follow(writes.status_failed);
  status_outdated_.Follow(writes.status_outdated);
  status_dropped_.Follow(writes.status_dropped);
  events_written_.Follow(events.written);
  events_merged_.Follow(events.merged);
  events_rejected_.Follow(events.rejected);
  events_dropped_.Follow(events.dropped);
  metrics_->events_queued.Set(static_cast<double>(events.queued + events.in_flight));
}

MetricsSampler::Informer& MetricsSampler::InformerOf(const std::string& resource) {
  Informer& of = informers_[resource];
  if (of.objects != nullptr) return of;
  of.objects = &metrics_->informer_objects.With({resource});
  of.undecoded = &metrics_->informer_undecoded_objects.With({resource});
  for (size_t i = 0; i < of.lists.size(); ++i)
    of.lists[i].counter = &metrics_->informer_lists.With({resource, informer::kListReasons[i]});
  for (size_t i = 0; i < of.events.size(); ++i)
    of.events[i].counter = &metrics_->informer_events.With({resource, kWatchEvents[i]});
  of.bookmarks.counter = &metrics_->informer_events.With({resource, "BOOKMARK"});
  return of;
}

void MetricsSampler::SampleInformer(const std::string& resource, size_t objects, size_t undecoded,
                                    const informer::ReflectorStats& stats) {
  Informer& of = InformerOf(resource);
  of.objects->Set(static_cast<double>(objects));
  of.undecoded->Set(static_cast<double>(undecoded));
  for (size_t i = 0; i < of.lists.size(); ++i) of.lists[i].Follow(stats.lists[i]);
  for (size_t i = 0; i < of.events.size(); ++i) of.events[i].Follow(stats.events[i]);
  of.bookmarks.Follow(stats.bookmarks);
}

void MetricsSampler::ForgetInformer(const std::string& resource) {
  Informer& of = InformerOf(resource);
  of.objects->Set(0);
  of.undecoded->Set(0);
  for (Follower& follower : of.lists) follower.counted = 0;
  for (Follower& follower : of.events) follower.counted = 0;
  of.bookmarks.counted = 0;
}

}  // namespace outboard::shim
