#include "shim/leader/leader_endpoints.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::leader {
namespace {

using nlohmann::json;

constexpr char kEpoch[] = "outboard.dev/leader-epoch";
constexpr char kService[] = "kubernetes.io/service-name";
constexpr char kManager[] = "endpointslice.kubernetes.io/managed-by";

// In the form in which two texts of one address are equal; nullopt: not an address, or loopback.
std::optional<PodAddress> ParseAddress(absl::string_view text) {
  const std::string ip(absl::StripAsciiWhitespace(text));
  std::array<char, INET6_ADDRSTRLEN> canonical = {};
  if (in_addr v4 = {}; inet_pton(AF_INET, ip.c_str(), &v4) == 1) {
    if (ntohl(v4.s_addr) >> 24 == 127) return std::nullopt;
    return PodAddress{inet_ntop(AF_INET, &v4, canonical.data(), canonical.size()), false};
  }
  if (in6_addr v6 = {}; inet_pton(AF_INET6, ip.c_str(), &v6) == 1) {
    if (IN6_IS_ADDR_LOOPBACK(&v6)) return std::nullopt;
    return PodAddress{inet_ntop(AF_INET6, &v6, canonical.data(), canonical.size()), true};
  }
  return std::nullopt;
}

// "" if it is absent or not a text.
std::string TextAt(const json& object, const char* pointer) {
  const json::json_pointer where(pointer);
  return object.is_object() && object.contains(where) && object[where].is_string()
             ? object[where].get<std::string>()
             : std::string();
}

// 0: none.
int64_t EpochOf(const json& slice) {
  int64_t epoch = 0;
  // "~1" is a slash in a pointer.
  return absl::SimpleAtoi(TextAt(slice, "/metadata/annotations/outboard.dev~1leader-epoch"), &epoch)
             ? epoch
             : 0;
}

json& MapIn(json& object, const char* key) {
  json& map = object[key];
  if (!map.is_object()) map = json::object();
  return map;
}

// Whether `have` is `want` with further fields, such as the API server's defaults.
bool Includes(const json& have, const json& want) {
  if (have.type() != want.type()) return have == want;  // numbers of two types may be equal
  if (want.is_array()) {
    return std::equal(have.begin(), have.end(), want.begin(), want.end(), Includes);
  }
  if (!want.is_object()) return have == want;
  return std::all_of(want.items().begin(), want.items().end(), [&](const auto& item) {
    const auto it = have.find(item.key());
    return it != have.end() && Includes(*it, item.value());
  });
}

std::string NameOf(const LeaderEndpointsOptions& options, const PodAddress& address) {
  return absl::StrCat(options.service, address.is_ipv6 ? "-ipv6" : "-ipv4");
}

// `slice` with this process as its only endpoint. What others have added to its metadata stays.
json Wanted(json slice, const LeaderEndpointsOptions& options, const PodAddress& address) {
  if (!slice.is_object())
    slice = {{"apiVersion", "discovery.k8s.io/v1"}, {"kind", "EndpointSlice"}};
  json& metadata = MapIn(slice, "metadata");
  metadata["namespace"] = options.service_namespace;
  metadata["name"] = NameOf(options, address);
  json& labels = MapIn(metadata, "labels");
  labels[kService] = options.service;
  labels[kManager] = "outboard-shim";
  MapIn(metadata, "annotations")[kEpoch] = absl::StrCat(options.epoch());
  slice["addressType"] = address.is_ipv6 ? "IPv6" : "IPv4";
  slice["endpoints"] =
      json::array({{{"addresses", json::array({address.ip})}, {"conditions", {{"ready", true}}}}});
  slice["ports"] =
      json::array({{{"name", options.port_name}, {"port", options.port}, {"protocol", "TCP"}}});
  return slice;
}

}  // namespace

