#include "shim/hosts/host_connector.h"

#include <glog/logging.h>

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/plugin_host.grpc.pb.h"
#include "shim/hosts/grpc_host_client.h"

namespace outboard::hosts {
namespace {

constexpr absl::Duration kHandshakeTimeout = absl::Seconds(1);
constexpr absl::Duration kRetry = absl::Milliseconds(200);
constexpr absl::Duration kProbePeriod = absl::Seconds(1);

}  // namespace

HostConnector::HostConnector(std::vector<config::HostSpec> hosts, Callbacks callbacks)
    : callbacks_(std::move(callbacks)) {
  {
    absl::MutexLock lock(&mu_);
    for (const config::HostSpec& host : hosts) hosts_[host.name].address = host.address;
  }
  thread_ = std::thread([this] { Run(); });
}

HostConnector::~HostConnector() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void HostConnector::NeedsHandshake(const std::string& name) {
  absl::MutexLock lock(&mu_);
  if (const auto it = hosts_.find(name); it != hosts_.end()) it->second.connected = false;
  poked_ = true;
}

void HostConnector::Run() {
  absl::Time next_probe = absl::Now() + kProbePeriod;
  while (true) {
    std::map<std::string, Host> hosts;
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) return;
      poked_ = false;
      hosts = hosts_;
    }
    const bool probe = absl::Now() >= next_probe;
    if (probe) next_probe = absl::Now() + kProbePeriod;
    bool all_connected = true;
    for (const auto& [name, host] : hosts) {
      if (!host.connected) {
        TryHandshake(name, host.address, host.last_error);
        absl::MutexLock lock(&mu_);
        all_connected = all_connected && hosts_[name].connected;
      } else if (probe) {
        Probe(name, host.address, host.instance);
      }
    }
    const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || poked_; };
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(&woken),
                         all_connected ? next_probe - absl::Now() : kRetry);
  }
}

void HostConnector::TryHandshake(const std::string& name, const std::string& address,
                                 const std::string& last_error) {
  auto channel = NewHostChannel(address);
  absl::StatusOr<v1alpha1::GetHostInfoResponse> info = Handshake(channel, kHandshakeTimeout);
  if (!info.ok()) {
    const std::string error(info.status().message());
    if (error != last_error)
      LOG(WARNING) << "Host \"" << name << "\" at " << address << " does not answer: " << error;
    absl::MutexLock lock(&mu_);
    hosts_[name].last_error = error;
    return;
  }
  {
    absl::MutexLock lock(&mu_);
    Host& host = hosts_[name];
    host.connected = true;
    host.instance = info->host_instance();
    host.last_error.clear();
  }
  callbacks_.on_handshake(name, std::move(channel), *std::move(info));
}

void HostConnector::Probe(const std::string& name, const std::string& address,
                          const std::string& instance) {
  // A connection of its own, so that the scheduling thread alone polls the one that carries the
  // calls.
  auto stub = v1alpha1::PluginHostService::NewStub(NewHostChannel(address));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kHandshakeTimeout));
  v1alpha1::ProbeResponse response;
  // A probe that is not answered says nothing: a host that is gone has closed its connection, a
  // slow one misses deadlines of calls.
  if (!stub->Probe(&context, v1alpha1::ProbeRequest(), &response).ok()) return;
  if (response.host_instance() == instance && response.state() == v1alpha1::ProbeResponse::DRAINING)
    callbacks_.on_draining(name);
}

}  // namespace outboard::hosts
