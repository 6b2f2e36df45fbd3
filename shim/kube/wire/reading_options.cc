#include "shim/kube/wire/reading_options.h"

#include <utility>

namespace outboard::kube {
namespace {

ReadingOptions Defaults() {
  const std::vector<std::string> names = DefaultEnvironmentVariables();
  ReadingOptions options;
  options.environment_variables.insert(names.begin(), names.end());
  return options;
}

ReadingOptions& Options() {
  static auto* const options = new ReadingOptions(Defaults());
  return *options;
}

}  // namespace

std::vector<std::string> DefaultEnvironmentVariables() {
  return {"WORLD_SIZE",
          "LOCAL_WORLD_SIZE",
          "NNODES",
          "NPROC_PER_NODE",
          "PET_NNODES",
          "PET_NPROC_PER_NODE",
          "TENSOR_PARALLEL_SIZE",
          "PIPELINE_PARALLEL_SIZE"};
}

void SetReading(ReadingOptions options) { Options() = std::move(options); }

const ReadingOptions& Reading() { return Options(); }

}  // namespace outboard::kube
