// The kit: one host under test, its cases and what became of them.
#ifndef OUTBOARD_SHIM_CONFORMANCE_KIT_H_
#define OUTBOARD_SHIM_CONFORMANCE_KIT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/conformance/calls.h"
#include "shim/hosts/endpoint.h"

namespace outboard::conformance {

struct Options {
  hosts::Endpoint endpoint;
  std::string only;  // a pattern of SERVICE/CASE; empty: all
  // Plugins to configure; empty: all that the host serves.
  std::vector<std::string> plugins;
  std::map<std::string, std::string> args;  // JSON, by plugin
  // On every node, for plugins that like no node without.
  std::map<std::string, std::string> node_labels;
  uint64_t seed = 1;
  int nodes = 20000;         // of the large cluster
  int fuzzed_requests = 60;  // per method
};

struct Result {
  enum class Outcome { kPassed, kFailed, kSkipped };
  std::string service;
  std::string name;
  Outcome outcome = Outcome::kPassed;
  std::string what;  // was wrong, or why it was skipped
  absl::Duration took;
};

class Kit;

// One promise of the contract. Cases are independent of each other: each has sessions of its own.
struct Case {
  const char* service;
  const char* name;
  const char* what;  // it tries, for --list
  absl::Status (*run)(const Kit& kit);
};
// In the order in which they run.
std::vector<Case> AllCases();

// A host that has been asked who it is, and the configuration to test it with.
//
// Threading: immutable once connected. Lifetime: owns its channels' endpoint only.
class Kit {
 public:
  // Asks for GetHostInfo and finds a configuration that the host takes: plugins that need arguments
  // which nobody gave are left out.
  // Errors: UNAVAILABLE if nobody answers; FAILED_PRECONDITION if no plugin can be configured;
  // INVALID_ARGUMENT for a plugin that the host does not serve.
  static absl::StatusOr<std::unique_ptr<Kit>> Connect(Options options);

  const Options& options() const { return options_; }
  const v1alpha1::GetHostInfoResponse& info() const { return info_; }
  // The configuration, without a session.
  const v1alpha1::ConfigureRequest& configuration() const { return configuration_; }
  // Plugins that were left out, with the host's words.
  const std::vector<std::pair<std::string, std::string>>& left_out() const { return left_out_; }

  // Plugins that are configured at a point, in order.
  std::vector<std::string> At(v1alpha1::ExtensionPoint point) const;
  bool Has(v1alpha1::ExtensionPoint point) const { return !At(point).empty(); }
  // A plugin anywhere from preFilter to score, so that attempts begin with PreFilter.
  bool HasAlgorithm() const;
  bool Can(v1alpha1::Capability capability) const;

  // A connection of its own.
  absl::StatusOr<Channel> Dial() const;
  // Never given out before, by any kit.
  std::string NewSessionId() const;

 private:
  Kit() = default;
  absl::Status FindConfiguration();

  Options options_;
  std::string run_;  // part of all session ids
  v1alpha1::GetHostInfoResponse info_;
  v1alpha1::ConfigureRequest configuration_;
  std::vector<std::pair<std::string, std::string>> left_out_;
};

// Runs the cases that `options.only` names. `report` hears of each as it ends. Once the host is
// gone, the rest are failed or skipped in its name.
std::vector<Result> RunCases(const Kit& kit, const std::vector<Case>& cases,
                             void (*report)(const Result&));

// Whether a text matches a pattern with `*` and `?`.
bool Matches(const std::string& pattern, const std::string& text);

// Of several files, for AllCases.
std::vector<Case> PluginHostCases();
std::vector<Case> ClusterStateCases();
std::vector<Case> MirrorCases();
std::vector<Case> QueueCases();
std::vector<Case> AttemptCases();
std::vector<Case> FilterCases();
std::vector<Case> ScoreCases();
std::vector<Case> CycleCases();
std::vector<Case> PlacementCases();
std::vector<Case> PostFilterCases();
std::vector<Case> FuzzCases();

}  // namespace outboard::conformance

#endif  // OUTBOARD_SHIM_CONFORMANCE_KIT_H_
