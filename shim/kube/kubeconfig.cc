#include "shim/kube/kubeconfig.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "shim/clock.h"
#include "shim/kube/exec_credentials.h"
#include "yaml-cpp/yaml.h"

namespace outboard::kube {
namespace {

// A mapping in the file with its path, for messages.
class Section {
 public:
  Section(YAML::Node node, std::string path) : node_(std::move(node)), path_(std::move(path)) {}

  absl::Status Error(absl::string_view field, absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, field, ": ", message));
  }

  bool Has(const char* field) const {
    const YAML::Node value = node_[field];
    return value.IsDefined() && !value.IsNull() && !(value.IsScalar() && value.Scalar().empty());
  }

  // The text of a field; empty if absent.
  absl::StatusOr<std::string> Text(const char* field) const {
    if (!Has(field)) return std::string();
    const YAML::Node value = node_[field];
    if (!value.IsScalar()) return Error(field, "expected a string");
    return value.Scalar();
  }

  absl::StatusOr<bool> Flag(const char* field) const {
    if (!Has(field)) return false;
    const YAML::Node value = node_[field];
    if (value.IsScalar() && value.Scalar() == "true") return true;
    if (value.IsScalar() && value.Scalar() == "false") return false;
    return Error(field, "expected true or false");
  }

  // The content of a base64 field.
  absl::StatusOr<std::string> Data(const char* field) const {
    absl::StatusOr<std::string> text = Text(field);
    if (!text.ok()) return text;
    std::string decoded;
    if (!absl::Base64Unescape(*text, &decoded)) return Error(field, "not valid base64");
    return decoded;
  }

  // The mapping under `field`; empty if absent.
  absl::StatusOr<Section> Child(const char* field) const {
    YAML::Node value = node_[field];
    if (!value.IsDefined() || value.IsNull()) value = YAML::Node(YAML::NodeType::Map);
    if (!value.IsMap()) return Error(field, "expected a mapping");
    return Section(value, absl::StrCat(path_, field, "."));
  }

  // The entry called `name` in a list of {name, `field`: {…}}.
  absl::StatusOr<Section> Named(const char* list, const std::string& name,
                                const char* field) const {
    const YAML::Node entries = node_[list];
    if (entries.IsDefined() && !entries.IsNull() && !entries.IsSequence()) {
      return Error(list, "expected a list");
    }
    for (const YAML::Node& entry : entries) {
      if (!entry.IsMap() || !entry["name"] || !entry["name"].IsScalar()) {
        return Error(list, "expected entries with a name");
      }
      if (entry["name"].Scalar() != name) continue;
      return Section(entry, absl::StrCat(path_, list, "[name=", name, "].")).Child(field);
    }
    return Error(list, absl::StrCat("no entry is named \"", name, "\""));
  }

  const YAML::Node& node() const { return node_; }

 private:
  YAML::Node node_;
  std::string path_;
};

// Collects the first error of many field reads.
class Reader {
 public:
  std::string Text(const Section& section, const char* field) {
    return Take(section.Text(field), std::string());
  }
  std::string Data(const Section& section, const char* field) {
    return Take(section.Data(field), std::string());
  }
  bool Flag(const Section& section, const char* field) { return Take(section.Flag(field), false); }
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  T Take(absl::StatusOr<T> value, T fallback) {
    if (value.ok()) return *std::move(value);
    Fail(value.status());
    return fallback;
  }
  absl::Status status_;
};

std::string Absolute(const std::string& file, const std::string& kubeconfig) {
  if (file.empty() || file[0] == '/') return file;
  const size_t slash = kubeconfig.rfind('/');
  return slash == std::string::npos ? file : absl::StrCat(kubeconfig.substr(0, slash + 1), file);
}

absl::Status ReadCluster(const Section& cluster, const std::string& path,
                         const KubeconfigOptions& options, ClientConfig* config) {
  Reader reader;
  config->server = std::string(absl::StripSuffix(reader.Text(cluster, "server"), "/"));
  config->ca_pem = reader.Data(cluster, "certificate-authority-data");
  config->ca_file = Absolute(reader.Text(cluster, "certificate-authority"), path);
  config->tls_server_name = reader.Text(cluster, "tls-server-name");
  config->proxy_url = reader.Text(cluster, "proxy-url");
  config->insecure_skip_tls_verify = reader.Flag(cluster, "insecure-skip-tls-verify");
  if (!reader.status().ok()) return reader.status();
  if (config->server.empty()) return cluster.Error("server", "required");
  if (!absl::StartsWith(config->server, "https://") &&
      !absl::StartsWith(config->server, "http://")) {
    return cluster.Error("server", "expected a URL with https:// or http://");
  }
  // Data takes precedence, as in client-go.
  if (!config->ca_pem.empty()) config->ca_file.clear();
  if (config->insecure_skip_tls_verify) {
    if (!options.allow_insecure) {
      return cluster.Error("insecure-skip-tls-verify",
                           "the server's identity would not be verified; set certificate-authority "
                           "instead");
    }
    if (!config->ca_pem.empty() || !config->ca_file.empty()) {
      return cluster.Error("insecure-skip-tls-verify",
                           "cannot be combined with a certificate-authority");
    }
  }
  if (!config->proxy_url.empty() && !absl::StartsWith(config->proxy_url, "http://") &&
      !absl::StartsWith(config->proxy_url, "https://") &&
      !absl::StartsWith(config->proxy_url, "socks5://")) {
    return cluster.Error("proxy-url", "expected a URL with http://, https:// or socks5://");
  }
  return absl::OkStatus();
}

