#include "plugin_host/runtime/host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "plugin_host/runtime/plugin_info.h"

namespace outboard::runtime {
namespace {

using v1beta1::CallError;

constexpr char kContractVersion[] = "v1beta1";

bool ValidSessionId(absl::string_view id) {
  return !id.empty() && id.size() <= 63 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
}

}  // namespace

Host::Host(HostIdentity identity, const sdk::PluginRegistry* registry, MetricSink* metrics)
    : identity_(std::move(identity)), registry_(registry), metrics_(metrics) {
  if (metrics_ == nullptr) return;
  sessions_metric_ = metrics_->NewGauge(SessionsMetric(), {identity_.instance});
  attempts_metric_ = metrics_->NewGauge(AttemptsInFlightMetric(), {identity_.instance});
}

void Host::Handshake(handshake::v1::HandshakeResponse* response) const {
  response->add_contract_versions(kContractVersion);
  response->set_instance(identity_.instance);
  response->set_build(identity_.build);
  response->set_build_digest(identity_.build_digest);
  if (identity_.started > absl::UnixEpoch())
    response->set_started_unix_micros(absl::ToUnixMicros(identity_.started));
}

void Host::GetHostInfo(v1beta1::GetHostInfoResponse* response) const {
  response->add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
  response->add_capabilities(v1beta1::CAPABILITY_BATCH);
  response->add_capabilities(v1beta1::CAPABILITY_GROUP_PLAN);
  response->add_capabilities(v1beta1::CAPABILITY_GROUP_PLACEMENTS);
  response->add_capabilities(v1beta1::CAPABILITY_QUEUEING_HINTS);
  for (const auto& [name, descriptor] : registry_->descriptors())
    *response->add_plugins() = PluginInfoOf(descriptor);
}

CallStatus Host::Configure(const v1beta1::ConfigureRequest& request, absl::Time now,
                           v1beta1::ConfigureResponse* response) {
  if (request.instance() != identity_.instance) {
    return CallStatus(
        CallError::REASON_WRONG_INSTANCE,
        absl::StrCat("this is instance ", identity_.instance, ", not ", request.instance()));
  }
  if (draining_) return CallStatus(CallError::REASON_DRAINING, "the host drains");
  if (!ValidSessionId(request.session_id())) {
    return CallStatus(CallError::REASON_INVALID, "session_id must match [a-z0-9-]{1,63}");
  }
  auto it = sessions_.find(request.session_id());
  if (it != sessions_.end() && it->second.ended)
    return CallStatus(CallError::REASON_DRAINING, "the session has ended");
  if (request.validate_only()) {
    // A session of its own, without metrics: plugins are created, and see an empty cluster.
    Session(request.session_id(), registry_).Configure(request, response);
    return CallStatus::Ok();
  }
  if (it == sessions_.end()) {
    if (sessions_.size() >= kMaxSessions && !ForgetOneSession()) {
      return CallStatus(CallError::REASON_INVALID,
                        absl::StrCat("more than ", kMaxSessions, " sessions"));
    }
    Entry entry;
    entry.session = std::make_unique<Session>(request.session_id(), registry_, metrics_);
    entry.idle_since = now;
    it = sessions_.emplace(request.session_id(), std::move(entry)).first;
  }
  const bool in_force = it->second.session->Configure(request, response);
  if (!it->second.session->configured()) {
    sessions_.erase(it);
  } else if (in_force) {
    LOG(INFO) << "Session " << request.session_id() << " configured with "
              << request.profiles_size() << " profiles";
  }
  return CallStatus::Ok();
}

void Host::Probe(const v1beta1::ProbeRequest& request, v1beta1::ProbeResponse* response) const {
  using Response = v1beta1::ProbeResponse;
  response->set_instance(identity_.instance);
  response->set_state(Response::STATE_READY);
  const Entry* entry = nullptr;
  if (!request.session_id().empty()) {
    auto it = sessions_.find(request.session_id());
    if (it != sessions_.end()) entry = &it->second;
    if (entry == nullptr) {
      response->set_state(Response::STATE_INITIALIZING);
      response->set_reason("the session is not configured");
    } else if (entry->session->version() == 0) {
      response->set_state(Response::STATE_INITIALIZING);
      response->set_reason("waiting for a snapshot");
    }
  }
  if (entry != nullptr) {
    response->set_snapshot_version(entry->session->version());
    response->set_attempts_in_flight(entry->session->attempts_in_flight());
  } else {
    response->set_attempts_in_flight(attempts_in_flight());
  }
  if (draining_ || (entry != nullptr && entry->ended)) {
    response->set_state(Response::STATE_DRAINING);
    response->set_reason(draining_ ? "the host drains" : "the session has ended");
  }
}

void Host::EndSession(const v1beta1::EndSessionRequest& request,
                      v1beta1::EndSessionResponse* response) {
  auto it = sessions_.find(request.session_id());
  if (it == sessions_.end()) return;
  it->second.ended = true;
  it->second.session->Drain();
  response->set_attempts_in_flight(it->second.session->attempts_in_flight());
}

Session* Host::FindSession(absl::string_view id) {
  auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.session.get();
}

CallStatus Host::FindSession(const v1beta1::CallHeader& header, Session** session) {
  *session = FindSession(header.session_id());
  if (*session != nullptr) return CallStatus::Ok();
  return CallStatus(CallError::REASON_SESSION_UNKNOWN,
                    absl::StrCat("unknown session ", header.session_id()));
}

bool Host::ForgetOneSession() {
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (it->second.connected) continue;
    if (oldest == sessions_.end() || it->second.idle_since < oldest->second.idle_since) oldest = it;
  }
  if (oldest == sessions_.end()) return false;
  LOG(INFO) << "Session " << oldest->first << " dropped: too many sessions";
  sessions_.erase(oldest);
  return true;
}

void Host::Connected(const std::string& session_id) {
  auto it = sessions_.find(session_id);
  if (it != sessions_.end()) it->second.connected = true;
}

void Host::Disconnected(const std::string& session_id, absl::Time now) {
  auto it = sessions_.find(session_id);
  if (it == sessions_.end()) return;
  it->second.connected = false;
  it->second.idle_since = now;
  it->second.session->SetPush(nullptr);
  it->second.session->BeginSync();  // The cache is no longer updated, so drop it.
}

void Host::DrainAll() {
  draining_ = true;
  for (auto& [id, entry] : sessions_) entry.session->Drain();
}

uint32_t Host::attempts_in_flight() const {
  uint32_t count = 0;
  for (const auto& [id, entry] : sessions_) count += entry.session->attempts_in_flight();
  return count;
}

int Host::connected_sessions() const {
  return static_cast<int>(std::count_if(sessions_.begin(), sessions_.end(),
                                        [](const auto& entry) { return entry.second.connected; }));
}

void Host::Tick(absl::Time now) {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    if (!it->second.connected && now - it->second.idle_since > kAbandonedAfter) {
      LOG(INFO) << "Session " << it->first << " dropped: no shim is connected";
      it = sessions_.erase(it);
    } else {
      it->second.session->Tick(now);
      it->second.session->FlushTimes();
      ++it;
    }
  }
  if (sessions_metric_ == nullptr) return;
  sessions_metric_->Set(connected_sessions());
  attempts_metric_->Set(attempts_in_flight());
}

}  // namespace outboard::runtime
