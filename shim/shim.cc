#include "shim/shim.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "shim/clock.h"
#include "shim/http/page_text.h"
#include "shim/kube/kubeconfig.h"
#include "shim/shim_process.h"

namespace outboard::shim {
namespace {

constexpr absl::Duration kSamplePeriod = absl::Seconds(1);
constexpr absl::Duration kLongestSleep = absl::Seconds(1);
// Busy turns of the loop longer than this are logged: dozens of cycles would fit into this time.
constexpr absl::Duration kLongTurn = absl::Milliseconds(5);
// How long a stopping process waits for binds in flight, and then for events. Together less than
// the terminationGracePeriodSeconds of the shipped manifests, 60 s. A busy API server may leave
// events of 40 s to be written; the next leader does not wait for them.
constexpr absl::Duration kBindDrain = absl::Seconds(5);
constexpr absl::Duration kEventDrain = absl::Seconds(50);
// As in kube-scheduler: /livez fails if the loss of the lease was not noticed for this long.
constexpr absl::Duration kLeaseTolerance = absl::Seconds(20);
// No turn of the scheduling thread takes as long: calls of hosts have deadlines of about a second.
constexpr absl::Duration kHungThread = absl::Seconds(20);

queue::QueueOptions QueueOptionsOf(const config::Config& config) {
  queue::QueueOptions options;
  options.initial_backoff = config.scheduler.pod_initial_backoff;
  options.max_backoff = config.scheduler.pod_max_backoff;
  return options;
}

leader::LeaseTimings TimingsOf(const config::LeaderElection& election) {
  return {election.lease_duration, election.renew_deadline, election.retry_period};
}

bind::Fence FenceOf(const config::Config& config, std::function<absl::Time()> deadline) {
  bind::Fence fence;
  fence.deadline = std::move(deadline);
  fence.grace = leader::WriteGrace(TimingsOf(config.scheduler.leader_election));
  return fence;
}

bind::ApiWriterOptions WriterOptionsOf(
    bind::Fence fence, std::function<absl::Status(const bind::BindRequest&)> still_fits) {
  bind::ApiWriterOptions options;
  options.fence = std::move(fence);
  options.still_fits = std::move(still_fits);
  return options;
}

bind::PodEvictorOptions EvictorOptionsOf(bind::Fence fence) {
  bind::PodEvictorOptions options;
  options.fence = std::move(fence);
  return options;
}

bind::EventRecorderOptions SelfEventOptionsOf(std::string hostname) {
  bind::EventRecorderOptions options;
  options.hostname = std::move(hostname);
  // In a series, a second refusal of another file would only be counted.
  options.max_series = 0;
  return options;
}

bind::EventRecorderOptions EventOptionsOf(std::string hostname, bind::Fence fence) {
  bind::EventRecorderOptions options;
  options.hostname = std::move(hostname);
  options.fence = std::move(fence);
  return options;
}

}  // namespace

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

ShimProcess::ShimProcess(config::Config config, const ShimOptions& options,
                         kube::ClientConfig client_config)
    : config_(std::make_shared<const config::Config>(std::move(config))),
      options_(options),
      config_file_(options.config_file.empty() ? config_->file : options.config_file),
      client_config_(client_config),
      metrics_(OUTBOARD_VERSION),
      reachability_(client_config.server, [](const std::string& line) { LOG(WARNING) << line; }),
      client_(client_config, ClientOptions(config_->scheduler.client_connection.qps,
                                           config_->scheduler.client_connection.burst)),
      // As in kube-scheduler: events have their own request budget, and lease requests are never
      // throttled.
      event_client_(client_config, ClientOptions(config_->scheduler.client_connection.qps,
                                                 config_->scheduler.client_connection.burst)),
      lease_client_(client_config, ClientOptions(-1, 1)),
      writer_(
          &client_, [this](auto work) { task_queue_.Post(std::move(work)); },
          WriterOptionsOf(FenceOf(*config_, [this] { return Fence(); }),
                          [this](const bind::BindRequest& bind) {
                            return scheduler_.StillFits(bind.pod_uid, bind.node_name, bind.profile);
                          })),
      evictor_(
          &client_, [this](auto work) { task_queue_.Post(std::move(work)); },
          EvictorOptionsOf(FenceOf(*config_, [this] { return Fence(); }))),
      events_(
          &event_client_, [this](auto work) { task_queue_.Post(std::move(work)); },
          EventOptionsOf(hostname_, FenceOf(*config_, [this] { return EventFence(); }))),
      self_events_(
          &event_client_, [this](auto work) { task_queue_.Post(std::move(work)); },
          SelfEventOptionsOf(hostname_)),
      effects_(&writer_, &evictor_, &events_, &metrics_,
               [this](auto work) { task_queue_.Post(std::move(work)); }),
      observer_(&metrics_, config_->shim.metrics),
      scheduler_(SchedulerOptionsOf(*config_), QueueOptionsOf(*config_), &effects_, &observers_,
                 &observer_, SteadyNow()),
      host_registry_(config_, session_id_, &loop_, &scheduler_),
      pod_handler_(&task_queue_, {[this](const kube::PodPtr& pod, absl::Time now) {
                                    scheduler_.events()->OnPodUpsert(pod, now);
                                    unknown_profiles_.OnPod(pod, now);
                                    if (extender_handler_ != nullptr)
                                      extender_handler_->OnPod(pod->uid(), now);
                                  },
                                  [this](const kube::PodPtr& pod, absl::Time now) {
                                    scheduler_.events()->OnPodDelete(pod->uid(), now);
                                    unknown_profiles_.OnPodDelete(pod->uid());
                                  },
                                  [this] { ++synced_; }}),
      node_handler_(&task_queue_, {[this](const kube::NodePtr& node, absl::Time now) {
                                     scheduler_.events()->OnNodeUpsert(node, now);
                                   },
                                   [this](const kube::NodePtr& node, absl::Time now) {
                                     scheduler_.events()->OnNodeDelete(node->key(), now);
                                   },
                                   [this] { ++synced_; }}),
      namespace_handler_(&task_queue_, {[this](const kube::NamespacePtr& ns, absl::Time now) {
                                          scheduler_.events()->OnNamespaceUpsert(ns, now);
                                        },
                                        [this](const kube::NamespacePtr& ns, absl::Time now) {
                                          scheduler_.events()->OnNamespaceDelete(ns->key(), now);
                                        },
                                        [this] { ++synced_; }}),
      pods_(client_, pod_resource_, &pod_handler_),
      nodes_(client_, informer::Nodes(), &node_handler_),
      namespaces_(client_, informer::Namespaces(), &namespace_handler_),
      object_informers_(
          client_, WatchedResources(*config_),
          {[this](auto work) { task_queue_.Post(std::move(work)); },
           [this](const kube::ClusterObjectPtr& object, absl::Time now) {
             scheduler_.events()->OnObjectUpsert(object, now);
           },
           [this](const kube::ClusterObjectPtr& object, absl::Time now) {
             scheduler_.events()->OnObjectDelete(object, now);
           },
           [this](absl::string_view kind) { return scheduler_.cluster()->ObjectsOfKind(kind); },
           [this](const std::string& name) { sampler_.ForgetInformer(name); }}),
      config_status_(&metrics_, [this](bind::ObjectEvent event,
                                       absl::Time now) { RecordAboutSelf(std::move(event), now); }),
      last_good_(options.last_good_file) {
  config_stamp_ = StampOf(config_file_);
  unknown_profiles_.Configure(ProfileNames(*config_), config_->shim.unknown_profiles.prefixes);
  cluster_ = scheduler_.cluster();
  scheduler_.SetProfileNames(ProfileNames(*config_));
  scheduler_.PauseBackgroundWrites(true);
  host_registry_.SetClusterComplete(false);
}

ShimProcess::~ShimProcess() {
  // Stop the threads that post before the objects that they post to are destroyed.
  task_queue_.Close();
  server_ = nullptr;
  secure_server_ = nullptr;
  extender_ = nullptr;
  // The elector's thread begins the endpoints, and these ask the elector whether it leads.
  if (elector_ != nullptr) elector_->Stop();
  leader_endpoints_ = nullptr;
  host_pods_ = nullptr;
  elector_ = nullptr;
  connector_ = nullptr;
  pods_.Stop();
  nodes_.Stop();
  namespaces_.Stop();
  object_informers_.Stop();
}

kube::CurlApiClientOptions ShimProcess::ClientOptions(double qps, int burst) {
  kube::CurlApiClientOptions options;
  options.user_agent = "outboard-shim/" OUTBOARD_VERSION;
  options.qps = qps;
  options.burst = burst;
  options.reachability = &reachability_;
  // As in client-go: the host of the URL, with its port.
  absl::string_view host = client_config_.server;
  if (const size_t scheme = host.find("://"); scheme != host.npos) host.remove_prefix(scheme + 3);
  host = host.substr(0, host.find('/'));
  options.observer = [this, host = std::string(host)](kube::Method method, int status,
                                                      absl::Duration elapsed) {
    static constexpr const char* kMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    const char* name = kMethods[static_cast<size_t>(method) % 5];
    metrics_.client_requests.With({status == 0 ? "<error>" : absl::StrCat(status), name, host})
        .Increment();
    metrics::Observe(metrics_.client_request_duration.With({name, host}), elapsed);
  };
  return options;
}

absl::Time ShimProcess::Fence() const {
  return elector_ == nullptr ? absl::InfiniteFuture() : elector_->BindDeadline();
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
  object_informers_.ForEach(check);
  return absl::UnavailableError(
      absl::StrCat("informers not synced: ", absl::StrJoin(missing, ", ")));
}

absl::Status ShimProcess::CheckHeartbeat() const {
  return heartbeat_.Check(kHungThread, SteadyNow());
}

absl::Status ShimProcess::CheckHosts() const {
  if (serves_some_pods_) return absl::OkStatus();
  return absl::UnavailableError("no profile has all its plugin hosts; see /hosts");
}

std::string ShimProcess::UndecodedObjects() const {
  std::vector<std::string> all;
  const auto add = [&](const auto& informer) {
    const size_t undecoded = informer.undecoded().size();
    if (undecoded > 0) all.push_back(absl::StrCat(informer.name(), " ", undecoded));
  };
  add(pods_);
  add(nodes_);
  add(namespaces_);
  object_informers_.ForEach(add);
  return all.empty() ? ""
                     : absl::StrCat("objects that cannot be decoded: ", absl::StrJoin(all, ", "));
}

http::ServerOptions ShimProcess::Pages() {
  http::ServerOptions options;
  const http::Check lease = {
      "leaderElection",
      [this] { return elector_ == nullptr ? absl::OkStatus() : elector_->Check(kLeaseTolerance); }};
  const http::Check shutdown = {
      "shutdown", [this] {
        return stopping_ ? absl::UnavailableError("process is shutting down") : absl::OkStatus();
      }};
  const http::Check thread = {"scheduling-thread", [this] { return CheckHeartbeat(); }};
  options.healthz = {lease, thread};
  options.livez = {thread};
  options.readyz = {
      {"api-server", [this] { return reachability_.Check(SteadyNow()); }},
      lease,
      thread,
      shutdown,
      {"plugin-hosts", [this] { return CheckHosts(); }},
      {"sched-handler-sync", [this] { return CheckSynced(); },
       [this] { return UndecodedObjects(); }},
      // A refused file does not make a replica unready: the configuration in force
      // still places pods.
      {"configuration", [] { return absl::OkStatus(); }, [this] { return config_status_.Note(); }}};
  options.metrics = [this] { return metrics_.Text(); };
  options.host_metrics = [this](const std::string& host) { return HostMetrics(host); };
  options.configz = [this] { return DescribeConfig(); };
  options.hosts = [this] { return DescribeHosts(); };
  options.follower_note = [this]() -> std::string {
    const std::optional<std::string> leader = OtherLeader();
    return leader.has_value() ? http::FollowerNote(*leader) : "";
  };
  options.command_host = [this](const http::HostCommand& command) { return Command(command); };
  options.explain = [this](const std::string& pod) { return attempt_log_.Explain(pod); };
  options.queue = [this](size_t limit, const std::string& pod) {
    return DescribeQueue(limit, pod);
  };
  options.version_json = "{\"version\":\"" OUTBOARD_VERSION "\"}";
  return options;
}

absl::Status ShimProcess::StartServers() {
  if (!config_->shim.serving_address.empty()) {
    http::ServerOptions options = Pages();
    options.address = config_->shim.serving_address;
    absl::StatusOr<std::unique_ptr<http::Server>> server = http::Server::Start(std::move(options));
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    LOG(INFO) << "Serving health and metrics on "
              << (server_->port() == 0 ? config_->shim.serving_address
                                       : absl::StrCat("port ", server_->port()));
  }
  const auto& secure = config_->shim.secure_serving;
  return secure.has_value() ? StartSecureServer(*secure) : absl::OkStatus();
}

absl::Status ShimProcess::StartSecureServer(const config::SecureServing& wanted) {
  http::ServingCertificateOptions files;
  files.cert_file = wanted.cert_file;
  files.key_file = wanted.key_file;
  files.client_ca_file = wanted.client_ca_file;
  files.on_change = [this](bool in_use) {
    metrics_.serving_certificate_reloads.With({in_use ? "reloaded" : "failed"}).Increment();
  };
  absl::StatusOr<std::unique_ptr<http::ServingCertificate>> certificate =
      http::ServingCertificate::Load(std::move(files));
  if (!certificate.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config_->file, ": secureServing: ", certificate.status().message()));
  }
  access::ReviewGuardOptions reviews;
  reviews.on_verdict = [this](absl::string_view verdict) {
    metrics_.http_authorization.With({verdict}).Increment();
  };
  review_client_ = std::make_unique<kube::CurlApiClient>(client_config_, ClientOptions(-1, 1));
  guard_ = std::make_unique<access::ReviewGuard>(review_client_.get(), std::move(reviews));
  http::ServerOptions options = Pages();
  options.address = wanted.address;
  options.certificate = *std::move(certificate);
  options.guard = [this](const http::PageRequest& request) { return guard_->Check(request); };
  absl::StatusOr<std::unique_ptr<http::Server>> server = http::Server::Start(std::move(options));
  if (!server.ok()) return server.status();
  secure_server_ = *std::move(server);
  LOG(INFO) << "Serving over HTTPS on port " << secure_server_->port();
  return absl::OkStatus();
}

