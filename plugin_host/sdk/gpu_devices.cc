#include "plugin_host/sdk/gpu_devices.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "plugin_host/sdk/pod_parts.h"

namespace outboard::sdk {
namespace {

// Koordinator's annotation has a few hundred characters for each device.
constexpr size_t kMaxJson = 64 * 1024;

constexpr GpuSet Bit(int64_t id) { return GpuSet{1} << id; }

}  // namespace

std::optional<GpuSet> ParseGpuIds(absl::string_view text) {
  if (text.empty()) return std::nullopt;  // StrSplit gives one part for "", but none for nullptr.
  GpuSet gpus = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    const bool is_range = part.find('-') != absl::string_view::npos;
    const auto first = ParseCount(ends.first, kMaxGpuId);
    const auto last = is_range ? ParseCount(ends.second, kMaxGpuId) : first;
    if (!first || !last || *first > *last) return std::nullopt;
    for (int64_t id = *first; id <= *last; ++id) gpus |= Bit(id);
  }
  return gpus;
}

std::string FormatGpuIds(GpuSet gpus) {
  std::string text;
  while (gpus != 0) {
    const int first = std::countr_zero(gpus);
    const int length = std::countr_one(gpus >> first);
    absl::StrAppend(&text, text.empty() ? "" : ",", first);
    if (length > 1) absl::StrAppend(&text, length == 2 ? "," : "-", first + length - 1);
    if (first + length > kMaxGpuId) break;
    gpus = gpus >> (first + length) << (first + length);
  }
  return text;
}

std::optional<GpuSet> ParseKoordinatorDevices(absl::string_view json) {
  if (json.size() > kMaxJson) return std::nullopt;
  const auto devices = nlohmann::json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                                             /*allow_exceptions=*/false);
  if (!devices.is_object()) return std::nullopt;
  const auto found = devices.find("gpu");
  if (found == devices.end() || !found->is_array()) return std::nullopt;
  GpuSet gpus = 0;
  for (const auto& device : *found) {
    if (!device.is_object()) return std::nullopt;
    const auto minor = device.find("minor");
    if (minor == device.end() || !minor->is_number_unsigned() ||
        minor->get<uint64_t>() > static_cast<uint64_t>(kMaxGpuId)) {
      return std::nullopt;
    }
    gpus |= Bit(minor->get<int64_t>());
  }
  if (gpus == 0) return std::nullopt;
  return gpus;
}

std::optional<std::vector<HamiDevice>> ParseHamiDevices(absl::string_view text) {
  constexpr size_t kMaxText = size_t{16} << 10;
  if (text.size() > kMaxText) return std::nullopt;
  std::vector<HamiDevice> devices;
  for (const absl::string_view container : absl::StrSplit(text, ';')) {
    for (const absl::string_view device : absl::StrSplit(container, ':')) {
      if (device.empty()) continue;
      const std::vector<absl::string_view> parts = absl::StrSplit(device, ',');
      if (parts.size() < 4 || parts[0].empty()) return std::nullopt;
      devices.push_back({std::string(parts[0]), ParseCount(parts[2])});
    }
  }
  if (devices.empty()) return std::nullopt;
  return devices;
}

std::optional<PodGpus> ParsePodGpus(absl::string_view text) {
  if (text.size() > kMaxPodGpusText) return std::nullopt;
  PodGpus pods;
  if (text.empty()) return pods;
  for (const absl::string_view part : absl::StrSplit(text, ';')) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const size_t slash = sides.first.find('/');
    const std::optional<GpuSet> gpus = ParseGpuIds(sides.second);
    if (slash == 0 || slash >= sides.first.size() - 1 || !gpus) return std::nullopt;
    if (!pods.emplace(sides.first, *gpus).second) return std::nullopt;
  }
  return pods;
}

std::string FormatPodGpus(const PodGpus& pods, size_t* left_out) {
  std::string text;
  size_t written = 0;
  for (const auto& [pod, gpus] : pods) {
    const std::string part = absl::StrCat(text.empty() ? "" : ";", pod, "=", FormatGpuIds(gpus));
    if (text.size() + part.size() > kMaxPodGpusText) break;
    text += part;
    ++written;
  }
  if (left_out != nullptr) *left_out = pods.size() - written;
  return text;
}

PodGpus PodGpusOfNode(const v1beta1::Node& node, MalformedValues* malformed) {
  const std::string* text = FindValue(node.annotations(), kPodGpusAnnotation);
  if (text == nullptr) return {};
  if (std::optional<PodGpus> pods = ParsePodGpus(*text)) return *std::move(pods);
  if (malformed != nullptr) {
    malformed->Warn(absl::StrCat("node ", node.name()), kPodGpusAnnotation, *text,
                    "a list of pods with GPU ids");
  }
  return {};
}

std::optional<GpuSet> FindGpusOfPod(const PodGpus& of_node, const v1beta1::Pod& pod,
                                    int64_t demand) {
  if (of_node.empty()) return std::nullopt;
  const auto found = of_node.find(absl::StrCat(pod.namespace_(), "/", pod.name()));
  if (found == of_node.end()) return std::nullopt;
  if (demand > 0 && std::popcount(found->second) > demand) return std::nullopt;
  return found->second;
}

std::optional<GpuSet> GpusOfPod(const v1beta1::Pod& pod, int64_t demand,
                                MalformedValues* malformed) {
  for (const char* key :
       {kGpuIdsAnnotation, kVolcanoGpuIdsAnnotation, kKoordinatorDevicesAnnotation}) {
    const std::string* text = FindValue(pod.annotations(), key);
    if (text == nullptr) continue;
    const bool is_json = key == kKoordinatorDevicesAnnotation;
    const auto gpus = is_json ? ParseKoordinatorDevices(*text) : ParseGpuIds(*text);
    if (gpus && (demand <= 0 || std::popcount(*gpus) <= demand)) return gpus;
    if (malformed == nullptr) continue;
    malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), key, *text,
                    gpus ? "as many GPUs as the pod requests" : "a list of GPU ids");
  }
  return std::nullopt;
}

std::vector<std::string> GpuIdFields() {
  std::vector<std::string> fields;
  for (const char* key :
       {kGpuIdsAnnotation, kVolcanoGpuIdsAnnotation, kKoordinatorDevicesAnnotation}) {
    fields.push_back(AnnotationField(key));
  }
  fields.push_back(absl::StrCat("Node.metadata.annotations['", kPodGpusAnnotation, "']"));
  return fields;
}

}  // namespace outboard::sdk
