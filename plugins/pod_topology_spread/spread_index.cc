#include "plugins/pod_topology_spread/spread_index.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::pod_topology_spread {
namespace {

using sdk::NodeView;
using sdk::PodRecord;
using sdk::Slot;
using sdk::StringTable;

constexpr size_t kTicksUnused = 600;

// Labels and names never contain this byte.
constexpr char kEnd = '\0';

void AppendText(std::string* key, absl::string_view text) {
  key->append(text.data(), text.size());
  key->push_back(kEnd);
}

std::string KeyOf(absl::string_view ns, const PodSelector& selector) {
  std::vector<const sdk::Requirement*> sorted;
  sorted.reserve(selector.requirements().size());
  for (const sdk::Requirement& requirement : selector.requirements()) {
    sorted.push_back(&requirement);
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::tie(a->key, a->op, a->values) < std::tie(b->key, b->op, b->values);
  });
  std::string key;
  AppendText(&key, ns);
  for (size_t i = 0; i < sorted.size(); ++i) {
    const sdk::Requirement& r = *sorted[i];
    if (i > 0 && r.key == sorted[i - 1]->key && r.op == sorted[i - 1]->op &&
        r.values == sorted[i - 1]->values) {
      continue;
    }
    AppendText(&key, r.key);
    key.push_back(static_cast<char>('0' + r.op));
    for (const std::string& value : r.values) AppendText(&key, value);
    key.push_back(kEnd);
  }
  return key;
}

std::string KeyOf(const NodeGroupSpec& spec) {
  std::string key;
  absl::StrAppend(&key, spec.keys.size(), ":");
  for (const std::string& label : spec.keys) AppendText(&key, label);
  if (spec.affinity_of != nullptr) {
    const v1beta1::Pod& pod = *spec.affinity_of;
    std::vector<const std::string*> labels;
    for (const auto& entry : pod.node_selector()) labels.push_back(&entry.first);
    std::sort(labels.begin(), labels.end(), [](const auto* a, const auto* b) { return *a < *b; });
    for (const std::string* label : labels) {
      key.push_back('=');
      AppendText(&key, *label);
      AppendText(&key, pod.node_selector().at(*label));
    }
    const v1beta1::NodeAffinity& affinity = pod.affinity().node_affinity();
    if (affinity.has_required_during_scheduling_ignored_during_execution()) {
      key.push_back('@');
      const std::string terms =
          affinity.required_during_scheduling_ignored_during_execution().SerializeAsString();
      absl::StrAppend(&key, terms.size(), ":", terms);
    }
  }
  if (spec.tolerations_of != nullptr) {
    key.push_back('~');
    for (const v1beta1::Toleration& toleration : spec.tolerations_of->tolerations()) {
      const std::string text = toleration.SerializeAsString();
      absl::StrAppend(&key, text.size(), ":", text);
    }
  }
  return key;
}

}  // namespace

uint32_t Topology::ValueOf(const NodeView& node) {
  const sdk::NodeTable& table = node.table();
  if (!table.occupied[node.slot()]) return StringTable::kNone;
  if (key_id_ == StringTable::kNone) key_id_ = table.label_keys.Find(key_);
  return key_id_ == StringTable::kNone ? StringTable::kNone : node.LabelValueId(key_id_);
}

bool Topology::Differs(const NodeView& node) {
  const uint32_t value = ValueOf(node);
  const Domain domain = Of(node.slot());
  if (value == StringTable::kNone || domain == kNoDomain) {
    return (value == StringTable::kNone) != (domain == kNoDomain);
  }
  if (domain == kEmptyValueDomain) return !node.table().label_values.Text(value).empty();
  return value_of_domain_[domain] != value;
}

void Topology::Update(const NodeView& node) {
  const Slot slot = node.slot();
  if (slot >= of_slot_.size()) of_slot_.resize(node.table().occupied.size(), kNoDomain);
  if (const Domain old = of_slot_[slot]; old != kNoDomain) {
    if (--node_counts_[old] == 0 && old != kEmptyValueDomain) {
      domain_of_value_.erase(value_of_domain_[old]);
      free_.push_back(old);
    }
    of_slot_[slot] = kNoDomain;
  }
  const uint32_t value = ValueOf(node);
  if (value == StringTable::kNone) return;
  Domain domain = kEmptyValueDomain;
  if (!node.table().label_values.Text(value).empty()) {
    auto [it, inserted] = domain_of_value_.try_emplace(value, kNoDomain);
    if (inserted) {
      if (free_.empty()) {
        it->second = static_cast<Domain>(node_counts_.size());
        node_counts_.push_back(0);
        value_of_domain_.push_back(value);
      } else {
        it->second = free_.back();
        free_.pop_back();
        value_of_domain_[it->second] = value;
      }
    }
    domain = it->second;
  }
  of_slot_[slot] = domain;
  ++node_counts_[domain];
}

