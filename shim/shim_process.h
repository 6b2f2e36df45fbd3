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
#include "shim/host_pods/host_pods.h"
#include "shim/hostless_leader.h"
#include "shim/hosts/host_connector.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_registry.h"
#include "shim/http/metrics_relay.h"
#include "shim/http/server.h"
#include "shim/informer/informer.h"
#include "shim/informer/object_informers.h"
#include "shim/kube/curl_api_client.h"
#include "shim/leader/leader_endpoints.h"
#include "shim/leader/lease_elector.h"
#include "shim/metrics/metrics.h"
#include "shim/metrics_observer.h"
#include "shim/metrics_sampler.h"
#include "shim/observers.h"
#include "shim/posting_handler.h"
#include "shim/reload/config_status.h"
#include "shim/reload/last_good_config.h"
#include "shim/reload/unknown_profiles.h"
#include "shim/scheduler/externally_scheduled_pods.h"
#include "shim/scheduler/scheduler.h"
#include "shim/shim.h"
#include "shim/shim_settings.h"
#include "shim/task_queue.h"

namespace outboard::shim {

std::string Hostname();
std::string RandomId();

// A file that is being checked before it takes effect.
struct PendingReload {
  hosts::ConfigCheck check;
  bool is_accepted;                  // by the hosts
  std::vector<std::string> waiting;  // fields that wait for a restart
  absl::Time list_by;                // when its custom resources must have been listed
};

// Reports failed host calls to the host registry.
struct HostFailures final : public scheduler::Observer {
  void OnHostCallFailed(const std::string& instance, const absl::Status& status) override {
    hosts->OnHostCallFailed(instance, status);
  }
  hosts::HostRegistry* hosts = nullptr;  // set before the first host call
};

class ShimProcess final : public Shim {
 public:
  ShimProcess(config::Config config, const ShimOptions& options, kube::ClientConfig client_config);
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

  kube::CurlApiClientOptions ClientOptions(double qps, int burst);
  // The deadline for sending binds, on the clock of SteadyNow.
  absl::Time Fence() const;
  bool Leading() const { return elector_ == nullptr || elector_->leading(); }
  // On a replica that does not lead: the lease's holder, "" if none holds it.
  std::optional<std::string> OtherLeader() const;
  // See HostlessLeader.
  bool LeaderWithoutHosts(absl::Time now);
  // As Fence, but unlimited once the lease was released: events report earlier decisions.
  absl::Time EventFence() const { return lease_released_ ? absl::InfiniteFuture() : Fence(); }
  // Whether the scheduling thread still runs.
  absl::Status CheckHeartbeat() const;
  // Whether some profile's pods can be placed.
  absl::Status CheckHosts() const;
  // All informers of the start have synced.
  bool Synced() const { return synced_.load() == 3 && object_informers_.synced(); }
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
  // Errors: INVALID_ARGUMENT: the pod's addresses are missing or not served.
  absl::Status CreateLeaderEndpoints(const std::string& pod_ips);
  void StartHostPods();
  void RecordHostReadiness(const host_pods::HostPod& pod, const host_pods::Readiness& written,
                           absl::Time now);
  void OnHandshake(const hosts::Endpoint& endpoint, hosts::HostConnection connection,
                   absl::Time now);
  // Called by the HTTP server's threads. Each call waits for the scheduling thread.
  std::string DescribeConfig();
  absl::StatusOr<std::string> HostMetrics(const std::string& host);
  absl::StatusOr<std::string> DescribeHosts();
  absl::Status Command(const http::HostCommand& command);
  // Starts to reload the file if it has changed or Reload was called: reads it, asks the hosts, and
  // lists custom resources that it adds.
  void CheckConfigFile(absl::Time now);
  absl::Status StartReload(absl::Time now);
  void EndReload(const absl::Status& ended, absl::Time now);
  // Puts the new configuration into force once all of that has succeeded.
  void TickReload(absl::Time now);
  absl::Status CheckAdded(absl::Time now);
  absl::Status Apply(std::shared_ptr<const config::Config> next, absl::Time now);
  // At the start: the profiles cannot be used with the hosts. Runs on the last good configuration,
  // or returns the problem.
  absl::Status UseLastGood(const absl::Status& problem, absl::Time now);
  // The same if it shows only after a while: another host may serve the missing plugins.
  void CheckProfiles(absl::Time now);
  // For people: which configuration runs.
  std::string RunningText() const;
  void RecordAboutSelf(bind::ObjectEvent event, absl::Time now);
  void RecordSelfEvents(absl::Time now);
  void ConfigureUnknownProfiles(absl::Time now);
  void ReportUnknownProfiles(absl::Time now);
  void RunOnce(absl::Time now);
  void SampleMetrics(const std::vector<hosts::InstanceView>& instances);
  absl::Time NextWakeup(absl::Time now) const;
  void Drain();

