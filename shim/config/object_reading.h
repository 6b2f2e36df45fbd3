// How the shim reads Kubernetes objects, as far as the administrator decides it.
#ifndef OUTBOARD_SHIM_CONFIG_OBJECT_READING_H_
#define OUTBOARD_SHIM_CONFIG_OBJECT_READING_H_

#include <string>
#include <vector>

#include "shim/kube/wire/reading_options.h"

namespace outboard::config {

// Kubernetes' feature gates that the shim knows; with kube-scheduler's defaults.
struct FeatureGates {
  bool taint_toleration_comparison_operators = false;
  bool operator==(const FeatureGates&) const = default;
};

// `allowedEnvironmentVariables` and `featureGates` of the ShimConfiguration.
struct ObjectReading {
  // Environment variables of containers that plugins may read.
  std::vector<std::string> environment_variables = kube::DefaultEnvironmentVariables();
  FeatureGates feature_gates;

  kube::ReadingOptions Options() const {
    kube::ReadingOptions options;
    options.environment_variables.insert(environment_variables.begin(),
                                         environment_variables.end());
    options.comparison_operators = feature_gates.taint_toleration_comparison_operators;
    return options;
  }
};

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_OBJECT_READING_H_
