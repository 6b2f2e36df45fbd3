#include "plugin_host/runtime/group_search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "plugin_host/sdk/canonical_bytes.h"

namespace outboard::runtime {

using sdk::PodRecord;
using sdk::Slot;

namespace {

// Limits of the exhaustive search: size of the group, and choices of nodes.
constexpr size_t kMaxExhaustedMembers = 64;
constexpr int kMaxChoices = 4096;

// `2 Insufficient cpu, 3 node(s) had untolerated taint(s)`, and the plugins of these verdicts.
std::string SumUp(const v1beta1::FilterResponse& filter, std::set<std::string>* plugins) {
  std::vector<uint32_t> counts(static_cast<size_t>(filter.reasons_size()), 0);
  for (int i = 0; i < filter.rejected_for_size(); ++i) {
    for (const char byte : filter.rejected_for(i))
      counts[static_cast<size_t>(i)] += std::popcount(static_cast<uint8_t>(byte));
  }
  for (const uint32_t reason : filter.rejected()) ++counts[reason];
  std::map<std::string, uint32_t> by_text;
  for (int i = 0; i < filter.reasons_size(); ++i) {
    const v1beta1::PluginStatus& status = filter.reasons(i);
    if (counts[static_cast<size_t>(i)] == 0) continue;
    plugins->insert(status.plugin());
    for (const std::string& text : status.reasons())
      by_text[text] += counts[static_cast<size_t>(i)];
  }
  std::vector<std::string> texts;
  for (const auto& [text, count] : by_text) texts.push_back(absl::StrCat(count, " ", text));
  std::sort(texts.begin(), texts.end());
  return absl::StrJoin(texts, ", ");
}

// The common fields of pods of one template.
std::string Template(const v1beta1::Pod& pod) {
  v1beta1::Pod common = pod;
  common.clear_uid();
  common.clear_name();
  common.clear_creation_unix_seconds();
  common.clear_generation();
  return sdk::CanonicalBytes(common);
}

// Whether pods on other nodes may make an infeasible node feasible: such plugins have states that
// AddPod changes.
bool GoesByPodsElsewhere(const AttemptRecord& attempt) {
  for (size_t i = 0; i < attempt.states.size(); ++i) {
    const auto& state = attempt.states[i].filter;
    if (attempt.skip_filter[i] == 0 && state != nullptr && state->Clone() != nullptr) return true;
  }
  return false;
}

}  // namespace

absl::Span<const Slot> NodesLeft(const v1beta1::PreFilterResponse& response,
                                 const sdk::NodeTable& nodes, absl::Span<const Slot> base,
                                 std::vector<Slot>* buffer) {
  if (!response.has_node_names()) return base;
  std::vector<uint8_t> named(nodes.occupied.size(), 0);
  size_t left = 0;
  for (const std::string& name : response.node_names().names()) {
    const auto it = nodes.slot_by_name.find(name);
    if (it == nodes.slot_by_name.end()) continue;
    named[it->second] = 1;
    ++left;
  }
  buffer->clear();
  for (const Slot slot : base) {
    if (buffer->size() == left) break;
    if (named[slot] != 0) buffer->push_back(slot);
  }
  return *buffer;
}

std::vector<std::string> PluginsOfRoom(const Profile& profile) {
  std::vector<std::string> names;
  for (const uint32_t index : profile.at(v1beta1::EXTENSION_POINT_FILTER)) {
    const ProfilePlugin& plugin = profile.plugins()[index];
    if (plugin.room != nullptr) names.push_back(plugin.name);
  }
  return names;
}

GroupSearch::GroupSearch(const PlanTools& tools, const PlanContext& context,
                         const sdk::GroupToPlace& group, const PodRecord& first)
    : tools_(tools),
      cache_(tools.cache),
      context_(context),
      group_(group),
      first_(first),
      parts_(group),
      without_nominations_(tools.cache),
      trial_(tools.cache) {
  absl::flat_hash_map<std::string, size_t> known;
  const auto add = [&](const PodRecord& pod) {
    std::string signature = tools_.signatures->Of(*context_.profile, pod.pod);
    const size_t part = parts_.Of(&pod);
    // Without a signature, pods of one template still form one class: their order of placement does
    // not matter.
    const std::string kind =
        absl::StrCat(part, "\n", signature.empty() ? Template(pod.pod) : signature);
    const size_t of_class = known.try_emplace(kind, classes_.size()).first->second;
    if (of_class == classes_.size()) {
      classes_.emplace_back();
      classes_.back().signature = std::move(signature);
      classes_.back().part = part;
      classes_.back().example = &pod;
    }
    ++classes_[of_class].size;
    members_.push_back(
        {&pod, of_class, pod.place == sdk::Place::kNominated ? pod.slot : sdk::kNoSlot});
  };
  // Members with a nominated node come first: preemption made room for them.
  std::vector<const PodRecord*> others = group.pending;
  std::erase(others, &first);
  std::stable_partition(others.begin(), others.end(),
                        [](const PodRecord* pod) { return pod->place == sdk::Place::kNominated; });
  parts_.PutNeededFirst(&others);
  add(first);
  for (const PodRecord* pod : others) add(*pod);
}

bool GroupSearch::CouldBeEnough(absl::FunctionRef<size_t(size_t of_class)> count) {
  int64_t all = 0;
  std::vector<int64_t> of_part(parts_.size() + 1, 0);
  for (size_t c = 0; c < classes_.size(); ++c) {
    all += static_cast<int64_t>(count(c));
    of_part[classes_[c].part] += static_cast<int64_t>(count(c));
  }
  if (std::string part = parts_.Short(of_part); !part.empty()) {
    short_ = std::move(part);
    return false;
  }
  return all >= group_.needed;
}

bool GroupSearch::Enough() {
  if (parts_.size() == 0) return placed_.size() >= static_cast<size_t>(group_.needed);
  std::vector<size_t> placed(classes_.size(), 0);
  for (const Member& member : members_) {
    placed[member.of_class] += static_cast<size_t>(
        std::count_if(placed_.begin(), placed_.end(),
                      [&](const PlannedPod& planned) { return planned.pod == member.pod; }));
  }
  return CouldBeEnough([&](size_t c) { return placed[c]; });
}

std::string GroupSearch::Shape() const {
  const auto is_unsigned = [](const Class& some) { return some.signature.empty(); };
  if (std::any_of(classes_.begin(), classes_.end(), is_unsigned)) {
    // Without a signature the group equals only itself; its members share the outcome as long as
    // nothing changed.
    std::set<absl::string_view> uids;
    for (const Member& member : members_) uids.insert(member.pod->pod.uid());
    const bool needs_all = group_.needed == static_cast<int64_t>(members_.size());
    return absl::StrCat(context_.profile->name(), "\n", cache_->version(), "\n", group_.name, "\n",
                        group_.needed, "\n", needs_all ? "" : first_.pod.uid(), "\n",
                        absl::StrJoin(uids, "\n"));
  }
  std::string shape = absl::StrCat(
      context_.profile->name(), "\n", group_.needed, "\n", group_.topology.required, "\n",
      absl::StrJoin(group_.topology.preferred, ","), "\n", absl::StrJoin(group_.placed, ","));
  for (const Class& some : classes_) {
    absl::StrAppend(&shape, "\n", some.signature, "x", some.size);
    if (some.part > 0) absl::StrAppend(&shape, "/", parts_.needed(some.part));
  }
  // Nominated nodes of these are reserved against others, and members without a nomination.
  for (const Member& member : members_) {
    if (member.nominated == sdk::kNoSlot) continue;
    absl::StrAppend(&shape, "\n", member.pod->pod.uid(), &member == &members_.front() ? "!" : "");
  }
  return shape;
}

std::vector<std::string> GroupSearch::LikeFirst() const {
  const Member& first = members_.front();
  std::vector<std::string> uids;
  for (const Member& member : members_) {
    if (member.pod == first.pod || member.of_class != first.of_class) continue;
    // A member with a nomination may succeed where one without fails.
    if (first.nominated == sdk::kNoSlot && member.nominated != sdk::kNoSlot) continue;
    uids.push_back(member.pod->pod.uid());
  }
  return uids;
}

void GroupSearch::Restart(bool keep_nominations) {
  placed_.clear();
  trial_.UndoTo(0);
  offset_ = context_.options.start_offset;
  KeepNominations(keep_nominations);
}

void GroupSearch::KeepNominations(bool keep) {
  if (keep == keeps_nominations_) return;
  keeps_nominations_ = keep;
  for (const Member& member : members_) {
    if (member.nominated == sdk::kNoSlot) continue;
    keep ? without_nominations_.Return(*member.pod) : without_nominations_.Remove(*member.pod);
  }
}

GroupOutcome GroupSearch::Run() {
  KeepNominations(false);
  ExamineClasses();
  if (!error_.empty()) return FailWith({});
  std::vector<Domain> widest;
  std::vector<std::string> levels = group_.topology.preferred;
  levels.push_back("");
  for (const std::string& preferred : levels) {
    std::vector<Domain> domains = DomainsOf(preferred);
    for (Domain& domain : domains) FindRoom(&domain);
    SortDomains(&domains);
    if (!error_.empty()) return FailWith({});
    for (const Domain& domain : domains) {
      if (domain.bound < group_.needed || OutOfTime()) continue;
      if (Try(domain.nodes)) return Succeed();
      if (!error_.empty()) return FailWith({});
    }
    widest = std::move(domains);
  }
  // For the reason of the first member without a node.
  const auto largest =
      std::max_element(widest.begin(), widest.end(),
                       [](const Domain& a, const Domain& b) { return a.bound < b.bound; });
  if (largest != widest.end() && why_.empty() && largest->bound > 0 &&
      members_.size() <= kMaxExhaustedMembers) {
    Restart(members_.front().nominated == sdk::kNoSlot);
    PlaceInOrder(AsNamed(), largest->nodes, Taking::kBestScore);
  }
  return FailWith(widest);
}

void GroupSearch::ExamineClasses() {
  const sdk::NodeTable& nodes = cache_->view().nodes();
  SearchOptions all;
  all.percentage_of_nodes_to_score = 100;
  std::vector<int64_t> at_most;
  for (Class& some : classes_) {
    some.room.assign(nodes.occupied.size(), 0);
    some.attempt = std::make_unique<AttemptRecord>();
    some.attempt->Begin(0, some.example->pod.uid(), context_.profile);
    tools_.evaluator->PreFilter(*some.attempt, *some.example, context_.now, &pre_filter_);
    if (pre_filter_.has_rejection()) {
      const v1beta1::PluginStatus& rejection = pre_filter_.rejection();
      some.rejection = absl::StrJoin(rejection.reasons(), ", ");
      if (rejection.code() == v1beta1::CODE_ERROR) error_ = some.rejection;
      rejected_by_.insert(pre_filter_.rejected_by().begin(), pre_filter_.rejected_by().end());
      continue;
    }
    std::vector<Slot> feasible;
    const auto left = NodesLeft(pre_filter_, nodes, cache_->view().node_order(), &left_);
    tools_.evaluator->Filter(*some.attempt, *some.example, context_.now, left, all, &some.filter,
                             &feasible);
    if (some.filter.has_error()) {
      error_ = absl::StrJoin(some.filter.error().reasons(), ", ");
      return;
    }
    if (GoesByPodsElsewhere(*some.attempt)) feasible.assign(left.begin(), left.end());
    at_most.assign(feasible.size(), static_cast<int64_t>(some.size));
    for (const uint32_t index : context_.profile->at(v1beta1::EXTENSION_POINT_FILTER)) {
      const sdk::CapacityPlugin* room = context_.profile->plugins()[index].room;
      if (room == nullptr || some.attempt->skip_filter[index] != 0) continue;
      room->LimitCapacity(tools_.evaluator->View(*some.attempt, index, *some.example, context_.now),
                          feasible, absl::MakeSpan(at_most));
    }
    for (size_t i = 0; i < feasible.size(); ++i) some.room[feasible[i]] = at_most[i];
  }
}

std::vector<GroupSearch::Domain> GroupSearch::DomainsOf(const std::string& preferred) {
  const auto has_placed = [&](const std::vector<Slot>& nodes) {
    return std::any_of(group_.placed.begin(), group_.placed.end(), [&](Slot slot) {
      return std::find(nodes.begin(), nodes.end(), slot) != nodes.end();
    });
  };
  std::vector<Domain> required;
  if (group_.topology.required.empty()) {
    const auto order = cache_->view().node_order();
    required.push_back({"", std::vector<Slot>(order.begin(), order.end())});
  } else {
    for (const TopologyDomain& domain : tools_.domains->Of(group_.topology.required)) {
      const bool placed = !group_.placed.empty() && has_placed(domain.nodes);
      if (!group_.placed.empty() && !placed) continue;  // The placed members are in another domain.
      required.push_back({domain.value, domain.nodes, 0, 0, placed});
    }
  }
  if (!context_.among.empty()) {
    const absl::flat_hash_set<Slot> among(context_.among.begin(), context_.among.end());
    for (Domain& domain : required)
      std::erase_if(domain.nodes, [&](Slot slot) { return !among.contains(slot); });
  }
  if (preferred.empty()) return required;
  absl::flat_hash_map<Slot, size_t> domain_of;
  const std::vector<TopologyDomain>& all = tools_.domains->Of(preferred);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const Slot slot : all[i].nodes) domain_of[slot] = i;
  }
  std::vector<Domain> domains;
  for (const Domain& outer : required) {
    std::map<size_t, Domain> inner;
    for (const Slot slot : outer.nodes) {
      const auto at = domain_of.find(slot);
      if (at == domain_of.end()) continue;
      Domain& domain = inner[at->second];
      domain.value = all[at->second].value;
      domain.nodes.push_back(slot);
    }
    for (auto& [index, domain] : inner) {
      domain.has_placed = has_placed(domain.nodes);
      domains.push_back(std::move(domain));
    }
  }
  return domains;
}

