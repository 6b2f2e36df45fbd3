// Reads the hosts of a ShimConfiguration.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/config/documents.h"

namespace outboard::config {
namespace {

void ReadTls(MapReader& reader, HostTls* out) {
  const std::pair<const char*, std::string*> files[] = {
      {"caFile", &out->ca_file}, {"certFile", &out->cert_file}, {"keyFile", &out->key_file}};
  for (const auto& [key, value] : files) {
    reader.String(key, value);
    if (value->empty()) reader.problems().Add(reader.where(key), "Required value");
  }
  reader.String("serverName", &out->server_name);
}

void CheckHostAddress(MapReader& reader, const Location& where, const std::string& address,
                      const HostSpec& host) {
  if (absl::StartsWith(address, "unix:")) {
    const size_t length = address.size() - 5;
    if (length == 0 || length > kMaxSocketPath) {
      reader.problems().Add(where, absl::StrCat("a socket path must have 1 to ", kMaxSocketPath,
                                                " bytes, not ", length));
    }
    if (host.tls.has_value()) {
      reader.problems().Add(reader.where("tls"),
                            "not supported for Unix sockets; file permissions control access");
    }
    return;
  }
  std::string name;
  int port = 0;
  if (!SplitHostPort(address, &name, &port) || name.empty() || port == 0) {
    reader.problems().Add(where,
                          absl::StrCat("expected unix:PATH or HOST:PORT, got \"", address, "\"",
                                       absl::StartsWith(address, "/")
                                           ? absl::StrCat("; did you mean unix:", address, "?")
                                           : ""));
  } else if (!host.tls.has_value()) {
    reader.problems().Add(where, "a network address requires tls: {caFile, certFile, keyFile}");
  }
}

// A label selector without sets: KEY=VALUE, or several joined by commas.
bool IsSelector(absl::string_view text) {
  const std::vector<absl::string_view> terms = absl::StrSplit(text, ',');
  return std::all_of(terms.begin(), terms.end(), [](absl::string_view term) {
    const std::vector<absl::string_view> sides = absl::StrSplit(term, '=');
    if (sides.size() != 2) return false;
    const std::vector<absl::string_view> key = absl::StrSplit(sides[0], '/');
    return key.size() <= 2 && IsLabelText(key.back()) && (key.size() == 1 || !key[0].empty()) &&
           (sides[1].empty() || IsLabelText(sides[1]));
  });
}

void ReadHostPods(MapReader& reader, const std::optional<HostTls>& tls, HostPodsSpec* out) {
  if (!reader.String("namespace", &out->pod_namespace) || !IsLabelText(out->pod_namespace)) {
    reader.problems().Add(reader.where("namespace"), "Required value: a namespace");
  }
  if (!reader.String("selector", &out->selector) || !IsSelector(out->selector)) {
    reader.problems().Add(
        reader.where("selector"),
        absl::StrCat("expected labels of pods, KEY=VALUE or several joined by commas, got \"",
                     out->selector, "\""));
  }
  if (!reader.Int32("port", &out->port) || out->port < 1 || out->port > 65535)
    reader.problems().Add(reader.where("port"), "Required value: a port from 1 to 65535");
  if (!tls.has_value() || tls->server_name.empty()) {
    reader.problems().Add(reader.where(),
                          "requires tls: {caFile, certFile, keyFile, serverName}; the certificate "
                          "cannot name each pod's address");
  }
}

// `pods`, `address`, or `addresses` of several instances. `seen`: those of other hosts.
void ReadHostAddresses(MapReader& entry, const ShimConfig& shim, std::set<std::string>* seen,
                       HostSpec* host) {
  std::vector<std::string> addresses;
  entry.String("address", &host->address);
  const bool is_list = entry.StringList("addresses", &addresses) && !addresses.empty();
  if (is_list && !host->address.empty())
    entry.problems().Add(entry.where("addresses"), "specify either address or addresses");
  if (!is_list && !host->address.empty()) addresses = {host->address};
  entry.Map("pods", [&](MapReader& pods) {
    if (!addresses.empty()) pods.problems().Add(pods.where(), "specify either pods or an address");
    ReadHostPods(pods, host->tls, &host->pods.emplace());
    const std::string key = absl::StrCat("pods ", host->pods->selector, " in ",
                                         host->pods->pod_namespace, ", port ", host->pods->port);
    if (!seen->insert(key).second)
      pods.problems().Add(pods.where(), absl::StrCat("Duplicate value: ", key));
  });
  if (host->pods.has_value()) return;
  if (addresses.empty() && shim.socket_directory.empty())
    entry.problems().Add(entry.where("address"), "Required value without a socketDirectory");
  const Location where = entry.where(is_list ? "addresses" : "address");
  for (const std::string& address : addresses) {
    CheckHostAddress(entry, where, address, *host);
    if (!seen->insert(address).second)
      entry.problems().Add(where, absl::StrCat("Duplicate value: \"", address, "\""));
  }
  if (!is_list) return;
  host->address = addresses.front();
  host->other_addresses.assign(addresses.begin() + 1, addresses.end());
}

// The shim relays what is there to readers that it has authorized, so it must be this machine.
void ReadMetricsAddress(MapReader& reader, std::string* out) {
  std::string host;
  int port = 0;
  if (!reader.String("metricsAddress", out) || out->empty()) return;
  if (!SplitHostPort(*out, &host, &port) || !IsLoopback(host) || port == 0) {
    reader.problems().Add(
        reader.where("metricsAddress"),
        absl::StrCat("expected 127.0.0.1:PORT or [::1]:PORT, got \"", *out, "\""));
  }
}

}  // namespace

bool IsLabelText(absl::string_view text) {
  const auto ends_well = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  return !text.empty() && text.size() <= 63 && ends_well(text.front()) && ends_well(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return ends_well(c) || c == '-' || c == '_' || c == '.'; });
}

void ReadHosts(MapReader& reader, ShimConfig* out) {
  std::set<std::string> names;
  std::set<std::string> addresses;
  reader.MapList("hosts", [&](MapReader& entry) {
    HostSpec host;
    host.where = entry.where();
    if (!entry.String("name", &host.name) || host.name.empty()) {
      entry.problems().Add(entry.where("name"), "Required value");
    } else if (!IsLabelText(host.name)) {
      // It is part of sockets' names, of commands and of metrics.
      entry.problems().Add(entry.where("name"),
                           absl::StrCat("expected letters, digits, -, _ and ., at most 63, got \"",
                                        host.name, "\""));
    } else if (!names.insert(host.name).second) {
      entry.problems().Add(entry.where("name"),
                           absl::StrCat("Duplicate value: \"", host.name, "\""));
    }
    entry.Map("tls", [&](MapReader& tls) { ReadTls(tls, &host.tls.emplace()); });
    ReadHostAddresses(entry, *out, &addresses, &host);
    ReadMetricsAddress(entry, &host.metrics_address);
    out->hosts.push_back(std::move(host));
  });
}

}  // namespace outboard::config
