#include "shim/kube/wire/csi_translation.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

namespace api = ::outboard::v1beta1;

constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kRegion[] = "topology.kubernetes.io/region";
constexpr char kBetaZone[] = "failure-domain.beta.kubernetes.io/zone";
constexpr char kBetaRegion[] = "failure-domain.beta.kubernetes.io/region";
constexpr char kZoneDelimiter[] = "__";
constexpr char kResourceGroup[] = "kubernetes.io/azure-file-resource-group";

// An in-tree plugin and its driver's names.
struct Migration {
  const char* plugin;
  const char* driver;
  const char* zone_key;    // Null: node affinities stay unchanged.
  const char* region_key;  // Null: same key as in Kubernetes.
};
constexpr Migration kAwsEbs = {"kubernetes.io/aws-ebs", "ebs.csi.aws.com",
                               "topology.ebs.csi.aws.com/zone", nullptr};
constexpr Migration kAzureDisk = {"kubernetes.io/azure-disk", "disk.csi.azure.com", nullptr,
                                  nullptr};
constexpr Migration kAzureFile = {"kubernetes.io/azure-file", "file.csi.azure.com", nullptr,
                                  nullptr};
constexpr Migration kCinder = {"kubernetes.io/cinder", "cinder.csi.openstack.org",
                               "topology.cinder.csi.openstack.org/zone", nullptr};
constexpr Migration kGcePd = {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io",
                              "topology.gke.io/zone", nullptr};
constexpr Migration kPortworx = {"kubernetes.io/portworx-volume", "pxd.portworx.com", nullptr,
                                 nullptr};
constexpr Migration kVSphere = {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com",
                                "topology.csi.vmware.com/zone", "topology.csi.vmware.com/region"};

using Labels = google::protobuf::Map<std::string, std::string>;

const std::string* FindLabel(const Labels& labels, const char* key) {
  const auto it = labels.find(key);
  return it == labels.end() ? nullptr : &it->second;
}

// `aws://zone/vol-1`, `aws:///vol-1`, or the id itself. nullopt: malformed.
std::optional<std::string> AwsVolumeId(const std::string& text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "aws://")) return text;
  rest = rest.substr(0, rest.find_first_of("?#"));
  const size_t path = rest.find('/');
  if (path == absl::string_view::npos) return std::nullopt;
  rest = rest.substr(path);
  while (absl::ConsumePrefix(&rest, "/")) {
  }
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  if (!absl::StartsWith(rest, "vol-") || absl::StrContains(rest, "/")) return std::nullopt;
  return std::string(rest);
}

bool IsManaged(const wire::AzureDiskVolumeSource& disk) {
  return !disk.has_kind() || absl::EqualsIgnoreCase(disk.kind(), "Managed");
}

// The account in `azure-storage-account-NAME-secret`; otherwise the whole name.
std::string StorageAccount(const std::string& secret_name) {
  constexpr absl::string_view kPrefix = "azure-storage-account-";
  constexpr absl::string_view kSuffix = "-secret";
  const size_t begin = secret_name.find(std::string(kPrefix));
  const size_t end = secret_name.rfind(std::string(kSuffix));
  if (begin == std::string::npos || end == std::string::npos || end <= begin + kPrefix.size()) {
    return secret_name;
  }
  return secret_name.substr(begin + kPrefix.size(), end - begin - kPrefix.size());
}

std::string GceHandle(absl::string_view scope, absl::string_view place, const std::string& disk) {
  return absl::StrCat("projects/UNSPECIFIED/", scope, "/", place, "/disks/", disk);
}

// The common region of all zones (`europe-west1-b`). nullopt: several regions, or not zones.
std::optional<std::string> GceRegion(const std::vector<std::string>& zones) {
  std::set<std::string> regions;
  for (const std::string& zone : zones) {
    const std::vector<std::string> parts = absl::StrSplit(zone, '-');
    if (parts.size() != 3) return std::nullopt;
    regions.insert(absl::StrCat(parts[0], "-", parts[1]));
  }
  if (regions.size() != 1) return std::nullopt;
  return *regions.begin();
}