void GroupSearch::FindRoom(Domain* domain) const {
  for (const Class& some : classes_) {
    int64_t room = 0;
    for (const Slot slot : domain->nodes) room += some.room[slot];
    domain->room += room;
    domain->bound += std::min(room, static_cast<int64_t>(some.size));
  }
}

bool GroupSearch::Try(absl::Span<const Slot> nodes) {
  // A member without a nomination keeps off others' nominated nodes.
  Restart(members_.front().nominated == sdk::kNoSlot);
  std::vector<size_t> order = AsNamed();
  if (PlaceInOrder(order, nodes, Taking::kBestScore)) return true;
  if (classes_.size() == 1 || !error_.empty()) return false;
  order = ScarcestFirst(nodes);
  for (const Taking taking : {Taking::kBestScore, Taking::kLeastInTheWay}) {
    Restart(false);
    if (PlaceInOrder(order, nodes, taking)) return true;
    if (!error_.empty() || OutOfTime()) return false;
  }
  if (members_.size() > kMaxExhaustedMembers) return false;
  Restart(false);
  choices_ = 0;
  return Exhaust(order, 0, 0, nodes);
}

std::vector<size_t> GroupSearch::AsNamed() const {
  std::vector<size_t> order(members_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

std::vector<size_t> GroupSearch::ScarcestFirst(absl::Span<const Slot> nodes) const {
  std::vector<int64_t> room(classes_.size(), 0);
  for (size_t c = 0; c < classes_.size(); ++c) {
    for (const Slot slot : nodes) room[c] += classes_[c].room[slot];
  }
  std::vector<size_t> order = AsNamed();
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const size_t ca = members_[a].of_class, cb = members_[b].of_class;
    return std::pair(room[ca], ca) < std::pair(room[cb], cb);
  });
  return order;
}

