#include "shim/shim.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shim/api_effects.h"
#include "shim/bind/api_writer.h"
#include "shim/bind/event_recorder.h"
#include "shim/bind/pod_evictor.h"
#include "shim/cycle/scheduler.h"
#include "shim/explain/attempt_log.h"
#include "shim/hosts/host_connector.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_set.h"
#include "shim/http/server.h"
#include "shim/inbox.h"
#include "shim/informer/informer.h"
#include "shim/informer/resources.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/kubeconfig.h"
#include "shim/leader/lease_elector.h"
#include "shim/metrics/metrics.h"
#include "shim/metrics_observer.h"
#include "shim/observers.h"
#include "shim/queue_report/queue_report.h"

namespace outboard::shim {
namespace {

constexpr absl::Duration kGaugePeriod = absl::Seconds(1);
constexpr absl::Duration kLongestSleep = absl::Seconds(1);
// What a stopping process waits for binds, and then for events, that are under way.
constexpr absl::Duration kBindDrain = absl::Seconds(5);
constexpr absl::Duration kEventDrain = absl::Seconds(2);
// What /queue waits for the scheduling thread; its own calls end within a second or so.
constexpr absl::Duration kQueueAnswer = absl::Seconds(10);
// As kube-scheduler: liveness fails if a lost lease was not noticed for this long.
constexpr absl::Duration kLeaseTolerance = absl::Seconds(20);

std::string Hostname() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

std::string RandomId() {
  absl::BitGen random;
  return absl::StrFormat("%08x-%04x-%04x-%012x", absl::Uniform<uint32_t>(random),
                         absl::Uniform<uint16_t>(random), absl::Uniform<uint16_t>(random),
                         absl::Uniform<uint64_t>(random) & 0xffffffffffff);
}

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

 private:
  using PodInformer = informer::Informer<kube::PodObject>;
  using NodeInformer = informer::Informer<kube::NodeObject>;
  using NamespaceInformer = informer::Informer<kube::NamespaceObject>;
  using ObjectInformer = informer::Informer<kube::ClusterObject>;

  kube::CurlApiClientOptions ClientOptions(double qps, int burst);
  // Until when binds may be sent, on the clock of absl::Now.
  absl::Time Fence() const;
  bool Leading() const { return elector_ == nullptr || elector_->leading(); }
  // Every informer's first list has been taken in.
  bool Synced() const { return synced_.load() == 3 + static_cast<int>(objects_.size()); }
  absl::Status CheckSynced() const;
  absl::Status StartServer();
  absl::StatusOr<std::string> DescribeQueue(size_t limit, const std::string& pod);
  void StartElector();
  void OnHandshake(const std::string& name, std::shared_ptr<grpc::Channel> channel,
                   v1alpha1::GetHostInfoResponse info, absl::Time now);
  void Turn(absl::Time now);
  absl::Time NextWakeup(absl::Time now) const;
  void Drain();

  const config::Config config_;
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
  Observers observers_{{&observer_, &attempt_log_}};
  cycle::Scheduler scheduler_;
  hosts::HostSet host_set_;

  PostingHandler<kube::PodObject> pod_handler_;
  PostingHandler<kube::NodeObject> node_handler_;
  PostingHandler<kube::NamespaceObject> namespace_handler_;
  PodInformer pods_;
  NodeInformer nodes_;
  NamespaceInformer namespaces_;
  PostingHandler<kube::ClusterObject> object_handler_;
  // One for each kind of objects.proto.
  std::vector<std::unique_ptr<ObjectInformer>> objects_;
  std::unique_ptr<hosts::HostConnector> connector_;
  std::unique_ptr<leader::LeaseElector> elector_;
  std::unique_ptr<http::Server> server_;

