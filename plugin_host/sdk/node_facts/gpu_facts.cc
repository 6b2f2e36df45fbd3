// The facts about a node's GPUs. Each function tries the sources in the order of FactSource.
#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "plugin_host/sdk/node_facts/describe.h"
#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/node_facts/node_labels.h"

namespace outboard::sdk {
namespace {

namespace names = node_labels;
using SharingKind = GpuSharing::Kind;

constexpr char kNumberOfMib[] = "a number of MiB";
constexpr char kTopologies[] = "nvlink, nvswitch or pcie";
// Device plugins' resources of whole GPUs.
constexpr const char* kGpuResources[] = {"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915",
                                         "gpu.intel.com/xe"};

std::string OriginOf(KnownInstance instance) {
  return absl::StrCat("instance type ", instance->first);
}

// Whether all GPUs of the slices are equal in this.
template <typename Get>
bool AllSame(const std::vector<SliceGpu>& gpus, const Get& get) {
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const SliceGpu& gpu) { return get(gpu) == get(gpus.front()); });
}

// GPU Feature Discovery's product; null if absent or malformed.
const std::string* DiscoveredProduct(LabelReader& labels) {
  const std::string* product = FindValue(labels.all(), names::kProduct);
  if (product == nullptr || NamesModel(*product)) return product;
  labels.Malformed(names::kProduct, *product, "the name of a GPU model");
  return nullptr;
}

Fact<std::string> ReadModel(const GpuSources& from, const std::string* discovered) {
  LabelReader& labels = from.labels;
  if (from.slices != nullptr) {
    // GPU Feature Discovery writes one product also where GPUs differ.
    if (!AllSame(*from.slices, [](const SliceGpu& gpu) { return gpu.product; })) return {};
    // As GPU Feature Discovery writes it.
    const std::string product = absl::StrReplaceAll(from.slices->front().product, {{" ", "-"}});
    if (NamesModel(product)) return MakeFact(product, FactSource::kResourceSlice, kSliceOrigin);
  }
  if (discovered != nullptr)
    return FromLabel(*discovered, FactSource::kFeatureDiscovery, names::kProduct);
  for (const char* key : names::kAmdProducts) {
    if (const std::string* text = labels.Text(key))
      return FromLabel(*text, FactSource::kVendorLabels, key);
  }
  if (const std::string* text = labels.Text(names::kIntelProduct))
    return FromLabel(*text, FactSource::kVendorLabels, names::kIntelProduct);
  if (const std::string* text = labels.Text(names::kGkeAccelerator))
    return FromLabel(*text, FactSource::kCloudLabels, names::kGkeAccelerator);
  for (const char* key : names::kCloudGpuNames) {
    if (const std::string* text = labels.Text(key))
      return FromLabel(*text, FactSource::kCloudLabels, key);
  }
  if (from.instance != nullptr && !from.instance->second.model.empty()) {
    return MakeFact(from.instance->second.model, FactSource::kInstanceType,
                    OriginOf(from.instance));
  }
  return {};
}