bool GroupSearch::BeginMember(const Member& member, PlannedPod* planned,
                              absl::Span<const Slot>* nodes) {
  planned->pod = member.pod;
  planned->attempt = std::make_unique<AttemptRecord>();
  planned->attempt->Begin(0, member.pod->pod.uid(), context_.profile);
  tools_.evaluator->PreFilter(*planned->attempt, *member.pod, context_.now, &pre_filter_);
  if (pre_filter_.has_rejection()) {
    if (pre_filter_.rejection().code() == v1beta1::CODE_ERROR)
      error_ = absl::StrJoin(pre_filter_.rejection().reasons(), ", ");
    why_ = absl::StrJoin(pre_filter_.rejection().reasons(), ", ");
    rejected_by_.insert(pre_filter_.rejected_by().begin(), pre_filter_.rejected_by().end());
    return false;
  }
  *nodes = NodesLeft(pre_filter_, cache_->view().nodes(), *nodes, &left_);
  return true;
}

void GroupSearch::NoteRejection(const v1beta1::FilterResponse& filter) {
  why_ = SumUp(filter, &rejected_by_);
}

bool GroupSearch::PlaceInOrder(const std::vector<size_t>& order, absl::Span<const Slot> nodes,
                               Taking taking) {
  std::vector<uint8_t> failed(classes_.size(), 0);
  std::vector<size_t> placed_of_class(classes_.size(), 0);
  for (const size_t i : order) {
    const Member& member = members_[i];
    if (failed[member.of_class] != 0) continue;
    if (OutOfTime()) return false;
    // The first has its place; from here on members with nominations go before others.
    if (!placed_.empty()) KeepNominations(false);
    PlannedPod planned;
    if (taking == Taking::kLeastInTheWay) {
      const std::vector<Slot> fitting = Fitting(member, nodes, &planned);
      if (!fitting.empty()) planned.slot = fitting.front();
    } else if (absl::Span<const Slot> left = nodes; BeginMember(member, &planned, &left)) {
      const auto choose = [&](absl::Span<const Slot> from, uint32_t start_offset) {
        SearchOptions options = context_.options;
        options.start_offset = start_offset;
        return tools_.evaluator->Choose(*planned.attempt, *member.pod, context_.now, from, options,
                                        &filter_);
      };
      Evaluator::Choice choice;
      const auto nominated = std::find(left.begin(), left.end(), member.nominated);
      if (nominated != left.end()) choice = choose(absl::MakeSpan(&*nominated, 1), 0);
      if (choice.slot == sdk::kNoSlot) choice = choose(left, offset_);
      planned.slot = choice.slot;
      planned.processed = choice.processed;
      planned.feasible = choice.feasible;
      error_ = choice.error;
      if (choice.slot == sdk::kNoSlot) NoteRejection(filter_);
      if (context_.explain && choice.scored)
        planned.scores = tools_.evaluator->Explain(*planned.attempt, *member.pod, context_.now);
    }
    if (!error_.empty()) return false;
    if (planned.slot == sdk::kNoSlot) {
      // Others of its class would not fit either.
      failed[member.of_class] = 1;
      // The attempt's own pod must be among them.
      const auto possible = [&](size_t c) {
        return failed[c] != 0 ? placed_of_class[c] : classes_[c].size;
      };
      if (i == 0 || !CouldBeEnough(possible)) {
        most_placed_ = std::max(most_placed_, placed_.size());
        return false;
      }
      continue;
    }
    offset_ =
        (offset_ + planned.processed) % static_cast<uint32_t>(cache_->view().node_order().size());
    trial_.Place(*member.pod, planned.slot);
    placed_.push_back(std::move(planned));
    ++placed_of_class[member.of_class];
  }
  most_placed_ = std::max(most_placed_, placed_.size());
  return Enough();
}

