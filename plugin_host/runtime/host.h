// The host as a whole: identity, plugins, sessions.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_HOST_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_HOST_H_

#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/handshake/v1/handshake.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/runtime/call_status.h"
#include "plugin_host/runtime/metric_sink.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::runtime {

// The host's identity.
struct HostIdentity {
  std::string instance;  // Unique for each start; [a-z0-9-]{1,63}.
  std::string build;
  std::string build_digest;
  absl::Time started = absl::InfinitePast();  // unknown
};

// Answers PluginHostService and finds the session of a call. Configure creates sessions; the host
// deletes a session that has no Sync stream for a while.
//
// Threading: thread-compatible; the engine's thread owns it.
// Lifetime: registry and metrics (may be null) must outlive it; sessions live until Tick finds them
//           abandoned.
// Errors: CallStatus as in call.proto.
class Host {
 public:
  // How long a session without a connection is kept, with its configuration and without a cache;
  // shorter if there are more than kMaxSessions.
  static constexpr absl::Duration kAbandonedAfter = absl::Minutes(10);
  static constexpr size_t kMaxSessions = 64;

  Host(HostIdentity identity, const sdk::PluginRegistry* registry, MetricSink* metrics = nullptr);

  const HostIdentity& identity() const { return identity_; }
  void Handshake(handshake::v1::HandshakeResponse* response) const;
  void GetHostInfo(v1beta1::GetHostInfoResponse* response) const;
  // With validate_only, no session is created, changed or forgotten. The only call that names an
  // instance.
  CallStatus Configure(const v1beta1::ConfigureRequest& request, absl::Time now,
                       v1beta1::ConfigureResponse* response);
  void Probe(const v1beta1::ProbeRequest& request, v1beta1::ProbeResponse* response) const;
  void EndSession(const v1beta1::EndSessionRequest& request, v1beta1::EndSessionResponse* response);

  // Null if the session is unknown.
  Session* FindSession(absl::string_view id);
  // The session of a header.
  CallStatus FindSession(const v1beta1::CallHeader& header, Session** session);
  // Keeps the session, whose Sync stream is open, until Disconnected.
  void Connected(const std::string& session_id);
  void Disconnected(const std::string& session_id, absl::Time now);

  // From now on rejects new attempts and new sessions.
  void DrainAll();
  bool draining() const { return draining_; }
  uint32_t attempts_in_flight() const;
  int connected_sessions() const;
  // About once a second.
  void Tick(absl::Time now);

 private:
  struct Entry {
    std::unique_ptr<Session> session;
    bool connected = false;
    bool ended = false;  // by EndSession
    absl::Time idle_since;
  };
  // Deletes the session that has been without a connection the longest; false: all are connected.
  bool ForgetOneSession();

  const HostIdentity identity_;
  const sdk::PluginRegistry* registry_;
  MetricSink* const metrics_;
  std::shared_ptr<sdk::Gauge> sessions_metric_;  // Null without metrics; so is the next.
  std::shared_ptr<sdk::Gauge> attempts_metric_;
  std::map<std::string, Entry, std::less<>> sessions_;
  bool draining_ = false;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_HOST_H_
