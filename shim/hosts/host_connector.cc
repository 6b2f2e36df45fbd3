#include "shim/hosts/host_connector.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "shim/clock.h"
#include "shim/hosts/adapter/adapter.h"
#include "shim/hosts/grpc_host_client.h"

namespace outboard::hosts {
namespace {

constexpr absl::Duration kHandshakeTimeout = absl::Seconds(1);
constexpr absl::Duration kRetry = absl::Milliseconds(200);
constexpr absl::Duration kProbePeriod = absl::Seconds(1);

}  // namespace

HostConnector::HostConnector(const config::ShimConfig& config, Callbacks callbacks)
    : callbacks_(std::move(callbacks)) {
  SetConfig(config);
  thread_ = std::thread([this] { Run(); });
}

HostConnector::~HostConnector() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.Notify();
  }
  thread_.join();
}

void HostConnector::SetConfig(const config::ShimConfig& config) {
  absl::MutexLock lock(&mu_);
  config_ = config;
  std::map<std::string, KnownEndpoint> known;
  for (const config::HostSpec& spec : config.hosts) {
    if (spec.address.empty()) continue;
    std::vector<std::string> addresses = spec.other_addresses;
    addresses.push_back(spec.address);
    for (const std::string& address : addresses) {
      KnownEndpoint& entry = known[address];
      // A connected endpoint with the same name stays connected; others are retried.
      if (const auto old = known_.find(address);
          old != known_.end() && old->second.endpoint.host == spec.name) {
        entry = old->second;
      }
      entry.endpoint = {spec.name, address, spec.tls, 0};
      entry.is_configured = true;
    }
  }
  for (auto& [address, entry] : known_) {
    if (!entry.is_configured) known.try_emplace(address, std::move(entry));
  }
  known_ = std::move(known);
  poked_ = true;
  changed_.Notify();
}

void HostConnector::SetPods(std::vector<Endpoint> pods) {
  absl::MutexLock lock(&mu_);
  pods_ = std::move(pods);
  poked_ = true;
  changed_.Notify();
}

void HostConnector::NeedsHandshake(const std::string& address) {
  absl::MutexLock lock(&mu_);
  const auto it = known_.find(address);
  if (it == known_.end()) return;
  it->second.connected = it->second.retired = false;
  // A process that answers only handshakes, as while it drains, must not keep this busy.
  if (SteadyNow() - it->second.answered < kRetry) return;
  poked_ = true;
  changed_.Notify();
}

void HostConnector::Retire(const std::string& address) {
  absl::MutexLock lock(&mu_);
  if (const auto it = known_.find(address); it != known_.end()) it->second.retired = true;
}

std::vector<int64_t> HostConnector::allowed_uids() const {
  absl::MutexLock lock(&mu_);
  return config_.allowed_uids;
}

void HostConnector::Run() {
  absl::Time next_probe = SteadyNow() + kProbePeriod;
  while (true) {
    ScanDirectory();
    std::vector<KnownEndpoint> known;
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) return;
      poked_ = false;
      for (const auto& [address, entry] : known_) {
        if (!entry.retired) known.push_back(entry);
      }
    }
    const bool probe = SteadyNow() >= next_probe;
    if (probe) next_probe = SteadyNow() + kProbePeriod;
    for (const KnownEndpoint& entry : known) {
      if (entry.connected && !probe) continue;
      // On other threads, so that a host that hangs delays no other.
      visits_.Request(entry.endpoint.address,
                      [this, entry] { entry.connected ? Probe(entry) : TryHandshake(entry); });
    }
    const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || poked_; };
    absl::MutexLock lock(&mu_);
    changed_.AwaitFor(mu_, kRetry, woken);
  }
}

void HostConnector::ScanDirectory() {
  std::string directory;
  {
    absl::MutexLock lock(&mu_);
    directory = config_.socket_directory;
  }
  std::vector<Endpoint> found;
  std::vector<std::string> problems;
  if (!directory.empty()) {
    absl::StatusOr<std::vector<Endpoint>> listed = ListSockets(directory, &problems);
    if (listed.ok()) {
      found = *std::move(listed);
    } else {
      problems.push_back(std::string(listed.status().message()));
    }
  }
  for (const std::string& problem : problems) {
    if (logged_problems_.count(problem) == 0) LOG(WARNING) << "socketDirectory: " << problem;
  }
  const bool is_empty = !directory.empty() && found.empty() && problems.empty();
  if (is_empty && !reported_empty_) {
    LOG(INFO) << "No plugin host in socketDirectory " << directory
              << " yet; waiting for a socket NAME.sock or NAME@INSTANCE.sock";
  }
  reported_empty_ = is_empty;
  logged_problems_ = std::set<std::string>(problems.begin(), problems.end());

  absl::MutexLock lock(&mu_);
  found.insert(found.end(), pods_.begin(), pods_.end());
  std::set<std::string> addresses;
  for (Endpoint& endpoint : found) {
    addresses.insert(endpoint.address);
    KnownEndpoint& entry = known_[endpoint.address];
    if (entry.is_configured) continue;
    if (!entry.endpoint.address.empty() && entry.endpoint.host == endpoint.host &&
        entry.endpoint.inode == endpoint.inode && entry.endpoint.pod_uid == endpoint.pod_uid) {
      entry.endpoint.tls = std::move(endpoint.tls);
      continue;
    }
    entry = KnownEndpoint();
    entry.endpoint = std::move(endpoint);
  }
  // A deleted socket or pod without a connected host is forgotten. A connected host continues
  // without: its calls and probes show when it ends.
  for (auto it = known_.begin(); it != known_.end();) {
    const KnownEndpoint& entry = it->second;
    const bool is_gone = !entry.is_configured && addresses.count(it->first) == 0;
    it = is_gone && (!entry.connected || entry.retired) ? known_.erase(it) : std::next(it);
  }
}