NodeGroup::NodeGroup(const NodeGroupSpec& spec) : keys_(spec.keys) {
  if (spec.affinity_of != nullptr) affinity_ = sdk::RequiredNodeAffinity(*spec.affinity_of);
  if (spec.tolerations_of != nullptr) {
    honor_taints_ = true;
    tolerations_ = spec.tolerations_of->tolerations();
  }
}

bool NodeGroup::Admits(const NodeView& node) const {
  if (!node.table().occupied[node.slot()]) return false;
  for (const std::string& key : keys_) {
    if (!node.Label(key)) return false;
  }
  // As in kube-scheduler, a term that cannot be parsed matches nothing.
  if (!affinity_.empty() && !affinity_.Matches(node).value_or(false)) return false;
  return !honor_taints_ || sdk::FindUntoleratedTaint(node.taints(), tolerations_) == nullptr;
}

void DomainSums::AddNode(Slot slot, int32_t pods, int32_t sign) {
  if (!group_->Contains(slot)) return;
  if (nodes_.size() < topology_->size()) {
    nodes_.resize(topology_->size(), 0);
    pods_.resize(topology_->size(), 0);
  }
  Domain domain = topology_->Of(slot);
  if (domain == kNoDomain) domain = kEmptyValueDomain;
  present_ -= nodes_[domain] > 0;
  nodes_[domain] += sign;
  present_ += nodes_[domain] > 0;
  pods_[domain] += sign * pods;
}

void DomainSums::AddPods(Slot slot, int32_t count) {
  if (!group_->Contains(slot)) return;
  const Domain domain = topology_->Of(slot);
  pods_[domain == kNoDomain ? kEmptyValueDomain : domain] += count;
}

bool MatchingPods::Counts(const v1beta1::Pod& pod) const {
  return pod.deletion_unix_seconds() == 0 && selector_.Matches(pod.labels());
}

void MatchingPods::AddPods(Slot slot, int32_t count) {
  if (slot >= on_slot_.size()) on_slot_.resize(slot + 1, 0);
  on_slot_[slot] += count;
  for (const auto& sums : sums_) sums->AddPods(slot, count);
}

std::shared_ptr<const Topology> SpreadIndex::TopologyOf(const std::string& key) {
  std::shared_ptr<Topology>& topology = topologies_[key];
  if (topology == nullptr) {
    topology = std::make_shared<Topology>(key);
    for (Slot slot : cluster_.node_order()) topology->Update(cluster_.node(slot));
  }
  topology->last_use_ = ++clock_;
  std::shared_ptr<const Topology> result = topology;
  if (topologies_.size() > limits_.topologies) {
    auto oldest = Oldest(topologies_);
    DropSumsOver(oldest->second.get());
    topologies_.erase(oldest);
  }
  return result;
}

std::shared_ptr<const NodeGroup> SpreadIndex::GroupOf(const NodeGroupSpec& spec) {
  std::shared_ptr<NodeGroup>& group = groups_[KeyOf(spec)];
  if (group == nullptr) {
    group = std::make_shared<NodeGroup>(spec);
    group->members_.resize(cluster_.nodes().occupied.size(), 0);
    for (Slot slot : cluster_.node_order()) {
      group->members_[slot] = group->Admits(cluster_.node(slot));
    }
  }
  group->last_use_ = ++clock_;
  std::shared_ptr<const NodeGroup> result = group;
  if (groups_.size() > limits_.groups) {
    auto oldest = Oldest(groups_);
    DropSumsOver(oldest->second.get());
    groups_.erase(oldest);
  }
  return result;
}

std::shared_ptr<MatchingPods> SpreadIndex::Matching(absl::string_view ns,
                                                    const PodSelector& selector) {
  const bool counts = !selector.nothing() && !selector.empty();
  std::shared_ptr<MatchingPods>& matching = matching_[counts ? KeyOf(ns, selector) : ""];
  if (matching == nullptr) {
    matching = std::make_shared<MatchingPods>();
    if (counts) {
      matching->namespace_ = std::string(ns);
      matching->selector_ = selector;
      BuildMatching(matching.get());
    }
  }
  matching->last_use_ = ++clock_;
  std::shared_ptr<MatchingPods> result = matching;
  if (matching_.size() > limits_.selectors) DropMatching(Oldest(matching_));
  return result;
}

void SpreadIndex::BuildMatching(MatchingPods* matching) {
  Namespace& ns = namespaces_[matching->namespace_];
  matching->on_slot_.resize(cluster_.nodes().occupied.size(), 0);
  for (const PodRecord* pod : ns.pods) {
    if (matching->Counts(pod->pod)) ++matching->on_slot_[pod->slot];
  }
  matching->place_ = ns.selectors.Add(matching, matching->selector_.requirements());
  matching->registered_ = true;
}