int64_t GroupSearch::RoomNow(const Class& of, Slot slot) const {
  if (of.room[slot] == 0) return 0;
  int64_t at_most = of.room[slot];
  for (const uint32_t index : context_.profile->at(v1beta1::EXTENSION_POINT_FILTER)) {
    const sdk::CapacityPlugin* room = context_.profile->plugins()[index].room;
    if (room == nullptr || of.attempt->skip_filter[index] != 0) continue;
    room->LimitCapacity(tools_.evaluator->View(*of.attempt, index, *of.example, context_.now),
                        absl::MakeSpan(&slot, 1), absl::MakeSpan(&at_most, 1));
  }
  return at_most;
}

std::vector<Slot> GroupSearch::Fitting(const Member& member, absl::Span<const Slot> nodes,
                                       PlannedPod* planned) {
  std::vector<Slot> fitting;
  absl::Span<const Slot> left = nodes;
  if (!BeginMember(member, planned, &left)) return fitting;
  SearchOptions all;
  all.percentage_of_nodes_to_score = 100;
  tools_.evaluator->Filter(*planned->attempt, *member.pod, context_.now, left, all, &filter_,
                           &fitting);
  if (filter_.has_error()) {
    error_ = absl::StrJoin(filter_.error().reasons(), ", ");
    return {};
  }
  planned->processed = filter_.processed();
  planned->feasible = static_cast<uint32_t>(fitting.size());
  if (fitting.empty()) NoteRejection(filter_);
  struct Cost {
    int64_t of_others = 0;
    int64_t own = 0;
    Slot slot = sdk::kNoSlot;
  };
  std::vector<Cost> costs;
  for (const Slot slot : fitting) {
    Cost& cost = costs.emplace_back();
    cost.slot = slot;
    for (size_t c = 0; c < classes_.size(); ++c)
      (c == member.of_class ? cost.own : cost.of_others) += RoomNow(classes_[c], slot);
  }
  std::stable_sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) {
    return std::pair(a.of_others, a.own) < std::pair(b.of_others, b.own);
  });
  for (size_t i = 0; i < costs.size(); ++i) fitting[i] = costs[i].slot;
  return fitting;
}

