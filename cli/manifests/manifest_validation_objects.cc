// Services, workloads, budgets, volumes and the rest of object_kinds.h.
#include <limits>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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
using kube::QuantityValue;

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

class ObjectValidator : private ManifestChecks {
 public:
  std::vector<Fault> Check(const google::protobuf::Message& message) {
    const auto* field = message.GetDescriptor()->FindFieldByName("metadata");
    Metadata(
        static_cast<const wire::ObjectMeta&>(message.GetReflection()->GetMessage(message, field)),
        CheckSubdomain);
    CheckContent(message);
    return TakeFaults();
  }

 private:
  void CheckContent(const google::protobuf::Message& message);
  void Content(const wire::Service& service) {
    FieldPath::Step step(&path_, "spec");
    Labels("selector", service.spec().selector());
  }
  void Content(const wire::ReplicationController& controller);
  void Content(const wire::ReplicaSet& set) { WorkloadSelector(set.spec().selector()); }
  void Content(const wire::StatefulSet& set) { WorkloadSelector(set.spec().selector()); }
  void WorkloadSelector(const wire::LabelSelector& selector);
  void Content(const wire::PodDisruptionBudget& budget);
  void Portion(absl::string_view field, const wire::IntOrString& value);
  void AccessModes(const StringList& modes);
  void Content(const wire::PersistentVolume& volume);
  void Content(const wire::PersistentVolumeClaim& claim);
  void Content(const wire::StorageClass& storage_class);
  void Content(const wire::CSINode& node);
  void Amount(absl::string_view field, const wire::Quantity& quantity);
  void Content(const wire::CSIStorageCapacity& capacity);
  void Content(const wire::VolumeAttachment& attachment);
  void Content(const wire::DeviceClass& device_class);
  // Whether `message` is a T; then checks it.
  template <typename T>
  bool CheckIf(const google::protobuf::Message& message) {
    const auto* content = dynamic_cast<const T*>(&message);
    if (content != nullptr) Content(*content);
    return content != nullptr;
  }
  template <typename... T>
  void CheckFirst(const google::protobuf::Message& message) {
    static_cast<void>((CheckIf<T>(message) || ...));
  }
};

void ObjectValidator::Content(const wire::ReplicationController& controller) {
  FieldPath::Step step(&path_, "spec");
  if (controller.spec().selector().empty()) At("selector", "must not be empty");
  Labels("selector", controller.spec().selector());
}

void ObjectValidator::WorkloadSelector(const wire::LabelSelector& selector) {
  FieldPath::Step step(&path_, "spec");
  if (selector.matchlabels().empty() && selector.matchexpressions().empty())
    At("selector", "must not be empty");
  Selector("selector", selector);
}

void ObjectValidator::Portion(absl::string_view field, const wire::IntOrString& value) {
  if (value.type() == 0) {
    if (value.intval() < 0)
      At(field, absl::StrCat(value.intval(), " must be greater than or equal to 0"));
    return;
  }
  int percent = 0;
  absl::string_view text = value.strval();
  if (!absl::ConsumeSuffix(&text, "%") || !absl::SimpleAtoi(text, &percent) || percent < 0 ||
      percent > 100) {
    At(field, absl::StrCat("\"", value.strval(), "\" must be a number or a percentage, as in 50%"));
  }
}

void ObjectValidator::Content(const wire::PodDisruptionBudget& budget) {
  {
    FieldPath::Step step(&path_, "spec");
    Selector("selector", budget.spec().selector());
    if (budget.spec().has_minavailable()) Portion("minAvailable", budget.spec().minavailable());
    if (budget.spec().has_maxunavailable()) {
      Portion("maxUnavailable", budget.spec().maxunavailable());
      if (budget.spec().has_minavailable())
        Fail("minAvailable and maxUnavailable cannot be both set");
    }
  }
  FieldPath::Step step(&path_, "status");
  Range("disruptionsAllowed", budget.status().disruptionsallowed(), 0, kNoLimit);
}

