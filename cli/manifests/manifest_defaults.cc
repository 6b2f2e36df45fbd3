#include "cli/manifests/manifest_defaults.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "shim/kube/wire/from_wire_objects.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::ObjectKind;

namespace {

namespace api = ::outboard::v1beta1;
using StringMap = google::protobuf::Map<std::string, std::string>;
using Amount = std::optional<int64_t>;

constexpr absl::string_view kHugePages = "hugepages-";

// Keys of the pod's own labels become requirements of the selector, as at a pod's creation.
void MergeLabelKeys(const google::protobuf::RepeatedPtrField<std::string>& keys,
                    const char* operator_name, const StringMap& labels,
                    wire::LabelSelector* selector) {
  for (const std::string& key : keys) {
    auto label = labels.find(key);
    if (label == labels.end()) continue;
    wire::LabelSelectorRequirement* requirement = selector->add_matchexpressions();
    requirement->set_key(key);
    requirement->set_operator_(operator_name);
    requirement->add_values(label->second);
  }
}

void MergeTerm(const StringMap& labels, wire::PodAffinityTerm* term) {
  if (!term->has_labelselector()) return;
  MergeLabelKeys(term->matchlabelkeys(), "In", labels, term->mutable_labelselector());
  MergeLabelKeys(term->mismatchlabelkeys(), "NotIn", labels, term->mutable_labelselector());
}

template <typename WireAffinity>
void MergeTerms(const StringMap& labels, WireAffinity* affinity) {
  for (auto& term : *affinity->mutable_requiredduringschedulingignoredduringexecution())
    MergeTerm(labels, &term);
  for (auto& term : *affinity->mutable_preferredduringschedulingignoredduringexecution()) {
    MergeTerm(labels, term.mutable_podaffinityterm());
  }
}

Amount Find(const api::ResourceList& list, const std::string& name) {
  if (name == "cpu") return list.has_cpu_millis() ? Amount(list.cpu_millis()) : std::nullopt;
  if (name == "memory") return list.has_memory_bytes() ? Amount(list.memory_bytes()) : std::nullopt;
  auto found = list.scalar().find(name);
  return found == list.scalar().end() ? std::nullopt : Amount(found->second);
}

void Set(const std::string& name, int64_t amount, api::ResourceList* list) {
  if (name == "cpu") {
    list->set_cpu_millis(amount);
  } else if (name == "memory") {
    list->set_memory_bytes(amount);
  } else {
    (*list->mutable_scalar())[name] = amount;
  }
}

int64_t Add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// The containers' part of a pod's requests (or limits): the sum of all containers and sidecars, but
// at least what an init container needs together with the sidecars that start before it. nullopt if
// no container has the resource.
Amount OfContainers(const api::Pod& pod, const std::string& name, bool limits) {
  auto of = [&](const api::Container& container) {
    return Find(limits ? container.limits() : container.requests(), name);
  };
  bool named = false;
  int64_t running = 0;
  for (const api::Container& container : pod.containers()) {
    const Amount amount = of(container);
    named = named || amount.has_value();
    running = Add(running, amount.value_or(0));
  }
  int64_t sidecars = 0;
  int64_t starting = 0;
  for (const api::Container& container : pod.init_containers()) {
    const Amount amount = of(container);
    named = named || amount.has_value();
    if (container.restart_policy_always()) {
      running = Add(running, amount.value_or(0));
      sidecars = Add(sidecars, amount.value_or(0));
      starting = std::max(starting, sidecars);
    } else {
      starting = std::max(starting, Add(sidecars, amount.value_or(0)));
    }
  }
  return named ? Amount(std::max(running, starting)) : std::nullopt;
}

void CollectHugePages(const api::ResourceList& list, std::set<std::string>* names) {
  for (const auto& [name, amount] : list.scalar()) {
    if (absl::StartsWith(name, kHugePages)) names->insert(name);
  }
}

std::string MakeUid(absl::string_view kind, const wire::ObjectMeta& meta) {
  return absl::StrCat(kind, meta.namespace_().empty() ? "" : "-", meta.namespace_(), "-",
                      meta.name());
}

}  // namespace