absl::Status CheckRefused(const Section& user) {
  if (user.Has("username") || user.Has("password")) {
    return user.Error("username",
                      "basic authentication is not supported (kube-apiserver removed it in "
                      "1.19); use a token, a client certificate or exec");
  }
  if (user.Has("auth-provider")) {
    return user.Error("auth-provider", "not supported; use the provider's exec plugin");
  }
  for (const char* field : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.Has(field)) return user.Error(field, "impersonation is not supported");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<CredentialSource>> ReadExec(const Section& user,
                                                           const std::string& path,
                                                           const ClientConfig& cluster) {
  auto exec = user.Child("exec");
  if (!exec.ok()) return exec.status();
  Reader reader;
  ExecCredentialOptions options;
  options.command = reader.Text(*exec, "command");
  options.api_version = reader.Text(*exec, "apiVersion");
  options.install_hint = reader.Text(*exec, "installHint");
  const std::string interactive = reader.Text(*exec, "interactiveMode");
  const bool cluster_info = reader.Flag(*exec, "provideClusterInfo");
  if (!reader.status().ok()) return reader.status();
  if (options.command.empty()) return exec->Error("command", "required");
  if (absl::StrContains(options.command, "/")) options.command = Absolute(options.command, path);
  if (options.api_version != "client.authentication.k8s.io/v1" &&
      options.api_version != "client.authentication.k8s.io/v1beta1") {
    return exec->Error("apiVersion", "expected client.authentication.k8s.io/v1 or /v1beta1");
  }
  if (interactive == "Always") {
    return exec->Error("interactiveMode",
                       "Always is not supported: this process is not interactive");
  }
  if (!interactive.empty() && interactive != "Never" && interactive != "IfAvailable") {
    return exec->Error("interactiveMode", "expected Never, IfAvailable or Always");
  }
  const YAML::Node args = exec->node()["args"];
  if (args.IsDefined() && !args.IsNull()) {
    if (!args.IsSequence()) return exec->Error("args", "expected a list");
    for (const YAML::Node& arg : args) {
      if (!arg.IsScalar()) return exec->Error("args", "expected strings");
      options.args.push_back(arg.Scalar());
    }
  }
  const YAML::Node env = exec->node()["env"];
  if (env.IsDefined() && !env.IsNull()) {
    if (!env.IsSequence()) return exec->Error("env", "expected a list");
    for (const YAML::Node& entry : env) {
      if (!entry.IsMap() || !entry["name"] || !entry["name"].IsScalar() || !entry["value"] ||
          !entry["value"].IsScalar()) {
        return exec->Error("env", "expected entries with name and value");
      }
      options.env.emplace_back(entry["name"].Scalar(), entry["value"].Scalar());
    }
  }
  if (cluster_info) {
    nlohmann::json info = {{"server", cluster.server}};
    std::string ca = cluster.ca_pem;
    if (!cluster.ca_file.empty()) {
      auto content = ReloadingFile(cluster.ca_file, absl::ZeroDuration()).Get(SteadyNow());
      if (content.ok()) ca = *content;
    }
    if (!ca.empty()) info["certificate-authority-data"] = absl::Base64Escape(ca);
    if (!cluster.tls_server_name.empty()) info["tls-server-name"] = cluster.tls_server_name;
    if (cluster.insecure_skip_tls_verify) info["insecure-skip-tls-verify"] = true;
    if (!cluster.proxy_url.empty()) info["proxy-url"] = cluster.proxy_url;
    options.cluster_json = info.dump();
  }
  return MakeExecCredentials(std::move(options));
}

absl::StatusOr<std::shared_ptr<CredentialSource>> ReadUser(const Section& user,
                                                           const std::string& path,
                                                           const ClientConfig& cluster) {
  absl::Status refused = CheckRefused(user);
  if (!refused.ok()) return refused;
  Reader reader;
  StaticCredentialOptions options;
  options.token = reader.Text(user, "token");
  options.token_file = Absolute(reader.Text(user, "tokenFile"), path);
  options.client_certificate_pem = reader.Data(user, "client-certificate-data");
  options.client_certificate_file = Absolute(reader.Text(user, "client-certificate"), path);
  options.client_key_pem = reader.Data(user, "client-key-data");
  options.client_key_file = Absolute(reader.Text(user, "client-key"), path);
  if (!reader.status().ok()) return reader.status();
  if (!options.client_certificate_pem.empty()) options.client_certificate_file.clear();
  if (!options.client_key_pem.empty()) options.client_key_file.clear();
  const bool has_certificate =
      !options.client_certificate_pem.empty() || !options.client_certificate_file.empty();
  const bool has_key = !options.client_key_pem.empty() || !options.client_key_file.empty();
  if (has_certificate && !has_key) {
    return user.Error("client-key-data",
                      "client-key-data or client-key is required with a client "
                      "certificate");
  }
  if (has_key && !has_certificate) {
    return user.Error("client-certificate-data", "a client key without a client certificate");
  }
  const bool has_token = !options.token.empty() || !options.token_file.empty();
  if (user.Has("exec")) {
    if (has_token || has_certificate) {
      return user.Error("exec", "cannot be combined with a token or a client certificate");
    }
    return ReadExec(user, path, cluster);
  }
  auto source = MakeStaticCredentials(std::move(options));
  // Files that are missing now indicate a configuration error, not an outage to wait for.
  auto first = source->Get(SteadyNow());
  if (!first.ok()) return user.Error("", first.status().message());
  return source;
}

absl::StatusOr<ClientConfig> ReadDocument(const YAML::Node& document, const std::string& path,
                                          const KubeconfigOptions& options) {
  if (!document.IsMap()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a mapping"));
  }
  const Section root(document, absl::StrCat(path, ": "));
  Reader reader;
  std::string context_name = options.context;
  if (context_name.empty()) context_name = reader.Text(root, "current-context");
  if (!reader.status().ok()) return reader.status();
  if (context_name.empty()) return root.Error("current-context", "required");
  auto context = root.Named("contexts", context_name, "context");
  if (!context.ok()) return context.status();
  const std::string cluster_name = reader.Text(*context, "cluster");
  const std::string user_name = reader.Text(*context, "user");
  ClientConfig config;
  config.default_namespace = reader.Text(*context, "namespace");
  if (!reader.status().ok()) return reader.status();
  if (cluster_name.empty()) return context->Error("cluster", "required");
  auto cluster = root.Named("clusters", cluster_name, "cluster");
  if (!cluster.ok()) return cluster.status();
  absl::Status read = ReadCluster(*cluster, path, options, &config);
  if (!read.ok()) return read;
  if (user_name.empty()) {
    config.credentials = MakeStaticCredentials({});
    return config;
  }
  auto user = root.Named("users", user_name, "user");
  if (!user.ok()) return user.status();
  auto credentials = ReadUser(*user, path, config);
  if (!credentials.ok()) return credentials.status();
  config.credentials = *std::move(credentials);
  if (!config.ca_file.empty()) {
    auto ca = ReloadingFile(config.ca_file, absl::ZeroDuration()).Get(SteadyNow());
    if (!ca.ok()) return cluster->Error("certificate-authority", ca.status().message());
  }
  return config;
}

}  // namespace