  std::atomic<int> synced_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> lease_lost_{false};
  absl::Status fatal_;
  absl::Time gauges_updated_ = absl::InfinitePast();
};

cycle::SchedulerOptions SchedulerOptionsOf(const config::Config& config) {
  cycle::SchedulerOptions options;
  options.cycle_deadline = config.shim.deadlines.cycle;
  options.reserve_deadline = config.shim.deadlines.reserve;
  options.permit_deadline = config.shim.deadlines.permit;
  options.queue_deadline = config.shim.deadlines.queue;
  return options;
}

queue::QueueOptions QueueOptionsOf(const config::Config& config) {
  queue::QueueOptions options;
  options.initial_backoff = config.scheduler.pod_initial_backoff;
  options.max_backoff = config.scheduler.pod_max_backoff;
  return options;
}

bind::ApiWriterOptions WriterOptionsOf(std::function<absl::Time()> fence) {
  bind::ApiWriterOptions options;
  options.fence = std::move(fence);
  return options;
}

bind::PodEvictorOptions EvictorOptionsOf(std::function<absl::Time()> fence) {
  bind::PodEvictorOptions options;
  options.fence = std::move(fence);
  return options;
}

bind::EventRecorderOptions EventOptionsOf(std::string hostname, std::function<absl::Time()> fence) {
  bind::EventRecorderOptions options;
  options.hostname = std::move(hostname);
  options.fence = std::move(fence);
  return options;
}

ShimProcess::ShimProcess(config::Config config, kube::ClientConfig client_config)
    : config_(std::move(config)),
      metrics_(OUTBOARD_VERSION),
      client_(client_config, ClientOptions(config_.scheduler.client_connection.qps,
                                           config_.scheduler.client_connection.burst)),
      // As kube-scheduler: events have their own share of requests, and the lease waits for
      // nothing.
      event_client_(client_config, ClientOptions(config_.scheduler.client_connection.qps,
                                                 config_.scheduler.client_connection.burst)),
      lease_client_(client_config, ClientOptions(-1, 1)),
      writer_(
          &client_, [this](auto work) { inbox_.Post(std::move(work)); },
          WriterOptionsOf([this] { return Fence(); })),
      evictor_(
          &client_, [this](auto work) { inbox_.Post(std::move(work)); },
          EvictorOptionsOf([this] { return Fence(); })),
      events_(
          &event_client_, [this](auto work) { inbox_.Post(std::move(work)); },
          EventOptionsOf(hostname_, [this] { return Fence(); })),
      effects_(&writer_, &evictor_, &events_, &metrics_),
      observer_(&metrics_),
      scheduler_(SchedulerOptionsOf(config_), QueueOptionsOf(config_), &effects_, &observers_,
                 &observer_, absl::Now()),
      host_set_(&config_, session_id_, &loop_, &scheduler_),
      pod_handler_(&inbox_, {[this](const kube::PodPtr& pod, absl::Time now) {
                               scheduler_.OnPodUpsert(pod, now);
                             },
                             [this](const kube::PodPtr& pod, absl::Time now) {
                               scheduler_.OnPodDelete(pod->uid(), now);
                             },
                             [this] { ++synced_; }}),
      node_handler_(&inbox_, {[this](const kube::NodePtr& node, absl::Time now) {
                                scheduler_.OnNodeUpsert(node, now);
                              },
                              [this](const kube::NodePtr& node, absl::Time now) {
                                scheduler_.OnNodeDelete(node->key(), now);
                              },
                              [this] { ++synced_; }}),
      namespace_handler_(&inbox_, {[this](const kube::NamespacePtr& ns, absl::Time now) {
                                     scheduler_.OnNamespaceUpsert(ns, now);
                                   },
                                   [this](const kube::NamespacePtr& ns, absl::Time now) {
                                     scheduler_.OnNamespaceDelete(ns->key(), now);
                                   },
                                   [this] { ++synced_; }}),
      pods_(client_, informer::Pods(), &pod_handler_),
      nodes_(client_, informer::Nodes(), &node_handler_),
      namespaces_(client_, informer::Namespaces(), &namespace_handler_),
      object_handler_(&inbox_, {[this](const kube::ClusterObjectPtr& object, absl::Time now) {
                                  scheduler_.OnObjectUpsert(object, now);
                                },
                                [this](const kube::ClusterObjectPtr& object, absl::Time now) {
                                  scheduler_.OnObjectDelete(object, now);
                                },
                                [this] { ++synced_; }}) {
  for (const auto& resource : informer::ClusterObjects())
    objects_.push_back(std::make_unique<ObjectInformer>(client_, resource, &object_handler_));
  effects_.SetScheduler(&scheduler_);
  cluster_ = scheduler_.cluster();
  std::vector<std::string> names;
  for (const config::ProfileSpec& profile : config_.scheduler.profiles)
    names.push_back(profile.scheduler_name);
  scheduler_.SetProfileNames(names);
}

ShimProcess::~ShimProcess() {
  // Threads that post stop before what they post to goes.
  inbox_.Close();
  server_ = nullptr;
  elector_ = nullptr;
  connector_ = nullptr;
  pods_.Stop();
  nodes_.Stop();
  namespaces_.Stop();
  for (const auto& objects : objects_) objects->Stop();
}

kube::CurlApiClientOptions ShimProcess::ClientOptions(double qps, int burst) {
  kube::CurlApiClientOptions options;
  options.user_agent = "outboard-shim/" OUTBOARD_VERSION;
  options.qps = qps;
  options.burst = burst;
  options.observer = [this](kube::Method method, int status, absl::Duration elapsed) {
    static constexpr const char* kMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    const char* name = kMethods[static_cast<size_t>(method) % 5];
    metrics_.client_requests.With({status == 0 ? "<error>" : absl::StrCat(status), name, ""})
        .Increment();
    metrics::Observe(metrics_.client_request_duration.With({name, ""}), elapsed);
  };
  return options;
}

absl::Time ShimProcess::Fence() const {
  if (elector_ == nullptr) return absl::InfiniteFuture();
  const absl::Time deadline = elector_->BindDeadline();
  if (deadline == absl::InfinitePast()) return deadline;
  // The lease is kept on a clock that counts suspension; what is left of it is the same on every
  // clock.
  return absl::Now() + (deadline - leader::BootTimeNow());
}

absl::Status ShimProcess::CheckSynced() const {
  if (Synced()) return absl::OkStatus();
  std::vector<std::string> missing;
  const auto check = [&](const auto& informer) {
    if (!informer.synced()) missing.push_back(informer.name());
  };
  check(pods_);
  check(nodes_);
  check(namespaces_);
  for (const auto& objects : objects_) check(*objects);
  return absl::UnavailableError(
      absl::StrCat("first lists have not been taken in: ", absl::StrJoin(missing, ", ")));
}

absl::Status ShimProcess::StartServer() {
  if (config_.shim.serving_address.empty()) return absl::OkStatus();
  http::ServerOptions options;
  options.address = config_.shim.serving_address;
  const http::Check lease = {
      "leaderElection",
      [this] { return elector_ == nullptr ? absl::OkStatus() : elector_->Check(kLeaseTolerance); }};
  const http::Check shutdown = {
      "shutdown", [this] {
        return stopping_ ? absl::UnavailableError("process is shutting down") : absl::OkStatus();
      }};
  options.healthz = {lease};
  options.readyz = {lease, shutdown, {"sched-handler-sync", [this] { return CheckSynced(); }}};
  options.metrics = [this] { return metrics_.Text(); };
  options.configz = [this] { return config::EffectiveConfigYaml(config_, nullptr); };
  options.explain = [this](const std::string& pod) { return attempt_log_.Explain(pod); };
  options.queue = [this](size_t limit, const std::string& pod) {
    return DescribeQueue(limit, pod);
  };
  options.version_json = "{\"version\":\"" OUTBOARD_VERSION "\"}";
  absl::StatusOr<std::unique_ptr<http::Server>> server = http::Server::Start(std::move(options));
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  LOG(INFO) << "Serving health and metrics on port " << server_->port();
  return absl::OkStatus();
}

void ShimProcess::StartElector() {
  const config::LeaderElection& wanted = config_.scheduler.leader_election;
  if (!wanted.leader_elect) return;
  leader::LeaseElectorOptions options;
  options.lease_namespace = wanted.resource_namespace;
  options.lease_name = wanted.resource_name;
  options.identity = absl::StrCat(hostname_, "_", session_id_);
  options.timings.lease_duration = wanted.lease_duration;
  options.timings.renew_deadline = wanted.renew_deadline;
  options.timings.retry_period = wanted.retry_period;
  metrics::Gauge& leading = metrics_.leader.With({wanted.resource_name});
  elector_ = std::make_unique<leader::LeaseElector>(
      lease_client_, std::move(options),
      leader::LeaseCallbacks{[this, &leading](int transitions) {
                               LOG(INFO) << "Leading, term " << transitions;
                               leading.Set(1);
                               loop_.Wake();
                             },
                             [this, &leading] {
                               leading.Set(0);
                               lease_lost_ = true;
                               loop_.Wake();
                             },
                             [](const std::string& identity) {
                               LOG(INFO)
                                   << "New leader: " << (identity.empty() ? "nobody" : identity);
                             }});
  elector_->Start();
}

absl::Status ShimProcess::Start() {
  StartElector();
  // After the elector is there, which its checks look at.
  if (absl::Status server = StartServer(); !server.ok()) return server;
  pods_.Start();
  nodes_.Start();
  namespaces_.Start();
  for (const auto& objects : objects_) objects->Start();
  connector_ = std::make_unique<hosts::HostConnector>(
      config_.shim.hosts,
      hosts::HostConnector::Callbacks{
          [this](std::string name, std::shared_ptr<grpc::Channel> channel,
                 v1alpha1::GetHostInfoResponse info) {
            inbox_.Post([this, name = std::move(name), channel = std::move(channel),
                         info = std::move(info)](absl::Time now) {
              OnHandshake(name, channel, info, now);
            });
          },
          [this](std::string name) {
            inbox_.Post([this, name = std::move(name)](absl::Time) { host_set_.OnDraining(name); });
          }});
  host_set_.SetOnLost([this](const std::string& name) { connector_->NeedsHandshake(name); });
  return absl::OkStatus();
}

absl::StatusOr<std::string> ShimProcess::DescribeQueue(size_t limit, const std::string& pod) {
  queue_report::Query query;
  if (limit != 0) query.limit = limit;
  query.pod = pod;
  const std::optional<queue_report::Report> report = inbox_.Ask<queue_report::Report>(
      [this, query](absl::Time now) {
        // What hosts have said counts: an acknowledgement comes with it.
        scheduler_.Tick(now);
        queue_report::Report report = queue_report::Collect(scheduler_.queue(), query, now);
        for (const hosts::HostSet::Progress& host : host_set_.progress()) {
          report.hosts.push_back({host.name, host.instance, host.usable, host.sent_version,
                                  host.acknowledged_version});
        }
        return report;
      },
      kQueueAnswer);
  if (!report.has_value())
    return absl::UnavailableError("the scheduling thread did not come to it in time");
  return queue_report::ToJson(*report);
}

void ShimProcess::OnHandshake(const std::string& name, std::shared_ptr<grpc::Channel> channel,
                              v1alpha1::GetHostInfoResponse info, absl::Time now) {
  const bool had_plans = host_set_.plans() != nullptr;
  absl::Status status = host_set_.OnHandshake(name, std::move(channel), std::move(info), now);
  if (status.ok()) return;
  // At the start a configuration that cannot work ends the process; later, what works goes on.
  if (!had_plans && absl::IsInvalidArgument(status)) {
    fatal_ = status;
  } else {
    LOG(ERROR) << "Host \"" << name << "\" cannot be used: " << status.message();
    connector_->NeedsHandshake(name);
  }
}

void ShimProcess::Turn(absl::Time now) {
  inbox_.Run(now);
  host_set_.Tick(now);
  scheduler_.Tick(now);
  if (now >= writer_.NextTick()) writer_.Tick(now);
  if (now >= evictor_.NextTick()) evictor_.Tick(now);
  if (now >= events_.NextTick()) events_.Tick(now);
  if (now - gauges_updated_ >= kGaugePeriod) {
    gauges_updated_ = now;
    observer_.UpdateGauges(scheduler_, *scheduler_.cluster());
    metrics_.events_queued.Set(static_cast<double>(events_.pending()));
  }
}

absl::Time ShimProcess::NextWakeup(absl::Time now) const {
  return std::min({scheduler_.NextWakeup(now), writer_.NextTick(), evictor_.NextTick(),
                   events_.NextTick(), now + kLongestSleep});
}

absl::Status ShimProcess::Run() {
  LOG(INFO) << "Starting Outboard shim " << OUTBOARD_VERSION << ", session " << session_id_;
  while (!stopping_ && !lease_lost_ && fatal_.ok()) {
    const absl::Time now = absl::Now();
    Turn(now);
    const bool may_schedule = Synced() && Leading();
    if (may_schedule && scheduler_.ScheduleOne(now)) continue;
    loop_.Wait(NextWakeup(now));
  }
  if (!fatal_.ok()) return fatal_;
  if (lease_lost_ && !stopping_) {
    // Another may schedule from now on: nothing more may leave this process.
    return absl::AbortedError("leaderelection lost");
  }
  Drain();
  return absl::OkStatus();
}

void ShimProcess::Drain() {
  LOG(INFO) << "Stopping: " << writer_.binds_in_flight() << " binds and " << events_.pending()
            << " events under way";
  const absl::Time binds_by = absl::Now() + kBindDrain;
  while (writer_.binds_in_flight() + evictor_.pending() > 0 && absl::Now() < binds_by) {
    Turn(absl::Now());
    loop_.Wait(std::min(binds_by, NextWakeup(absl::Now())));
  }
  const absl::Time events_by = absl::Now() + kEventDrain;
  while (events_.pending() > 0 && absl::Now() < events_by) {
    Turn(absl::Now());
    loop_.Wait(std::min(events_by, NextWakeup(absl::Now())));
  }
  if (elector_ != nullptr) elector_->Stop();
}

// What the configuration can say and this version cannot do: refused where ignoring it would be
// unsafe, else warned of.
absl::Status CheckServed(const config::Config& config) {
  std::vector<std::string> problems;
  if (config.shim.hosts.empty()) {
    problems.push_back(absl::StrCat(
        config.file, ": hosts: name at least one plugin host in the ShimConfiguration document"));
  }
  for (const config::HostSpec& host : config.shim.hosts) {
    if (absl::StartsWith(host.address, "unix:")) continue;
    problems.push_back(absl::StrCat(config.file, ":", host.where.line, ":", host.where.column, ": ",
                                    host.where.path, ".address: ", host.address,
                                    ": network addresses are not served yet; use unix:PATH"));
  }
  if (!config.shim.socket_directory.empty()) {
    problems.push_back(absl::StrCat(
        config.file, ": socketDirectory: watching a directory is not served yet; name hosts"));
  }
  for (const config::FailurePolicyRule& rule : config.shim.failure_policies) {
    if (rule.policy == config::FailurePolicy::kFailClosed) continue;
    LOG(WARNING) << config.file << ":" << rule.where.line << ":" << rule.where.column << ": "
                 << rule.where.path << ": " << config::FailurePolicyName(rule.policy)
                 << " has no effect yet: a pod whose host gives no answer is parked";
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shim>> Shim::Create(config::Config config,
                                                   const ShimOptions& options) {
  if (absl::Status served = CheckServed(config); !served.ok()) return served;
  const std::string kubeconfig = options.kubeconfig.empty()
                                     ? config.scheduler.client_connection.kubeconfig
                                     : options.kubeconfig;
  kube::KubeconfigOptions kubeconfig_options;
  kubeconfig_options.allow_insecure = options.allow_insecure_api_server;
  absl::StatusOr<kube::ClientConfig> client_config =
      kubeconfig.empty() ? kube::LoadInClusterConfig()
                         : kube::LoadKubeconfig(kubeconfig, kubeconfig_options);
  if (!client_config.ok()) return client_config.status();
  auto shim = std::make_unique<ShimProcess>(std::move(config), *std::move(client_config));
  if (absl::Status started = shim->Start(); !started.ok()) return started;
  return shim;
}

}  // namespace outboard::shim