// The driver's name of a disk depends on the zones in the volume's labels.
std::optional<std::string> GceVolumeHandle(const Labels& labels, const std::string& disk) {
  const std::string* label = FindLabel(labels, kBetaZone);
  if (label == nullptr || label->empty()) label = FindLabel(labels, kZone);
  if (label == nullptr || label->empty()) return GceHandle("zones", "UNSPECIFIED", disk);
  const std::vector<std::string> zones = absl::StrSplit(*label, kZoneDelimiter);
  if (zones.size() == 1) return GceHandle("zones", zones[0], disk);
  const std::optional<std::string> region = GceRegion(zones);
  if (!region) return std::nullopt;
  return GceHandle("regions", *region, disk);
}

void SetCsi(const Migration& migration, const std::string& handle, api::CsiVolume* to) {
  to->set_driver(migration.driver);
  to->set_volume_handle(ToUtf8(handle));
  to->set_in_tree_plugin(migration.plugin);
}

// --- Node affinity ---

bool NamesKey(const api::NodeSelector& affinity, const char* key) {
  for (const api::NodeSelectorTerm& term : affinity.node_selector_terms()) {
    for (const auto& requirement : term.match_expressions()) {
      if (requirement.key() == key) return true;
    }
  }
  return false;
}

bool HasValues(const api::NodeSelector& affinity, const char* key) {
  for (const api::NodeSelectorTerm& term : affinity.node_selector_terms()) {
    for (const auto& requirement : term.match_expressions()) {
      if (requirement.key() == key && !requirement.values().empty()) return true;
    }
  }
  return false;
}

void Rename(const char* key, const char* new_key, api::NodeSelector* affinity) {
  for (api::NodeSelectorTerm& term : *affinity->mutable_node_selector_terms()) {
    for (auto& requirement : *term.mutable_match_expressions()) {
      if (requirement.key() == key) requirement.set_key(new_key);
    }
  }
}

// Adds a requirement to every term; creates a term if there is none.
void AddPlaces(const char* key, const std::vector<std::string>& places,
               api::PersistentVolume* volume) {
  std::set<std::string> sorted;
  for (const std::string& place : places) {
    const absl::string_view trimmed = absl::StripAsciiWhitespace(place);
    if (!trimmed.empty()) sorted.emplace(trimmed);
  }
  if (sorted.empty()) return;
  api::NodeSelector* affinity = volume->mutable_migrated_node_affinity();
  if (affinity->node_selector_terms().empty()) affinity->add_node_selector_terms();
  for (api::NodeSelectorTerm& term : *affinity->mutable_node_selector_terms()) {
    api::SelectorRequirement* requirement = term.add_match_expressions();
    requirement->set_key(key);
    requirement->set_operator_(api::SelectorRequirement::OPERATOR_IN);
    for (const std::string& place : sorted) requirement->add_values(place);
  }
}

// Whether the volume uses the zone labels from before Kubernetes 1.17.
bool UsesBetaLabels(const api::PersistentVolume& volume) {
  if (NamesKey(volume.node_affinity(), kZone)) return false;
  if (NamesKey(volume.node_affinity(), kBetaZone)) return true;
  if (FindLabel(volume.labels(), kZone) != nullptr) return false;
  return FindLabel(volume.labels(), kBetaZone) != nullptr;
}

// Node affinity takes precedence over labels.
void TranslatePlace(const char* label_key, const char* csi_key, bool split,
                    api::PersistentVolume* volume) {
  if (HasValues(volume->migrated_node_affinity(), label_key)) {
    Rename(label_key, csi_key, volume->mutable_migrated_node_affinity());
    return;
  }
  const std::string* label = FindLabel(volume->labels(), label_key);
  if (label == nullptr) return;
  if (split) {
    AddPlaces(csi_key, absl::StrSplit(*label, kZoneDelimiter), volume);
  } else {
    AddPlaces(csi_key, {*label}, volume);
  }
}

void TranslateAffinity(const Migration& migration, api::PersistentVolume* volume) {
  if (volume->has_node_affinity()) {
    *volume->mutable_migrated_node_affinity() = volume->node_affinity();
  }
  if (migration.zone_key == nullptr) return;
  const bool beta = UsesBetaLabels(*volume);
  const bool has_regions = migration.region_key != nullptr;
  TranslatePlace(beta ? kBetaZone : kZone, migration.zone_key, /*split=*/!has_regions, volume);
  if (has_regions) {
    TranslatePlace(beta ? kBetaRegion : kRegion, migration.region_key, /*split=*/false, volume);
  } else if (beta && HasValues(volume->migrated_node_affinity(), kBetaRegion)) {
    Rename(kBetaRegion, kRegion, volume->mutable_migrated_node_affinity());
  }
}

