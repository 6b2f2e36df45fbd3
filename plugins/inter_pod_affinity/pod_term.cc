#include "plugins/inter_pod_affinity/pod_term.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::inter_pod_affinity {
namespace {

using Terms = google::protobuf::RepeatedPtrField<v1beta1::PodAffinityTerm>;
using WeightedTerms = google::protobuf::RepeatedPtrField<v1beta1::WeightedPodAffinityTerm>;

// The maximum number of cached rules; far more than a cluster has templates.
constexpr size_t kMaxRules = 8192;

// Appends a message deterministically (maps in order), so that equal messages give equal bytes.
void AppendMessage(const google::protobuf::MessageLite& message, std::string* out) {
  google::protobuf::io::StringOutputStream stream(out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&coded);
}

absl::StatusOr<std::vector<PodTerm>> ParseTerms(const Terms& protos, const std::string& owner) {
  std::vector<PodTerm> terms;
  for (const v1beta1::PodAffinityTerm& proto : protos) {
    absl::StatusOr<PodTerm> term = PodTerm::Parse(proto, owner);
    if (!term.ok()) return term.status();
    terms.push_back(*std::move(term));
  }
  return terms;
}

absl::StatusOr<std::vector<WeightedPodTerm>> ParseWeighted(const WeightedTerms& protos,
                                                           int64_t sign, const std::string& owner) {
  std::vector<WeightedPodTerm> terms;
  for (const v1beta1::WeightedPodAffinityTerm& proto : protos) {
    absl::StatusOr<PodTerm> term = PodTerm::Parse(proto.pod_affinity_term(), owner);
    if (!term.ok()) return term.status();
    terms.push_back({*std::move(term), sign * proto.weight()});
  }
  return terms;
}

// Joins errors as Go does: one error unchanged, several distinct errors as a list.
std::string Joined(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    if (std::find(distinct.begin(), distinct.end(), error) == distinct.end()) {
      distinct.push_back(error);
    }
  }
  if (distinct.size() < 2) return distinct.empty() ? "" : distinct[0];
  return absl::StrCat("[", absl::StrJoin(distinct, ", "), "]");
}

}  // namespace

const NamespaceLabels& NoLabels() {
  static const auto& none = *new NamespaceLabels();
  return none;
}

absl::StatusOr<PodTerm> PodTerm::Parse(const v1beta1::PodAffinityTerm& proto,
                                       const std::string& owner_namespace) {
  PodTerm term;
  if (proto.has_label_selector()) {
    auto selector = sdk::CompiledLabelSelector::Parse(proto.label_selector());
    if (!selector.ok()) return selector.status();
    term.selector = *std::move(selector);
  }
  if (proto.has_namespace_selector()) {
    auto selector = sdk::CompiledLabelSelector::Parse(proto.namespace_selector());
    if (!selector.ok()) return selector.status();
    term.has_namespace_selector = true;
    term.namespace_selector = *std::move(selector);
  }
  term.namespaces.assign(proto.namespaces().begin(), proto.namespaces().end());
  if (term.namespaces.empty() && !proto.has_namespace_selector()) {
    term.namespaces.push_back(owner_namespace);
    term.signature = owner_namespace;
  }
  // A namespace name contains no zero byte.
  term.signature.push_back('\0');
  AppendMessage(proto, &term.signature);
  std::sort(term.namespaces.begin(), term.namespaces.end());
  term.topology_key = proto.topology_key();
  return term;
}

bool PodTerm::MatchesNamespace(const std::string& name, const NamespaceLabels& labels) const {
  return std::binary_search(namespaces.begin(), namespaces.end(), name) ||
         (has_namespace_selector && namespace_selector.Matches(labels));
}

PodTerm Resolve(const PodTerm& term, const sdk::NamespaceMap& namespaces) {
  PodTerm resolved = term;
  if (!term.has_namespace_selector || MatchesEveryNamespace(term)) return resolved;
  for (const auto& [name, labels] : namespaces) {
    if (term.namespace_selector.Matches(labels)) resolved.namespaces.push_back(name);
  }
  std::vector<std::string>& names = resolved.namespaces;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return resolved;
}

bool MatchesEveryNamespace(const PodTerm& resolved) {
  return resolved.has_namespace_selector && resolved.namespace_selector.Matches(NoLabels());
}

bool MatchesAll(const std::vector<PodTerm>& terms, const v1beta1::Pod& pod) {
  return !terms.empty() && std::all_of(terms.begin(), terms.end(), [&](const PodTerm& term) {
    return term.Matches(pod, NoLabels());
  });
}

PodRules PodRules::Parse(const v1beta1::Pod& pod) {
  PodRules rules;
  std::vector<std::string> errors;
  const std::string& owner = pod.namespace_();
  // Returns false if the list cannot be parsed.
  auto take = [&](auto parsed, const char* list, auto* out) {
    if (!parsed.ok()) {
      errors.push_back(absl::StrCat(list, ": ", parsed.status().message()));
      return false;
    }
    for (auto& term : *parsed) out->push_back(std::move(term));
    return true;
  };
  const v1beta1::PodAffinity& affinity = pod.affinity().pod_affinity();
  const v1beta1::PodAffinity& anti_affinity = pod.affinity().pod_anti_affinity();
  rules.broken_affinity =
      !take(ParseTerms(affinity.required_during_scheduling_ignored_during_execution(), owner),
            "requiredAffinityTerms", &rules.required_affinity);
  rules.broken_anti_affinity =
      !take(ParseTerms(anti_affinity.required_during_scheduling_ignored_during_execution(), owner),
            "requiredAntiAffinityTerms", &rules.required_anti_affinity);
  take(ParseWeighted(affinity.preferred_during_scheduling_ignored_during_execution(), 1, owner),
       "preferredAffinityTerms", &rules.preferred);
  take(ParseWeighted(anti_affinity.preferred_during_scheduling_ignored_during_execution(), -1,
                     owner),
       "preferredAntiAffinityTerms", &rules.preferred);
  rules.error = Joined(errors);
  return rules;
}

bool HasRules(const v1beta1::Pod& pod) {
  if (!pod.has_affinity()) return false;
  auto any = [](const v1beta1::PodAffinity& rules) {
    return !rules.required_during_scheduling_ignored_during_execution().empty() ||
           !rules.preferred_during_scheduling_ignored_during_execution().empty();
  };
  return any(pod.affinity().pod_affinity()) || any(pod.affinity().pod_anti_affinity());
}

std::shared_ptr<const PodRules> RulesCache::Get(const v1beta1::Pod& pod) {
  if (!HasRules(pod)) return nullptr;
  key_.assign(pod.namespace_());
  key_.push_back('\0');
  // The length marks the end of the first part.
  absl::StrAppend(&key_, pod.affinity().pod_affinity().ByteSizeLong(), "/");
  AppendMessage(pod.affinity().pod_affinity(), &key_);
  AppendMessage(pod.affinity().pod_anti_affinity(), &key_);
  auto it = rules_.find(key_);
  if (it != rules_.end()) return it->second;
  if (rules_.size() >= kMaxRules) rules_.clear();
  auto rules = std::make_shared<const PodRules>(PodRules::Parse(pod));
  rules_.emplace(key_, rules);
  return rules;
}

}  // namespace outboard::inter_pod_affinity
