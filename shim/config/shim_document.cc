// Reads ShimConfiguration, config.outboard.dev/v1alpha1.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shim/config/documents.h"
#include "shim/kube/wire/custom_resource_name.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::config {
namespace {

// Each type is a value of a metric's label, and each key is looked up in every pod that waited.
constexpr size_t kMaxWorkloadTypes = 32;
constexpr size_t kMaxJobNameLabels = 16;
// Each is copied from every container that has it.
constexpr size_t kMaxEnvironmentVariables = 256;
constexpr size_t kMaxEnvironmentVariableBytes = 256;

void ReadDeadlines(MapReader& reader, Deadlines* out) {
  const std::pair<const char*, absl::Duration*> fields[] = {{"cycle", &out->cycle},
                                                            {"reserve", &out->reserve},
                                                            {"permit", &out->permit},
                                                            {"bind", &out->bind},
                                                            {"queue", &out->queue}};
  for (const auto& [key, value] : fields) {
    if (!reader.Duration(key, value)) continue;
    if (*value < absl::Milliseconds(1) || *value > absl::Minutes(1)) {
      reader.problems().Add(reader.where(key),
                            absl::StrCat("Invalid value: \"", absl::FormatDuration(*value),
                                         "\": must be from 1ms to 1m"));
    }
  }
}

void ReadPolicy(MapReader& reader, FailurePolicyRule* rule) {
  rule->where = reader.where();
  if (!reader.String("plugin", &rule->plugin) || rule->plugin.empty()) {
    reader.problems().Add(reader.where("plugin"), "Required value");
  }
  std::string point;
  reader.String("point", &point);
  if (std::optional<v1beta1::ExtensionPoint> found = PointByName(point)) {
    rule->point = *found;
  } else {
    std::vector<std::string> known;
    for (const v1beta1::ExtensionPoint one : AllPoints()) known.emplace_back(PointName(one));
    const std::string hint = DidYouMean(point, known);
    reader.problems().Add(reader.where("point"),
                          absl::StrCat("unknown extension point \"", point, "\"",
                                       hint.empty() ? " (for example: filter)" : hint));
  }
  std::string policy;
  reader.String("policy", &policy);
  if (policy == "FailClosed") {
    rule->policy = FailurePolicy::kFailClosed;
  } else if (policy == "FailOpen") {
    rule->policy = FailurePolicy::kFailOpen;
  } else if (policy == "UseLast") {
    rule->policy = FailurePolicy::kUseLast;
    if (rule->point != v1beta1::EXTENSION_POINT_SCORE) {
      reader.problems().Add(reader.where("policy"), "UseLast is supported for score only");
    }
  } else {
    reader.problems().Add(
        reader.where("policy"),
        absl::StrCat("expected FailClosed, FailOpen or UseLast, got \"", policy, "\"",
                     DidYouMean(policy, {"FailClosed", "FailOpen", "UseLast"})));
  }
}

void CheckServingAddress(MapReader& reader, const std::string& address) {
  if (address.empty()) return;
  std::string host;
  int port = 0;
  if (absl::string_view path = address; absl::ConsumePrefix(&path, "unix:")) {
    if (!absl::StartsWith(path, "/") || path.size() > kMaxSocketPath) {
      reader.problems().Add(
          reader.where("servingAddress"),
          absl::StrCat("must be unix: and an absolute path of at most ", kMaxSocketPath, " bytes"));
    }
  } else if (!SplitHostPort(address, &host, &port)) {
    reader.problems().Add(
        reader.where("servingAddress"),
        absl::StrCat("expected HOST:PORT, unix:PATH or \"\" for none, got \"", address, "\""));
  } else if (!IsLoopback(host)) {
    reader.problems().Add(
        reader.where("servingAddress"),
        "only loopback addresses (127.0.0.1, ::1, localhost) are served without TLS; use "
        "secureServing for other addresses");
  }
}

void ReadSecureServing(MapReader& reader, SecureServing* out) {
  reader.String("address", &out->address);
  std::string host;
  int port = 0;
  if (!SplitHostPort(out->address, &host, &port) || host.empty()) {
    reader.problems().Add(
        reader.where("address"),
        absl::StrCat("expected HOST:PORT, for example 0.0.0.0:10270, got \"", out->address, "\""));
  }
  const std::pair<const char*, std::string*> files[] = {{"certFile", &out->cert_file},
                                                        {"keyFile", &out->key_file},
                                                        {"clientCAFile", &out->client_ca_file}};
  for (const auto& [key, file] : files) {
    reader.String(key, file);
    if (!file->empty() && (*file)[0] != '/')
      reader.problems().Add(reader.where(key), "must be an absolute path");
  }
  if (out->cert_file.empty() != out->key_file.empty()) {
    reader.problems().Add(reader.where(out->cert_file.empty() ? "certFile" : "keyFile"),
                          "Required value: set both certFile and keyFile");
  }
}

// Whose pods they are, and how their binds wait.
void ReadExternalBinds(MapReader& reader, ExtenderConfig* out) {
  std::vector<std::string> names;
  if (reader.StringList("schedulerNames", &names)) {
    out->names_at = reader.where("schedulerNames");
    out->scheduler_names = std::move(names);
    std::set<std::string> seen;
    for (const std::string& name : out->scheduler_names) {
      if (name.empty()) {
        reader.problems().Add(*out->names_at, "a name is empty");
      } else if (!seen.insert(name).second) {
        reader.problems().Add(*out->names_at, absl::StrCat("Duplicate value: \"", name, "\""));
      }
    }
  }
  if (out->profile.empty()) {
    if (out->names_at.has_value() && !out->scheduler_names.empty())
      reader.problems().Add(*out->names_at, "needs a profile");
    out->scheduler_names.clear();
  }
  reader.Duration("bindDeadline", &out->bind_deadline);
  if (out->bind_deadline < absl::Milliseconds(10) || out->bind_deadline > absl::Minutes(15))
    reader.problems().Add(reader.where("bindDeadline"), "must be from 10ms to 15m");
  reader.Int32("maxBinds", &out->max_binds);
  if (out->max_binds < 1 || out->max_binds > 4096)
    reader.problems().Add(reader.where("maxBinds"), "must be from 1 to 4096");
}

void ReadLeaderService(MapReader& reader, int port, std::string* out) {
  reader.String("leaderService", out);
  if (out->empty()) return;
  if (!kube::CheckDnsLabel(*out).empty()) {
    reader.problems().Add(reader.where("leaderService"),
                          absl::StrCat("expected the name of a Service, got \"", *out, "\""));
  } else if (port == 0) {
    reader.problems().Add(reader.where("leaderService"),
                          "needs an address with a port other than 0");
  }
}

void ReadExtender(MapReader& reader, ExtenderConfig* out) {
  std::string host;
  int port = 0;
  reader.Map("tls", [&](MapReader& tls) {
    ServerTls& files = out->tls.emplace();
    for (const auto& [key, value] :
         {std::pair("certFile", &files.cert_file), std::pair("keyFile", &files.key_file)}) {
      tls.String(key, value);
      if (value->empty()) tls.problems().Add(tls.where(key), "Required value");
    }
    tls.String("clientCAFile", &files.client_ca_file);
  });
  if (!reader.String("address", &out->address)) {
    reader.problems().Add(reader.where("address"), "Required value");
  } else if (!SplitHostPort(out->address, &host, &port) || host.empty()) {
    reader.problems().Add(reader.where("address"),
                          absl::StrCat("expected HOST:PORT, got \"", out->address, "\""));
  } else if (!IsLoopback(host) && !out->tls.has_value()) {
    reader.problems().Add(reader.where("address"),
                          "an address that is not loopback (127.0.0.1, ::1, localhost) needs tls: "
                          "{certFile, keyFile}");
  }
  reader.Bool("admitsBindings", &out->admits_bindings);
  reader.String("profile", &out->profile);
  if (out->profile.empty() && !out->admits_bindings)
    reader.problems().Add(reader.where("profile"), "Required value, unless admitsBindings is true");
  out->where = reader.where("profile");
  reader.Duration("deadline", &out->deadline);
  if (out->deadline < absl::Milliseconds(10) || out->deadline > absl::Minutes(1))
    reader.problems().Add(reader.where("deadline"), "must be from 10ms to 1m");
  ReadExternalBinds(reader, out);
  ReadLeaderService(reader, port, &out->leader_service);
}

void ReadPreemptionLimits(MapReader& reader, PreemptionLimits* out) {
  const std::pair<const char*, int32_t*> fields[] = {{"maxEvictionsPerAttempt", &out->per_attempt},
                                                     {"maxEvictionsPerMinute", &out->per_minute}};
  for (const auto& [key, value] : fields) {
    reader.Int32(key, value);
    if (*value < 0 || *value > 1000000)
      reader.problems().Add(reader.where(key), "must be from 0, for no limit, to 1000000");
  }
}

void ReadReplacement(MapReader& reader, Replacement* out) {
  const auto check = [&](const char* key, bool is_good, const std::string& range) {
    if (!is_good) reader.problems().Add(reader.where(key), absl::StrCat("must be ", range));
  };
  reader.Int32("shadowCycles", &out->shadow_cycles);
  check("shadowCycles", out->shadow_cycles >= 0 && out->shadow_cycles <= 10000, "from 0 to 10000");
  reader.Duration("shadowTimeout", &out->shadow_timeout);
  check("shadowTimeout",
        out->shadow_timeout >= absl::Milliseconds(100) && out->shadow_timeout <= absl::Hours(1),
        "from 100ms to 1h");
  reader.Duration("keepWarm", &out->keep_warm);
  check("keepWarm", out->keep_warm >= absl::ZeroDuration() && out->keep_warm <= absl::Hours(24),
        "from 0s to 24h");
  reader.Int32("rollbackFailures", &out->rollback_failures);
  check("rollbackFailures", out->rollback_failures >= 1 && out->rollback_failures <= 10000,
        "from 1 to 10000");
}

struct NamedVerb {
  absl::string_view name;
  v1beta1::DeclaredResource::Verb verb;
};
constexpr NamedVerb kVerbs[] = {{"create", v1beta1::DeclaredResource::VERB_CREATE},
                                {"update", v1beta1::DeclaredResource::VERB_UPDATE},
                                {"updateStatus", v1beta1::DeclaredResource::VERB_UPDATE_STATUS},
                                {"delete", v1beta1::DeclaredResource::VERB_DELETE},
                                {"patch", v1beta1::DeclaredResource::VERB_PATCH},
                                {"patchStatus", v1beta1::DeclaredResource::VERB_PATCH_STATUS}};

void ReadAllowedPodKeys(MapReader& reader, std::vector<std::string>* keys) {
  reader.StringList("allowedPodKeys", keys);
  for (const std::string& key : *keys) {
    if (const std::string fault = kube::CheckQualifiedName(key); !fault.empty()) {
      reader.problems().Add(reader.where("allowedPodKeys"),
                            absl::StrCat("Invalid value: \"", key, "\": ", fault));
    }
  }
}

// Pods, nodes and namespaces are not watched for it.
bool IsWriteOnly(const CustomResourceRule& rule) {
  const auto name = kube::ParseCustomResourceName(rule.resource);
  return name.ok() && kube::IsWriteOnly(*name);
}

void ReadCustomResource(MapReader& reader, CustomResourceRule* rule,
                        std::vector<std::string>* warnings) {
  rule->where = reader.where();
  if (!reader.String("resource", &rule->resource) || rule->resource.empty()) {
    reader.problems().Add(reader.where("resource"), "Required value");
  } else if (const auto name = kube::ParseCustomResourceName(rule->resource); !name.ok()) {
    reader.problems().Add(reader.where("resource"), std::string(name.status().message()));
  } else if (!kube::IsUsualVersion(name->version)) {
    // Legal, but more often the version was forgotten.
    const Location where = reader.where("resource");
    warnings->push_back(reader.problems().Line(
        where, where.path,
        absl::StrCat("version \"", name->version, "\" of ", name->resource, " in group ",
                     name->group, " is unusual; the form is RESOURCE.VERSION.GROUP, such as ",
                     name->resource, ".v1.", name->version, ".", name->group)));
  }
  std::vector<std::string> verbs;
  reader.StringList("verbs", &verbs);
  for (const std::string& verb : verbs) {
    const auto* found = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                     [&](const NamedVerb& known) { return known.name == verb; });
    if (found != std::end(kVerbs)) {
      rule->verbs.push_back(found->verb);
      continue;
    }
    std::vector<std::string> known;
    for (const NamedVerb& one : kVerbs) known.emplace_back(one.name);
    const std::string hint = DidYouMean(verb, known);
    reader.problems().Add(
        reader.where("verbs"),
        absl::StrCat("expected create, update, updateStatus, delete, patch or patchStatus, got \"",
                     verb, "\"",
                     hint.empty() ? "; the resource is always listed and watched" : hint));
  }
  if (verbs.empty() && IsWriteOnly(*rule)) {
    reader.problems().Add(reader.where("resource"),
                          absl::StrCat(rule->resource,
                                       " needs verbs: hosts get these objects anyway, and plugins "
                                       "may only write them here"));
  }
  reader.StringList("namespaces", &rule->namespaces);
}