bool GroupSearch::Exhaust(const std::vector<size_t>& order, size_t k, size_t skipped,
                          absl::Span<const Slot> nodes) {
  most_placed_ = std::max(most_placed_, placed_.size());
  if (k == order.size()) {
    return Enough() && std::any_of(placed_.begin(), placed_.end(), [&](const PlannedPod& planned) {
             return planned.pod == &first_;
           });
  }
  if (choices_ >= kMaxChoices || OutOfTime()) return false;
  const Member& member = members_[order[k]];
  // Equal pods get nodes in increasing order, so that no combination repeats.
  Slot from = 0;
  if (k > 0 && !placed_.empty() && members_[order[k - 1]].of_class == member.of_class &&
      placed_.back().pod == members_[order[k - 1]].pod) {
    from = placed_.back().slot;
  }
  PlannedPod planned;
  for (const Slot slot : Fitting(member, nodes, &planned)) {
    if (slot < from) continue;
    if (++choices_ > kMaxChoices) return false;
    PlannedPod& last = placed_.emplace_back();
    last.pod = member.pod;
    last.slot = slot;
    last.processed = planned.processed;
    last.feasible = planned.feasible;
    trial_.Place(*member.pod, slot);
    if (Exhaust(order, k + 1, skipped, nodes)) return true;
    trial_.UndoTo(trial_.size() - 1);
    placed_.pop_back();
    if (!error_.empty()) return false;
  }
  if (!error_.empty()) return false;
  if (skipped + static_cast<size_t>(group_.needed) >= members_.size()) return false;
  return Exhaust(order, k + 1, skipped + 1, nodes);
}