void ShimProcess::StartElector() {
  const config::LeaderElection& wanted = config_->scheduler.leader_election;
  if (!wanted.leader_elect) {
    if (leader_endpoints_ != nullptr) leader_endpoints_->Begin();
    return;
  }
  leader::LeaseElectorOptions options;
  options.lease_namespace = wanted.resource_namespace;
  options.lease_name = wanted.resource_name;
  options.identity = absl::StrCat(hostname_, "_", session_id_);
  options.timings = TimingsOf(wanted);
  // A leader without its host keeps pods waiting that another replica could place. If no replica is
  // ready, one must lead all the same, to report to pods what they wait for.
  options.useful = [this] { return Synced() && hosts_ready_; };
  options.alive = [this] { return CheckHeartbeat().ok(); };
  metrics::Gauge& leading = metrics_.leader.With({wanted.resource_name});
  elector_ = std::make_unique<leader::LeaseElector>(
      lease_client_, std::move(options),
      leader::LeaseCallbacks{[this, &leading](int transitions) {
                               LOG(INFO) << "Became leader, term " << transitions << ", epoch "
                                         << elector_->epoch();
                               leading.Set(1);
                               if (leader_endpoints_ != nullptr) leader_endpoints_->Begin();
                               loop_.Wake();
                             },
                             [this, &leading] {
                               leading.Set(0);
                               lease_lost_ = true;
                               loop_.Wake();
                             },
                             [](const std::string& identity) {
                               LOG(INFO)
                                   << "New leader: " << (identity.empty() ? "none" : identity);
                             }});
  scheduler_.SetLeaderEpoch([this] { return elector_->epoch(); });
  elector_->Start();
}