bool IsLabelKey(absl::string_view key) {
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return IsLabelText(key);
  const absl::string_view prefix = key.substr(0, slash);
  // A DNS name: parts as a label's text without capitals, dots and underscores.
  if (prefix.size() > 253 || prefix.find_first_of("_ABCDEFGHIJKLMNOPQRSTUVWXYZ") != prefix.npos)
    return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(prefix, '.');
  return std::all_of(parts.begin(), parts.end(), IsLabelText) && IsLabelText(key.substr(slash + 1));
}

void ReadWorkloadLabels(MapReader& reader, WorkloadLabels* out) {
  const auto check_key = [&](const char* field, const std::string& key) {
    if (!IsLabelKey(key)) {
      reader.problems().Add(reader.where(field),
                            absl::StrCat("\"", key, "\" is not the key of a label"));
    }
  };
  // A given list replaces the default.
  const auto read_list = [&](const char* field, size_t most, std::vector<std::string>* list) {
    std::vector<std::string> given;
    if (reader.StringList(field, &given)) *list = std::move(given);
    if (list->size() > most)
      reader.problems().Add(reader.where(field),
                            absl::StrCat("must have at most ", most, " entries"));
  };
  reader.String("workloadTypeLabel", &out->type_label);
  if (!out->type_label.empty()) check_key("workloadTypeLabel", out->type_label);
  read_list("workloadTypes", kMaxWorkloadTypes, &out->types);
  // The values that stand for a pod without the label, and for all other values.
  std::set<std::string> seen = {"none", "other"};
  for (const std::string& type : out->types) {
    if (!IsLabelText(type)) {
      reader.problems().Add(reader.where("workloadTypes"),
                            absl::StrCat("\"", type, "\" is not the value of a label"));
    } else if (!seen.insert(absl::AsciiStrToLower(type)).second) {
      reader.problems().Add(reader.where("workloadTypes"),
                            absl::StrCat("Duplicate or reserved value: \"", type, "\""));
    }
  }
  read_list("jobNameLabels", kMaxJobNameLabels, &out->job_labels);
  for (const std::string& key : out->job_labels) check_key("jobNameLabels", key);
}