Fact<double> ReadMemory(const GpuSources& from, const Fact<std::string>& model) {
  LabelReader& labels = from.labels;
  if (auto gb = labels.Amount(names::kMemoryGb, kMaxMemoryGb, "a number of GB"))
    return FromLabel(*gb, FactSource::kAdministrator, names::kMemoryGb);
  if (from.slices != nullptr) {
    const auto smallest = std::min_element(
        from.slices->begin(), from.slices->end(),
        [](const SliceGpu& a, const SliceGpu& b) { return a.memory_gb < b.memory_gb; });
    if (smallest->memory_gb > 0)
      return MakeFact(smallest->memory_gb, FactSource::kResourceSlice, kSliceOrigin);
  }
  // Drivers report slightly less than the nominal size: 81559 MiB is an 80 GB GPU. 0 stands for a
  // MIG configuration that GPU Feature Discovery cannot describe.
  if (auto mib = labels.Amount(names::kMemoryMib, kMaxMemoryGb * 1024, kNumberOfMib);
      mib && std::round(*mib / 1024) > 0) {
    return FromLabel(std::round(*mib / 1024), FactSource::kFeatureDiscovery, names::kMemoryMib);
  }
  for (const char* key : names::kAmdMemory) {
    const std::string* text = labels.Text(key);
    if (text == nullptr) continue;
    absl::string_view number = *text;
    const std::optional<double> gb =
        absl::ConsumeSuffix(&number, "G") ? ParseAmount(number, kMaxMemoryGb) : std::nullopt;
    if (gb) return FromLabel(*gb, FactSource::kVendorLabels, key);
    labels.Malformed(key, *text, "a number with G");
  }
  for (const char* key : names::kCloudGpuMemory) {
    if (auto mib = labels.Amount(key, kMaxMemoryGb * 1024, kNumberOfMib);
        mib && std::round(*mib / 1024) > 0)
      return FromLabel(std::round(*mib / 1024), FactSource::kCloudLabels, key);
  }
  if (model.source == FactSource::kCloudLabels) {
    if (auto gb = MemoryOfProduct(ParseGpuProduct(*model.value)))
      return MakeFact(*gb, FactSource::kCloudLabels, model.origin);
  }
  if (from.instance != nullptr && from.instance->second.memory_gb > 0) {
    return MakeFact(from.instance->second.memory_gb, FactSource::kInstanceType,
                    OriginOf(from.instance));
  }
  return {};
}

bool HasMixedMig(const LabelReader& labels) {
  return std::any_of(labels.all().begin(), labels.all().end(), [](const auto& label) {
    return absl::StartsWith(label.first, names::kMigPrefix) &&
           absl::EndsWith(label.first, ".count") && label.second != "0";
  });
}

// From GPU Feature Discovery, if it runs on the node.
Fact<GpuSharing> DiscoveredSharing(LabelReader& labels, const std::string* product) {
  constexpr FactSource kSource = FactSource::kFeatureDiscovery;
  const int64_t replicas =
      std::max<int64_t>(1, labels.Count(names::kReplicas, "a number of replicas").value_or(1));
  const GpuProduct parsed = product == nullptr ? GpuProduct() : ParseGpuProduct(*product);
  if (!parsed.mig_profile.empty())
    return FromLabel(GpuSharing{SharingKind::kMigSingle, replicas}, kSource, names::kProduct);
  if (const std::string* strategy = labels.Text(names::kMigStrategy);
      strategy != nullptr && *strategy == "mixed" && HasMixedMig(labels)) {
    return FromLabel(GpuSharing{SharingKind::kMigMixed, replicas}, kSource, names::kMigStrategy);
  }
  if (replicas > 1) {
    const std::string* strategy = labels.Text(names::kSharingStrategy);
    const bool mps = strategy != nullptr && *strategy == "mps";
    return FromLabel(GpuSharing{mps ? SharingKind::kMps : SharingKind::kTimeSlicing, replicas},
                     kSource, names::kReplicas);
  }
  if (parsed.shared)  // By a release without the label for replicas.
    return FromLabel(GpuSharing{SharingKind::kTimeSlicing, 1}, kSource, names::kProduct);
  if (product != nullptr) return FromLabel(GpuSharing(), kSource, names::kProduct);
  return {};
}

Fact<GpuSharing> ReadSharing(const GpuSources& from, const std::string* product) {
  LabelReader& labels = from.labels;
  if (Fact<GpuSharing> discovered = DiscoveredSharing(labels, product); discovered.known())
    return discovered;
  if (labels.Text(names::kGkePartition) != nullptr)
    return FromLabel(GpuSharing{SharingKind::kMigSingle, 1}, FactSource::kCloudLabels,
                     names::kGkePartition);
  if (const std::string* strategy = labels.Text(names::kGkeSharing)) {
    const SharingKind kind = *strategy == "mps" ? SharingKind::kMps : SharingKind::kTimeSlicing;
    const int64_t clients = labels.Count(names::kGkeClients, "a number of clients").value_or(1);
    return FromLabel(GpuSharing{kind, std::max<int64_t>(1, clients)}, FactSource::kCloudLabels,
                     names::kGkeSharing);
  }
  if (labels.Text(names::kGkeAccelerator) != nullptr)
    return FromLabel(GpuSharing(), FactSource::kCloudLabels, names::kGkeAccelerator);
  return {};
}

