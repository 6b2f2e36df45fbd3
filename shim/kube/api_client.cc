#include "shim/kube/api_client.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "nlohmann/json.hpp"
#include "shim/kube/wire/decode.h"

namespace outboard::kube {
namespace {

constexpr absl::string_view kDeliveryUrl = "outboard.dev/delivery";

absl::StatusCode CodeOf(int http_status, absl::string_view reason) {
  switch (http_status) {
    case 400:
    case 415:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 500:
      return absl::StatusCode::kInternal;
    case 502:
    case 503:
      return absl::StatusCode::kUnavailable;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kUnknown;
  }
}

// A string field of a JSON object; empty if absent or of another type.
std::string StringField(const nlohmann::json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

absl::Status CheckRequestPath(absl::string_view path) {
  absl::string_view rest = path.substr(0, path.find('?'));
  if (!absl::ConsumePrefix(&rest, "/"))
    return absl::InvalidArgumentError("a request's path must start with '/'");
  for (const absl::string_view segment : absl::StrSplit(rest, '/')) {
    const std::string plain = absl::StrReplaceAll(segment, {{"%2e", "."}, {"%2E", "."}});
    if (!plain.empty() && plain != "." && plain != "..") continue;
    return absl::InvalidArgumentError(absl::StrCat("not sent: the path ", path.substr(0, 1024),
                                                   " has a segment \"", segment, "\""));
  }
  return absl::OkStatus();
}

absl::string_view MethodName(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kPatch:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

Delivery DeliveryOf(const absl::Status& status) {
  auto payload = status.GetPayload(kDeliveryUrl);
  return payload.has_value() && *payload == "not-sent" ? Delivery::kNotSent : Delivery::kUnknown;
}

absl::Status WithDelivery(absl::Status status, Delivery delivery) {
  if (!status.ok()) {
    status.SetPayload(kDeliveryUrl,
                      absl::Cord(delivery == Delivery::kNotSent ? "not-sent" : "unknown"));
  }
  return status;
}

absl::Status ToStatus(const ApiResponse& response) {
  if (response.ok()) return absl::OkStatus();
  std::string message;
  std::string reason;
  // Answers of the priority-and-fairness filter and of proxies are plain text.
  if (absl::StartsWith(response.content_type, kProtobuf)) {
    auto envelope = OpenEnvelope(response.body);
    Decoder decoder;
    auto said = envelope.ok() ? decoder.DecodeStatus(envelope->raw) : envelope.status();
    if (said.ok()) {
      message = std::move(said->message);
      reason = std::move(said->reason);
    }
  } else if (auto body = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
             body.is_object()) {
    message = StringField(body, "message");
    reason = StringField(body, "reason");
  } else {
    message = response.body.substr(0, 256);
  }
  if (message.empty()) message = "no message";
  return absl::Status(CodeOf(response.http_status, reason),
                      absl::StrCat(message, " (HTTP ", response.http_status, ")"));
}

absl::StatusOr<ApiResponse> ApiClient::Call(ApiRequest request) {
  absl::Notification ended;
  absl::StatusOr<ApiResponse> result;
  Start(std::move(request), [&](absl::StatusOr<ApiResponse> answer) {
    result = std::move(answer);
    ended.Notify();
  });
  ended.WaitForNotification();
  return result;
}

}  // namespace outboard::kube
