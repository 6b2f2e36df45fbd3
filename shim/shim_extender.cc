// Starts the endpoint for a kube-scheduler that uses this process as its extender.
#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/config/config.h"
#include "shim/shim_process.h"

namespace outboard::shim {
namespace {

// Of the port in `extender.leaderService`.
constexpr char kPortName[] = "extender";

}  // namespace

absl::Status ShimProcess::CreateLeaderEndpoints(const std::string& pod_ips) {
  if (!config_->shim.extender.has_value()) return absl::OkStatus();
  const config::ExtenderConfig& wanted = *config_->shim.extender;
  if (wanted.leader_service.empty()) return absl::OkStatus();
  leader::LeaderEndpointsOptions options;
  std::string host;
  config::SplitHostPort(wanted.address, &host, &options.port);
  absl::StatusOr<std::vector<leader::PodAddress>> served = leader::ServedAddresses(pod_ips, host);
  if (!served.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config_->file, ": extender.leaderService: ", served.status().message(),
                     "; the environment variable POD_IPS must have the pod's status.podIPs"));
  }
  options.addresses = *std::move(served);
  options.service_namespace = config_->scheduler.leader_election.resource_namespace;
  options.service = wanted.leader_service;
  options.port_name = kPortName;
  options.leads = [this] { return Leading(); };
  options.epoch = [this] { return elector_ == nullptr ? 0 : elector_->epoch(); };
  leader_endpoints_ = std::make_unique<leader::LeaderEndpoints>(&client_, std::move(options));
  return absl::OkStatus();
}

size_t MaxExternalBinds(const config::Config& config) {
  return config.shim.extender.has_value() ? static_cast<size_t>(config.shim.extender->max_binds)
                                          : 0;
}

informer::Resource<kube::PodObject> WatchedPods(const config::Config& config) {
  if (!config.shim.extender.has_value()) return informer::Pods();
  return informer::PodsOfExtender(config.shim.extender->scheduler_names,
                                  config.shim.extender->profile);
}

absl::Status ShimProcess::StartExtender() {
  if (!config_->shim.extender.has_value()) return absl::OkStatus();
  const config::ExtenderConfig& wanted = *config_->shim.extender;
  extender::EndpointOptions options;
  // The configuration was validated, so the address parses.
  config::SplitHostPort(wanted.address, &options.server.host, &options.server.port);
  const bool on_loopback = config::IsLoopback(options.server.host);
  bool knows_clients = on_loopback;
  if (wanted.tls.has_value()) {
    http::ServingCertificateOptions files;
    files.cert_file = wanted.tls->cert_file;
    files.key_file = wanted.tls->key_file;
    files.client_ca_file = wanted.tls->client_ca_file;
    files.requires_client_certificate = true;
    absl::StatusOr<std::unique_ptr<http::ServingCertificate>> certificate =
        http::ServingCertificate::Load(std::move(files));
    if (!certificate.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(config_->file, ": extender.tls: ", certificate.status().message()));
    }
    options.server.certificate = *std::move(certificate);
    knows_clients |= !wanted.tls->client_ca_file.empty();
  }
  options.server.serves_profile = !wanted.profile.empty();
  options.server.serves_bind = knows_clients;
  options.server.serves_admit = wanted.admits_bindings;
  options.server.max_binds = knows_clients ? static_cast<size_t>(wanted.max_binds) : 0;
  options.deadline = wanted.deadline;
  options.bind_deadline = wanted.bind_deadline;
  options.post = [this](std::function<void(absl::Time)> work) {
    task_queue_.Post(std::move(work));
  };
  options.is_ready = [this] { return CheckSynced(); };
  options.may_bind = [this] {
    if (Leading()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        extender::NotLeading(config_->scheduler.leader_election.resource_name, elector_->leader()));
  };
  options.observe = [this](extender::Verb verb, absl::string_view result, absl::Duration elapsed) {
    metrics::Observe(metrics_.extender_duration.With({extender::VerbName(verb), result}), elapsed);
  };
  options.on_objection = [this](const std::string& objection) {
    metrics_.bindings_denied.Increment();
    VLOG(1) << "Bind by another scheduler denied: " << objection;
  };
  extender_handler_ =
      std::make_unique<extender::ExtenderHandler>(&externally_scheduled_pods_, wanted.profile);
  absl::StatusOr<std::unique_ptr<extender::Endpoint>> started =
      extender::Endpoint::Start(std::move(options), extender_handler_.get());
  if (!started.ok()) return started.status();
  extender_ = *std::move(started);
  const absl::string_view what =
      wanted.profile.empty() ? "only the webhook for binds" : "the kube-scheduler extender";
  LOG(INFO) << "Serving " << what << " on port " << extender_->port()
            << (wanted.profile.empty() ? "" : absl::StrCat(", with profile ", wanted.profile));
  return absl::OkStatus();
}

}  // namespace outboard::shim
