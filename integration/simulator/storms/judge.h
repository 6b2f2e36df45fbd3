// The rules for gangs, independent of the scheduler: checked from outside, with what the API server
// sees.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_STORMS_JUDGE_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_STORMS_JUDGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "integration/simulator/storms/plan.h"

namespace outboard::simulate::storms {

// Keeps its own state of pods, nodes and binds, by names, and shares no code with the scheduler.
//
// The rules for a gang of N:
// * When binds of its pods are ordered, the ordered binds, those in flight, and the bound pods that
//   are not being deleted are at least N. (There may be fewer only after bound pods were deleted or
//   binds failed; the replacements must make it N again.)
// * No node is overcommitted; no pod is bound twice, to an unknown node, or after its deletion.
// * Reserved nodes are not held for longer than the wait for the other members may last.
//
// Threading: one thread.
// Errors: complaints, as text.
class Judge {
 public:
  // The longest wait of a pod for others, with some margin.
  static constexpr absl::Duration kLongestWait = absl::Seconds(65);

  void NodeCame(const std::string& name, const Amounts& amounts);
  void NodeWent(const std::string& name);
  void GangCame(const std::string& gang, int min);
  void PodCame(const std::string& uid, const std::string& gang, const Amounts& amounts);
  void PodIsLeaving(const std::string& uid);
  void PodWent(const std::string& uid);

  void Ordered(const std::string& uid, const std::string& node, absl::Time now);
  void Bound(const std::string& uid, absl::Time now);
  void NotBound(const std::string& uid);
  // After each step of the scheduler, when it has ordered everything for this instant.
  void StepEnded(absl::Time now);
  // Pods that hold a node without a bind or an order for it; called when nothing more happens at
  // this instant. `blind`: the scheduler has lost its state meanwhile.
  void Holding(const std::vector<std::string>& uids, absl::Time now, bool blind);
  // The pod has released its node, even if it holds one again by now.
  void GaveBack(const std::string& uid) { holds_since_.erase(uid); }

  // The number of a gang's pods that are bound and not being deleted.
  int BoundOf(const std::string& gang) const;
  const std::vector<std::string>& complaints() const { return complaints_; }
  int64_t binds() const { return binds_; }

 private:
  struct Pod {
    std::string gang;
    Amounts amounts;
    std::string node;  // ordered or bound
    bool bound = false;
    bool leaving = false;
  };
  struct Node {
    Amounts total;
    bool there = false;
  };

  void Complain(const std::string& text, absl::Time now);
  Amounts UsedOn(const std::string& node) const;

  std::map<std::string, Pod> pods_;
  std::map<std::string, std::set<std::string>> of_gang_;
  std::map<std::string, std::set<std::string>> on_node_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, int> min_;
  std::set<std::string> gangs_of_step_;
  std::map<std::string, absl::Time> holds_since_;  // by pod
  std::vector<std::string> complaints_;
  int64_t binds_ = 0;
};

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_STORMS_JUDGE_H_
