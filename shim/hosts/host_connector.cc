#include "shim/hosts/host_connector.h"

#include <glog/logging.h>

#include <chrono>
#include <iterator>
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

HostConnector::HostConnector(const config::ShimConfig& config, Callbacks callbacks)
    : callbacks_(std::move(callbacks)) {
  SetConfig(config);
  thread_ = std::thread([this] { Run(); });
}

HostConnector::~HostConnector() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void HostConnector::SetConfig(const config::ShimConfig& config) {
  absl::MutexLock lock(&mu_);
  config_ = config;
  std::map<std::string, Door> doors;
  for (const config::HostSpec& spec : config.hosts) {
    if (spec.address.empty()) continue;
    Door& door = doors[spec.address];
    // A connected endpoint with the same name stays connected; others are retried.
    if (const auto old = doors_.find(spec.address);
        old != doors_.end() && old->second.endpoint.host == spec.name) {
      door = old->second;
    }
    door.endpoint = {spec.name, spec.address, spec.tls, 0};
    door.is_configured = true;
  }
  for (auto& [address, door] : doors_) {
    if (!door.is_configured) doors.try_emplace(address, std::move(door));
  }
  doors_ = std::move(doors);
  poked_ = true;
}

void HostConnector::NeedsHandshake(const std::string& address) {
  absl::MutexLock lock(&mu_);
  if (const auto it = doors_.find(address); it != doors_.end()) it->second.connected = false;
  poked_ = true;
}

void HostConnector::Retire(const std::string& address) {
  absl::MutexLock lock(&mu_);
  if (const auto it = doors_.find(address); it != doors_.end()) it->second.retired = true;
}

std::vector<int64_t> HostConnector::allowed_uids() const {
  absl::MutexLock lock(&mu_);
  return config_.allowed_uids;
}

void HostConnector::Run() {
  absl::Time next_probe = absl::Now() + kProbePeriod;
  while (true) {
    LookAround();
    std::vector<Door> doors;
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) return;
      poked_ = false;
      for (const auto& [address, door] : doors_) {
        if (!door.retired) doors.push_back(door);
      }
    }
    const bool probe = absl::Now() >= next_probe;
    if (probe) next_probe = absl::Now() + kProbePeriod;
    for (const Door& door : doors) {
      if (door.connected && !probe) continue;
      // Each on its own thread, so that a host that hangs delays no other.
      std::future<void>& visit = visits_[door.endpoint.address];
      if (visit.valid() && visit.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
        continue;
      visit = std::async(std::launch::async,
                         [this, door] { door.connected ? Probe(door) : TryHandshake(door); });
    }
    for (auto it = visits_.begin(); it != visits_.end();) {
      const bool is_over =
          it->second.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      it = is_over ? visits_.erase(it) : std::next(it);
    }
    const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || poked_; };
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(&woken), kRetry);
  }
}

void HostConnector::LookAround() {
  std::string directory;
  {
    absl::MutexLock lock(&mu_);
    directory = config_.socket_directory;
  }
  std::vector<Endpoint> found;
  std::vector<std::string> complaints;
  if (!directory.empty()) {
    absl::StatusOr<std::vector<Endpoint>> listed = ListSockets(directory, &complaints);
    if (listed.ok()) {
      found = *std::move(listed);
    } else {
      complaints.push_back(std::string(listed.status().message()));
    }
  }
  for (const std::string& complaint : complaints) {
    if (complaints_.count(complaint) == 0) LOG(WARNING) << "socketDirectory: " << complaint;
  }
  complaints_ = std::set<std::string>(complaints.begin(), complaints.end());

  absl::MutexLock lock(&mu_);
  std::set<std::string> addresses;
  for (Endpoint& endpoint : found) {
    addresses.insert(endpoint.address);
    Door& door = doors_[endpoint.address];
    if (door.is_configured ||
        (!door.endpoint.address.empty() && door.endpoint.inode == endpoint.inode)) {
      continue;
    }
    door = Door();
    door.endpoint = std::move(endpoint);
  }
  // A deleted socket without a connected host is forgotten. A connected host continues without its
  // socket.
  for (auto it = doors_.begin(); it != doors_.end();) {
    const Door& door = it->second;
    const bool is_gone = !door.is_configured && addresses.count(it->first) == 0;
    it = is_gone && (!door.connected || door.retired) ? doors_.erase(it) : std::next(it);
  }
}

void HostConnector::TryHandshake(const Door& door) {
  const Endpoint& endpoint = door.endpoint;
  {
    // The previous visit may have succeeded meanwhile.
    absl::MutexLock lock(&mu_);
    const auto it = doors_.find(endpoint.address);
    if (it == doors_.end() || it->second.connected) return;
  }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(endpoint, allowed_uids());
  absl::StatusOr<v1alpha1::GetHostInfoResponse> info =
      channel.ok() ? Handshake(*channel, kHandshakeTimeout) : channel.status();
  if (!info.ok()) {
    const std::string error(info.status().message());
    if (error != door.last_error) {
      LOG(WARNING) << "Host \"" << endpoint.host << "\" at " << endpoint.address
                   << " does not answer: " << error << "; retrying";
    }
    absl::MutexLock lock(&mu_);
    if (const auto it = doors_.find(endpoint.address); it != doors_.end())
      it->second.last_error = error;
    return;
  }
  {
    absl::MutexLock lock(&mu_);
    const auto it = doors_.find(endpoint.address);
    if (it == doors_.end()) return;
    it->second.connected = true;
    it->second.instance = info->host_instance();
    it->second.last_error.clear();
  }
  callbacks_.on_handshake(endpoint, *std::move(channel), *std::move(info));
}

void HostConnector::Probe(const Door& door) {
  // A separate connection, so that only the scheduling thread polls the one that carries the calls.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(door.endpoint, allowed_uids());
  if (!channel.ok()) {
    if (absl::IsUnavailable(channel.status()))
      callbacks_.on_gone(door.endpoint.host, door.instance);
    return;
  }
  auto stub = v1alpha1::PluginHostService::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kHandshakeTimeout));
  v1alpha1::ProbeResponse response;
  // A probe without an answer has no meaning: a host that is gone has closed its connection, a slow
  // one misses the deadlines of calls.
  if (!stub->Probe(&context, v1alpha1::ProbeRequest(), &response).ok()) return;
  if (response.host_instance() != door.instance) {
    callbacks_.on_gone(door.endpoint.host, door.instance);
  } else if (response.state() == v1alpha1::ProbeResponse::DRAINING) {
    callbacks_.on_draining(door.endpoint.host, door.instance);
  } else if (response.state() == v1alpha1::ProbeResponse::READY) {
    callbacks_.on_ready(door.endpoint.host, door.instance, response.warning());
  }
}

}  // namespace outboard::hosts