void ReadUnknownProfiles(MapReader& reader, UnknownProfiles* out) {
  reader.StringList("prefixes", &out->prefixes);
  for (const std::string& prefix : out->prefixes) {
    // "" would make every pod without a scheduler one of this installation.
    if (prefix.empty()) reader.problems().Add(reader.where("prefixes"), "must not be empty");
  }
}

void ReadEnvironmentVariables(MapReader& reader, std::vector<std::string>* out) {
  constexpr char kField[] = "allowedEnvironmentVariables";
  // A given list replaces the default.
  std::vector<std::string> given;
  if (reader.StringList(kField, &given)) *out = std::move(given);
  if (out->size() > kMaxEnvironmentVariables) {
    reader.problems().Add(reader.where(kField),
                          absl::StrCat("must have at most ", kMaxEnvironmentVariables, " entries"));
  }
  std::set<std::string> seen;
  for (const std::string& name : *out) {
    if (name.empty() || name.size() > kMaxEnvironmentVariableBytes ||
        absl::StrContains(name, '=') || absl::StrContains(name, "']")) {
      reader.problems().Add(
          reader.where(kField),
          absl::StrCat("\"", name, "\" is not the name of an environment variable"));
    } else if (!seen.insert(name).second) {
      reader.problems().Add(reader.where(kField), absl::StrCat("Duplicate value: \"", name, "\""));
    }
  }
}

