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
#include "plugin_host/mirror/mirror.h"
#include "plugin_host/runtime/evaluator.h"
#include "plugin_host/runtime/group_parts.h"
#include "plugin_host/runtime/planner.h"

namespace outboard::runtime {

// The nodes that PreFilter left of `base`; `buffer` holds them where that is not all. Pure.
absl::Span<const sdk::Slot> NodesLeft(const v1alpha1::PreFilterResponse& response,
                                      const sdk::NodeTable& nodes, absl::Span<const sdk::Slot> base,
                                      std::vector<sdk::Slot>* buffer);

// The plugins of a profile that limit how many pods there is room for: what they miss makes room.
std::vector<std::string> PluginsOfRoom(const Profile& profile);

// One group's search: a plan on the mirror itself, which is as before once the object is gone.
//
// Pods are searched for in the order in which the group names them, as the profile filters and
// scores; equal pods find nodes so whenever there are any. Groups of different pods for which that
// fails are tried again: those with the least choice first, each where it is least in the way of
// others, and at last, within a budget, every way there is. A member that has a node in mind gets
// that one if it fits there, as a pod that is alone does, and equal members that have none do not
// take it from it.
//
// Threading: thread-compatible; the mirror's thread. Lifetime: less than that of all that it is
// made of. Errors: in the outcome.
class GroupSearch {
 public:
  GroupSearch(const PlanTools& tools, const PlanContext& context, const sdk::GroupToPlace& group,
              const sdk::PodRecord& first);
  // Groups of one shape have the same outcome, whichever member is asked about.
  std::string Shape() const;
  // Members, by uid, that fare like the first, whatever comes of it.
  std::vector<std::string> LikeFirst() const;
  GroupOutcome Run();
  // There was no time to look everywhere.
  bool late() const { return late_; }

 private:
  // Pods of which one is as good as another.
  struct Class {
    std::string signature;  // empty: like no other
    size_t part = 0;        // as of GroupParts::Of
    const sdk::PodRecord* example = nullptr;
    size_t size = 0;
    // Of the cluster as it is: the example's PreFilter, and by slot how many there is room for at
    // most; 0 where the example would not fit.
    std::unique_ptr<AttemptRecord> attempt;
    std::vector<int64_t> room;
    v1alpha1::FilterResponse filter;
    std::string rejection;  // at PreFilter: none of them fits anywhere
  };

  struct Member {
    const sdk::PodRecord* pod = nullptr;
    size_t of_class = 0;
    sdk::Slot nominated = sdk::kNoSlot;
  };
  struct Domain {
    std::string value;  // empty: all nodes
    std::vector<sdk::Slot> nodes;
    int64_t bound = 0;  // so many members fit at most
    int64_t room = 0;   // for members without regard to how many there are
    bool has_placed = false;
  };
  enum class Taking { kBestScore, kLeastInTheWay };

  // Whether nodes that members have in mind are kept from each other.
  void KeepNominations(bool keep);
  void LookAtClasses();
  std::vector<Domain> DomainsOf(const std::string& preferred);
  void FindRoom(Domain* domain) const;
  void StartAnew(bool keep_nominations);
  bool Try(absl::Span<const sdk::Slot> nodes);
  bool PlaceInOrder(const std::vector<size_t>& order, absl::Span<const sdk::Slot> nodes,
                    Taking taking);
  bool Exhaust(const std::vector<size_t>& order, size_t k, size_t skipped,
               absl::Span<const sdk::Slot> nodes);
  // Orders of members, as indices: as the group names them, and those with the least room first.
  std::vector<size_t> AsNamed() const;
  std::vector<size_t> ScarcestFirst(absl::Span<const sdk::Slot> nodes) const;
  // The nodes on which the member would fit now, those first on which it is least in others' way.
  std::vector<sdk::Slot> Fitting(const Member& member, absl::Span<const sdk::Slot> nodes,
                                 PlannedPod* planned);
  bool BeginMember(const Member& member, PlannedPod* planned, absl::Span<const sdk::Slot>* nodes);
  int64_t RoomNow(const Class& of, sdk::Slot slot) const;
  void NoteRejection(const v1alpha1::FilterResponse& filter);
  bool OutOfTime() { return late_ = late_ || absl::Now() > context_.deadline; }
  bool Enough();
  // Whether so many members of each class could be enough; if a part is short, it is kept in mind.
  bool CouldBeEnough(absl::FunctionRef<size_t(size_t of_class)> count);
  GroupOutcome Succeed();
  GroupOutcome FailWith(const std::vector<Domain>& domains);

  const PlanTools tools_;
  mirror::Mirror* const mirror_;
  const PlanContext& context_;
  const sdk::GroupToPlace& group_;
  const sdk::PodRecord& first_;
  const GroupParts parts_;
  std::vector<Member> members_;  // the attempt's pod first
  std::vector<Class> classes_;
  // Members' nominations, while they do not count; placements, always taken back before.
  mirror::Mirror::Absence without_nominations_;
  mirror::Mirror::Trial trial_;
  bool keeps_nominations_ = true;
  std::vector<PlannedPod> placed_;
  size_t most_placed_ = 0;
  uint32_t offset_ = 0;
  int choices_ = 0;
  bool late_ = false;
  std::string error_;
  std::string why_;    // Filter's words on the member that found no node
  std::string short_;  // `1 of 3 of worker`: the part that stood in the way last
  std::set<std::string> rejected_by_;
  v1alpha1::PreFilterResponse pre_filter_;
  v1alpha1::FilterResponse filter_;
  std::vector<sdk::Slot> left_;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_GROUP_SEARCH_H_
