#include "shim/simulate/stage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/plans.h"

namespace outboard::simulate {
namespace {

// On the machine's clock; a loaded machine must not change what comes of a simulation.
constexpr absl::Duration kLeastDeadline = absl::Minutes(1);
constexpr absl::Duration kHostStartTimeout = absl::Seconds(10);
constexpr absl::Duration kHostReadyTimeout = absl::Seconds(30);
constexpr absl::Duration kHearTimeout = absl::Minutes(1);

queue::QueueOptions QueueOptionsOf(const config::Config& config) {
  queue::QueueOptions options;
  options.initial_backoff = config.scheduler.pod_initial_backoff;
  options.max_backoff = config.scheduler.pod_max_backoff;
  return options;
}

}  // namespace

cycle::SchedulerOptions SimulatedOptions(const config::Config& config) {
  cycle::SchedulerOptions options;
  options.cycle_deadline = std::max(config.shim.deadlines.cycle, kLeastDeadline);
  options.reserve_deadline = std::max(config.shim.deadlines.reserve, kLeastDeadline);
  options.permit_deadline = std::max(config.shim.deadlines.permit, kLeastDeadline);
  options.pre_bind_deadline = std::max(options.pre_bind_deadline, kLeastDeadline);
  options.queue_deadline = std::max(config.shim.deadlines.queue, kLeastDeadline);
  options.host_grace = absl::InfiniteDuration();
  options.custom_resources = hosts::AllowedResources(config.shim.custom_resources);
  return options;
}

Stage::Stage(const config::Config& config, const cycle::SchedulerOptions& options,
             const std::vector<kube::ClusterObjectPtr>& objects, cycle::Observer* observer,
             absl::Time now, cycle::Effects* effects)
    : config_(config),
      world_(objects),
      scheduler_(options, QueueOptionsOf(config), effects == nullptr ? &world_ : effects, observer,
                 nullptr, now) {
  std::vector<std::string> names;
  for (const config::ProfileSpec& profile : config_.scheduler.profiles) {
    names.push_back(profile.scheduler_name);
    scheduler_names_.insert(profile.scheduler_name);
  }
  scheduler_.SetProfileNames(names);
}

Stage::~Stage() = default;

absl::Status Stage::Open(const Scene& scene, const std::vector<std::string>& addresses,
                         absl::Time now) {
  auto our_hosts = std::make_shared<config::Config>(config_);
  our_hosts->shim.hosts.assign(addresses.size(), config::HostSpec());
  for (size_t i = 0; i < addresses.size(); ++i) {
    our_hosts->shim.hosts[i].name = i == 0 ? "simulate" : absl::StrCat("simulate-", i + 1);
    our_hosts->shim.hosts[i].address = addresses[i];
  }
  hosts_ = std::make_unique<hosts::HostSet>(our_hosts, "simulate", &loop_, &scheduler_);
  hosts_->SetCallbacks(
      {[this](const std::string&) { host_lost_ = true; }, [](const std::string&) {}});
  for (const kube::ClusterObjectPtr& object : world_.objects())
    scheduler_.OnObjectUpsert(object, now);
  for (const kube::NodePtr& node : scene.nodes) scheduler_.OnNodeUpsert(node, now);
  for (const kube::NamespacePtr& ns : scene.namespaces) scheduler_.OnNamespaceUpsert(ns, now);
  for (const kube::PodPtr& pod : scene.running) scheduler_.OnPodUpsert(pod, now);
  return Connect(our_hosts->shim.hosts, now);
}

absl::Status Stage::Connect(const std::vector<config::HostSpec>& specs, absl::Time now) {
  const absl::Time give_up = absl::Now() + kHostStartTimeout;
  for (const config::HostSpec& spec : specs) {
    absl::StatusOr<v1alpha1::GetHostInfoResponse> info;
    std::shared_ptr<grpc::Channel> channel;
    do {
      // A child needs a moment until it listens, and on a busy machine until it answers; a refused
      // connection fails at once.
      channel = hosts::NewHostChannel(spec.address);
      info = hosts::Handshake(channel, give_up - absl::Now());
      if (!info.ok()) absl::SleepFor(absl::Milliseconds(5));
    } while ((absl::IsUnavailable(info.status()) || absl::IsDeadlineExceeded(info.status())) &&
             absl::Now() < give_up);
    if (!info.ok()) {
      return absl::UnavailableError(
          absl::StrCat("host at ", spec.address, " does not answer: ", info.status().message()));
    }
    absl::Status taken = hosts_->OnHandshake({spec.name, spec.address, std::nullopt, 0},
                                             std::move(channel), *std::move(info), now);
    if (!taken.ok()) return taken;
  }
  const absl::Time ready_by = absl::Now() + kHostReadyTimeout;
  while (!hosts_->AllReady()) {
    loop_.Wait(ready_by);
    hosts_->Tick(now);
    if (absl::Now() >= ready_by) return absl::UnavailableError("not all plugin hosts become ready");
  }
  return absl::OkStatus();
}

absl::Status Stage::HearHosts(absl::Time now) {
  scheduler_.TellTime(now);
  const absl::Time deadline = absl::Now() + kHearTimeout;
  while (!scheduler_.HostsHeardTime()) {
    if (absl::Now() >= deadline) {
      return absl::UnavailableError(
          "a plugin host does not say that it has heard the time; is it of an older build?");
    }
    loop_.Wait(deadline);
    hosts_->Tick(now);
    if (host_lost_) break;
  }
  if (host_lost_)
    return absl::UnavailableError("a plugin host was lost in the middle of the simulation");
  return absl::OkStatus();
}

}  // namespace outboard::simulate