void ReadAllowedUids(MapReader& reader, std::vector<int64_t>* out) {
  reader.List("allowedUids", [&](const YAML::Node& node, const std::string& path) {
    int64_t uid = -1;
    if (!node.IsScalar() || !absl::SimpleAtoi(node.Scalar(), &uid) || uid < 0 || uid > 0xffffffff) {
      reader.problems().Add(LocationOf(node, path), "expected a user id");
    }
    out->push_back(uid);
  });
}

}  // namespace

absl::string_view VerbName(v1beta1::DeclaredResource::Verb verb) {
  for (const NamedVerb& known : kVerbs) {
    if (known.verb == verb) return known.name;
  }
  return "";
}

bool IsLoopback(absl::string_view host) {
  return host == "127.0.0.1" || host == "::1" || host == "localhost";
}

bool SplitHostPort(absl::string_view address, std::string* host, int* port) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return false;
  absl::string_view name = address.substr(0, colon);
  if (absl::StartsWith(name, "[") != absl::EndsWith(name, "]")) return false;
  if (absl::StartsWith(name, "[") && name.size() >= 2) {
    name = name.substr(1, name.size() - 2);
  } else if (name.find(':') != absl::string_view::npos) {
    return false;
  }
  const absl::string_view digits = address.substr(colon + 1);
  if (digits.empty() || digits.size() > 5 ||
      digits.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(digits, port) || *port > 65535) {
    return false;
  }
  *host = std::string(name);
  return true;
}