std::shared_ptr<const DomainSums> SpreadIndex::SumsOf(
    MatchingPods& matching, const std::shared_ptr<const Topology>& topology,
    const std::shared_ptr<const NodeGroup>& group) {
  auto& all = matching.sums_;
  for (const auto& sums : all) {
    if (sums->topology_ != topology || sums->group_ != group) continue;
    sums->last_use_ = ++clock_;
    return sums;
  }
  auto sums = std::make_shared<DomainSums>(topology, group);
  sums->nodes_.resize(topology->size(), 0);
  sums->pods_.resize(topology->size(), 0);
  for (Slot slot : cluster_.node_order()) sums->AddNode(slot, matching.On(slot), 1);
  sums->last_use_ = ++clock_;
  if (all.size() >= limits_.sums_of_selector) {
    all.erase(std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a->last_use_ < b->last_use_;
    }));
  }
  all.push_back(sums);
  return sums;
}

void SpreadIndex::Reset() {
  topologies_.clear();
  groups_.clear();
  matching_.clear();
  namespaces_.clear();
}

void SpreadIndex::NodeChanged(Slot slot) {
  const NodeView node = cluster_.node(slot);
  bool any = false;
  for (auto& [key, topology] : topologies_) {
    topology->changing_ = topology->Differs(node);
    any = any || topology->changing_;
  }
  for (auto& [key, group] : groups_) {
    group->next_ = group->Admits(node);
    group->changing_ = group->next_ != group->Contains(slot);
    any = any || group->changing_;
  }
  if (!any) return;
  // Subtract the node from its old domains, then add it to its new ones. A domain that becomes
  // empty may be reused in between, because all sums over it are 0 by then.
  auto move = [&](int32_t sign) {
    for (auto& [key, matching] : matching_) {
      for (const auto& sums : matching->sums_) {
        if (!sums->topology_->changing_ && !sums->group_->changing_) continue;
        sums->AddNode(slot, matching->On(slot), sign);
      }
    }
  };
  move(-1);
  for (auto& [key, topology] : topologies_) {
    if (topology->changing_) topology->Update(node);
  }
  for (auto& [key, group] : groups_) {
    if (!group->changing_) continue;
    if (slot >= group->members_.size()) group->members_.resize(slot + 1, 0);
    group->members_[slot] = group->next_;
  }
  move(1);
}

void SpreadIndex::PodAdded(const PodRecord& pod, Slot slot) {
  Namespace& ns = namespaces_[pod.pod.namespace_()];
  ns.pods.insert(&pod);
  Count(ns, pod, slot, 1);
}

void SpreadIndex::PodRemoved(const PodRecord& pod, Slot slot) {
  auto it = namespaces_.find(pod.pod.namespace_());
  if (it == namespaces_.end() || it->second.pods.erase(&pod) == 0) return;
  Count(it->second, pod, slot, -1);
  if (it->second.pods.empty() && it->second.selectors.empty()) namespaces_.erase(it);
}

void SpreadIndex::Count(const Namespace& ns, const PodRecord& pod, Slot slot, int32_t sign) {
  ns.selectors.ForEachCandidate(pod.pod.labels(), [&](MatchingPods* matching) {
    if (matching->Counts(pod.pod)) matching->AddPods(slot, sign);
  });
}

void SpreadIndex::DropMatching(MatchingMap::iterator it) {
  MatchingPods* matching = it->second.get();
  if (matching->registered_) {
    Namespace& ns = namespaces_[matching->namespace_];
    ns.selectors.Remove(matching, matching->selector_.requirements(), matching->place_);
    if (ns.pods.empty() && ns.selectors.empty()) namespaces_.erase(matching->namespace_);
  }
  matching_.erase(it);
}

void SpreadIndex::DropSumsOver(const void* topology_or_group) {
  for (auto& [key, matching] : matching_) {
    std::erase_if(matching->sums_, [&](const auto& sums) {
      return sums->topology_.get() == topology_or_group || sums->group_.get() == topology_or_group;
    });
  }
}

void SpreadIndex::Tick() {
  at_ticks_.push_back(clock_);
  if (at_ticks_.size() <= kTicksUnused) return;
  DropUnused(at_ticks_.front());
  at_ticks_.pop_front();
}

void SpreadIndex::DropUnused(uint64_t clock) {
  for (auto it = matching_.begin(); it != matching_.end();) {
    const auto next = std::next(it);
    if (it->second->last_use_ <= clock) {
      DropMatching(it);
    } else {
      std::erase_if(it->second->sums_, [&](const auto& sums) { return sums->last_use_ <= clock; });
    }
    it = next;
  }
  auto drop = [&](auto* map) {
    for (auto it = map->begin(); it != map->end();) {
      const auto next = std::next(it);
      if (it->second->last_use_ <= clock) {
        DropSumsOver(it->second.get());
        map->erase(it);
      }
      it = next;
    }
  };
  drop(&topologies_);
  drop(&groups_);
}

}  // namespace outboard::pod_topology_spread