int64_t AmountOf(const v1beta1::ResourceList& list, const char* resource) {
  const auto it = list.scalar().find(resource);
  return it == list.scalar().end() ? 0 : it->second;
}

Fact<int64_t> ReadCount(const GpuSources& from, const Fact<GpuSharing>& sharing) {
  LabelReader& labels = from.labels;
  if (from.slices != nullptr) {
    return MakeFact(static_cast<int64_t>(from.slices->size()), FactSource::kResourceSlice,
                    kSliceOrigin);
  }
  const bool counts_mig_devices = sharing.known() && sharing.value->kind == SharingKind::kMigSingle;
  const auto positive = [&](const char* key) {
    const std::optional<int64_t> count = labels.Count(key);
    return count && *count > 0 ? count : std::nullopt;
  };
  if (const std::optional<int64_t> count = positive(names::kCount); count && !counts_mig_devices)
    return FromLabel(*count, FactSource::kFeatureDiscovery, names::kCount);
  if (const std::optional<int64_t> count = positive(names::kIntelCount))
    return FromLabel(*count, FactSource::kVendorLabels, names::kIntelCount);
  if (const std::optional<int64_t> count = positive(names::kGkeCount))
    return FromLabel(*count, FactSource::kCloudLabels, names::kGkeCount);
  for (const char* key : names::kCloudGpuCounts) {
    if (const std::optional<int64_t> count = positive(key))
      return FromLabel(*count, FactSource::kCloudLabels, key);
  }
  if (from.instance != nullptr && from.instance->second.gpus > 0)
    return MakeFact(from.instance->second.gpus, FactSource::kInstanceType, OriginOf(from.instance));
  if (counts_mig_devices) return {};
  for (const char* resource : kGpuResources) {
    const int64_t amount = std::max(AmountOf(from.node.capacity(), resource),
                                    AmountOf(from.node.allocatable(), resource));
    const int64_t replicas = sharing.known() ? sharing.value->replicas : 1;
    if (amount > 0 && amount / replicas <= kMaxGpus) {
      return MakeFact(std::max<int64_t>(1, amount / replicas), FactSource::kConclusion,
                      absl::StrCat("resource ", resource));
    }
  }
  return {};
}

Fact<std::string> ReadFamily(const GpuSources& from, const Fact<std::string>& model) {
  LabelReader& labels = from.labels;
  if (from.slices != nullptr) {
    // The oldest, so that nothing is promised that a GPU of the node lacks.
    const auto oldest = std::min_element(
        from.slices->begin(), from.slices->end(), [](const SliceGpu& a, const SliceGpu& b) {
          return std::pair(a.major, a.minor) < std::pair(b.major, b.minor);
        });
    absl::string_view family = FamilyOfCapability(oldest->major, oldest->minor);
    if (family.empty()) family = oldest->architecture;
    if (!family.empty())
      return MakeFact(std::string(family), FactSource::kResourceSlice, kSliceOrigin);
  }
  // The capability first: older releases do not know newer families.
  const char* const wanted = "a number";
  if (const auto major = labels.Count(names::kComputeMajor, wanted, kMaxCapability)) {
    const auto minor = labels.Count(names::kComputeMinor, wanted, kMaxCapability);
    const absl::string_view family = FamilyOfCapability(*major, minor.value_or(0));
    if (!family.empty())
      return FromLabel(std::string(family), FactSource::kFeatureDiscovery, names::kComputeMajor);
  }
  if (const std::string* text = labels.Text(names::kFamily)) {
    const std::string family = absl::AsciiStrToLower(*text);
    if (family != "undefined")
      return FromLabel(family, FactSource::kFeatureDiscovery, names::kFamily);
  }
  if (const std::string* text = labels.Text(names::kIntelFamily))
    return FromLabel(*text, FactSource::kVendorLabels, names::kIntelFamily);
  if (!model.known()) return {};
  const absl::string_view family = FamilyOfProduct(ParseGpuProduct(*model.value));
  if (family.empty()) return {};
  return MakeFact(std::string(family), FactSource::kConclusion, model.origin);
}

