// The custom resource TrainingJobPlacement: what is read from an object and what is written to it.
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
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::training_job_placement {

inline constexpr char kJobLabel[] = "training-job-id";
inline constexpr char kResource[] = "trainingjobplacements.v1alpha1.accelerator.sched.io";

// The name of a job's object: the id where it can be one, else a readable form with the id in
// hexadecimal behind a dot, so that no two ids share a name.
std::string NameOfJob(absl::string_view job_id);

// A topology domain: the value of a node label.
struct Domain {
  std::string level, value;
  friend auto operator<=>(const Domain&, const Domain&) = default;
};

// A pod on a node, with the domains that it is in.
struct PlacedPod {
  std::string name, uid, node;
  std::vector<Domain> domains;  // tightest first
};

// What an object says. Whatever cannot be read counts as absent.
struct PlacementObject {
  std::string job_id;
  // The profile whose plugin keeps it; empty: nobody yet.
  std::string keeper;
  bool made_by_plugin = false;
  std::optional<Domain> pinned;
  std::string pin_fault;  // why spec.domain counts as absent; empty: it does not, or is
  // How many pods were in which domain, if status is as the plugin wrote it.
  std::map<Domain, int64_t> domains;
  // status has contents that the plugin did not write.
  bool edited = false;
};
PlacementObject ReadPlacement(const nlohmann::json& whole, const std::vector<std::string>& levels);

// Who keeps an object, and who owns the pods.
struct Ownership {
  std::string keeper;
  std::vector<v1alpha1::ControllerReference> controllers;
};
// A new object, without a status.
nlohmann::json MakeObject(const std::string& job_id, const Ownership& ownership);
// Adds what is missing of keeper and owners; true if anything was.
bool Own(const Ownership& ownership, nlohmann::json* whole);

// What the pods say now.
struct Observed {
  std::vector<PlacedPod> placed;  // bound, sorted by name
  bool has_pods = false;          // also pods without a place
};
// The status that an object is to have, from the one that it has. `good` is the last status that
// the plugin wrote, as far as known; it counts where nothing is placed and the present one is not
// the plugin's.
nlohmann::json MakeStatus(const nlohmann::json& whole, const PlacementObject& object,
                          const Observed& observed, const nlohmann::json& good, absl::Time now);

}  // namespace outboard::training_job_placement

#endif  // OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_PLACEMENT_OBJECT_H_
