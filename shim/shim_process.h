// Internal to the sources of shim/: the process class and all its parts.
#ifndef OUTBOARD_SHIM_SHIM_PROCESS_H_
#define OUTBOARD_SHIM_SHIM_PROCESS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/access/review_guard.h"
#include "shim/api_cluster_actions.h"
#include "shim/bind/api_writer.h"
#include "shim/bind/event_recorder.h"
#include "shim/bind/pod_evictor.h"
#include "shim/clock.h"
#include "shim/diagnostics/attempt_log.h"
#include "shim/extender/endpoint.h"
#include "shim/extender/extender_handler.h"
#include "shim/heartbeat.h"
#include "shim/host_call_metrics.h"
#include "shim/hostless_leader.h"
#include "shim/hosts/host_connector.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_registry.h"
#include "shim/http/server.h"
#include "shim/informer/informer.h"
#include "shim/informer/resources.h"
#include "shim/kube/curl_api_client.h"
#include "shim/leader/lease_elector.h"
#include "shim/metrics/metrics.h"
#include "shim/metrics_observer.h"
#include "shim/metrics_sampler.h"
#include "shim/observers.h"
#include "shim/scheduler/externally_scheduled_pods.h"
#include "shim/scheduler/scheduler.h"
#include "shim/shim.h"
#include "shim/task_queue.h"

namespace outboard::shim {

std::string Hostname();
std::string RandomId();

// Identifies one version of a file. All zero: the file does not exist.
struct FileStamp {
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified_nanos = 0;
  bool operator==(const FileStamp&) const = default;
};

FileStamp StampOf(const std::string& path);

// Posts the changes of one resource to the scheduling thread.
template <typename T>
class PostingHandler final : public informer::InformerHandler<T> {
 public:
  using Ptr = std::shared_ptr<const T>;
  struct Functions {
    std::function<void(const Ptr&, absl::Time)> upsert;
    std::function<void(const Ptr&, absl::Time)> remove;
    std::function<void()> synced;
  };
  PostingHandler(TaskQueue* task_queue, Functions functions)
      : task_queue_(task_queue), functions_(std::move(functions)) {}

  void OnAdd(const Ptr& object) override { Upsert(object); }
  void OnUpdate(const Ptr& old_object, const Ptr& new_object) override { Upsert(new_object); }
  void OnDelete(const Ptr& object) override {
    task_queue_->Post([this, object](absl::Time now) { functions_.remove(object, now); });
  }
  void OnSynced() override {
    task_queue_->Post([this](absl::Time) { functions_.synced(); });
  }

 private:
  void Upsert(const Ptr& object) {
    task_queue_->Post([this, object](absl::Time now) { functions_.upsert(object, now); });
  }
  TaskQueue* const task_queue_;
  const Functions functions_;
};

// Reports failed host calls to the host registry.
struct HostFailures final : public scheduler::Observer {
  void OnHostCallFailed(const std::string& instance, const absl::Status& status) override {
    hosts->OnHostCallFailed(instance, status);
  }
  hosts::HostRegistry* hosts = nullptr;  // set before the first host call
};

// Checks for settings that this version does not support: returns an error where ignoring the
// setting would be unsafe, otherwise warns.
absl::Status CheckServed(const config::Config& config);

scheduler::SchedulerOptions SchedulerOptionsOf(const config::Config& config);
std::vector<std::string> ProfileNames(const config::Config& config);

class ShimProcess final : public Shim {
 public:
  ShimProcess(config::Config config, kube::ClientConfig client_config);
  ~ShimProcess() override;

  absl::Status Start();
  absl::Status Run() override;
  void Stop() override {
    stopping_ = true;
    loop_.Wake();
  }
  void Reload() override {
    reload_wanted_ = true;
    loop_.Wake();
  }

 private:
  using PodInformer = informer::Informer<kube::PodObject>;
  using NodeInformer = informer::Informer<kube::NodeObject>;
  using NamespaceInformer = informer::Informer<kube::NamespaceObject>;
  using ObjectInformer = informer::Informer<kube::ClusterObject>;