void ReadShimConfig(MapReader& reader, ShimConfig* out, std::vector<std::string>* warnings) {
  reader.String("socketDirectory", &out->socket_directory);
  if (!out->socket_directory.empty() && out->socket_directory[0] != '/')
    reader.problems().Add(reader.where("socketDirectory"), "must be an absolute path");
  ReadHosts(reader, out);
  ReadAllowedUids(reader, &out->allowed_uids);
  reader.Map("replacement", [&](MapReader& r) { ReadReplacement(r, &out->replacement); });
  reader.String("servingAddress", &out->serving_address);
  CheckServingAddress(reader, out->serving_address);
  reader.Map("secureServing",
             [&](MapReader& r) { ReadSecureServing(r, &out->secure_serving.emplace()); });
  if (out->secure_serving.has_value() && !out->serving_address.empty() &&
      out->secure_serving->address == out->serving_address) {
    reader.problems().Add(reader.where("secureServing"),
                          "its address must differ from servingAddress");
  }
  reader.Map("deadlines", [&](MapReader& r) { ReadDeadlines(r, &out->deadlines); });
  reader.Map("preemption", [&](MapReader& r) { ReadPreemptionLimits(r, &out->preemption); });
  std::set<std::pair<std::string, int>> seen;
  reader.MapList("failurePolicies", [&](MapReader& r) {
    FailurePolicyRule rule;
    ReadPolicy(r, &rule);
    if (!seen.emplace(rule.plugin, rule.point).second) {
      r.problems().Add(r.where(),
                       "Duplicate value: the plugin has a policy for this point already");
    }
    out->failure_policies.push_back(std::move(rule));
  });
  std::set<std::string> resources;
  reader.MapList("customResources", [&](MapReader& r) {
    CustomResourceRule rule;
    ReadCustomResource(r, &rule, warnings);
    if (!resources.insert(rule.resource).second) {
      r.problems().Add(r.where("resource"),
                       absl::StrCat("Duplicate value: \"", rule.resource, "\""));
    }
    out->custom_resources.push_back(std::move(rule));
  });
  ReadAllowedPodKeys(reader, &out->allowed_pod_keys);
  reader.Map("extender", [&](MapReader& r) { ReadExtender(r, &out->extender.emplace()); });
  reader.Map("metrics", [&](MapReader& r) { ReadWorkloadLabels(r, &out->metrics); });
  reader.Map("unknownProfiles",
             [&](MapReader& r) { ReadUnknownProfiles(r, &out->unknown_profiles); });
  ReadEnvironmentVariables(reader, &out->reading.environment_variables);
  reader.Map("featureGates", [&](MapReader& r) {
    r.Bool("TaintTolerationComparisonOperators",
           &out->reading.feature_gates.taint_toleration_comparison_operators);
  });
  reader.Int32("verbosity", &out->verbosity);
  if (out->verbosity < 0 || out->verbosity > 10) {
    reader.problems().Add(reader.where("verbosity"), absl::StrCat("Invalid value: ", out->verbosity,
                                                                  ": must be from 0 to 10"));
  }
  reader.Int32("explainMemoryMiB", &out->explain_memory_mib);
  if (out->explain_memory_mib < 1 || out->explain_memory_mib > 65536) {
    reader.problems().Add(
        reader.where("explainMemoryMiB"),
        absl::StrCat("Invalid value: ", out->explain_memory_mib, ": must be from 1 to 65536"));
  }
  reader.Finish();
}

}  // namespace outboard::config
