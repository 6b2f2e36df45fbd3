// Private to the shim's own sources: the process, put together.
#ifndef OUTBOARD_SHIM_SHIM_PROCESS_H_
#define OUTBOARD_SHIM_SHIM_PROCESS_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/access/review_guard.h"
#include "shim/api_effects.h"
#include "shim/bind/api_writer.h"
#include "shim/bind/event_recorder.h"
#include "shim/bind/pod_evictor.h"
#include "shim/cycle/foreign_pods.h"
#include "shim/cycle/scheduler.h"
#include "shim/explain/attempt_log.h"
#include "shim/extender/endpoint.h"
#include "shim/extender/front_desk.h"
#include "shim/hosts/host_connector.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_set.h"
#include "shim/http/server.h"
#include "shim/inbox.h"
#include "shim/informer/informer.h"
#include "shim/informer/resources.h"
#include "shim/kube/curl_api_client.h"
#include "shim/leader/lease_elector.h"
#include "shim/metrics/metrics.h"
#include "shim/metrics_observer.h"
#include "shim/observers.h"
#include "shim/shim.h"

namespace outboard::shim {

std::string Hostname();
std::string RandomId();

// Tells one content of a file from the next; all zero where there is none.
struct FileStamp {
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t modified_nanos = 0;
  bool operator==(const FileStamp&) const = default;
};

FileStamp StampOf(const std::string& path);

// Hands one resource's changes to the scheduling thread.
template <typename T>
class PostingHandler final : public informer::InformerHandler<T> {
 public:
  using Ptr = std::shared_ptr<const T>;
  struct Functions {
    std::function<void(const Ptr&, absl::Time)> upsert;
    std::function<void(const Ptr&, absl::Time)> remove;
    std::function<void()> synced;
  };
  PostingHandler(Inbox* inbox, Functions functions)
      : inbox_(inbox), functions_(std::move(functions)) {}

  void OnAdd(const Ptr& object) override { Upsert(object); }
  void OnUpdate(const Ptr& old_object, const Ptr& new_object) override { Upsert(new_object); }
  void OnDelete(const Ptr& object) override {
    inbox_->Post([this, object](absl::Time now) { functions_.remove(object, now); });
  }
  void OnSynced() override {
    inbox_->Post([this](absl::Time) { functions_.synced(); });
  }

 private:
  void Upsert(const Ptr& object) {
    inbox_->Post([this, object](absl::Time now) { functions_.upsert(object, now); });
  }
  Inbox* const inbox_;
  const Functions functions_;
};

// Tells the hosts' keeper who gave no answer.
struct HostFailures final : public cycle::Observer {
  void OnNoAnswer(const std::string& instance, const absl::Status& status) override {
    hosts->OnNoAnswer(instance, status);
  }
  hosts::HostSet* hosts = nullptr;  // before anybody is asked
};

// What the configuration can say and this version cannot do: refused where ignoring it would be
// unsafe, else warned of.
absl::Status CheckServed(const config::Config& config);

cycle::SchedulerOptions SchedulerOptionsOf(const config::Config& config);
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
  // Until when binds may be sent, on the clock of absl::Now.
  absl::Time Fence() const;
  bool Leading() const { return elector_ == nullptr || elector_->leading(); }
  // We have led for long, and no pod can be placed any more for hosts that stay away. Another
  // replica's may be there; where there was none, this one would have waited in vain as well.
  bool LeadsInVain(absl::Time now);
  // As Fence, and for ever once the lease was given up: events tell of what was done before.
  absl::Time EventFence() const { return gave_lease_up_ ? absl::InfiniteFuture() : Fence(); }
  // Every informer's first list has been taken in.
  bool Synced() const { return synced_.load() == 3 + static_cast<int>(objects_.size()); }
  absl::Status CheckSynced() const;
  // What both servers show; an address is missing.
  http::ServerOptions Pages();
  absl::Status StartServers();
  absl::Status StartSecureServer(const config::SecureServing& wanted);
  absl::Status StartExtender();
  absl::StatusOr<std::string> DescribeQueue(size_t limit, const std::string& pod);
  void StartElector();
  void OnHandshake(const hosts::Endpoint& endpoint, std::shared_ptr<grpc::Channel> channel,
                   v1alpha1::GetHostInfoResponse info, absl::Time now);
  // What the HTTP server's threads ask for; each waits for the scheduling thread.
  std::string DescribeConfig();
  absl::StatusOr<std::string> DescribeHosts();
  absl::Status Command(const http::HostCommand& command);
  // Takes the file in again if it has changed, or somebody asked for that.
  void LookAtConfigFile(absl::Time now);
  absl::Status LoadAgain(absl::Time now);
  void Turn(absl::Time now);
  absl::Time NextWakeup(absl::Time now) const;
  void Drain();

