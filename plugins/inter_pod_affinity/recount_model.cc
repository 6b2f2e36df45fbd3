#include "plugins/inter_pod_affinity/recount_model.h"

#include <algorithm>

namespace outboard::inter_pod_affinity {
namespace {

std::optional<RecountModel::Term> MakeTerm(const v1beta1::PodAffinityTerm& proto,
                                           const v1beta1::Pod& owner) {
  RecountModel::Term term;
  term.key = proto.topology_key();
  term.namespaces.insert(proto.namespaces().begin(), proto.namespaces().end());
  if (proto.namespaces().empty() && !proto.has_namespace_selector()) {
    term.namespaces.insert(owner.namespace_());
  }
  if (proto.has_label_selector()) {
    auto selector = sdk::CompiledLabelSelector::Parse(proto.label_selector());
    if (!selector.ok()) return std::nullopt;
    term.selector = *selector;
  }
  if (proto.has_namespace_selector()) {
    auto selector = sdk::CompiledLabelSelector::Parse(proto.namespace_selector());
    if (!selector.ok()) return std::nullopt;
    term.namespace_selector = *selector;
    term.has_namespace_selector = true;
  }
  return term;
}

}  // namespace

RecountModel::Labels RecountModel::LabelsOf(const std::string& name) const {
  auto it = namespaces.find(name);
  return it == namespaces.end() ? Labels() : it->second;
}

std::vector<RecountModel::Term> RecountModel::Terms(
    const google::protobuf::RepeatedPtrField<v1beta1::PodAffinityTerm>& protos,
    const v1beta1::Pod& owner) {
  std::vector<Term> terms;
  for (const auto& proto : protos) {
    std::optional<Term> term = MakeTerm(proto, owner);
    if (!term) return {};
    terms.push_back(*term);
  }
  return terms;
}

std::vector<RecountModel::Term> RecountModel::Terms(
    const google::protobuf::RepeatedPtrField<v1beta1::WeightedPodAffinityTerm>& protos,
    const v1beta1::Pod& owner) {
  std::vector<Term> terms;
  for (const auto& proto : protos) {
    std::optional<Term> term = MakeTerm(proto.pod_affinity_term(), owner);
    if (!term) return {};
    term->weight = proto.weight();
    terms.push_back(*term);
  }
  return terms;
}

bool RecountModel::Matches(const Term& term, const v1beta1::Pod& pod, const Labels& labels) {
  if (!term.namespaces.contains(pod.namespace_()) && !term.namespace_selector.Matches(labels)) {
    return false;
  }
  return term.selector.Matches(pod.labels());
}

bool RecountModel::MatchesAll(const std::vector<Term>& terms, const v1beta1::Pod& pod) {
  if (terms.empty()) return false;
  for (const Term& term : terms) {
    if (!Matches(term, pod, {})) return false;
  }
  return true;
}

std::vector<RecountModel::Term> RecountModel::Merged(std::vector<Term> terms) const {
  for (Term& term : terms) {
    if (!term.has_namespace_selector || term.namespace_selector.matches_everything()) continue;
    for (const auto& [name, labels] : namespaces) {
      if (term.namespace_selector.Matches(labels)) term.namespaces.insert(name);
    }
  }
  return terms;
}

RecountModel::Tally RecountModel::Count(const v1beta1::Pod& pod) const {
  Tally tally;
  const Labels own = LabelsOf(pod.namespace_());
  const std::vector<Term> affinity = Merged(Terms(
      pod.affinity().pod_affinity().required_during_scheduling_ignored_during_execution(), pod));
  const std::vector<Term> anti_affinity = Merged(Terms(
      pod.affinity().pod_anti_affinity().required_during_scheduling_ignored_during_execution(),
      pod));
  for (const auto& [uid, other] : pods) {
    auto node = nodes.find(other.node);
    if (node == nodes.end()) continue;
    auto add = [&](std::map<Pair, int64_t>* counts, const Term& term) {
      auto label = node->second.labels().find(term.key);
      if (label != node->second.labels().end()) ++(*counts)[{term.key, label->second}];
    };
    const auto& rules = other.pod.affinity().pod_anti_affinity();
    for (const Term& term :
         Terms(rules.required_during_scheduling_ignored_during_execution(), other.pod)) {
      if (Matches(term, pod, own)) add(&tally.existing, term);
    }
    if (MatchesAll(affinity, other.pod)) {
      for (const Term& term : affinity) add(&tally.affinity, term);
    }
    for (const Term& term : anti_affinity) {
      if (Matches(term, other.pod, {})) add(&tally.anti_affinity, term);
    }
  }
  return tally;
}

std::string RecountModel::Evaluate(const v1beta1::Pod& pod, const Tally& tally,
                                   const v1beta1::Node& node) const {
  const std::vector<Term> affinity = Merged(Terms(
      pod.affinity().pod_affinity().required_during_scheduling_ignored_during_execution(), pod));
  bool found = true;
  for (const Term& term : affinity) {
    auto label = node.labels().find(term.key);
    if (label == node.labels().end()) return "node(s) didn't match pod affinity rules";
    if (!tally.affinity.contains({term.key, label->second})) found = false;
  }
  if (!found && !(tally.affinity.empty() && MatchesAll(affinity, pod))) {
    return "node(s) didn't match pod affinity rules";
  }
  for (const auto& [key, value] : node.labels()) {
    if (tally.anti_affinity.contains({key, value})) {
      return "node(s) didn't match pod anti-affinity rules";
    }
  }
  for (const auto& [key, value] : node.labels()) {
    if (tally.existing.contains({key, value})) {
      return "node(s) didn't satisfy existing pods anti-affinity rules";
    }
  }
  return "";
}

std::map<std::string, std::string> RecountModel::FilterNodes(const v1beta1::Pod& pod) const {
  const Tally tally = Count(pod);
  std::map<std::string, std::string> texts;
  for (const auto& [name, node] : nodes) texts[name] = Evaluate(pod, tally, node);
  return texts;
}

std::optional<std::map<std::string, std::string>> RecountModel::Filter(
    const v1beta1::Pod& pod) const {
  const auto& affinity = pod.affinity().pod_affinity();
  const auto& anti_affinity = pod.affinity().pod_anti_affinity();
  if (Count(pod).existing.empty() &&
      affinity.required_during_scheduling_ignored_during_execution().empty() &&
      anti_affinity.required_during_scheduling_ignored_during_execution().empty()) {
    return std::nullopt;
  }
  std::map<std::string, std::string> texts = FilterNodes(pod);
  for (auto& [name, text] : texts) {
    RecountModel with = *this;
    bool any = false;
    for (auto& [uid, other] : with.pods) {
      if (other.nominated != name || uid == pod.uid() || other.pod.priority() < pod.priority()) {
        continue;
      }
      other.node = name;
      any = true;
    }
    if (!any) continue;
    const std::string judged = with.Evaluate(pod, with.Count(pod), nodes.at(name));
    if (!judged.empty()) text = judged;
  }
  return texts;
}

std::optional<std::map<std::string, int64_t>> RecountModel::RawScores(
    const v1beta1::Pod& pod) const {
  std::map<Pair, int64_t> sums;
  const Labels own = LabelsOf(pod.namespace_());
  const v1beta1::PodAffinity& near = pod.affinity().pod_affinity();
  const v1beta1::PodAffinity& far = pod.affinity().pod_anti_affinity();
  const std::vector<Term> wanted =
      Merged(Terms(near.preferred_during_scheduling_ignored_during_execution(), pod));
  const std::vector<Term> unwanted =
      Merged(Terms(far.preferred_during_scheduling_ignored_during_execution(), pod));
  for (const auto& [uid, other] : pods) {
    auto node = nodes.find(other.node);
    if (node == nodes.end()) continue;
    auto add = [&](const Term& term, int64_t weight) {
      auto label = node->second.labels().find(term.key);
      if (label != node->second.labels().end()) sums[{term.key, label->second}] += weight;
    };
    for (const Term& term : wanted) {
      if (Matches(term, other.pod, {})) add(term, term.weight);
    }
    for (const Term& term : unwanted) {
      if (Matches(term, other.pod, {})) add(term, -term.weight);
    }
    const v1beta1::PodAffinity& its_near = other.pod.affinity().pod_affinity();
    const v1beta1::PodAffinity& its_far = other.pod.affinity().pod_anti_affinity();
    for (const Term& term :
         Terms(its_near.required_during_scheduling_ignored_during_execution(), other.pod)) {
      if (hard_weight > 0 && Matches(term, pod, own)) add(term, hard_weight);
    }
    for (const Term& term :
         Terms(its_near.preferred_during_scheduling_ignored_during_execution(), other.pod)) {
      if (Matches(term, pod, own)) add(term, term.weight);
    }
    for (const Term& term :
         Terms(its_far.preferred_during_scheduling_ignored_during_execution(), other.pod)) {
      if (Matches(term, pod, own)) add(term, -term.weight);
    }
  }
  if (sums.empty()) return std::nullopt;
  std::map<std::string, int64_t> raw;
  for (const auto& [name, node] : nodes) {
    int64_t& score = raw[name];
    for (const auto& [key, value] : node.labels()) {
      auto it = sums.find({key, value});
      if (it != sums.end()) score += it->second;
    }
  }
  return raw;
}

std::map<std::string, int64_t> RecountModel::Normalized(std::map<std::string, int64_t> raw) {
  int64_t lowest = INT64_MAX;
  int64_t highest = INT64_MIN;
  for (const auto& [name, score] : raw) {
    lowest = std::min(lowest, score);
    highest = std::max(highest, score);
  }
  for (auto& [name, score] : raw) {
    double scaled = 0;
    if (highest > lowest) scaled = 100.0 * (double(score - lowest) / double(highest - lowest));
    score = static_cast<int64_t>(scaled);
  }
  return raw;
}

}  // namespace outboard::inter_pod_affinity