absl::Status ShimProcess::Start() {
  config_status_.Started(*config_);
  sampler_.WatchCertificates(*config_);
  if (const RefusedFile& refused = options_.refused; !refused.problems.empty()) {
    reload_failed_ = is_kept_ = true;
    config_status_.Refused(config_file_, refused.sha256, refused.problems, RunningText(),
                           SteadyNow());
  }
  if (absl::Status created = CreateLeaderEndpoints(options_.pod_ips); !created.ok()) return created;
  StartElector();
  // After the elector was created: the servers' checks use it.
  if (absl::Status servers = StartServers(); !servers.ok()) return servers;
  if (absl::Status extender = StartExtender(); !extender.ok()) return extender;
  pods_.Start();
  nodes_.Start();
  namespaces_.Start();
  object_informers_.Start();
  connector_ = std::make_unique<hosts::HostConnector>(
      config_->shim,
      hosts::HostConnector::Callbacks{
          [this](hosts::Endpoint endpoint, hosts::HostConnection connection) {
            task_queue_.Post([this, endpoint = std::move(endpoint),
                              connection = std::move(connection)](absl::Time now) {
              OnHandshake(endpoint, connection, now);
            });
          },
          [this](std::string host, std::string instance, v1beta1::ProbeResponse probe) {
            task_queue_.Post([this, host = std::move(host), instance = std::move(instance),
                              probe = std::move(probe)](absl::Time now) {
              host_registry_.OnProbedReady(host, instance, probe, now);
            });
          },
          [this](std::string host, std::string instance) {
            task_queue_.Post(
                [this, host = std::move(host), instance = std::move(instance)](absl::Time now) {
                  host_registry_.OnDraining(host, instance, now);
                });
          },
          [this](std::string host, std::string instance) {
            task_queue_.Post([this, host = std::move(host), instance = std::move(instance)](
                                 absl::Time now) { host_registry_.OnGone(host, instance, now); });
          },
          [this](std::string host, std::string instance, absl::Duration silence) {
            task_queue_.Post([this, host = std::move(host), instance = std::move(instance),
                              silence](absl::Time now) {
              host_registry_.OnSilent(host, instance, silence, now);
            });
          }});
  StartHostPods();
  host_registry_.SetCallbacks(
      {[this](const std::string& address) { connector_->NeedsHandshake(address); },
       [this](const std::string& address) {
         connector_->Retire(address);
         host_pods_->OnRetired(address);
       },
       [this](const std::string& host) { return host_calls_.Of(host); }});
  scheduler_.SetShadowObserver(&host_registry_);
  host_failures_.hosts = &host_registry_;
  return absl::OkStatus();
}

