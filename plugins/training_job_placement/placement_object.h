// Reads and writes the custom resource TrainingJobPlacement.
#ifndef OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_PLACEMENT_OBJECT_H_
#define OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_PLACEMENT_OBJECT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::training_job_placement {

inline constexpr char kJobLabel[] = "training-job-id";
inline constexpr char kResource[] = "trainingjobplacements.v1alpha1.accelerator.sched.io";

// The name of a job's object: the id if it is a valid name, else a readable form, a dot, and the id
// in hexadecimal, so that no two ids share a name.
std::string NameOfJob(absl::string_view job_id);

// A topology domain: the value of a node label.
struct Domain {
  std::string level, value;
  friend auto operator<=>(const Domain&, const Domain&) = default;
};

// A pod on a node, with its domains.
struct PlacedPod {
  std::string name, uid, node;
  std::vector<Domain> domains;  // tightest first
};

// The content of an object. An invalid value counts as absent.
struct PlacementObject {
  std::string job_id;
  // The profile whose plugin owns the object; empty: none yet.
  std::string keeper;
  bool made_by_plugin = false;
  std::optional<Domain> pinned;
  std::string pin_fault;  // why spec.domain is invalid; empty: valid or absent
  // Number of pods by domain, if the plugin wrote the status.
  std::map<Domain, int64_t> domains;
  // status has content that the plugin did not write.
  bool edited = false;
};
PlacementObject ReadPlacement(const nlohmann::json& whole, const std::vector<std::string>& levels);

// The profile that owns an object, and the controllers that own the pods.
struct Ownership {
  std::string keeper;
  std::vector<v1beta1::ControllerReference> controllers;
};
// A new object, without a status.
nlohmann::json MakeObject(const std::string& job_id, const Ownership& ownership);
// Adds missing keeper and owners; returns true if it changed the object.
bool Own(const Ownership& ownership, nlohmann::json* whole);

// The current state of the pods.
struct Observed {
  std::vector<PlacedPod> placed;  // bound, sorted by name
  bool has_pods = false;          // also pods without a place
};
// The wanted status of an object, based on its current one. `good` is the last known status that
// the plugin wrote. It is used if no pod is placed and the plugin did not write the current status.
nlohmann::json MakeStatus(const nlohmann::json& whole, const PlacementObject& object,
                          const Observed& observed, const nlohmann::json& good, absl::Time now);

}  // namespace outboard::training_job_placement

#endif  // OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_PLACEMENT_OBJECT_H_
