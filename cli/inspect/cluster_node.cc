#include "cli/inspect/cluster_node.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "shim/kube/kubeconfig.h"

namespace outboard::inspect {
namespace {

using nlohmann::json;

constexpr absl::Duration kTimeout = absl::Seconds(15);
// A node's slices have a few hundred KiB.
constexpr size_t kMaxAnswer = size_t{64} << 20;

absl::Status CheckNodeName(const std::string& name) {
  const bool is_name =
      !name.empty() && name.size() <= 253 && absl::ascii_isalnum(name.front()) &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '.';
      });
  if (is_name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is not the name of a node"));
}

// The object at the path. Errors: NOT_FOUND also if its resource is not served.
absl::StatusOr<json> Get(kube::ApiClient* client, const std::string& path) {
  kube::ApiRequest request;
  request.path = path;
  request.timeout = kTimeout;
  request.max_response_bytes = kMaxAnswer;
  absl::StatusOr<kube::ApiResponse> response = client->Call(std::move(request));
  if (!response.ok()) return response.status();
  if (absl::Status status = kube::ToStatus(*response); !status.ok()) return status;
  json object = json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return absl::InternalError(
        absl::StrCat("the API server answered something else than JSON at ", path));
  return object;
}

// Items of a list have neither apiVersion nor kind.
void AppendItems(const json& list, const std::string& version, json* items) {
  const auto found = list.find("items");
  if (found == list.end() || !found->is_array()) return;
  for (json item : *found) {
    if (!item.is_object()) continue;
    item["apiVersion"] = version;
    item["kind"] = "ResourceSlice";
    items->push_back(std::move(item));
  }
}

absl::Status AppendSlices(kube::ApiClient* client, const std::string& node, json* items) {
  // Of the versions that a server offers, the newest.
  for (const char* version : {"v1", "v1beta2", "v1beta1"}) {
    const std::string group = absl::StrCat("resource.k8s.io/", version);
    const absl::StatusOr<json> list =
        Get(client,
            absl::StrCat("/apis/", group, "/resourceslices?fieldSelector=spec.nodeName%3D", node));
    if (absl::IsNotFound(list.status())) continue;
    if (!list.ok()) return list.status();
    AppendItems(*list, group, items);
    break;
  }
  return absl::OkStatus();
}

absl::Status AppendTopology(kube::ApiClient* client, const std::string& node, json* items) {
  absl::StatusOr<json> topology = Get(
      client, absl::StrCat("/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/", node));
  if (absl::IsNotFound(topology.status())) return absl::OkStatus();
  if (!topology.ok()) return topology.status();
  items->push_back(*std::move(topology));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<kube::ClientConfig> FindCluster(const ClusterFlags& flags) {
  std::string path = flags.kubeconfig;
  if (const char* paths = getenv("KUBECONFIG"); path.empty() && paths != nullptr)
    path = std::vector<std::string>(absl::StrSplit(paths, ':')).front();
  if (const char* home = getenv("HOME"); path.empty() && home != nullptr)
    path = absl::StrCat(home, "/.kube/config");
  if (path.empty()) return absl::InvalidArgumentError("no kubeconfig; set --kubeconfig");
  return kube::LoadKubeconfig(path, {flags.context, /*allow_insecure=*/false});
}

absl::StatusOr<ClusterNode> ReadClusterNode(kube::ApiClient* client, const std::string& name) {
  if (absl::Status is_name = CheckNodeName(name); !is_name.ok()) return is_name;
  absl::StatusOr<json> node = Get(client, absl::StrCat("/api/v1/nodes/", name));
  if (!node.ok()) return node.status();
  json items = json::array();
  items.push_back(*std::move(node));
  ClusterNode read;
  const auto warn = [&](const char* what, const absl::Status& status) {
    if (!status.ok()) read.warnings.push_back(absl::StrCat(what, " not read: ", status.message()));
  };
  warn("ResourceSlices", AppendSlices(client, name, &items));
  warn("NodeResourceTopology", AppendTopology(client, name, &items));
  const json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
  read.manifest = list.dump(-1, ' ', false, json::error_handler_t::replace);
  return read;
}

}  // namespace outboard::inspect