void ApplyDefaults(wire::Pod* pod) {
  wire::ObjectMeta* meta = pod->mutable_metadata();
  if (meta->namespace_().empty()) meta->set_namespace_("default");
  if (meta->uid().empty()) meta->set_uid(MakeUid("pod", *meta));
  wire::PodSpec* spec = pod->mutable_spec();
  if (pod->status().phase().empty()) {
    pod->mutable_status()->set_phase(spec->nodename().empty() ? "Pending" : "Running");
  }
  if (spec->serviceaccountname().empty()) spec->set_serviceaccountname("default");
  for (wire::Volume& volume : *spec->mutable_volumes()) {
    wire::VolumeSource* source = volume.mutable_volumesource();
    std::vector<const google::protobuf::FieldDescriptor*> set;
    source->GetReflection()->ListFields(*source, &set);
    if (set.empty()) source->mutable_emptydir();
  }
  if (spec->affinity().has_podaffinity()) {
    MergeTerms(meta->labels(), spec->mutable_affinity()->mutable_podaffinity());
  }
  if (spec->affinity().has_podantiaffinity()) {
    MergeTerms(meta->labels(), spec->mutable_affinity()->mutable_podantiaffinity());
  }
  for (wire::TopologySpreadConstraint& constraint : *spec->mutable_topologyspreadconstraints()) {
    if (!constraint.has_labelselector()) continue;
    MergeLabelKeys(constraint.matchlabelkeys(), "In", meta->labels(),
                   constraint.mutable_labelselector());
  }
}

void ApplyDefaults(wire::Node* node) {
  wire::ObjectMeta* meta = node->mutable_metadata();
  meta->clear_namespace_();
  if (meta->uid().empty()) meta->set_uid(MakeUid("node", *meta));
  wire::NodeStatus* status = node->mutable_status();
  if (status->allocatable().empty()) *status->mutable_allocatable() = status->capacity();
}

void ApplyDefaults(wire::Namespace* ns) {
  wire::ObjectMeta* meta = ns->mutable_metadata();
  meta->clear_namespace_();
  if (meta->uid().empty()) meta->set_uid(MakeUid("namespace", *meta));
  (*meta->mutable_labels())["kubernetes.io/metadata.name"] = meta->name();
}

void ApplyDefaults(wire::PriorityClass* priority_class) {
  wire::ObjectMeta* meta = priority_class->mutable_metadata();
  meta->clear_namespace_();
  if (meta->uid().empty()) meta->set_uid(MakeUid("priorityclass", *meta));
}

void ApplyObjectDefaults(const ObjectKind& kind, google::protobuf::Message* message) {
  const google::protobuf::FieldDescriptor* field =
      message->GetDescriptor()->FindFieldByName("metadata");
  auto* meta =
      static_cast<wire::ObjectMeta*>(message->GetReflection()->MutableMessage(message, field));
  if (!kind.namespaced) {
    meta->clear_namespace_();
  } else if (meta->namespace_().empty()) {
    meta->set_namespace_("default");
  }
  if (meta->uid().empty()) meta->set_uid(MakeUid(absl::AsciiStrToLower(kind.kind), *meta));
  if (auto* controller = dynamic_cast<wire::ReplicationController*>(message)) {
    wire::ReplicationControllerSpec* spec = controller->mutable_spec();
    if (spec->selector().empty()) *spec->mutable_selector() = spec->template_().metadata().labels();
  } else if (auto* volume = dynamic_cast<wire::PersistentVolume*>(message)) {
    if (!volume->spec().has_volumemode()) volume->mutable_spec()->set_volumemode("Filesystem");
    // The volume controller's, within a moment; the API server's own is Pending.
    if (volume->status().phase().empty()) volume->mutable_status()->set_phase("Available");
  } else if (auto* claim = dynamic_cast<wire::PersistentVolumeClaim*>(message)) {
    if (!claim->spec().has_volumemode()) claim->mutable_spec()->set_volumemode("Filesystem");
    if (claim->status().phase().empty()) claim->mutable_status()->set_phase("Pending");
  } else if (auto* storage_class = dynamic_cast<wire::StorageClass*>(message)) {
    if (!storage_class->has_volumebindingmode()) storage_class->set_volumebindingmode("Immediate");
  }
}

void ApplyPodLevelDefaults(api::Pod* pod) {
  if (!pod->has_pod_limits() && !pod->has_pod_requests()) return;
  std::set<std::string> huge_pages;
  for (const api::Container& container : pod->containers())
    CollectHugePages(container.limits(), &huge_pages);
  for (const api::Container& container : pod->init_containers())
    CollectHugePages(container.limits(), &huge_pages);
  for (const std::string& name : huge_pages) {
    if (Find(pod->pod_requests(), name) || Find(pod->pod_limits(), name)) continue;
    if (Amount amount = OfContainers(*pod, name, true))
      Set(name, *amount, pod->mutable_pod_limits());
  }
  if (!pod->has_pod_limits()) return;
  std::set<std::string> names = {"cpu", "memory"};
  CollectHugePages(pod->pod_limits(), &names);
  for (const std::string& name : names) {
    if (Find(pod->pod_requests(), name)) continue;
    Amount amount =
        absl::StartsWith(name, kHugePages) ? std::nullopt : OfContainers(*pod, name, false);
    if (!amount) amount = Find(pod->pod_limits(), name);
    if (amount) Set(name, *amount, pod->mutable_pod_requests());
  }
}

}  // namespace outboard::manifests