void ObjectValidator::AccessModes(const StringList& modes) {
  if (modes.empty()) At("accessModes", "must have at least one access mode");
  Words("accessModes", modes,
        {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"});
}

void ObjectValidator::Content(const wire::PersistentVolume& volume) {
  const wire::PersistentVolumeSpec& spec = volume.spec();
  {
    FieldPath::Step step(&path_, "spec");
    AccessModes(spec.accessmodes());
    if (spec.capacity().count("storage") == 0) At("capacity", "must contain only storage");
    Quantities("capacity", spec.capacity(), false);
    Word("volumeMode", spec.volumemode(), {"Filesystem", "Block"});
    if (spec.has_nodeaffinity()) {
      FieldPath::Step affinity(&path_, "nodeAffinity");
      NodeSelector("required", spec.nodeaffinity().required());
    }
  }
  FieldPath::Step status(&path_, "status");
  Word("phase", volume.status().phase(), {"Pending", "Available", "Bound", "Released", "Failed"});
}

void ObjectValidator::Content(const wire::PersistentVolumeClaim& claim) {
  const wire::PersistentVolumeClaimSpec& spec = claim.spec();
  {
    FieldPath::Step step(&path_, "spec");
    AccessModes(spec.accessmodes());
    Selector("selector", spec.selector());
    Word("volumeMode", spec.volumemode(), {"Filesystem", "Block"});
    FieldPath::Step resources(&path_, "resources");
    if (spec.resources().requests().count("storage") == 0) At("requests", "must contain storage");
    Quantities("requests", spec.resources().requests(), false);
  }
  FieldPath::Step status(&path_, "status");
  Word("phase", claim.status().phase(), {"Pending", "Bound", "Lost"});
}

void ObjectValidator::Content(const wire::StorageClass& storage_class) {
  Name("provisioner", storage_class.provisioner(), CheckQualifiedName);
  Word("volumeBindingMode", storage_class.volumebindingmode(),
       {"Immediate", "WaitForFirstConsumer"});
  Each("allowedTopologies", storage_class.allowedtopologies(),
       [&](const wire::TopologySelectorTerm& term) {
         Each("matchLabelExpressions", term.matchlabelexpressions(),
              [&](const wire::TopologySelectorLabelRequirement& requirement) {
                Name("key", requirement.key(), CheckQualifiedName);
              });
       });
}

void ObjectValidator::Content(const wire::CSINode& node) {
  FieldPath::Step step(&path_, "spec");
  std::set<std::string> names;
  Each("drivers", node.spec().drivers(), [&](const wire::CSINodeDriver& driver) {
    if (const std::string wrong = CheckSubdomain(driver.name()); !wrong.empty()) {
      At("name", wrong);
    } else if (!names.insert(driver.name()).second) {
      At("name", absl::StrCat("duplicate \"", driver.name(), "\""));
    }
    FieldPath::Step allocatable(&path_, "allocatable");
    Range("count", driver.allocatable().count(), 0, kNoLimit);
  });
}

void ObjectValidator::Amount(absl::string_view field, const wire::Quantity& quantity) {
  if (QuantityValue(quantity.string()).value_or(0) < 0)
    At(field, absl::StrCat(quantity.string(), " must be greater than or equal to 0"));
}

void ObjectValidator::Content(const wire::CSIStorageCapacity& capacity) {
  Name("storageClassName", capacity.storageclassname(), CheckSubdomain);
  Selector("nodeTopology", capacity.nodetopology());
  Amount("capacity", capacity.capacity());
  Amount("maximumVolumeSize", capacity.maximumvolumesize());
}

void ObjectValidator::Content(const wire::VolumeAttachment& attachment) {
  FieldPath::Step step(&path_, "spec");
  Name("attacher", attachment.spec().attacher(), CheckSubdomain);
  if (attachment.spec().nodename().empty()) At("nodeName", "must not be empty");
  if (!attachment.spec().has_source()) At("source", "must be specified");
}

void ObjectValidator::Content(const wire::DeviceClass& device_class) {
  if (!device_class.spec().has_extendedresourcename()) return;
  FieldPath::Step step(&path_, "spec");
  Name("extendedResourceName", device_class.spec().extendedresourcename(), CheckQualifiedName);
}

// A CSIDriver has no other fields to check.
void ObjectValidator::CheckContent(const google::protobuf::Message& message) {
  CheckFirst<wire::Service, wire::ReplicationController, wire::ReplicaSet, wire::StatefulSet,
             wire::PodDisruptionBudget, wire::PersistentVolume, wire::PersistentVolumeClaim,
             wire::StorageClass, wire::CSINode, wire::CSIStorageCapacity, wire::VolumeAttachment,
             wire::DeviceClass>(message);
}

}  // namespace

std::vector<Fault> ValidateObject(const google::protobuf::Message& message) {
  return ObjectValidator().Check(message);
}

}  // namespace outboard::manifests