  kube::CurlApiClientOptions ClientOptions(double qps, int burst);
  // The deadline for sending binds, on the clock of SteadyNow.
  absl::Time Fence() const;
  bool Leading() const { return elector_ == nullptr || elector_->leading(); }
  // See HostlessLeader.
  bool LeaderWithoutHosts(absl::Time now);
  // As Fence, but unlimited once the lease was released: events report earlier decisions.
  absl::Time EventFence() const { return lease_released_ ? absl::InfiniteFuture() : Fence(); }
  // Whether the scheduling thread still runs.
  absl::Status CheckHeartbeat() const;
  // Whether some profile's pods can be placed.
  absl::Status CheckHosts() const;
  // All informers have synced.
  bool Synced() const { return synced_.load() == 3 + static_cast<int>(objects_.size()); }
  absl::Status CheckSynced() const;
  // How many objects informers cannot decode; "" if none. The names are in the log: the page that
  // shows this needs no credentials.
  std::string UndecodedObjects() const;
  // The pages that both servers show. The address is not set.
  http::ServerOptions Pages();
  absl::Status StartServers();
  absl::Status StartSecureServer(const config::SecureServing& wanted);
  absl::Status StartExtender();
  absl::StatusOr<std::string> DescribeQueue(size_t limit, const std::string& pod);
  void StartElector();
  void OnHandshake(const hosts::Endpoint& endpoint, hosts::HostConnection connection,
                   absl::Time now);
  // Called by the HTTP server's threads. Each call waits for the scheduling thread.
  std::string DescribeConfig();
  absl::StatusOr<std::string> DescribeHosts();
  absl::Status Command(const http::HostCommand& command);
  // Starts to reload the file if it has changed or Reload was called: reads it, and asks the hosts.
  void CheckConfigFile();
  absl::Status StartReload();
  void EndReload(const absl::Status& ended);
  // Puts the new configuration into force once the hosts have answered.
  void TickReload(absl::Time now);
  absl::Status FinishReload(std::shared_ptr<const config::Config> next, absl::Time now);
  void RunOnce(absl::Time now);
  void SampleMetrics();
  absl::Time NextWakeup(absl::Time now) const;
  void Drain();

  std::shared_ptr<const config::Config> config_;
  const kube::ClientConfig client_config_;
  const std::string hostname_ = Hostname();
  const std::string session_id_ = RandomId();
  Heartbeat heartbeat_{SteadyNow()};
  // In dependency order: each member uses earlier ones.
  metrics::Metrics metrics_;
  hosts::HostLoop loop_;
  TaskQueue task_queue_{&loop_};
  kube::Reachability reachability_;
  kube::CurlApiClient client_;
  kube::CurlApiClient event_client_;
  kube::CurlApiClient lease_client_;
  bind::ApiWriter writer_;
  bind::PodEvictor evictor_;
  bind::EventRecorder events_;
  ApiClusterActions effects_;
  MetricsObserver observer_;
  MetricsSampler sampler_{&metrics_};
  HostCallMetrics host_calls_{&metrics_};
  const cache::ClusterState* cluster_ = nullptr;  // owned by scheduler_; null before it exists
  diagnostics::AttemptLog attempt_log_{&cluster_, size_t(config_->shim.explain_memory_mib) << 20};
  HostFailures host_failures_;
  Observers observers_{{&observer_, &attempt_log_, &host_failures_}};
  scheduler::Scheduler scheduler_;
  scheduler::ExternallyScheduledPods externally_scheduled_pods_{scheduler_.shared_parts(),
                                                                &effects_};
  std::unique_ptr<extender::ExtenderHandler> extender_handler_;  // null: not configured
  hosts::HostRegistry host_registry_;

  PostingHandler<kube::PodObject> pod_handler_;
  PostingHandler<kube::NodeObject> node_handler_;
  PostingHandler<kube::NamespaceObject> namespace_handler_;
  PodInformer pods_;
  NodeInformer nodes_;
  NamespaceInformer namespaces_;
  PostingHandler<kube::ClusterObject> object_handler_;
  // The kinds of objects.proto and the custom resources of the configuration.
  std::vector<informer::Resource<kube::ClusterObject>> object_resources_;
  // One for each of them.
  std::vector<std::unique_ptr<ObjectInformer>> objects_;
  std::unique_ptr<hosts::HostConnector> connector_;
  std::unique_ptr<leader::LeaseElector> elector_;
  // The status servers; `server_` listens on loopback only. Reviews have their own API client, so
  // that a scrape does not wait for a bind, nor a bind for a scrape.
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<kube::CurlApiClient> review_client_;
  std::unique_ptr<access::ReviewGuard> guard_;
  std::unique_ptr<http::Server> secure_server_;
  std::unique_ptr<extender::Endpoint> extender_;

  std::map<std::string, std::string> reported_builds_;  // by host: the last that was too far apart
  bool caches_synced_ = false;                          // and the scheduler was notified
  std::atomic<int> synced_{0};
  std::atomic<bool> hosts_ready_{false};       // every host that a profile needs is serving
  std::atomic<bool> serves_some_pods_{false};  // the hosts of some profile are
  HostlessLeader hostless_leader_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> lease_lost_{false};
  std::atomic<bool> lease_released_{false};  // voluntarily, after all binds had ended
  std::atomic<bool> reload_wanted_{false};
  FileStamp config_stamp_;
  std::optional<hosts::ConfigCheck> reload_;  // in progress
  bool reload_failed_ = false;                // the last one
  absl::Status fatal_;
  absl::Time sampled_ = absl::InfinitePast();
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_SHIM_PROCESS_H_
