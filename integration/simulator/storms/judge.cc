#include "integration/simulator/storms/judge.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::simulate::storms {

void Judge::Complain(const std::string& text, absl::Time now) {
  complaints_.push_back(
      absl::StrCat(absl::FormatTime("%H:%M:%E3S", now, absl::UTCTimeZone()), " ", text));
}

void Judge::NodeCame(const std::string& name, const Amounts& amounts) {
  nodes_[name] = {amounts, true};
}
void Judge::NodeWent(const std::string& name) { nodes_[name].there = false; }

void Judge::GangCame(const std::string& gang, int min) { min_[gang] = min; }

void Judge::PodCame(const std::string& uid, const std::string& gang, const Amounts& amounts) {
  pods_[uid] = {gang, amounts, "", false, false};
  of_gang_[gang].insert(uid);
}

void Judge::PodIsLeaving(const std::string& uid) { pods_.at(uid).leaving = true; }

void Judge::PodWent(const std::string& uid) {
  const Pod& pod = pods_.at(uid);
  of_gang_[pod.gang].erase(uid);
  if (!pod.node.empty()) on_node_[pod.node].erase(uid);
  pods_.erase(uid);
}

Amounts Judge::UsedOn(const std::string& node) const {
  Amounts used;
  const auto on_node = on_node_.find(node);
  if (on_node == on_node_.end()) return used;
  for (const std::string& uid : on_node->second) used.Take(pods_.at(uid).amounts, -1);
  return used;
}

void Judge::Ordered(const std::string& uid, const std::string& node, absl::Time now) {
  const auto found = pods_.find(uid);
  if (found == pods_.end())
    return Complain(absl::StrCat(uid, " is being bound and does not exist"), now);
  Pod& pod = found->second;
  if (!pod.node.empty()) {
    return Complain(absl::StrCat(uid, " is being bound to ", node, " and already ",
                                 pod.bound ? "is bound to " : "is being bound to ", pod.node),
                    now);
  }
  if (pod.leaving) Complain(absl::StrCat(uid, " is being bound and is being deleted"), now);
  const auto there = nodes_.find(node);
  if (there == nodes_.end() || !there->second.there)
    Complain(absl::StrCat(uid, " is being bound to ", node, ", which does not exist"), now);
  pod.node = node;
  on_node_[node].insert(uid);
  gangs_of_step_.insert(pod.gang);
  if (there == nodes_.end()) return;
  const Amounts used = UsedOn(node);
  if (!there->second.total.Covers(used)) {
    Complain(absl::StrCat(node, " has ", there->second.total.gpus, " GPUs and ",
                          there->second.total.cpu_millis, "m CPU, but needs ", used.gpus, " and ",
                          used.cpu_millis, "m with ", uid),
             now);
  }
}

void Judge::Bound(const std::string& uid, absl::Time now) {
  Pod& pod = pods_.at(uid);
  if (pod.bound) Complain(absl::StrCat(uid, " is bound twice"), now);
  pod.bound = true;
  ++binds_;
}

void Judge::NotBound(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  on_node_[found->second.node].erase(uid);
  found->second.node.clear();
}

int Judge::BoundOf(const std::string& gang) const {
  const auto members = of_gang_.find(gang);
  if (members == of_gang_.end()) return 0;
  int bound = 0;
  for (const std::string& uid : members->second) {
    const Pod& pod = pods_.at(uid);
    if (pod.bound && !pod.leaving) ++bound;
  }
  return bound;
}

void Judge::StepEnded(absl::Time now) {
  for (const std::string& gang : std::exchange(gangs_of_step_, {})) {
    int together = 0;
    for (const std::string& uid : of_gang_[gang]) {
      const Pod& pod = pods_.at(uid);
      if (!pod.node.empty() && !pod.leaving) ++together;
    }
    if (together < min_[gang]) {
      Complain(
          absl::StrCat("a part of gang ", gang, " is being bound: ", together, " of ", min_[gang]),
          now);
    }
  }
}

void Judge::Holding(const std::vector<std::string>& uids, absl::Time now, bool blind) {
  const std::set<std::string> holding(uids.begin(), uids.end());
  for (auto it = holds_since_.begin(); it != holds_since_.end();)
    it = blind || !holding.contains(it->first) ? holds_since_.erase(it) : std::next(it);
  for (const std::string& uid : holding) {
    absl::Time& since = holds_since_.try_emplace(uid, now).first->second;
    if (now - since <= kLongestWait) continue;
    Complain(absl::StrCat(uid, " has held a node for ", absl::FormatDuration(now - since),
                          " without a bind"),
             now);
    since = now;
  }
}

}  // namespace outboard::simulate::storms