absl::StatusOr<std::vector<PodAddress>> ServedAddresses(absl::string_view pod_ips,
                                                        absl::string_view host) {
  const std::optional<PodAddress> only =
      host == "0.0.0.0" || host == "::" ? std::nullopt : ParseAddress(host);
  std::vector<PodAddress> served;
  for (const absl::string_view text : absl::StrSplit(pod_ips, ',', absl::SkipWhitespace())) {
    std::optional<PodAddress> address = ParseAddress(text);
    if (!address.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not an address of a pod"));
    }
    const bool answers = host == "::" || (host == "0.0.0.0" && !address->is_ipv6) ||
                         (only.has_value() && *only == *address);
    const bool has_family = std::any_of(served.begin(), served.end(), [&](const PodAddress& other) {
      return other.is_ipv6 == address->is_ipv6;
    });
    if (answers && !has_family) served.push_back(*std::move(address));
  }
  if (!served.empty()) return served;
  return absl::InvalidArgumentError(absl::StrCat(
      "no address of the pod (\"", pod_ips, "\") is served by a server that listens on ", host));
}

LeaderEndpoints::LeaderEndpoints(kube::ApiClient* client, LeaderEndpointsOptions options)
    : client_(client), options_(std::move(options)) {}

LeaderEndpoints::~LeaderEndpoints() { Stop(); }

void LeaderEndpoints::Begin() {
  thread_ = std::thread([this] { Run(); });
}

void LeaderEndpoints::Stop() {
  cancel_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void LeaderEndpoints::Run() {
  std::string logged;
  while (!cancel_.cancelled() && options_.leads()) {
    absl::Status written;
    for (const PodAddress& address : options_.addresses) written.Update(Write(address));
    // Another writer was faster, or this process is about to end.
    const bool is_expected = absl::IsAborted(written) || absl::IsFailedPrecondition(written);
    if (!written.ok() && !is_expected && written.message() != logged) {
      logged = std::string(written.message());
      LOG(WARNING) << "Service " << options_.service
                   << " does not lead to this leader yet: " << logged << "; retrying every "
                   << options_.retry_period;
    }
    cancel_.WaitFor(written.ok() ? options_.check_period : options_.retry_period);
  }
}

absl::Status LeaderEndpoints::Write(const PodAddress& address) {
  const std::string all = absl::StrCat("/apis/discovery.k8s.io/v1/namespaces/",
                                       options_.service_namespace, "/endpointslices");
  const std::string path = absl::StrCat(all, "/", NameOf(options_, address));
  const absl::StatusOr<std::string> read = Send(kube::Method::kGet, path, "");
  if (!read.ok() && !absl::IsNotFound(read.status())) return read.status();
  json current;
  if (read.ok()) {
    current = json::parse(*read, nullptr, /*allow_exceptions=*/false);
    if (!current.is_object()) return absl::InternalError("the answer is not an EndpointSlice");
    if (EpochOf(current) > options_.epoch())
      return absl::FailedPreconditionError("a later leader has written the EndpointSlice");
  }
  const json wanted = Wanted(current, options_, address);
  if (Includes(current, wanted)) return absl::OkStatus();
  const bool exists = read.ok();
  const absl::StatusOr<std::string> written =
      Send(exists ? kube::Method::kPut : kube::Method::kPost, exists ? path : all,
           wanted.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!written.ok()) return written.status();
  LOG(INFO) << "Service " << options_.service << " leads to this leader: " << address.ip << " port "
            << options_.port;
  return absl::OkStatus();
}

absl::StatusOr<std::string> LeaderEndpoints::Send(kube::Method method, const std::string& path,
                                                  std::string body) {
  kube::ApiRequest request;
  request.method = method;
  request.path = path;
  request.body = std::move(body);
  request.timeout = options_.timeout;
  // Other schedulers' binds wait for it.
  request.rate_limited = false;
  request.retry = false;
  request.before_send = [this]() -> absl::Status {
    if (options_.leads()) return absl::OkStatus();
    return absl::FailedPreconditionError("this process does not lead any more");
  };
  absl::StatusOr<kube::ApiResponse> response = client_->Call(std::move(request));
  if (!response.ok()) return response.status();
  if (absl::Status answered = kube::ToStatus(*response); !answered.ok()) return answered;
  return std::move(response->body);
}

}  // namespace outboard::leader