// The handle of an Azure file share. nullopt: the namespace of its secret is unknown.
std::optional<std::string> AzureFileHandle(const wire::PersistentVolume& from) {
  const wire::PersistentVolumeSpec& spec = from.spec();
  const wire::AzureFilePersistentVolumeSource& file = spec.persistentvolumesource().azurefile();
  const std::string& secret_namespace =
      file.has_secretnamespace() ? file.secretnamespace() : spec.claimref().namespace_();
  if (secret_namespace.empty()) return std::nullopt;
  const auto group = from.metadata().annotations().find(kResourceGroup);
  return absl::StrCat(group == from.metadata().annotations().end() ? "" : group->second, "#",
                      StorageAccount(file.secretname()), "#", file.sharename(), "#",
                      from.metadata().name(), "#", secret_namespace);
}

}  // namespace

void TranslateInlineVolume(const wire::Volume& from, const std::string& pod_namespace,
                           api::Volume* to) {
  const wire::VolumeSource& source = from.volumesource();
  if (source.has_awselasticblockstore()) {
    if (auto id = AwsVolumeId(source.awselasticblockstore().volumeid())) {
      SetCsi(kAwsEbs, *id, to->mutable_migrated());
    }
  } else if (source.has_gcepersistentdisk()) {
    SetCsi(kGcePd, GceHandle("zones", "UNSPECIFIED", source.gcepersistentdisk().pdname()),
           to->mutable_migrated());
  } else if (source.has_cinder()) {
    SetCsi(kCinder, source.cinder().volumeid(), to->mutable_migrated());
  } else if (source.has_azuredisk()) {
    if (IsManaged(source.azuredisk())) {
      SetCsi(kAzureDisk, source.azuredisk().diskuri(), to->mutable_migrated());
    }
  } else if (source.has_azurefile()) {
    const wire::AzureFileVolumeSource& file = source.azurefile();
    SetCsi(kAzureFile,
           absl::StrCat("#", StorageAccount(file.secretname()), "#", file.sharename(), "#",
                        from.name(), "#", pod_namespace.empty() ? "default" : pod_namespace),
           to->mutable_migrated());
  } else if (source.has_vspherevolume()) {
    SetCsi(kVSphere, source.vspherevolume().volumepath(), to->mutable_migrated());
  } else if (source.has_portworxvolume()) {
    SetCsi(kPortworx, source.portworxvolume().volumeid(), to->mutable_migrated());
  }
}

void TranslateVolume(const wire::PersistentVolume& from, api::PersistentVolume* to) {
  const wire::PersistentVolumeSource& source = from.spec().persistentvolumesource();
  const Migration* migration = nullptr;
  std::optional<std::string> handle;
  if (source.has_awselasticblockstore()) {
    migration = &kAwsEbs;
    handle = AwsVolumeId(source.awselasticblockstore().volumeid());
  } else if (source.has_gcepersistentdisk()) {
    migration = &kGcePd;
    handle = GceVolumeHandle(to->labels(), source.gcepersistentdisk().pdname());
  } else if (source.has_cinder()) {
    migration = &kCinder;
    handle = source.cinder().volumeid();
  } else if (source.has_azuredisk()) {
    migration = &kAzureDisk;
    if (IsManaged(source.azuredisk())) handle = source.azuredisk().diskuri();
  } else if (source.has_azurefile()) {
    migration = &kAzureFile;
    handle = AzureFileHandle(from);
  } else if (source.has_vspherevolume()) {
    migration = &kVSphere;
    handle = source.vspherevolume().volumepath();
  } else if (source.has_portworxvolume()) {
    migration = &kPortworx;
    handle = source.portworxvolume().volumeid();
  }
  if (!handle) return;
  SetCsi(*migration, *handle, to->mutable_csi());
  TranslateAffinity(*migration, to);
}

}  // namespace outboard::kube
