// Runs a profile's plugins from PreFilter to Score, with kube-scheduler's semantics.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "plugin_host/mirror/mirror.h"
#include "plugin_host/runtime/profile.h"
#include "plugin_host/sdk/filter_block.h"
#include "plugin_host/sdk/plugin.h"
#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/score.pb.h"

namespace outboard::runtime {

// What the host keeps of an attempt.
struct AttemptRecord {
  uint64_t id = 0;
  std::string pod_uid;
  std::shared_ptr<const Profile> profile;
  std::vector<sdk::PluginState> states;  // By plugin index.
  std::vector<uint8_t> skip_filter;      // By plugin index: PreFilter said SKIP.
  std::vector<uint8_t> skip_score;       // By plugin index: PreScore said SKIP.

  // Begins anew for this profile.
  void Begin(uint64_t attempt_id, absl::string_view uid, std::shared_ptr<const Profile> p);
};

// Which part of the list of nodes to search.
struct SearchOptions {
  uint32_t start_offset = 0;
  uint32_t percentage_of_nodes_to_score = 0;
  bool first_feasible_only = false;
};

// How many of `n` nodes have to be found feasible.
uint32_t FeasibleNodesToFind(uint32_t n, const SearchOptions& options);

// Evaluates one attempt at a time against a mirror, reusing its buffers.
//
// Answers are written straight into messages, which callers reuse: nothing is allocated per node.
//
// Threading: thread-compatible; shares the mirror's thread.
// Lifetime:  the mirror must outlive it.
// Errors:    within the answers; the caller has checked that the pod and the slots exist.
class Evaluator {
 public:
  explicit Evaluator(mirror::Mirror* mirror) : mirror_(mirror) {}

  void PreFilter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                 v1alpha1::PreFilterResponse* response);
  // Judges `nodes` in order; `feasible` receives the feasible ones.
  void Filter(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
              absl::Span<const sdk::Slot> nodes, const SearchOptions& options,
              v1alpha1::FilterResponse* response, std::vector<sdk::Slot>* feasible);
  void PreScore(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                absl::Span<const sdk::Slot> nodes, v1alpha1::PreScoreResponse* response);
  void Score(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
             absl::Span<const sdk::Slot> nodes, v1alpha1::ScoreResponse* response);

 private:
  struct Block {
    std::array<sdk::Slot, 64> slots;
    std::array<uint32_t, 64> verdicts;  // Of rejected and failed nodes.
    int size = 0;
    uint64_t feasible = 0;
    uint64_t failed = 0;
  };
  sdk::Attempt View(AttemptRecord& attempt, uint32_t plugin, const sdk::PodRecord& pod,
                    absl::Time now) const;
  void RunFilters(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now, Block* block);
  // Judges a node again as if the pods nominated to it ran there, and keeps what that says if it is
  // a rejection.
  void JudgeWithNominated(AttemptRecord& attempt, const sdk::PodRecord& pod, absl::Time now,
                          int index, Block* block);
  bool HasRelevantNominated(const sdk::PodRecord& pod, sdk::Slot slot) const;
  void FillFilterError(const AttemptRecord& attempt, uint32_t verdict,
                       v1alpha1::PluginStatus* error) const;

  mirror::Mirror* mirror_;
  sdk::VerdictTable verdicts_;
  std::vector<uint32_t> reason_of_verdict_;
  std::vector<int64_t> scores_;
  std::vector<int64_t> tie_keys_;
};

// Writes a verdict as the contract has it, within its limits.
void FillStatus(const std::string& plugin, const sdk::Verdict& verdict,
                v1alpha1::PluginStatus* status);
void FillErrorStatus(const std::string& plugin, const std::string& message,
                     v1alpha1::PluginStatus* status);
// A failure's reasons in one text.
std::string ErrorText(const sdk::Verdict& verdict);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_EVALUATOR_H_
