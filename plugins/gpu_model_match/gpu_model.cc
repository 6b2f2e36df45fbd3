#include "plugins/gpu_model_match/gpu_model.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace outboard::gpu_model_match {

GpuModel ParseGpuModel(absl::string_view text) {
  GpuModel model;
  model.name = absl::AsciiStrToLower(text);
  absl::string_view rest = model.name;
  if (absl::ConsumePrefix(&rest, "nvidia-")) model.name = std::string(rest);
  absl::string_view base = model.name;
  if (const size_t mig = base.find("-mig-"); mig != absl::string_view::npos)
    base = base.substr(0, mig);
  absl::ConsumeSuffix(&base, "-shared");
  model.base = std::string(base);
  return model;
}

}  // namespace outboard::gpu_model_match
