// Status pages and commands while the process runs.
#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/diagnostics/host_report.h"
#include "shim/diagnostics/queue_report.h"
#include "shim/hosts/plans.h"
#include "shim/hosts/version_skew.h"
#include "shim/shim_process.h"

namespace outboard::shim {
namespace {

// How long a page waits for the scheduling thread. Calls of that thread end within about a second.
constexpr absl::Duration kPageAnswer = absl::Seconds(10);

absl::Status NotInTime() {
  return absl::UnavailableError("the scheduling thread did not answer in time");
}

}  // namespace

scheduler::SchedulerOptions SchedulerOptionsOf(const config::Config& config) {
  scheduler::SchedulerOptions options;
  options.cycle_deadline = config.shim.deadlines.cycle;
  options.reserve_deadline = config.shim.deadlines.reserve;
  options.permit_deadline = config.shim.deadlines.permit;
  options.pre_bind_deadline = options.bind_deadline = config.shim.deadlines.bind;
  options.queue_deadline = config.shim.deadlines.queue;
  options.max_evictions_per_attempt = static_cast<size_t>(config.shim.preemption.per_attempt);
  options.max_evictions_per_minute = static_cast<size_t>(config.shim.preemption.per_minute);
  options.allowed_pod_keys = config.shim.allowed_pod_keys;
  options.custom_resources = hosts::AllowedResources(config.shim.custom_resources);
  return options;
}

std::vector<std::string> ProfileNames(const config::Config& config) {
  std::vector<std::string> names;
  for (const config::ProfileSpec& profile : config.scheduler.profiles)
    names.push_back(profile.scheduler_name);
  return names;
}

absl::Status CheckServed(const config::Config& config) {
  if (!config.shim.hosts.empty() || !config.shim.socket_directory.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(config.file,
                   ": hosts: specify at least one plugin host or a socketDirectory in the "
                   "ShimConfiguration document"));
}

absl::StatusOr<std::string> ShimProcess::DescribeQueue(size_t limit, const std::string& pod) {
  diagnostics::QueueQuery query;
  if (limit != 0) query.limit = limit;
  query.pod = pod;
  const std::optional<diagnostics::QueueReport> report = task_queue_.Ask<diagnostics::QueueReport>(
      [this, query](absl::Time now) {
        // Handle pending host messages first: the report includes acknowledgements that have
        // arrived.
        scheduler_.Tick(now);
        diagnostics::QueueReport report =
            diagnostics::CollectQueue(scheduler_.queue(), query, now, absl::Now());
        for (const hosts::HostRegistry::View& view : host_registry_.Describe()) {
          if (view.state != hosts::InstanceState::kServing) continue;
          report.hosts.push_back({view.host, view.instance, view.usable, view.sent_version,
                                  view.acknowledged_version});
        }
        report.api_server = std::string(reachability_.Check(now).message());
        report.leader = OtherLeader();
        return report;
      },
      kPageAnswer);
  if (!report.has_value()) return NotInTime();
  return diagnostics::ToJson(*report);
}

void ShimProcess::OnHandshake(const hosts::Endpoint& endpoint, hosts::HostConnection connection,
                              absl::Time now) {
  const std::string& build = connection.identity.build();
  if (hosts::AreTooFarApart(OUTBOARD_VERSION, build) &&
      std::exchange(reported_builds_[endpoint.host], build) != build) {
    LOG(WARNING) << "Host \"" << endpoint.host << "\" has version " << build << ", this shim has "
                 << OUTBOARD_VERSION << "; only neighbouring minor versions are tested together";
  }
  // This instance may accept what the others refused.
  if (reload_failed_) reload_wanted_ = true;
  // At startup, an unusable configuration ends the process. Later, the current one stays in force.
  absl::Status ended = host_registry_.OnHandshake(endpoint, std::move(connection), now);
  if (!ended.ok()) ended = UseLastGood(ended, now);
  fatal_.Update(ended);
}

std::optional<std::string> ShimProcess::OtherLeader() const {
  if (Leading()) return std::nullopt;
  const std::string holder = elector_->leader();
  // It held the lease a moment ago.
  return holder == elector_->identity() ? "" : holder;
}

std::string ShimProcess::DescribeConfig() {
  const auto text = task_queue_.Ask<std::string>(
      [this](absl::Time) {
        return absl::StrCat(config_status_.Comment(),
                            config::EffectiveConfigYaml(*config_, nullptr));
      },
      kPageAnswer);
  return text.value_or("# the scheduling thread did not answer in time\n");
}

absl::StatusOr<std::string> ShimProcess::HostMetrics(const std::string& host) {
  const auto address = task_queue_.Ask<std::string>(
      [this, host](absl::Time) -> std::string {
        for (const config::HostSpec& spec : config_->shim.hosts) {
          if (spec.name == host) return spec.metrics_address;
        }
        return "";
      },
      kPageAnswer);
  if (!address.has_value()) return NotInTime();
  if (!address->empty()) return metrics_relay_.Get(*address);
  return absl::NotFoundError(
      absl::StrCat("the configuration has no host \"", host, "\" with a metricsAddress"));
}

absl::StatusOr<std::string> ShimProcess::DescribeHosts() {
  const auto report = task_queue_.Ask<diagnostics::HostReport>(
      [this](absl::Time now) {
        diagnostics::HostReport report =
            diagnostics::CollectHosts(host_registry_, now, absl::Now());
        report.api_server = std::string(reachability_.Check(now).message());
        report.leader = OtherLeader();
        return report;
      },
      kPageAnswer);
  if (!report.has_value()) return NotInTime();
  return diagnostics::ToJson(*report);
}

absl::Status ShimProcess::Command(const http::HostCommand& command) {
  const auto ended = task_queue_.Ask<absl::Status>(
      [this, command](absl::Time now) {
        switch (command.kind) {
          case http::HostCommand::Kind::kSwap:
            return host_registry_.Swap(command.host, command.instance, now);
          case http::HostCommand::Kind::kRollback:
            return host_registry_.Rollback(command.host, now);
          case http::HostCommand::Kind::kClearQuarantine:
            return host_registry_.ClearQuarantine(command.host, now);
        }
        return absl::InvalidArgumentError("unknown command");
      },
      kPageAnswer);
  return ended.value_or(NotInTime());
}

void ShimProcess::StartHostPods() {
  host_pods_ = std::make_unique<host_pods::HostPods>(
      &client_,
      host_pods::HostPods::Callbacks{
          [this](auto work) { task_queue_.Post(std::move(work)); },
          [this](std::vector<hosts::Endpoint> found) { connector_->SetPods(std::move(found)); },
          [this](const host_pods::HostPod& pod, const host_pods::Readiness& written,
                 absl::Time now) { RecordHostReadiness(pod, written, now); },
          [this] { return Leading(); }, absl::Now,
          [this](std::vector<hosts::GatedInstance> gated) {
            host_registry_.accepted_pods()->Set(std::move(gated));
          }});
  host_pods_->SetConfig(config_->shim);
}

void ShimProcess::RecordHostReadiness(const host_pods::HostPod& pod,
                                      const host_pods::Readiness& written, absl::Time now) {
  const bool is_ready = written.status == "True";
  // What is only awaited is not worth an event.
  if (!is_ready && written.reason != "Refused" && written.reason != "Quarantined") return;
  bind::ObjectEvent event;
  event.object_namespace = pod.pod_namespace;
  event.object_name = pod.name;
  event.object_uid = pod.uid();
  event.profile = kReporter;
  event.type = is_ready ? "Normal" : "Warning";
  event.reason = is_ready ? "HostReady" : "HostRefused";
  event.action = "ReplaceHost";
  event.note = written.message;
  self_events_.Record(std::move(event), now);
}

}  // namespace outboard::shim