absl::StatusOr<ClientConfig> LoadKubeconfig(const std::string& path,
                                            const KubeconfigOptions& options) {
  auto content = ReloadingFile(path, absl::ZeroDuration()).Get(SteadyNow());
  if (!content.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("kubeconfig ", content.status().message()));
  }
  try {
    return ReadDocument(YAML::Load(*content), path, options);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", error.mark.line + 1, ": ", error.msg));
  }
}

absl::StatusOr<ClientConfig> LoadInClusterConfig(const std::string& directory) {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr || *host == '\0' || *port == '\0') {
    return absl::InvalidArgumentError(
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; set "
        "--kubeconfig or clientConnection.kubeconfig");
  }
  ClientConfig config;
  const bool bare_v6 = absl::StrContains(host, ":") && host[0] != '[';
  config.server = bare_v6 ? absl::StrCat("https://[", host, "]:", port)
                          : absl::StrCat("https://", host, ":", port);
  config.ca_file = absl::StrCat(directory, "/ca.crt");
  StaticCredentialOptions options;
  options.token_file = absl::StrCat(directory, "/token");
  config.credentials = MakeStaticCredentials(std::move(options));
  auto token = config.credentials->Get(SteadyNow());
  if (!token.ok()) return token.status();
  auto ca = ReloadingFile(config.ca_file, absl::ZeroDuration()).Get(SteadyNow());
  if (!ca.ok()) return ca.status();
  auto ns = ReloadingFile(absl::StrCat(directory, "/namespace"), absl::ZeroDuration());
  auto name = ns.Get(SteadyNow());
  if (name.ok()) config.default_namespace = std::string(absl::StripAsciiWhitespace(*name));
  return config;
}

}  // namespace outboard::kube
