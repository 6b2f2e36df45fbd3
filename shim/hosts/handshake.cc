#include "shim/hosts/handshake.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "outboard/handshake/v1/handshake.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "shim/clock.h"
#include "shim/framework/answer_check.h"
#include "shim/hosts/adapter/adapter.h"
#include "shim/hosts/grpc_calls.h"
#include "shim/hosts/host_info_check.h"
#include "shim/hosts/inline_host.h"

namespace outboard::hosts {
namespace {

using handshake::v1::HandshakeRequest;
using handshake::v1::HandshakeResponse;
using handshake::v1::HandshakeService;

constexpr char kVersion[] = "v1beta1";

absl::Status NoCommonVersion(const HandshakeResponse& identity) {
  return absl::FailedPreconditionError(
      absl::StrCat("the host speaks ",
                   identity.contract_versions().empty()
                       ? "no version of the contract"
                       : framework::CutText(absl::StrJoin(identity.contract_versions(), ", "), 200),
                   ", this shim speaks ", kVersion, " and ", adapter::kOldVersion));
}

grpc::Status AskIdentity(const std::shared_ptr<grpc::Channel>& channel, absl::Time deadline,
                         HandshakeResponse* identity) {
  HandshakeRequest request;
  request.add_contract_versions(kVersion);
  request.add_contract_versions(adapter::kOldVersion);
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(deadline));
  return HandshakeService::NewStub(channel)->Handshake(&context, request, identity);
}

bool IsInstance(const std::string& id) {
  return !id.empty() && id.size() <= 63 && absl::c_all_of(id, [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
}

absl::Status CheckConnection(const HostConnection& host) {
  if (absl::Status bounded = CheckIdentity(host.identity); !bounded.ok()) return bounded;
  if (!IsInstance(host.identity.instance())) {
    return absl::FailedPreconditionError(
        absl::StrCat("instance \"", framework::CutText(host.identity.instance(), 100),
                     "\" must match [a-z0-9-]{1,63}"));
  }
  if (absl::Status bounded = CheckHostInfo(host.info); !bounded.ok()) return bounded;
  return CheckInlineInfo(host.info);
}

}  // namespace

absl::StatusOr<HostConnection> Handshake(std::shared_ptr<grpc::Channel> channel,
                                         absl::Duration timeout) {
  const absl::Time deadline = SteadyNow() + timeout;
  HostConnection host;
  host.channel = std::move(channel);
  grpc::Status status = AskIdentity(host.channel, deadline, &host.identity);
  const bool answered = status.error_code() != grpc::StatusCode::UNIMPLEMENTED;
  if (!answered) {
    // Hosts of version 0.1 do not know the handshake.
    host.channel = adapter::SpeakOldVersion(std::move(host.channel));
    status = AskIdentity(host.channel, deadline, &host.identity);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::FailedPreconditionError(
          "what listens there is not a plugin host: it serves neither outboard.handshake.v1 nor "
          "outboard.v1alpha1");
    }
  }
  if (!status.ok()) return ToAbslStatus(status);
  const auto& versions = host.identity.contract_versions();
  if (!answered || !absl::c_linear_search(versions, kVersion)) {
    if (!absl::c_linear_search(versions, adapter::kOldVersion))
      return NoCommonVersion(host.identity);
    if (answered) host.channel = adapter::SpeakOldVersion(std::move(host.channel));
  }
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(deadline));
  status = v1beta1::PluginHostService::NewStub(host.channel)
               ->GetHostInfo(&context, v1beta1::GetHostInfoRequest(), &host.info);
  if (!status.ok()) return ToAbslStatus(status);
  if (absl::Status checked = CheckConnection(host); !checked.ok()) return checked;
  return host;
}

}  // namespace outboard::hosts