GroupOutcome GroupSearch::Succeed() {
  GroupOutcome outcome;
  outcome.fitting = static_cast<uint32_t>(placed_.size());
  const auto first = std::find_if(placed_.begin(), placed_.end(), [&](const PlannedPod& planned) {
    return planned.pod == &first_;
  });
  std::rotate(placed_.begin(), first, first + 1);
  outcome.placed = std::move(placed_);
  return outcome;
}

GroupOutcome GroupSearch::FailWith(const std::vector<Domain>& domains) {
  GroupOutcome outcome;
  outcome.error = error_;
  if (!error_.empty()) return outcome;
  const auto widest =
      std::max_element(domains.begin(), domains.end(),
                       [](const Domain& a, const Domain& b) { return a.bound < b.bound; });
  size_t fitting = most_placed_;
  if (widest != domains.end() && widest->bound < group_.needed)
    fitting = std::max(fitting, static_cast<size_t>(widest->bound));
  outcome.fitting = static_cast<uint32_t>(fitting);
  outcome.reason = absl::StrCat(fitting, " of ", group_.needed, " members fit");
  if (!short_.empty()) absl::StrAppend(&outcome.reason, ", ", short_);
  // They are placed in the attempt of one of them.
  if (fitting >= static_cast<size_t>(group_.needed) && short_.empty())
    absl::StrAppend(&outcome.reason, ", this one does not");
  if (late_) absl::StrAppend(&outcome.reason, " within the time of the search");
  if (!group_.topology.required.empty()) {
    if (widest == domains.end()) {
      absl::StrAppend(&outcome.reason, "; no node has the label ", group_.topology.required);
    } else {
      absl::StrAppend(&outcome.reason, "; largest ", group_.topology.required,
                      " with room: ", widest->value, " (", widest->bound, ")");
    }
  }
  if (why_.empty()) {
    for (const Class& some : classes_) {
      if (!some.rejection.empty()) {
        why_ = some.rejection;
      } else if (some.filter.reasons_size() > 0) {
        why_ = SumUp(some.filter, &rejected_by_);
      }
      if (!why_.empty()) break;
    }
  }
  if (!why_.empty()) absl::StrAppend(&outcome.reason, "; ", why_);
  for (std::string& plugin : PluginsOfRoom(*context_.profile))
    rejected_by_.insert(std::move(plugin));
  outcome.rejected_by = std::move(rejected_by_);
  outcome.also = LikeFirst();
  return outcome;
}

}  // namespace outboard::runtime
