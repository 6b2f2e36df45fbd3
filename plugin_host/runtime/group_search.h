// The search for a group's nodes.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_GROUP_SEARCH_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_GROUP_SEARCH_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/group_parts.h"
#include "plugin_host/runtime/planner.h"

namespace outboard::runtime {

// The nodes that PreFilter left of `base`; `buffer` holds them if not all. Pure.
absl::Span<const sdk::Slot> NodesLeft(const v1beta1::PreFilterResponse& response,
                                      const sdk::NodeTable& nodes, absl::Span<const sdk::Slot> base,
                                      std::vector<sdk::Slot>* buffer);

// The plugins of a profile that limit how many pods fit: their events can make room.
std::vector<std::string> PluginsOfRoom(const Profile& profile);

// One group's search: a plan on the cache itself. The destructor restores the cache.
//
// Steps of the search:
//   - Members get nodes in the group's order, with the profile's filters and scores. For equal pods
//     this succeeds whenever a solution exists.
//   - If it fails and members differ: members with the fewest nodes first, each on the node where
//     it obstructs others least.
//   - Finally all combinations, within a budget.
// A member with a nominated node gets that node if it fits there, like an individual pod; equal
// members without a nomination do not take it.
//
// Threading: thread-compatible; the cache's thread.
// Lifetime: all constructor arguments outlive it.
// Errors: in the outcome.
class GroupSearch {
 public:
  GroupSearch(const PlanTools& tools, const PlanContext& context, const sdk::GroupToPlace& group,
              const sdk::PodRecord& first);
  // Groups of the same shape have the same outcome, for every member.
  std::string Shape() const;
  // Members, by uid, that have the same outcome as the first.
  std::vector<std::string> LikeFirst() const;
  GroupOutcome Run();
  // The deadline passed before the search was complete.
  bool late() const { return late_; }

 private:
  // Interchangeable pods.
  struct Class {
    std::string signature;  // empty: unique
    size_t part = 0;        // as in GroupParts::Of
    const sdk::PodRecord* example = nullptr;
    size_t size = 0;
    // In the current cluster: the example's PreFilter, and by slot the maximum number that fits; 0
    // where the example does not fit.
    std::unique_ptr<AttemptRecord> attempt;
    std::vector<int64_t> room;
    v1beta1::FilterResponse filter;
    std::string rejection;  // at PreFilter: none fits on any node
  };

  struct Member {
    const sdk::PodRecord* pod = nullptr;
    size_t of_class = 0;
    sdk::Slot nominated = sdk::kNoSlot;
  };
  struct Domain {
    std::string value;  // empty: all nodes
    std::vector<sdk::Slot> nodes;
    int64_t bound = 0;  // upper bound of members that fit
    int64_t room = 0;   // the same, not limited to the members that exist
    bool has_placed = false;
  };
  enum class Taking { kBestScore, kLeastInTheWay };

  // Whether members keep off each other's nominated nodes.
  void KeepNominations(bool keep);
  void ExamineClasses();
  std::vector<Domain> DomainsOf(const std::string& preferred);
  void FindRoom(Domain* domain) const;
  // In the order in which they are tried; an error of a plugin is in error_.
  void SortDomains(std::vector<Domain>* domains);
  void PutBestScoredFirst(size_t of, std::vector<Domain>* domains);
  void Restart(bool keep_nominations);
  bool Try(absl::Span<const sdk::Slot> nodes);
  bool PlaceInOrder(const std::vector<size_t>& order, absl::Span<const sdk::Slot> nodes,
                    Taking taking);
  bool Exhaust(const std::vector<size_t>& order, size_t k, size_t skipped,
               absl::Span<const sdk::Slot> nodes);
  // Orders of members, as indices: in the group's order, and with the least room first.
  std::vector<size_t> AsNamed() const;
  std::vector<size_t> ScarcestFirst(absl::Span<const sdk::Slot> nodes) const;
  // The nodes on which the member fits now, sorted by how little it obstructs others.
  std::vector<sdk::Slot> Fitting(const Member& member, absl::Span<const sdk::Slot> nodes,
                                 PlannedPod* planned);
  bool BeginMember(const Member& member, PlannedPod* planned, absl::Span<const sdk::Slot>* nodes);
  int64_t RoomNow(const Class& of, sdk::Slot slot) const;
  void NoteRejection(const v1beta1::FilterResponse& filter);
  bool OutOfTime() { return late_ = late_ || absl::Now() > context_.deadline; }
  bool Enough();
  // Whether this many members of each class could be enough; remembers a part that is short.
  bool CouldBeEnough(absl::FunctionRef<size_t(size_t of_class)> count);
  GroupOutcome Succeed();
  GroupOutcome FailWith(const std::vector<Domain>& domains);

  const PlanTools tools_;
  host_cache::ClusterCache* const cache_;
  const PlanContext& context_;
  const sdk::GroupToPlace& group_;
  const sdk::PodRecord& first_;
  const GroupParts parts_;
  std::vector<Member> members_;  // the attempt's pod first
  std::vector<Class> classes_;
  // Members' nominations while they do not count; placements, always undone first.
  host_cache::ClusterCache::Absence without_nominations_;
  host_cache::ClusterCache::Trial trial_;
  bool keeps_nominations_ = true;
  std::vector<PlannedPod> placed_;
  size_t most_placed_ = 0;
  uint32_t offset_ = 0;
  int choices_ = 0;
  bool late_ = false;
  std::string error_;
  std::string why_;    // Filter's reasons for the member without a node
  std::string short_;  // `1 of 3 of worker`: the last part that was short
  std::set<std::string> rejected_by_;
  v1beta1::PreFilterResponse pre_filter_;
  v1beta1::FilterResponse filter_;
  std::vector<sdk::Slot> left_;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_GROUP_SEARCH_H_