Fact<int64_t> ReadGeneration(const GpuSources& from, const NodeFacts& facts) {
  LabelReader& labels = from.labels;
  if (const std::string* text = FindValue(labels.all(), names::kGeneration)) {
    const auto it = from.options.generations.find(absl::AsciiStrToLower(*text));
    if (it != from.options.generations.end())
      return FromLabel(it->second, FactSource::kAdministrator, names::kGeneration);
    if (from.options.checks_generations)
      labels.Malformed(names::kGeneration, *text, "a generation that args name");
  }
  if (facts.model.known()) {
    const auto number =
        GenerationOfProduct(ParseGpuProduct(*facts.model.value), from.options.generations);
    if (number) return MakeFact(*number, facts.model.source, facts.model.origin);
  }
  if (facts.family.known()) {
    const auto number = GenerationOfFamily(*facts.family.value, from.options.generations);
    if (number) return MakeFact(*number, facts.family.source, facts.family.origin);
  }
  return {};
}

// The annotation that a probe writes; none if absent or malformed.
std::optional<GpuIslands> ReadProbe(const GpuSources& from) {
  const std::string* text = FindValue(from.node.annotations(), names::kIslandsAnnotation);
  if (text == nullptr) return std::nullopt;
  std::optional<GpuIslands> probed = ParseIslands(*text);
  if (!probed) {
    from.labels.Malformed(names::kIslandsAnnotation, *text, "a topology and lists of GPU ids");
  }
  return probed;
}

std::string ProbeOrigin() { return absl::StrCat("annotation ", names::kIslandsAnnotation); }

std::optional<GpuTopology> TopologyLabel(LabelReader& labels, const char* key) {
  const std::string* text = FindValue(labels.all(), key);
  if (text == nullptr) return std::nullopt;
  const GpuTopology topology = ParseTopology(*text);
  if (topology != GpuTopology::kUnknown) return topology;
  labels.Malformed(key, *text, kTopologies);
  return std::nullopt;
}

// What the product's whole name tells, or the instance type.
void ConcludeTopology(const GpuSources& from, NodeFacts* facts) {
  const Fact<int64_t>& gpus = facts->gpus;
  const bool whole_name = facts->model.source == FactSource::kResourceSlice ||
                          facts->model.source == FactSource::kFeatureDiscovery;
  GpuBoard board;
  std::string origin;
  FactSource source = FactSource::kConclusion;
  if (facts->sharing.known() && facts->sharing.value->kind == SharingKind::kMigSingle) {
    // MIG devices cannot reach each other by NVLink: NVIDIA's MIG user guide, "Application
    // Considerations".
    board.topology = GpuTopology::kPcie;
    origin = facts->sharing.origin;
  } else if (whole_name) {
    board = BoardOfProduct(ParseGpuProduct(*facts->model.value), gpus.value);
    origin = facts->model.origin;
    if (gpus.known()) absl::StrAppend(&origin, ", ", GpusInWords(*gpus.value));
  }
  if (board.topology == GpuTopology::kUnknown && from.instance != nullptr) {
    const InstanceType& type = from.instance->second;
    board = BoardOfProduct(ParseGpuProduct(type.model),
                           type.gpus > 0 ? std::optional(type.gpus) : gpus.value);
    if (type.topology != GpuTopology::kUnknown && type.topology != board.topology) {
      const bool linked = type.topology != GpuTopology::kPcie && type.gpus > 0;
      board = {type.topology,
               linked ? std::vector<GpuIsland>{{type.gpus, 0}} : std::vector<GpuIsland>()};
    }
    origin = OriginOf(from.instance);
    source = FactSource::kInstanceType;
  }
  if (board.topology == GpuTopology::kUnknown) return;
  facts->topology = MakeFact(board.topology, source, origin);
  if (board.topology == GpuTopology::kPcie || !board.islands.empty())
    facts->islands = MakeFact(std::move(board.islands), source, origin);
}