  std::shared_ptr<const config::Config> config_;
  const kube::ClientConfig client_config_;
  const std::string hostname_ = Hostname();
  const std::string session_id_ = RandomId();
  // In the order in which each needs those before it.
  metrics::Metrics metrics_;
  hosts::HostLoop loop_;
  Inbox inbox_{&loop_};
  kube::CurlApiClient client_;
  kube::CurlApiClient event_client_;
  kube::CurlApiClient lease_client_;
  bind::ApiWriter writer_;
  bind::PodEvictor evictor_;
  bind::EventRecorder events_;
  ApiEffects effects_;
  MetricsObserver observer_;
  const cycle::ClusterState* cluster_ = nullptr;  // the scheduler's, once there is one
  explain::AttemptLog attempt_log_{&cluster_};
  HostFailures host_failures_;
  Observers observers_{{&observer_, &attempt_log_, &host_failures_}};
  cycle::Scheduler scheduler_;
  cycle::ForeignPods foreign_pods_{&scheduler_, &effects_};
  std::unique_ptr<extender::FrontDesk> front_desk_;  // null: no extender is served
  hosts::HostSet host_set_;

  PostingHandler<kube::PodObject> pod_handler_;
  PostingHandler<kube::NodeObject> node_handler_;
  PostingHandler<kube::NamespaceObject> namespace_handler_;
  PodInformer pods_;
  NodeInformer nodes_;
  NamespaceInformer namespaces_;
  PostingHandler<kube::ClusterObject> object_handler_;
  std::deque<informer::Resource<kube::ClusterObject>> custom_resources_;  // keep their addresses
  // One for each kind of objects.proto, and for each custom resource of the configuration.
  std::vector<std::unique_ptr<ObjectInformer>> objects_;
  std::unique_ptr<hosts::HostConnector> connector_;
  std::unique_ptr<leader::LeaseElector> elector_;
  // Serve pages to people; the first only on this machine. Reviews have a client of their own: a
  // scrape waits for no bind, and no bind for a scrape.
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<kube::CurlApiClient> review_client_;
  std::unique_ptr<access::ReviewGuard> guard_;
  std::unique_ptr<http::Server> secure_server_;
  std::unique_ptr<extender::Endpoint> extender_;

  bool all_listed_ = false;  // and the scheduler knows
  std::atomic<int> synced_{0};
  std::atomic<bool> hosts_ready_{false};      // every host that a profile needs serves
  bool led_well_ = false;                     // pods could be placed while we led
  std::optional<absl::Time> led_in_vain_at_;  // since when none can
  std::atomic<bool> stopping_{false};
  std::atomic<bool> lease_lost_{false};
  std::atomic<bool> gave_lease_up_{false};  // of our own accord, when all binds had ended
  std::atomic<bool> reload_wanted_{false};
  FileStamp config_stamp_;
  absl::Status fatal_;
  absl::Time gauges_updated_ = absl::InfinitePast();
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_SHIM_PROCESS_H_