void ShimProcess::RunOnce(absl::Time now) {
  heartbeat_.Beat(SteadyNow());
  host_registry_.single_sessions()->SetLeading(Leading());
  host_registry_.accepted_pods()->SetLeading(Leading(), now);
  task_queue_.Run(now);
  if (!caches_synced_ && Synced()) {
    caches_synced_ = true;
    host_registry_.SetClusterComplete(true);
    scheduler_.PauseBackgroundWrites(false);
    RecordSelfEvents(now);
  }
  host_registry_.Tick(now);
  hosts_ready_ = host_registry_.AllReady();
  serves_some_pods_ = host_registry_.ServesSomePods();
  scheduler_.Tick(now);
  if (extender_handler_ != nullptr && now >= extender_handler_->NextTick())
    extender_handler_->Tick(now);
  if (now >= writer_.NextTick()) writer_.Tick(now);
  if (now >= evictor_.NextTick()) evictor_.Tick(now);
  if (now >= events_.NextTick()) events_.Tick(now);
  if (now >= self_events_.NextTick()) self_events_.Tick(now);
  if (now - sampled_ >= kSamplePeriod || reload_wanted_) {
    sampled_ = now;
    const std::vector<hosts::InstanceView> instances = host_registry_.Describe();
    SampleMetrics(instances);
    host_pods_->Tick(instances, now);
    CheckConfigFile(now);
    CheckProfiles(now);
    ReportUnknownProfiles(now);
    // What has served pods can be started with again.
    if (!is_kept_ && serves_some_pods_) is_kept_ = last_good_.Save(*config_);
  }
  TickReload(now);
}