void HostConnector::TryHandshake(const KnownEndpoint& entry) {
  const Endpoint& endpoint = entry.endpoint;
  {
    // The previous visit may have succeeded meanwhile.
    absl::MutexLock lock(&mu_);
    const auto it = known_.find(endpoint.address);
    if (it == known_.end() || it->second.connected) return;
  }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(endpoint, allowed_uids());
  absl::StatusOr<HostConnection> connection =
      channel.ok() ? Handshake(*channel, kHandshakeTimeout) : channel.status();
  if (!connection.ok()) {
    const std::string error(connection.status().message());
    if (error != entry.last_error) {
      LOG(WARNING) << "Host \"" << endpoint.host << "\" at " << endpoint.address
                   << " does not answer: " << error << "; retrying";
    }
    absl::MutexLock lock(&mu_);
    if (const auto it = known_.find(endpoint.address); it != known_.end())
      it->second.last_error = error;
    return;
  }
  {
    absl::MutexLock lock(&mu_);
    const auto it = known_.find(endpoint.address);
    if (it == known_.end()) return;
    it->second.connected = true;
    it->second.answered = SteadyNow();
    it->second.instance = connection->identity.instance();
    it->second.speaks_old_version = connection->channel != *channel;
    it->second.last_error.clear();
    it->second.silent_since = absl::InfiniteFuture();
  }
  callbacks_.on_handshake(endpoint, *std::move(connection));
}

void HostConnector::NoteProbe(const KnownEndpoint& entry, bool answered, absl::Time began) {
  absl::Time silent_since = absl::InfiniteFuture();
  {
    absl::MutexLock lock(&mu_);
    const auto it = known_.find(entry.endpoint.address);
    if (it == known_.end() || it->second.instance != entry.instance) return;
    absl::Time& since = it->second.silent_since;
    since = answered ? absl::InfiniteFuture() : std::min(since, began);
    silent_since = since;
  }
  if (!answered)
    callbacks_.on_silent(entry.endpoint.host, entry.instance, SteadyNow() - silent_since);
}

void HostConnector::Probe(const KnownEndpoint& entry) {
  const absl::Time began = SteadyNow();
  // A separate connection, so that only the scheduling thread polls the connection of the calls.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(entry.endpoint, allowed_uids());
  if (!channel.ok()) {
    // A host that hangs does not accept connections either; its backlog fills up.
    if (absl::IsResourceExhausted(channel.status())) {
      NoteProbe(entry, false, began);
    } else if (absl::IsUnavailable(channel.status())) {
      callbacks_.on_gone(entry.endpoint.host, entry.instance);
    }
    return;
  }
  if (entry.speaks_old_version) channel = adapter::SpeakOldVersion(*std::move(channel));
  auto stub = v1beta1::PluginHostService::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kHandshakeTimeout));
  v1beta1::ProbeResponse response;
  const grpc::Status status = stub->Probe(&context, v1beta1::ProbeRequest(), &response);
  // Over the network, a machine that is gone ends no connection, and new ones end in any way. Where
  // nothing listens on a Unix socket, the connection of the calls shows whether the host is gone.
  // Other errors are answers.
  const bool may_be_gone =
      entry.endpoint.tls.has_value() && status.error_code() == grpc::StatusCode::UNAVAILABLE;
  NoteProbe(entry, !may_be_gone && status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED,
            began);
  if (!status.ok()) return;
  if (response.instance() != entry.instance) {
    callbacks_.on_gone(entry.endpoint.host, entry.instance);
  } else if (response.state() == v1beta1::ProbeResponse::STATE_DRAINING) {
    callbacks_.on_draining(entry.endpoint.host, entry.instance);
  } else if (response.state() == v1beta1::ProbeResponse::STATE_READY) {
    callbacks_.on_ready(entry.endpoint.host, entry.instance, response);
  }
}

}  // namespace outboard::hosts
