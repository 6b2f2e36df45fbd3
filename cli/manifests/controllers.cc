#include "cli/manifests/controllers.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shim/kube/wire/core_v1_objects.pb.h"
#include "shim/kube/wire/policy_v1.pb.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/storage_v1.pb.h"

namespace outboard::manifests {

namespace wire = kube::wire;

namespace {

using StringMap = google::protobuf::Map<std::string, std::string>;

const std::string* Find(const StringMap& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

bool Meets(const StringMap& labels, const wire::LabelSelectorRequirement& requirement) {
  const std::string* value = Find(labels, requirement.key());
  const std::string& op = requirement.operator_();
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  const bool listed = value != nullptr && absl::c_linear_search(requirement.values(), *value);
  return op == "In" ? listed : !listed;
}

bool Selects(const wire::LabelSelector& selector, const StringMap& labels) {
  for (const auto& [key, wanted] : selector.matchlabels()) {
    const std::string* value = Find(labels, key);
    if (value == nullptr || *value != wanted) return false;
  }
  return absl::c_all_of(selector.matchexpressions(),
                        [&](const auto& requirement) { return Meets(labels, requirement); });
}

// ---- Budgets ----

bool IsHealthy(const wire::Pod& pod) {
  if (pod.metadata().has_deletiontimestamp() || pod.status().phase() != "Running") return false;
  return absl::c_none_of(pod.status().conditions(), [](const wire::PodCondition& condition) {
    return condition.type() == "Ready" && condition.status() != "True";
  });
}

// The number, or the percentage of `all`, rounded up.
int64_t Of(const wire::IntOrString& portion, int64_t all) {
  if (portion.type() == 0) return portion.intval();
  absl::string_view text = portion.strval();
  int64_t percent = 0;
  absl::ConsumeSuffix(&text, "%");
  return absl::SimpleAtoi(text, &percent) ? (all * percent + 99) / 100 : 0;
}

int32_t DisruptionsAllowed(const wire::PodDisruptionBudget& budget,
                           const std::vector<Draft<wire::Pod>>& pods) {
  const wire::PodDisruptionBudgetSpec& spec = budget.spec();
  int64_t expected = 0;
  int64_t healthy = 0;
  for (const auto& draft : pods) {
    const wire::Pod& pod = draft.message;
    if (pod.metadata().namespace_() != budget.metadata().namespace_() || !spec.has_selector() ||
        !Selects(spec.selector(), pod.metadata().labels()) || pod.status().phase() == "Succeeded" ||
        pod.status().phase() == "Failed") {
      continue;
    }
    ++expected;
    if (IsHealthy(pod)) ++healthy;
  }
  if (!spec.has_maxunavailable() && !spec.has_minavailable()) return 0;
  const int64_t desired = spec.has_maxunavailable()
                              ? std::max<int64_t>(0, expected - Of(spec.maxunavailable(), expected))
                              : Of(spec.minavailable(), expected);
  return static_cast<int32_t>(std::max<int64_t>(0, healthy - desired));
}

// ---- Claims ----

constexpr char kClassAnnotation[] = "volume.beta.kubernetes.io/storage-class";
constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";
constexpr char kBoundByController[] = "pv.kubernetes.io/bound-by-controller";

template <typename Object>
const std::string& ClassOf(const Object& object) {
  const std::string* annotated = Find(object.metadata().annotations(), kClassAnnotation);
  return annotated != nullptr ? *annotated : object.spec().storageclassname();
}

int64_t StorageOf(const google::protobuf::Map<std::string, wire::Quantity>& amounts) {
  const auto found = amounts.find("storage");
  return found == amounts.end() ? 0 : kube::QuantityValue(found->second.string()).value_or(0);
}

class ClaimBinder {
 public:
  explicit ClaimBinder(Drafts* drafts) : drafts_(drafts) {
    for (const ObjectDraft& draft : drafts->objects) {
      if (auto* volume = dynamic_cast<wire::PersistentVolume*>(draft.message.get())) {
        volumes_.push_back(volume);
      } else if (auto* one = dynamic_cast<wire::StorageClass*>(draft.message.get())) {
        classes_[one->metadata().name()] = one;
      }
    }
  }

  void Complete(wire::PersistentVolumeClaim* claim) {
    SetDefaultClass(claim);
    wire::PersistentVolume* volume = Reserved(*claim);
    if (volume == nullptr && claim->spec().volumename().empty() && !Waits(*claim)) {
      volume = Smallest(*claim);
      if (volume == nullptr) volume = Provision(*claim);
    }
    if (volume != nullptr) Bind(claim, volume);
  }

 private:
  static bool IsFor(const wire::PersistentVolume& volume,
                    const wire::PersistentVolumeClaim& claim) {
    const wire::ObjectReference& ref = volume.spec().claimref();
    return ref.namespace_() == claim.metadata().namespace_() &&
           ref.name() == claim.metadata().name() &&
           (ref.uid().empty() || ref.uid() == claim.metadata().uid());
  }

  void SetDefaultClass(wire::PersistentVolumeClaim* claim) {
    if (claim->spec().has_storageclassname() ||
        Find(claim->metadata().annotations(), kClassAnnotation) != nullptr) {
      return;
    }
    const wire::StorageClass* chosen = nullptr;
    for (const auto& [name, one] : classes_) {
      const std::string* mark =
          Find(one->metadata().annotations(), "storageclass.kubernetes.io/is-default-class");
      if (mark == nullptr || *mark != "true") continue;
      // The newest, then the first by name.
      if (chosen == nullptr || one->metadata().creationtimestamp().seconds() >
                                   chosen->metadata().creationtimestamp().seconds())
        chosen = one;
    }
    if (chosen != nullptr) claim->mutable_spec()->set_storageclassname(chosen->metadata().name());
  }

  bool Waits(const wire::PersistentVolumeClaim& claim) const {
    const auto found = classes_.find(ClassOf(claim));
    return found != classes_.end() && found->second->volumebindingmode() == "WaitForFirstConsumer";
  }

  // The volume that claim or volume name each other's.
  wire::PersistentVolume* Reserved(const wire::PersistentVolumeClaim& claim) {
    const std::string& wanted = claim.spec().volumename();
    for (wire::PersistentVolume* volume : volumes_) {
      if (!wanted.empty() && volume->metadata().name() != wanted) continue;
      if (IsFor(*volume, claim) || (!wanted.empty() && !volume->spec().has_claimref()))
        return volume;
    }
    return nullptr;
  }

  wire::PersistentVolume* Smallest(const wire::PersistentVolumeClaim& claim) {
    wire::PersistentVolume* smallest = nullptr;
    const auto size = [](const wire::PersistentVolume& volume) {
      return StorageOf(volume.spec().capacity());
    };
    for (wire::PersistentVolume* volume : volumes_) {
      const wire::PersistentVolumeSpec& spec = volume->spec();
      const bool has_modes = absl::c_all_of(claim.spec().accessmodes(), [&](const auto& mode) {
        return absl::c_linear_search(spec.accessmodes(), mode);
      });
      if (spec.has_claimref() || volume->status().phase() != "Available" || !has_modes ||
          ClassOf(*volume) != ClassOf(claim) || spec.volumemode() != claim.spec().volumemode() ||
          !Selects(claim.spec().selector(), volume->metadata().labels()) ||
          size(*volume) < StorageOf(claim.spec().resources().requests())) {
        continue;
      }
      if (smallest == nullptr || size(*volume) < size(*smallest)) smallest = volume;
    }
    return smallest;
  }

  wire::PersistentVolume* Provision(const wire::PersistentVolumeClaim& claim) {
    const auto found = classes_.find(ClassOf(claim));
    if (found == classes_.end() || found->second->provisioner() == "kubernetes.io/no-provisioner" ||
        claim.spec().has_selector()) {
      return nullptr;
    }
    auto volume = std::make_unique<wire::PersistentVolume>();
    volume->mutable_metadata()->set_name(absl::StrCat("pvc-", claim.metadata().uid()));
    volume->mutable_metadata()->set_uid(absl::StrCat("volume-of-", claim.metadata().uid()));
    wire::PersistentVolumeSpec* spec = volume->mutable_spec();
    *spec->mutable_capacity() = claim.spec().resources().requests();
    *spec->mutable_accessmodes() = claim.spec().accessmodes();
    spec->set_storageclassname(ClassOf(claim));
    spec->set_volumemode(claim.spec().volumemode());
    const std::string& provisioner = found->second->provisioner();
    if (!absl::StartsWith(provisioner, "kubernetes.io/")) {
      wire::CSIPersistentVolumeSource* csi = spec->mutable_persistentvolumesource()->mutable_csi();
      csi->set_driver(provisioner);
      csi->set_volumehandle(volume->metadata().name());
    }
    wire::PersistentVolume* made = volume.get();
    ObjectDraft draft;
    draft.kind = kube::FindObjectKind("", "PersistentVolume");
    draft.message = std::move(volume);
    drafts_->objects.push_back(std::move(draft));
    return made;
  }

  static void Bind(wire::PersistentVolumeClaim* claim, wire::PersistentVolume* volume) {
    if (!volume->spec().has_claimref()) {
      (*volume->mutable_metadata()->mutable_annotations())[kBoundByController] = "yes";
      wire::ObjectReference* ref = volume->mutable_spec()->mutable_claimref();
      ref->set_kind("PersistentVolumeClaim");
      ref->set_apiversion("v1");
      ref->set_namespace_(claim->metadata().namespace_());
      ref->set_name(claim->metadata().name());
    }
    volume->mutable_spec()->mutable_claimref()->set_uid(claim->metadata().uid());
    volume->mutable_status()->set_phase("Bound");
    StringMap* annotations = claim->mutable_metadata()->mutable_annotations();
    if (claim->spec().volumename().empty()) (*annotations)[kBoundByController] = "yes";
    (*annotations)[kBindCompleted] = "yes";
    claim->mutable_spec()->set_volumename(volume->metadata().name());
    claim->mutable_status()->set_phase("Bound");
  }

  Drafts* const drafts_;
  std::vector<wire::PersistentVolume*> volumes_;
  std::map<std::string, const wire::StorageClass*> classes_;
};

}  // namespace

void CompleteBudgets(Drafts* drafts) {
  for (ObjectDraft& draft : drafts->objects) {
    auto* budget = dynamic_cast<wire::PodDisruptionBudget*>(draft.message.get());
    if (budget == nullptr || draft.has_status) continue;
    budget->mutable_status()->set_disruptionsallowed(DisruptionsAllowed(*budget, drafts->pods));
  }
}

void CompleteClaims(Drafts* drafts) {
  ClaimBinder binder(drafts);
  const size_t count = drafts->objects.size();  // Without the volumes that it adds.
  for (size_t i = 0; i < count; ++i) {
    auto* claim = dynamic_cast<wire::PersistentVolumeClaim*>(drafts->objects[i].message.get());
    if (claim != nullptr && !drafts->objects[i].has_status) binder.Complete(claim);
  }
}

}  // namespace outboard::manifests
