// What must hold of gangs whatever places them: judged from outside, by what the API server sees.
#ifndef OUTBOARD_SHIM_SIMULATE_STORMS_JUDGE_H_
#define OUTBOARD_SHIM_SIMULATE_STORMS_JUDGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/simulate/storms/plan.h"

namespace outboard::simulate::storms {

// Keeps its own books of pods, nodes and binds, by names, and shares no code with who decides.
//
// The rules, of a gang whose number is N:
// * When binds of its pods are ordered, those ordered and under way together with those that are
//   bound and not being deleted are at least N. (Fewer are left only where bound ones were taken
//   away, or binds failed; what comes in their place must make it N again.)
// * No node has more than it can take, no pod is bound twice, to no node, or after it went.
// * Places that nobody else may use are not held for longer than the wait for the others may last.
//
// Threading: one thread. Errors: complaints, in words.
class Judge {
 public:
  // How long a pod may wait for others, and a little more.
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
  // After each step of whoever decides: all that it wants at this instant is ordered.
  void StepEnded(absl::Time now);
  // Pods that hold a place without being bound or ordered to be; when there is nothing to be done
  // before time passes. `blind`: who decides has lost its memory meanwhile.
  void Holding(const std::vector<std::string>& uids, absl::Time now, bool blind);
  // The pod has given its place back, even if it has got one again by now.
  void GaveBack(const std::string& uid) { holds_since_.erase(uid); }

  // Pods of a gang that are bound and not being deleted.
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

#endif  // OUTBOARD_SHIM_SIMULATE_STORMS_JUDGE_H_
