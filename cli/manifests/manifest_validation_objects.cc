// Services, workloads, budgets, volumes and the rest of object_kinds.h.
#include <limits>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/manifests/manifest_checks.h"
#include "cli/manifests/manifest_validation.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "shim/kube/wire/from_wire_objects.h"
#include "shim/kube/wire/name_rules.h"
#include "shim/kube/wire/quantity.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::CheckQualifiedName;
using kube::CheckSubdomain;
using kube::Fault;
using kube::FieldPath;
using kube::ObjectKind;
using kube::QuantityValue;

namespace {

using Result = std::optional<Fault>;

constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

class ObjectValidator : private ManifestChecks {
 public:
  Result Check(const ObjectKind& kind, const google::protobuf::Message& message) {
    const auto* field = message.GetDescriptor()->FindFieldByName("metadata");
    const auto& meta =
        static_cast<const wire::ObjectMeta&>(message.GetReflection()->GetMessage(message, field));
    if (Result fault = Metadata(meta, CheckSubdomain)) return fault;
    return CheckContent(message);
  }

 private:
  Result CheckContent(const google::protobuf::Message& message);
  Result Service(const wire::Service& service) {
    return In("spec", [&] { return Labels("selector", service.spec().selector()); });
  }
  Result ReplicationController(const wire::ReplicationController& controller);
  // ReplicaSet and StatefulSet.
  template <typename Set>
  Result WorkloadSet(const Set& set);
  Result Budget(const wire::PodDisruptionBudget& budget);
  Result AccessModes(const StringList& modes);
  Result Volume(const wire::PersistentVolume& volume);
  Result Claim(const wire::PersistentVolumeClaim& claim);
  Result StorageClass(const wire::StorageClass& storage_class);
  Result CsiNode(const wire::CSINode& node);
  Result Amount(absl::string_view field, const wire::Quantity& quantity);
  Result Capacity(const wire::CSIStorageCapacity& capacity);
  Result Attachment(const wire::VolumeAttachment& attachment);
  Result DeviceClass(const wire::DeviceClass& device_class);
};

Result ObjectValidator::ReplicationController(const wire::ReplicationController& controller) {
  FieldPath::Step step(&path_, "spec");
  if (controller.spec().selector().empty()) return At("selector", "must not be empty");
  return Labels("selector", controller.spec().selector());
}

template <typename Set>
Result ObjectValidator::WorkloadSet(const Set& set) {
  FieldPath::Step step(&path_, "spec");
  const wire::LabelSelector& selector = set.spec().selector();
  if (selector.matchlabels().empty() && selector.matchexpressions().empty())
    return At("selector", "must not be empty");
  return Selector("selector", selector);
}

Result ObjectValidator::Budget(const wire::PodDisruptionBudget& budget) {
  if (Result fault = In("spec", [&] { return Selector("selector", budget.spec().selector()); }))
    return fault;
  FieldPath::Step step(&path_, "status");
  return Range("disruptionsAllowed", budget.status().disruptionsallowed(), 0, kNoLimit);
}

Result ObjectValidator::AccessModes(const StringList& modes) {
  if (modes.empty()) return At("accessModes", "must have at least one access mode");
  return Words("accessModes", modes,
               {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"});
}

Result ObjectValidator::Volume(const wire::PersistentVolume& volume) {
  const wire::PersistentVolumeSpec& spec = volume.spec();
  Result fault = In("spec", [&]() -> Result {
    if (Result wrong = AccessModes(spec.accessmodes())) return wrong;
    if (spec.capacity().count("storage") == 0) return At("capacity", "must contain only storage");
    if (Result wrong = Quantities("capacity", spec.capacity(), false)) return wrong;
    if (Result wrong = Word("volumeMode", spec.volumemode(), {"Filesystem", "Block"})) return wrong;
    if (spec.has_nodeaffinity()) {
      FieldPath::Step affinity(&path_, "nodeAffinity");
      return NodeSelector("required", spec.nodeaffinity().required());
    }
    return std::nullopt;
  });
  if (fault) return fault;
  FieldPath::Step status(&path_, "status");
  return Word("phase", volume.status().phase(),
              {"Pending", "Available", "Bound", "Released", "Failed"});
}

Result ObjectValidator::Claim(const wire::PersistentVolumeClaim& claim) {
  const wire::PersistentVolumeClaimSpec& spec = claim.spec();
  Result fault = In("spec", [&]() -> Result {
    if (Result wrong = AccessModes(spec.accessmodes())) return wrong;
    if (Result wrong = Selector("selector", spec.selector())) return wrong;
    if (Result wrong = Word("volumeMode", spec.volumemode(), {"Filesystem", "Block"})) return wrong;
    FieldPath::Step resources(&path_, "resources");
    if (spec.resources().requests().count("storage") == 0)
      return At("requests", "must contain storage");
    return Quantities("requests", spec.resources().requests(), false);
  });
  if (fault) return fault;
  FieldPath::Step status(&path_, "status");
  return Word("phase", claim.status().phase(), {"Pending", "Bound", "Lost"});
}

Result ObjectValidator::StorageClass(const wire::StorageClass& storage_class) {
  if (Result fault = Name("provisioner", storage_class.provisioner(), CheckQualifiedName))
    return fault;
  if (Result fault = Word("volumeBindingMode", storage_class.volumebindingmode(),
                          {"Immediate", "WaitForFirstConsumer"}))
    return fault;
  return Each("allowedTopologies", storage_class.allowedtopologies(),
              [&](const wire::TopologySelectorTerm& term) {
                return Each("matchLabelExpressions", term.matchlabelexpressions(),
                            [&](const wire::TopologySelectorLabelRequirement& requirement) {
                              return Name("key", requirement.key(), CheckQualifiedName);
                            });
              });
}

Result ObjectValidator::CsiNode(const wire::CSINode& node) {
  FieldPath::Step step(&path_, "spec");
  std::set<std::string> names;
  return Each("drivers", node.spec().drivers(), [&](const wire::CSINodeDriver& driver) -> Result {
    if (Result fault = Name("name", driver.name(), CheckSubdomain)) return fault;
    if (!names.insert(driver.name()).second)
      return At("name", absl::StrCat("duplicate \"", driver.name(), "\""));
    return In("allocatable",
              [&] { return Range("count", driver.allocatable().count(), 0, kNoLimit); });
  });
}

Result ObjectValidator::Amount(absl::string_view field, const wire::Quantity& quantity) {
  if (QuantityValue(quantity.string()).value_or(0) >= 0) return std::nullopt;
  return At(field, absl::StrCat(quantity.string(), " must be greater than or equal to 0"));
}

Result ObjectValidator::Capacity(const wire::CSIStorageCapacity& capacity) {
  if (Result fault = Name("storageClassName", capacity.storageclassname(), CheckSubdomain))
    return fault;
  if (Result fault = Selector("nodeTopology", capacity.nodetopology())) return fault;
  if (Result fault = Amount("capacity", capacity.capacity())) return fault;
  return Amount("maximumVolumeSize", capacity.maximumvolumesize());
}

Result ObjectValidator::Attachment(const wire::VolumeAttachment& attachment) {
  FieldPath::Step step(&path_, "spec");
  if (Result fault = Name("attacher", attachment.spec().attacher(), CheckSubdomain)) return fault;
  if (attachment.spec().nodename().empty()) return At("nodeName", "must not be empty");
  if (!attachment.spec().has_source()) return At("source", "must be specified");
  return std::nullopt;
}

Result ObjectValidator::DeviceClass(const wire::DeviceClass& device_class) {
  if (!device_class.spec().has_extendedresourcename()) return std::nullopt;
  FieldPath::Step step(&path_, "spec");
  return Name("extendedResourceName", device_class.spec().extendedresourcename(),
              CheckQualifiedName);
}

Result ObjectValidator::CheckContent(const google::protobuf::Message& message) {
  if (const auto* service = dynamic_cast<const wire::Service*>(&message)) return Service(*service);
  if (const auto* controller = dynamic_cast<const wire::ReplicationController*>(&message))
    return ReplicationController(*controller);
  if (const auto* set = dynamic_cast<const wire::ReplicaSet*>(&message)) return WorkloadSet(*set);
  if (const auto* set = dynamic_cast<const wire::StatefulSet*>(&message)) return WorkloadSet(*set);
  if (const auto* budget = dynamic_cast<const wire::PodDisruptionBudget*>(&message))
    return Budget(*budget);
  if (const auto* volume = dynamic_cast<const wire::PersistentVolume*>(&message))
    return Volume(*volume);
  if (const auto* claim = dynamic_cast<const wire::PersistentVolumeClaim*>(&message))
    return Claim(*claim);
  if (const auto* storage_class = dynamic_cast<const wire::StorageClass*>(&message))
    return StorageClass(*storage_class);
  if (const auto* node = dynamic_cast<const wire::CSINode*>(&message)) return CsiNode(*node);
  if (const auto* capacity = dynamic_cast<const wire::CSIStorageCapacity*>(&message))
    return Capacity(*capacity);
  if (const auto* attachment = dynamic_cast<const wire::VolumeAttachment*>(&message))
    return Attachment(*attachment);
  if (const auto* device_class = dynamic_cast<const wire::DeviceClass*>(&message))
    return DeviceClass(*device_class);
  return std::nullopt;  // A CSIDriver has no other fields to check.
}

}  // namespace

std::optional<Fault> ValidateObject(const ObjectKind& kind,
                                    const google::protobuf::Message& message) {
  return ObjectValidator().Check(kind, message);
}

}  // namespace outboard::manifests
