#include "shim/extender/messages.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/extender/json_scanner.h"

namespace outboard::extender {
namespace {

constexpr char kUnknownNode[] = "node(s) were not known to the extender";

// A list, or null as Go may encode it.
bool ListOrNull(JsonScanner& scan, absl::FunctionRef<bool()> element) {
  return scan.TakeNull() || scan.List(element);
}

// The name, namespace and uid in an object's metadata.
struct Metadata {
  std::string name;
  std::string name_space;
  std::string uid;
};

bool ReadMetadataFields(JsonScanner& scan, Metadata* out) {
  return scan.Object([&](absl::string_view name) {
    if (name == "name") return scan.String(&out->name);
    if (name == "namespace") return scan.String(&out->name_space);
    if (name == "uid") return scan.String(&out->uid);
    return scan.Skip();
  });
}

bool ReadMetadata(JsonScanner& scan, Metadata* out) {
  return scan.Object([&](absl::string_view field) {
    return field == "metadata" ? ReadMetadataFields(scan, out) : scan.Skip();
  });
}

bool ReadPod(JsonScanner& scan, PodName* out) {
  if (scan.TakeNull()) return true;
  Metadata metadata;
  if (!ReadMetadata(scan, &metadata)) return false;
  out->uid = metadata.uid;
  out->key = absl::StrCat(metadata.name_space, "/", metadata.name);
  return true;
}

bool ReadNodes(JsonScanner& scan, NodesQuestion* out) {
  return scan.Object([&](absl::string_view field) {
    if (field != "items") return scan.Skip();
    return ListOrNull(scan, [&] {
      Metadata metadata;
      const size_t mark = scan.Mark();
      if (!ReadMetadata(scan, &metadata)) return false;
      if (metadata.name.empty()) return scan.Fail("a node has no name");
      out->names.push_back(std::move(metadata.name));
      out->nodes.push_back(scan.Since(mark));
      return true;
    });
  });
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the request ", what));
}

absl::Status CheckPod(const JsonScanner& scan, const PodName& pod) {
  if (!scan.status().ok()) return Wrong(absl::StrCat("is malformed: ", scan.status().message()));
  if (pod.uid.empty()) return Wrong("has no pod with a uid");
  return absl::OkStatus();
}

// The uids of the pods in Victims or MetaVictims.
bool ReadVictims(JsonScanner& scan, bool meta, Victims* out) {
  return scan.TakeNull() || scan.Object([&](absl::string_view field) {
    if (absl::EqualsIgnoreCase(field, "NumPDBViolations")) return scan.Int(&out->budget_violations);
    if (!absl::EqualsIgnoreCase(field, "Pods")) return scan.Skip();
    return ListOrNull(scan, [&] {
      std::string uid;
      if (meta) {
        if (!scan.Object([&](absl::string_view name) {
              return absl::EqualsIgnoreCase(name, "UID") ? scan.String(&uid) : scan.Skip();
            })) {
          return false;
        }
      } else {
        Metadata metadata;
        if (!ReadMetadata(scan, &metadata)) return false;
        uid = std::move(metadata.uid);
      }
      if (uid.empty()) return scan.Fail("a victim has no uid");
      out->uids.push_back(std::move(uid));
      return true;
    });
  });
}

bool ReadVictimsByNode(JsonScanner& scan, bool meta, PreemptionQuestion* out) {
  return scan.TakeNull() || scan.Object([&](absl::string_view node) {
    Victims victims;
    victims.node = std::string(node);
    if (!ReadVictims(scan, meta, &victims)) return false;
    out->nodes.push_back(std::move(victims));
    return true;
  });
}

}  // namespace

absl::StatusOr<NodesQuestion> DecodeNodesQuestion(absl::string_view body) {
  JsonScanner scan(body);
  NodesQuestion question;
  bool by_node = false;
  const bool read = scan.Object([&](absl::string_view field) {
    if (absl::EqualsIgnoreCase(field, "Pod")) return ReadPod(scan, &question.pod);
    if (absl::EqualsIgnoreCase(field, "Nodes")) {
      if (scan.TakeNull()) return true;
      if (question.by_name || by_node) return scan.Fail("nodes are specified twice");
      by_node = true;
      return ReadNodes(scan, &question);
    }
    if (absl::EqualsIgnoreCase(field, "NodeNames")) {
      if (scan.TakeNull()) return true;
      if (question.by_name || by_node) return scan.Fail("nodes are specified twice");
      question.by_name = true;
      return scan.List([&] { return scan.String(&question.names.emplace_back()); });
    }
    return scan.Skip();
  });
  (void)(read && scan.End());
  if (absl::Status checked = CheckPod(scan, question.pod); !checked.ok()) return checked;
  if (!by_node && !question.by_name) return Wrong("has neither Nodes nor NodeNames");
  return question;
}

absl::StatusOr<PreemptionQuestion> DecodePreemption(absl::string_view body) {
  JsonScanner scan(body);
  PreemptionQuestion question;
  const bool read = scan.Object([&](absl::string_view field) {
    if (absl::EqualsIgnoreCase(field, "Pod")) return ReadPod(scan, &question.pod);
    const bool meta = absl::EqualsIgnoreCase(field, "NodeNameToMetaVictims");
    if (!meta && !absl::EqualsIgnoreCase(field, "NodeNameToVictims")) return scan.Skip();
    return ReadVictimsByNode(scan, meta, &question);
  });
  (void)(read && scan.End());
  if (absl::Status checked = CheckPod(scan, question.pod); !checked.ok()) return checked;
  return question;
}

absl::StatusOr<BindingOrder> DecodeBinding(absl::string_view body) {
  JsonScanner scan(body);
  BindingOrder order;
  std::string name;
  std::string name_space;
  const bool read = scan.Object([&](absl::string_view field) {
    if (absl::EqualsIgnoreCase(field, "PodName")) return scan.String(&name);
    if (absl::EqualsIgnoreCase(field, "PodNamespace")) return scan.String(&name_space);
    if (absl::EqualsIgnoreCase(field, "PodUID")) return scan.String(&order.pod.uid);
    if (absl::EqualsIgnoreCase(field, "Node")) return scan.String(&order.node);
    return scan.Skip();
  });
  (void)(read && scan.End());
  order.pod.key = absl::StrCat(name_space, "/", name);
  if (absl::Status checked = CheckPod(scan, order.pod); !checked.ok()) return checked;
  if (order.node.empty()) return Wrong("has no node");
  return order;
}

absl::StatusOr<BindReview> DecodeBindReview(absl::string_view body) {
  JsonScanner scan(body);
  BindReview review;
  std::string resource, subresource, operation, kind, name_space;
  Metadata metadata;
  const auto read_object = [&](absl::string_view field) {
    if (field == "metadata") return ReadMetadataFields(scan, &metadata);
    if (field != "target") return scan.Skip();
    return scan.Object([&](absl::string_view name) {
      if (name == "kind") return scan.String(&kind);
      return name == "name" ? scan.String(&review.order.node) : scan.Skip();
    });
  };
  const auto read_request = [&](absl::string_view field) {
    if (field == "uid") return scan.String(&review.uid);
    if (field == "subResource") return scan.String(&subresource);
    if (field == "operation") return scan.String(&operation);
    if (field == "namespace") return scan.String(&name_space);
    if (field == "dryRun") return scan.TakeNull() || scan.Bool(&review.dry_run);
    if (field == "resource") {
      return scan.Object([&](absl::string_view name) {
        return name == "resource" ? scan.String(&resource) : scan.Skip();
      });
    }
    if (field == "object") return scan.TakeNull() || scan.Object(read_object);
    return scan.Skip();
  };
  const bool read = scan.Object([&](absl::string_view field) {
    return field == "request" ? scan.Object(read_request) : scan.Skip();
  });
  (void)(read && scan.End());
  if (!scan.status().ok()) return Wrong(absl::StrCat("is malformed: ", scan.status().message()));
  if (review.uid.empty()) return Wrong("is not an AdmissionReview with a request.uid");
  if (resource != "pods" || subresource != "binding" || operation != "CREATE")
    return Wrong("is not a review of a CREATE of pods/binding");
  if (metadata.name.empty() || review.order.node.empty() || (!kind.empty() && kind != "Node"))
    return Wrong("has no pod or no node");
  review.order.pod = {metadata.uid, absl::StrCat(name_space, "/", metadata.name)};
  return review;
}

std::string EncodeFilter(const NodesQuestion& question, const NodesAnswer& answer) {
  std::string out;
  size_t bytes = 256 + question.names.size() * 64;
  for (const absl::string_view node : question.nodes) bytes += node.size() + 1;
  out.reserve(bytes);
  out.append(question.by_name ? R"({"Nodes":null,"NodeNames":[)"
                              : R"({"Nodes":{"metadata":{},"items":[)");
  bool first = true;
  for (size_t i = 0; i < question.names.size(); ++i) {
    if (answer.verdicts[i] != NodesAnswer::kFeasible) continue;
    if (!std::exchange(first, false)) out.push_back(',');
    if (question.by_name) {
      AppendJsonString(question.names[i], &out);
    } else {
      absl::StrAppend(&out, question.nodes[i]);
    }
  }
  out.append(question.by_name ? "]" : R"(]},"NodeNames":null)");
  std::vector<std::string> messages;
  for (const v1beta1::PluginStatus& reason : answer.reasons) {
    AppendJsonString(absl::StrJoin(reason.reasons(), ", "), &messages.emplace_back());
  }
  for (const bool resolvable : {true, false}) {
    out.append(resolvable ? R"(,"FailedNodes":{)" : R"(},"FailedAndUnresolvableNodes":{)");
    first = true;
    for (size_t i = 0; i < question.names.size(); ++i) {
      const int verdict = answer.verdicts[i];
      if (verdict == NodesAnswer::kFeasible) continue;
      const bool is_unresolvable =
          verdict >= 0 && answer.reasons[static_cast<size_t>(verdict)].code() ==
                              v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
      if (is_unresolvable == resolvable) continue;
      if (!std::exchange(first, false)) out.push_back(',');
      AppendJsonString(question.names[i], &out);
      out.push_back(':');
      if (verdict < 0) {
        AppendJsonString(kUnknownNode, &out);
      } else {
        out.append(messages[static_cast<size_t>(verdict)]);
      }
    }
  }
  out.append(R"(},"Error":""})");
  return out;
}

std::string EncodePriorities(const NodesQuestion& question, const NodesAnswer& answer) {
  std::string out = "[";
  out.reserve(question.names.size() * 48 + 2);
  for (size_t i = 0; i < question.names.size(); ++i) {
    out.append(i == 0 ? R"({"Host":)" : R"(,{"Host":)");
    AppendJsonString(question.names[i], &out);
    absl::StrAppend(&out, R"(,"Score":)", answer.scores[i], "}");
  }
  out.push_back(']');
  return out;
}

std::string EncodePreemption(const PreemptionQuestion& question, const std::vector<bool>& fits) {
  std::string out = R"({"NodeNameToMetaVictims":{)";
  bool first_node = true;
  for (size_t i = 0; i < question.nodes.size(); ++i) {
    if (!fits[i]) continue;
    const Victims& victims = question.nodes[i];
    if (!std::exchange(first_node, false)) out.push_back(',');
    AppendJsonString(victims.node, &out);
    out.append(R"(:{"Pods":[)");
    for (size_t pod = 0; pod < victims.uids.size(); ++pod) {
      out.append(pod == 0 ? R"({"UID":)" : R"(,{"UID":)");
      AppendJsonString(victims.uids[pod], &out);
      out.push_back('}');
    }
    absl::StrAppend(&out, R"(],"NumPDBViolations":)", victims.budget_violations, "}");
  }
  out.append("}}");
  return out;
}

std::string EncodeBindReview(const BindReview& review, absl::string_view objection) {
  std::string out =
      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":)";
  AppendJsonString(review.uid, &out);
  absl::StrAppend(&out, R"(,"allowed":)", objection.empty() ? "true" : "false");
  if (!objection.empty()) {
    out.append(R"(,"status":{"code":409,"reason":"Conflict","message":)");
    AppendJsonString(objection, &out);
    out.push_back('}');
  }
  out.append("}}");
  return out;
}

std::string EncodeError(absl::string_view error) {
  std::string out = R"({"Error":)";
  AppendJsonString(error, &out);
  out.push_back('}');
  return out;
}

}  // namespace outboard::extender