  std::shared_ptr<const config::Config> config_;
  const ShimOptions options_;
  const std::string config_file_;  // whose changes are loaded
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
  // About this process; a replica without the lease records them too.
  bind::EventRecorder self_events_;
  ApiClusterActions effects_;
  MetricsObserver observer_;
  MetricsSampler sampler_{&metrics_};
  HostCallMetrics host_calls_{&metrics_};
  const cache::ClusterState* cluster_ = nullptr;  // owned by scheduler_; null before it exists
  diagnostics::AttemptLog attempt_log_{&cluster_, size_t(config_->shim.explain_memory_mib) << 20};
  HostFailures host_failures_;
  Observers observers_{{&observer_, &attempt_log_, &host_failures_}};
  scheduler::Scheduler scheduler_;
  scheduler::ExternallyScheduledPods externally_scheduled_pods_{
      scheduler_.shared_parts(), &effects_, MaxExternalBinds(*config_)};
  reload::UnknownProfiles unknown_profiles_;
  std::unique_ptr<extender::ExtenderHandler> extender_handler_;  // null: not configured
  hosts::HostRegistry host_registry_;

  PostingHandler<kube::PodObject> pod_handler_;
  PostingHandler<kube::NodeObject> node_handler_;
  PostingHandler<kube::NamespaceObject> namespace_handler_;
  const informer::Resource<kube::PodObject> pod_resource_ = WatchedPods(*config_);
  PodInformer pods_;
  NodeInformer nodes_;
  NamespaceInformer namespaces_;
  informer::ObjectInformers object_informers_;
  std::unique_ptr<hosts::HostConnector> connector_;
  std::unique_ptr<host_pods::HostPods> host_pods_;
  std::unique_ptr<leader::LeaseElector> elector_;
  std::unique_ptr<leader::LeaderEndpoints> leader_endpoints_;  // null: not configured
  // The status servers; `server_` listens on loopback only. Reviews have their own API client, so
  // that a scrape does not wait for a bind, nor a bind for a scrape.
  http::MetricsRelay metrics_relay_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<kube::CurlApiClient> review_client_;
  std::unique_ptr<access::ReviewGuard> guard_;
  std::unique_ptr<http::Server> secure_server_;
  std::unique_ptr<extender::Endpoint> extender_;

  std::map<std::string, std::string> reported_builds_;  // by host: the last that was too far apart
  bool caches_synced_ = false;                          // and the scheduler was notified
  std::vector<bind::ObjectEvent> waiting_self_events_;  // until then
  std::atomic<int> synced_{0};
  std::atomic<bool> hosts_ready_{false};       // every host that a profile needs is serving
  std::atomic<bool> serves_some_pods_{false};  // the hosts of some profile are
  HostlessLeader hostless_leader_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> lease_lost_{false};
  std::atomic<bool> lease_released_{false};  // voluntarily, after all binds had ended
  std::atomic<bool> reload_wanted_{false};
  FileStamp config_stamp_;
  std::optional<PendingReload> reload_;  // in progress
  std::string read_sha256_;              // of the file that was read last; empty: it was unreadable
  bool reload_failed_ = false;           // the last one
  absl::Time retry_reload_ = absl::InfiniteFuture();
  reload::ConfigStatus config_status_;
  reload::LastGoodConfig last_good_;
  bool is_kept_ = false;                                     // in last_good_
  absl::Time profiles_unresolved_ = absl::InfiniteFuture();  // since then
  absl::Time unknown_profiles_reported_ = absl::InfinitePast();
  absl::Status fatal_;
  absl::Time sampled_ = absl::InfinitePast();
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_SHIM_PROCESS_H_