void ShimProcess::SampleMetrics(const std::vector<hosts::InstanceView>& instances) {
  sampler_.SampleScheduler(scheduler_, *cluster_);
  sampler_.SampleHosts(host_registry_, instances);
  sampler_.SampleWrites(writer_.stats(), events_.stats());
  const auto sample = [this](const auto& informer) {
    sampler_.SampleInformer(informer.name(), informer.objects(), informer.undecoded().size(),
                            informer.stats());
  };
  sample(pods_);
  sample(nodes_);
  sample(namespaces_);
  object_informers_.ForEach(sample);
}

absl::Time ShimProcess::NextWakeup(absl::Time now) const {
  const absl::Time extender =
      extender_handler_ == nullptr ? absl::InfiniteFuture() : extender_handler_->NextTick();
  return std::min({scheduler_.NextWakeup(now), host_registry_.NextWakeup(), extender,
                   writer_.NextTick(), evictor_.NextTick(), events_.NextTick(),
                   self_events_.NextTick(), now + kLongestSleep});
}

bool ShimProcess::LeaderWithoutHosts(absl::Time now) {
  const bool leads = elector_ != nullptr && elector_->leading();
  // Another replica could only take the host from the other shim again.
  const bool yielding = host_registry_.single_sessions()->yielding();
  return hostless_leader_.GivesUp(leads, serves_some_pods_ || yielding, now);
}

