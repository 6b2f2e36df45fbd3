#include "cli/simulate/simulated_scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/plans.h"

namespace outboard::simulate {
namespace {

// On the machine's clock. A loaded machine must not change a simulation's result.
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

// More names would hide the error.
constexpr int kPluginsShown = 5;

// `unix:a.sock (Spread, Costs)`
std::string WhatServes(const std::string& address, const v1beta1::GetHostInfoResponse& info) {
  if (info.plugins_size() > kPluginsShown)
    return absl::StrCat(address, " (", info.plugins_size(), " plugins)");
  std::vector<absl::string_view> names;
  for (const v1beta1::PluginInfo& plugin : info.plugins()) names.push_back(plugin.name());
  return absl::StrCat(address, " (", names.empty() ? "no plugins" : absl::StrJoin(names, ", "),
                      ")");
}

}  // namespace

scheduler::SchedulerOptions SimulatedOptions(const config::Config& config) {
  scheduler::SchedulerOptions options;
  options.cycle_deadline = std::max(config.shim.deadlines.cycle, kLeastDeadline);
  options.reserve_deadline = std::max(config.shim.deadlines.reserve, kLeastDeadline);
  options.permit_deadline = std::max(config.shim.deadlines.permit, kLeastDeadline);
  options.pre_bind_deadline = options.bind_deadline =
      std::max(config.shim.deadlines.bind, kLeastDeadline);
  options.queue_deadline = std::max(config.shim.deadlines.queue, kLeastDeadline);
  options.host_grace = absl::InfiniteDuration();
  options.custom_resources = hosts::AllowedResources(config.shim.custom_resources);
  return options;
}

SimulatedScheduler::SimulatedScheduler(const config::Config& config,
                                       const scheduler::SchedulerOptions& options,
                                       const std::vector<kube::ClusterObjectPtr>& objects,
                                       scheduler::Observer* observer, absl::Time now,
                                       scheduler::ClusterActions* effects)
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

SimulatedScheduler::~SimulatedScheduler() = default;

absl::Status SimulatedScheduler::Open(const SimulationInput& scene,
                                      const std::vector<std::string>& addresses, absl::Time now) {
  auto our_hosts = std::make_shared<config::Config>(config_);
  // No host will come later: a missing host is an error at once.
  our_hosts->shim.socket_directory.clear();
  our_hosts->shim.hosts.assign(addresses.size(), config::HostSpec());
  for (size_t i = 0; i < addresses.size(); ++i) {
    our_hosts->shim.hosts[i].name = i == 0 ? "simulate" : absl::StrCat("simulate-", i + 1);
    our_hosts->shim.hosts[i].address = addresses[i];
  }
  hosts_ = std::make_unique<hosts::HostRegistry>(our_hosts, "simulate", &loop_, &scheduler_);
  hosts_->SetCallbacks(
      {[this](const std::string&) { host_lost_ = true; }, [](const std::string&) {}});
  for (const kube::ClusterObjectPtr& object : world_.objects())
    scheduler_.events()->OnObjectUpsert(object, now);
  for (const kube::NodePtr& node : scene.nodes) scheduler_.events()->OnNodeUpsert(node, now);
  for (const kube::NamespacePtr& ns : scene.namespaces)
    scheduler_.events()->OnNamespaceUpsert(ns, now);
  for (const kube::PodPtr& pod : scene.running) scheduler_.events()->OnPodUpsert(pod, now);
  return Connect(our_hosts->shim.hosts, now);
}

absl::Status SimulatedScheduler::Connect(const std::vector<config::HostSpec>& specs,
                                         absl::Time now) {
  const absl::Time give_up = SteadyNow() + kHostStartTimeout;
  std::vector<std::string> asked;
  for (const config::HostSpec& spec : specs) {
    absl::StatusOr<hosts::HostConnection> host;
    absl::Status refused;  // says more than that the time is over
    do {
      // A child process needs a moment until it listens, and on a busy machine until it answers. A
      // refused connection fails at once.
      host = hosts::Handshake(hosts::NewHostChannel(spec.address), give_up - SteadyNow());
      if (absl::IsUnavailable(host.status())) refused = host.status();
      if (!host.ok()) absl::SleepFor(absl::Milliseconds(5));
    } while ((absl::IsUnavailable(host.status()) || absl::IsDeadlineExceeded(host.status())) &&
             SteadyNow() < give_up);
    if (!host.ok()) {
      const absl::Status& why = refused.ok() ? host.status() : refused;
      return absl::UnavailableError(
          absl::StrCat("host at ", spec.address, " does not answer: ", why.message()));
    }
    asked.push_back(WhatServes(spec.address, host->info));
    const absl::Status taken =
        hosts_->OnHandshake({spec.name, spec.address, std::nullopt, 0}, *std::move(host), now);
    if (taken.ok()) continue;
    if (!absl::StrContains(taken.message(), "no host serves")) return taken;
    const bool lacks_defaults = absl::StrContains(taken.message(), "these default plugins");
    return absl::InvalidArgumentError(absl::StrCat(
        taken.message(), "\nHosts asked: ", absl::StrJoin(asked, ", "),
        lacks_defaults ? "\noutboard-host serves kube-scheduler's plugins: name one, too" : ""));
  }
  const absl::Time ready_by = SteadyNow() + kHostReadyTimeout;
  while (!hosts_->AllReady()) {
    loop_.Wait(ready_by);
    hosts_->Tick(now);
    for (const hosts::InstanceView& host : hosts_->Describe()) {
      if (host.state == hosts::InstanceState::kRefused) return absl::InvalidArgumentError(host.why);
      if (SteadyNow() < ready_by || host.usable) continue;
      return absl::UnavailableError(
          absl::StrCat("host at ", host.address, " did not become ready within ",
                       absl::FormatDuration(kHostReadyTimeout),
                       host.warning.empty() ? "" : absl::StrCat(": ", host.warning)));
    }
    if (SteadyNow() >= ready_by) return absl::UnavailableError("not all plugin hosts became ready");
  }
  return absl::OkStatus();
}

absl::Status SimulatedScheduler::PollHosts(absl::Time now) {
  scheduler_.AdvanceHostClocks(now);
  const absl::Time deadline = SteadyNow() + kHearTimeout;
  while (!scheduler_.HostClocksAdvanced()) {
    if (SteadyNow() >= deadline) {
      return absl::UnavailableError(
          "a plugin host does not acknowledge the time; is it an older build?");
    }
    loop_.Wait(deadline);
    hosts_->Tick(now);
    if (host_lost_) break;
  }
  if (host_lost_) return absl::UnavailableError("lost a plugin host during the simulation");
  return absl::OkStatus();
}

}  // namespace outboard::simulate
