#include "cli/inspect/explain_node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/manifests/manifest_files.h"
#include "cli/plugin/program.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "shim/kube/curl_api_client.h"

namespace outboard::inspect {
namespace {

using nlohmann::json;

// Objects that say something about nodes: their resource for the host.
struct DescribingKind {
  const char* kind;
  const char* resource;
};
constexpr DescribingKind kDescribingKinds[] = {
    {"ResourceSlice", "resourceslices.v1.resource.k8s.io"},
    {"NodeResourceTopology", "noderesourcetopologies.v1alpha2.topology.node.k8s.io"}};

// A file that goes with this object.
//
// Lifetime: the destructor removes it.
// Errors: an empty path.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    const char* folder = getenv("TMPDIR");
    std::string path = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/outboard-XXXXXX");
    const int fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd < 0) return;
    close(fd);
    path_ = path;
    std::ofstream file(path_, std::ios::binary);
    file << content;
  }
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void AddNode(const kube::NodeObject& object, v1beta1::SyncRequest* changes) {
  v1beta1::Node& node = *changes->add_changes()->mutable_node_upsert()->mutable_node();
  node = object.node;
  // Capacity and conditions: a host gets them only where it asks for them.
  node.MergeFromString(object.on_request);
}

void AddObject(const manifests::OtherObject& object, const char* resource,
               v1beta1::SyncRequest* changes) {
  v1beta1::GenericObject& added =
      *changes->add_changes()->mutable_object_upsert()->mutable_generic_object();
  added.set_resource(resource);
  added.set_name(object.name);
  added.set_json(object.json);
}

absl::StatusOr<std::string> ReadFromCluster(const ExplainNodeLine& line) {
  absl::StatusOr<kube::ClientConfig> config = FindCluster(line.cluster);
  if (!config.ok()) return config.status();
  kube::CurlApiClientOptions options;
  options.user_agent = "outboard";
  kube::CurlApiClient client(*std::move(config), std::move(options));
  absl::StatusOr<ClusterNode> node = ReadClusterNode(&client, line.name);
  if (!node.ok()) return node.status();
  for (const std::string& warning : node->warnings)
    std::cerr << "outboard explain: warning: " << warning << "\n";
  return std::move(node->manifest);
}

absl::StatusOr<v1beta1::SyncRequest> ReadChanges(const ExplainNodeLine& line) {
  manifests::ManifestArguments arguments;
  arguments.cluster = line.files;
  std::istringstream from_cluster;
  if (line.files.empty()) {
    absl::StatusOr<std::string> manifest = ReadFromCluster(line);
    if (!manifest.ok()) return manifest.status();
    from_cluster.str(*std::move(manifest));
    arguments.cluster = {"-"};
  }
  const manifests::Manifests read = manifests::ReadManifestFiles(
      arguments, /*strict=*/false, line.files.empty() ? &from_cluster : &std::cin);
  if (absl::Status status = manifests::ToStatus(read.errors); !read.errors.empty()) return status;
  v1beta1::SyncRequest changes;
  bool any = false;
  for (const kube::NodePtr& node : read.nodes) {
    if (!line.name.empty() && node->node.name() != line.name) continue;
    AddNode(*node, &changes);
    any = true;
  }
  if (!any) {
    return absl::NotFoundError(line.name.empty()
                                   ? "no node in these files"
                                   : absl::StrCat("no node ", line.name, " in these files"));
  }
  for (const manifests::OtherObject& object : read.others) {
    for (const DescribingKind& known : kDescribingKinds) {
      if (object.kind == known.kind) AddObject(object, known.resource, &changes);
    }
  }
  return changes;
}

std::string TextOf(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

void AppendNode(const json& node, std::string* table) {
  absl::StrAppend(table, table->empty() ? "" : "\n", TextOf(node, "name"), "\n");
  size_t width = 0;
  for (const json& fact : node.at("facts")) width = std::max(width, TextOf(fact, "fact").size());
  for (const json& fact : node.at("facts")) {
    absl::StrAppendFormat(table, "  %-*s  ", static_cast<int>(width), TextOf(fact, "fact"));
    const std::string value = TextOf(fact, "value");
    if (value.empty()) {
      absl::StrAppend(table, "unknown; published by: ", TextOf(fact, "publishers"), "\n");
    } else {
      absl::StrAppend(table, value, "  [", TextOf(fact, "source"), ": ", TextOf(fact, "origin"),
                      "]\n");
    }
  }
  for (const json& label : node.at("malformed")) {
    absl::StrAppend(table, "  ", TextOf(label, "key"), "=\"", TextOf(label, "value"), "\" is not ",
                    TextOf(label, "wanted"), " and counts as absent\n");
  }
}

}  // namespace

absl::StatusOr<std::string> NodeFactsTable(absl::string_view answer) {
  const json whole = json::parse(answer, nullptr, /*allow_exceptions=*/false);
  std::string table;
  try {
    for (const json& node : whole.at("nodes")) AppendNode(node, &table);
  } catch (const json::exception&) {
    return absl::InternalError("outboard-host answered something else than facts of nodes");
  }
  return table;
}

absl::StatusOr<std::string> ExplainNode(const ExplainNodeLine& line) {
  const absl::StatusOr<v1beta1::SyncRequest> changes = ReadChanges(line);
  if (!changes.ok()) return changes.status();
  const TemporaryFile file(changes->SerializeAsString());
  if (file.path().empty())
    return absl::UnavailableError(absl::StrCat("temporary file: ", strerror(errno)));
  const std::string host =
      line.host_binary.empty() ? plugin_command::ProgramBeside("outboard-host") : line.host_binary;
  std::vector<std::string> command = {host, "--node-facts", file.path()};
  if (!line.price_list.empty()) {
    command.push_back("--price-list");
    command.push_back(line.price_list);
  }
  const absl::StatusOr<std::string> answer = plugin_command::RunProgram(command);
  if (!answer.ok() || line.json) return answer;
  return NodeFactsTable(*answer);
}

}  // namespace outboard::inspect