// The order of labels is undefined; sorted, equal labels give equal islands.
void SortIslands(std::vector<GpuIsland>* islands) {
  std::sort(islands->begin(), islands->end(), [](const GpuIsland& a, const GpuIsland& b) {
    return a.gpus != b.gpus ? a.gpus > b.gpus : a.ids < b.ids;
  });
}

Fact<std::vector<GpuIsland>> LabelledIslands(LabelReader& labels) {
  std::vector<GpuIsland> islands;
  bool any = false;
  for (const auto& [key, value] : labels.all()) {
    if (!absl::StartsWith(key, names::kIslandPrefix)) continue;
    const std::optional<int64_t> gpus = labels.Count(key);
    any |= gpus.has_value();
    if (gpus && *gpus > 0) islands.push_back({*gpus, 0});
  }
  if (!any) return {};
  SortIslands(&islands);
  return FromLabel(std::move(islands), FactSource::kAdministrator,
                   absl::StrCat(names::kIslandPrefix, "*"));
}

void ReadTopology(const GpuSources& from, NodeFacts* facts) {
  const std::optional<GpuIslands> probed = ReadProbe(from);
  Fact<std::vector<GpuIsland>> labelled = LabelledIslands(from.labels);
  // The first two labels are read in any case, so that a malformed one is noticed.
  const auto topology = TopologyLabel(from.labels, names::kTopology);
  const auto interconnect = TopologyLabel(from.labels, names::kInterconnect);
  if (topology) {
    facts->topology = FromLabel(*topology, FactSource::kAdministrator, names::kTopology);
  } else if (probed) {
    facts->topology = MakeFact(probed->topology, FactSource::kAdministrator, ProbeOrigin());
  } else if (interconnect) {
    facts->topology = FromLabel(*interconnect, FactSource::kAdministrator, names::kInterconnect);
  }
  if (probed) {  // It knows the ids.
    std::vector<GpuIsland> islands;
    for (const GpuSet ids : probed->islands) islands.push_back({std::popcount(ids), ids});
    SortIslands(&islands);
    facts->islands = MakeFact(std::move(islands), FactSource::kAdministrator, ProbeOrigin());
  } else if (labelled.known()) {
    facts->islands = std::move(labelled);
  }
  if (facts->topology.known() && !facts->islands.known() &&
      *facts->topology.value == GpuTopology::kPcie) {
    facts->islands =
        MakeFact(std::vector<GpuIsland>(), facts->topology.source, facts->topology.origin);
  }
  if (facts->topology.known() || (!facts->model.known() && from.instance == nullptr)) return;
  Fact<std::vector<GpuIsland>> islands = std::move(facts->islands);
  ConcludeTopology(from, facts);
  if (islands.known()) facts->islands = std::move(islands);
}

}  // namespace

void ReadGpus(const GpuSources& from, NodeFacts* facts) {
  const std::string* const discovered = DiscoveredProduct(from.labels);
  facts->model = ReadModel(from, discovered);
  facts->memory_gb = ReadMemory(from, facts->model);
  facts->sharing = ReadSharing(from, discovered);
  facts->gpus = ReadCount(from, facts->sharing);
  facts->family = ReadFamily(from, facts->model);
  facts->generation = ReadGeneration(from, *facts);
  ReadTopology(from, facts);
}

}  // namespace outboard::sdk