absl::Status ShimProcess::Run() {
  LOG(INFO) << "Starting Outboard shim " << OUTBOARD_VERSION << ", session " << session_id_;
  while (!stopping_ && !lease_lost_ && fatal_.ok()) {
    const absl::Time now = SteadyNow();
    RunOnce(now);
    if (const absl::Duration turn = SteadyNow() - now; turn > kLongTurn)
      VLOG(1) << "Scheduling thread spent " << turn << " on work other than scheduling";
    if (LeaderWithoutHosts(now)) {
      LOG(WARNING) << "No usable plugin host for " << HostlessLeader::kTimeout
                   << "; releasing the lease so that another replica can take over";
      Drain();
      return absl::AbortedError("leaderelection released: no usable plugin host");
    }
    const bool may_schedule = Synced() && Leading();
    if (may_schedule && scheduler_.ScheduleOne(now)) continue;
    loop_.Wait(NextWakeup(now));
  }
  if (!fatal_.ok()) return fatal_;
  if (lease_lost_ && !stopping_) {
    // Another replica may schedule from now on: this process must send nothing more.
    return absl::AbortedError("leaderelection lost");
  }
  Drain();
  return absl::OkStatus();
}

void ShimProcess::Drain() {
  LOG(INFO) << "Stopping: " << writer_.binds_in_flight() << " binds and " << events_.pending()
            << " events in flight";
  const absl::Time binds_by = SteadyNow() + kBindDrain;
  while (writer_.binds_in_flight() + evictor_.pending() > 0 && SteadyNow() < binds_by) {
    RunOnce(SteadyNow());
    loop_.Wait(std::min(binds_by, NextWakeup(SteadyNow())));
  }
  // A bind that has not ended must not take effect under the next leader.
  client_.Stop();
  // No replica schedules until the lease is released. Events are not decisions, so the next
  // leader's first bind need not wait for them. All other requests are fenced from here on.
  if (elector_ != nullptr) {
    lease_released_ = true;
    elector_->Stop();
  }
  events_.UseAllRequests(SteadyNow());
  const absl::Time events_by = SteadyNow() + kEventDrain;
  while (events_.under_way() > 0 && SteadyNow() < events_by) {
    RunOnce(SteadyNow());
    loop_.Wait(std::min(events_by, NextWakeup(SteadyNow())));
  }
  if (events_.pending() > 0) LOG(WARNING) << "Stopping without " << events_.pending() << " events";
}

absl::StatusOr<std::unique_ptr<Shim>> Shim::Create(config::Config config,
                                                   const ShimOptions& options) {
  if (absl::Status served = CheckServed(config); !served.ok()) return served;
  const std::string kubeconfig = options.kubeconfig.empty()
                                     ? config.scheduler.client_connection.kubeconfig
                                     : options.kubeconfig;
  kube::KubeconfigOptions kubeconfig_options;
  kubeconfig_options.allow_insecure = options.allow_insecure_api_server;
  absl::StatusOr<kube::ClientConfig> client_config =
      kubeconfig.empty() ? kube::LoadInClusterConfig(options.service_account)
                         : kube::LoadKubeconfig(kubeconfig, kubeconfig_options);
  if (!client_config.ok()) return client_config.status();
  auto shim = std::make_unique<ShimProcess>(std::move(config), options, *std::move(client_config));
  if (absl::Status started = shim->Start(); !started.ok()) return started;
  return shim;
}

}  // namespace outboard::shim
