#include "plugins/static_ip/static_ip.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/static_ip/address_book.h"
#include "plugins/static_ip/cni.h"
#include "plugins/static_ip/cni_pools.h"
#include "plugins/static_ip/reservation_keeper.h"

namespace outboard::static_ip {
namespace {

using nlohmann::json;
using sdk::Verdict;

constexpr char kName[] = "StaticIP";
constexpr const char* kAnnotations[] = {"outboard/static-ip", "outboard/static-ip-release",
                                        "k8s.v1.cni.galaxy.io/release-policy",
                                        "networking.alibaba.com/ip-retain"};

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "cni": {"type": "string", "enum": ["none", "antrea", "calico", "hybridnet", "kube-ovn", "spiderpool"],
      "default": "none", "description": "The CNI that gives pods their IPs."},
    "releasePolicy": {"type": "string", "enum": ["Never", "OnScaleDown", "OnDelete"],
      "default": "OnScaleDown", "description": "When an IP is released, if neither pod nor pool has a policy."},
    "releaseAfter": {"type": "string", "default": "10s",
      "description": "How long a pod must be gone before its IP is released."},
    "scaledDownAfter": {"type": "string", "default": "5m", "description":
      "The same, while its StatefulSet exists and has no pod with a higher ordinal."}}})json";

struct Args {
  Cni cni = Cni::kNone;
  ReleasePolicy policy = ReleasePolicy::kOnScaleDown;
  ReleaseTimes times;
};

// The result of PreFilter. Reserve looks pools up by name again, because they may change.
struct Choice : sdk::AttemptState {
  uint64_t version = 0;            // of the cluster cache at which pointers are valid
  std::vector<const Pool*> pools;  // one of them must serve the node
  std::optional<Address> address;  // that a pool must serve; absent: any free one
  Verdict rejection;               // if none does
  // If the CNI keeps the pod's IP: in place of all above.
  bool is_kept_by_cni = false;
  std::vector<NodeDemand> demands;
};

class StaticIp : public sdk::Plugin,
                 public sdk::PreFilterPlugin,
                 public sdk::FilterPlugin,
                 public sdk::ReservePlugin,
                 public sdk::QueueingHintPlugin,
                 public sdk::ClusterObserver {
 public:
  StaticIp(Args args, const sdk::PluginContext& context)
      : cni_(args.cni),
        policy_(args.policy),
        cluster_(context.cluster),
        book_(context.cluster),
        cni_pools_(args.cni, context.cluster),
        keeper_(args.times, &book_, context.cluster, context.pushes) {}

  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    const IpRequest request = IpRequestOf(attempt.pod().proto(), nullptr);
    Choice choice;
    choice.version = cluster_.nodes().version;
    choice.is_kept_by_cni = !IsReservedHere(cni_, attempt.pod().proto());
    if (!choice.is_kept_by_cni && !request.wants_ip) return Verdict::Skip();
    Verdict verdict = choice.is_kept_by_cni ? FollowCni(attempt.pod(), request, &choice)
                                            : Choose(attempt.pod(), request, &choice);
    if (!verdict.ok()) return verdict;
    if (choice.is_kept_by_cni && choice.demands.empty()) return Verdict::Skip();
    attempt.NewFilterState<Choice>() = std::move(choice);
    return verdict;
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* choice = attempt.filter_state<Choice>();
    if (choice == nullptr || choice->version != attempt.cluster().nodes().version) {
      // The profile may have no PreFilter.
      sdk::PreFilterResult ignored;
      const Verdict verdict = PreFilter(attempt, &ignored);
      if (verdict.skip()) return;
      if (!verdict.ok()) {
        block.ForEach([&](int i, sdk::Slot) { sink.RejectWith(i, verdict); });
        return;
      }
      choice = attempt.filter_state<Choice>();
    }
    block.ForEach([&](int i, sdk::Slot slot) {
      if (const Verdict* rejection = RejectionAt(*choice, slot)) sink.RejectWith(i, *rejection);
    });
  }

  Verdict Reserve(const sdk::Attempt& attempt, const sdk::NodeView& node,
                  sdk::ReserveAnswer* answer) override {
    const sdk::PodView& pod = attempt.pod();
    const IpRequest request = IpRequestOf(pod.proto(), nullptr);
    if (!request.wants_ip || !IsReservedHere(cni_, pod.proto())) return Verdict::Success();
    // The choice of PreFilter may be outdated.
    Choice choice;
    Verdict verdict = Choose(pod, request, &choice);
    if (!verdict.ok()) return verdict;
    if (const Verdict* rejection = RejectionAt(choice, node.slot())) return *rejection;
    const Reservation* reserved = book_.ReservedFor(pod.namespace_name(), pod.name());
    if (reserved != nullptr) {
      Renew(*reserved, pod, node, answer);
      TellCni(pod, *reserved->address, choice.pools.front()->name, answer);
      return Verdict::Success();
    }
    for (const Pool* pool : choice.pools) {
      if (!Serves(*pool, node.slot())) continue;
      const std::optional<Address> address = cni_pools_.LowestAt(node.slot(), pool->free);
      if (!address) continue;
      answer->effects.push_back(
          sdk::CreateObject(kReservations, "", NameOf(*address),
                            MakeReservation(*address, pool->name, OwnerOf(pod), node.name(),
                                            PolicyOf(pod, request, *pool))));
      TellCni(pod, *address, pool->name, answer);
      return Verdict::Success();
    }
    return choice.rejection;
  }
  // The cluster cache reports that the pod has no node any more.
  void Unreserve(const sdk::Attempt& attempt, absl::string_view node_name,
                 std::vector<sdk::WaitDecision>* decisions) override {}

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_pod != nullptr)
      return change.new_pod->uid() == pod.uid() ? sdk::Hint::kQueue : sdk::Hint::kSkip;
    if (change.old_pod != nullptr) {
      const IpRequest request = IpRequestOf(*change.old_pod, nullptr);
      return request.wants_ip ? sdk::Hint::kQueue : sdk::Hint::kSkip;
    }
    // An added or changed reservation takes an IP, or belongs to the pod.
    if (change.new_object != nullptr && change.new_object->has_generic_object() &&
        change.new_object->generic_object().resource() == kReservations) {
      const Reservation reservation = ReadReservation(change.new_object->generic_object());
      const bool is_own =
          pod.namespace_name() == reservation.owner.ns && pod.name() == reservation.owner.pod;
      return is_own ? sdk::Hint::kQueue : sdk::Hint::kSkip;
    }
    return sdk::Hint::kQueue;
  }

  void OnReset() override {
    book_.Clear();
    cni_pools_.Clear();
    keeper_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    book_.SetNode(slot);
    cni_pools_.SetNode(slot);
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    book_.SetPod(pod);
    cni_pools_.SetPod(pod.pod);
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    book_.RemovePod(pod);
    cni_pools_.RemovePod(pod.pod);
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (!object.has_generic_object()) return;
    const v1beta1::GenericObject& custom = object.generic_object();
    cni_pools_.SetObject(custom);
    if (custom.resource() == kPools) book_.SetPool(custom);
    if (custom.resource() != kReservations) return;
    book_.SetReservation(custom);
    keeper_.OnChanged(custom.name());
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (!object.has_generic_object()) return;
    const v1beta1::GenericObject& custom = object.generic_object();
    cni_pools_.RemoveObject(custom);
    if (custom.resource() == kPools) book_.RemovePool(custom.name());
    if (custom.resource() != kReservations) return;
    if (const Reservation* reservation = book_.Find(custom.name())) keeper_.OnRemoved(*reservation);
    book_.RemoveReservation(custom.name());
  }
  void OnTick(absl::Time now) override { keeper_.Tick(now); }

 private:
  static bool Serves(const Pool& pool, sdk::Slot slot) {
    return slot < pool.serves.size() && pool.serves[slot] != 0;
  }
  // Null if the pod may run there.
  const Verdict* RejectionAt(const Choice& choice, sdk::Slot slot) const {
    if (choice.is_kept_by_cni) {
      const auto unmet =
          std::find_if(choice.demands.begin(), choice.demands.end(),
                       [&](const NodeDemand& demand) { return !demand.IsMetBy(slot); });
      return unmet == choice.demands.end() ? nullptr : &unmet->rejection;
    }
    const bool is_served =
        std::any_of(choice.pools.begin(), choice.pools.end(), [&](const Pool* pool) {
          if (!Serves(*pool, slot)) return false;
          return choice.address ? cni_pools_.CanServe(slot, *choice.address)
                                : cni_pools_.LowestAt(slot, pool->free).has_value();
        });
    return is_served ? nullptr : &choice.rejection;
  }

  // The nodes on which the CNI can give the pod the IP that it keeps, as far as known.
  Verdict FollowCni(const sdk::PodView& pod, const IpRequest& request, Choice* choice) const {
    Verdict verdict = cni_pools_.DemandsOf(pod, request.wants_ip, &choice->demands);
    if (!verdict.ok()) return verdict;
    // Antrea's pools do not say which nodes can use them. A StaticIPPool of the same name may.
    PoolNames named;
    if (cni_ == Cni::kAntrea) {
      if (const std::string* pools = sdk::FindValue(pod.proto().annotations(), kAntreaPools))
        named = absl::StrSplit(*pools, absl::ByAnyChar(", "), absl::SkipEmpty());
    }
    if (!request.pool.empty()) named = {request.pool};
    NodeDemand demand;
    for (const std::string& name : named) {
      const auto pool = book_.pools().find(name);
      if (pool != book_.pools().end()) {
        demand.any_of.push_back(&pool->second.serves);
      } else if (!request.pool.empty()) {
        return Verdict::Unresolvable(
            absl::StrCat("StaticIPPool ", sdk::Quote(name), " does not exist"));
      }
    }
    if (demand.any_of.empty()) return verdict;
    demand.rejection =
        Verdict::Unresolvable(absl::StrCat("node cannot use StaticIPPool ", QuotedList(named)));
    choice->demands.push_back(std::move(demand));
    return verdict;
  }

  // Lets the CNI give the pod this IP. It reads the pod when the kubelet creates the sandbox, which
  // is after the bind. If the pod is not bound, the annotation stays, and the next attempt
  // overwrites it.
  void TellCni(const sdk::PodView& pod, const Address& address, const std::string& pool,
               sdk::ReserveAnswer* answer) const {
    const sdk::PodPatch patch = PatchFor(cni_, pod.proto(), address, pool);
    if (!patch.annotations.empty())
      answer->effects.push_back(sdk::PatchPod("static-ip-annotation", patch));
  }

  // Chooses the pools that can provide the pod's IP, or returns why there is none.
  Verdict Choose(const sdk::PodView& pod, const IpRequest& request, Choice* choice) const {
    if (const Reservation* reserved = book_.ReservedFor(pod.namespace_name(), pod.name())) {
      const std::string ip = absl::StrCat("reserved IP ", ToText(*reserved->address));
      const sdk::PodRecord* user = book_.UserOf(*reserved);
      if (user != nullptr && user->pod.uid() != pod.uid()) {
        return Verdict::Unresolvable(absl::StrCat(ip, " is still used by pod ",
                                                  user->pod.namespace_(), "/", user->pod.name()));
      }
      const Pool* pool = book_.PoolOf(*reserved);
      if (pool == nullptr) {
        return Verdict::Unresolvable(
            absl::StrCat(ip, ": StaticIPPool ", sdk::Quote(reserved->pool), " does not exist"));
      }
      choice->pools = {pool};
      choice->address = reserved->address;
      choice->rejection = Verdict::Unresolvable(absl::StrCat(ip, " cannot be served here"));
      return Verdict::Success();
    }
    bool any = false;
    for (const auto& [name, pool] : book_.pools()) {
      if (!request.pool.empty() && request.pool != name) continue;
      any = true;
      if (!pool.spec.fault.empty() && !request.pool.empty()) {
        return Verdict::Unresolvable(
            absl::StrCat("StaticIPPool ", sdk::Quote(name), " is invalid: ", pool.spec.fault));
      }
      if (!pool.free.empty()) choice->pools.push_back(&pool);
    }
    if (!any) {
      return Verdict::Unresolvable(
          request.pool.empty()
              ? std::string("no StaticIPPool exists")
              : absl::StrCat("StaticIPPool ", sdk::Quote(request.pool), " does not exist"));
    }
    choice->rejection = no_free_ip_;
    return Verdict::Success();
  }

  // Updates the reservation that the pod has, for its new uid and node.
  void Renew(const Reservation& reserved, const sdk::PodView& pod, const sdk::NodeView& node,
             sdk::ReserveAnswer* answer) const {
    if (reserved.owner.pod_uid == pod.uid() && reserved.node == node.name() &&
        reserved.has_finalizer) {
      return;
    }
    const auto* stored = cluster_.objects().Find<v1beta1::GenericObject>(
        sdk::CustomKey(kReservations, "", reserved.name));
    json whole = sdk::ParseCustomObject(*stored);
    json& spec = whole["spec"];  // spec and owner are objects, otherwise there would be no owner
    spec["owner"]["podUID"] = std::string(pod.uid());
    if (const Owner owner = OwnerOf(pod); !owner.stateful_set.empty())
      spec["owner"]["statefulSet"] = owner.stateful_set;
    spec["node"] = node.name();
    json& finalizers = whole["metadata"]["finalizers"];
    if (!finalizers.is_array()) finalizers = json::array();
    if (!reserved.has_finalizer) finalizers.push_back(kFinalizer);
    answer->effects.push_back(sdk::ReplaceObject(*stored, whole));
  }

  static Owner OwnerOf(const sdk::PodView& pod) {
    Owner owner{std::string(pod.namespace_name()), std::string(pod.name()), std::string(pod.uid()),
                ""};
    if (IsOfStatefulSet(pod.proto())) owner.stateful_set = pod.proto().controller().name();
    return owner;
  }
  // Pods of other controllers get a new name each time, so none would return for the IP.
  ReleasePolicy PolicyOf(const sdk::PodView& pod, const IpRequest& request,
                         const Pool& pool) const {
    if (pod.proto().has_controller() && OwnerOf(pod).stateful_set.empty())
      return ReleasePolicy::kOnDelete;
    if (request.policy) return *request.policy;
    return pool.spec.policy.value_or(policy_);
  }

  const Cni cni_;
  const ReleasePolicy policy_;
  const sdk::ClusterView cluster_;
  AddressBook book_;
  CniPools cni_pools_;
  ReservationKeeper keeper_;
  const Verdict no_free_ip_ =
      Verdict::Unresolvable("no free static IP in a pool that node can serve");
};

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  args.cni = ReadCni(root);
  const std::string policy = root.String("releasePolicy", PolicyName(args.policy));
  if (const std::optional<ReleasePolicy> parsed = ParsePolicy(policy)) {
    args.policy = *parsed;
  } else {
    root.Problem("releasePolicy", sdk::NotSupported(policy, {"Never", "OnDelete", "OnScaleDown"}));
  }
  const auto read = [&](const char* field, absl::Duration* duration) {
    *duration = root.Duration(field, *duration);
    if (*duration < absl::ZeroDuration())
      root.Problem(field, "Invalid value: must not be negative");
  };
  read("releaseAfter", &args.times.after_deletion);
  read("scaledDownAfter", &args.times.after_scale_down);
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  using Resource = v1beta1::DeclaredResource;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_RESERVE};
  d.args_schema = kArgsSchema;
  d.wake_up_events = {sdk::WakeOn(kPools, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
                      sdk::WakeOn(kReservations, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER,
                                                  Event::ACTION_DELETE}),
                      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_LABEL}),
                      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_OTHER,
                                          Event::ACTION_UPDATE_POD_LABEL})};
  v1beta1::Interest reserve = sdk::InterestIn(v1beta1::EXTENSION_POINT_RESERVE, {});
  reserve.add_any_field_set("metadata.labels['outboard/static-ip']");
  for (const char* key : kAnnotations) {
    d.needed_fields.push_back(sdk::AnnotationField(key));
    reserve.add_any_field_set(absl::StrCat("metadata.annotations['", key, "']"));
  }
  for (const char* key : kPoolAnnotations) d.needed_fields.push_back(sdk::AnnotationField(key));
  d.interests = {std::move(reserve)};
  d.declared_resources = {
      sdk::UsesResource(kPools, {}),
      sdk::UsesResource(kReservations, {Resource::VERB_CREATE, Resource::VERB_UPDATE,
                                        Resource::VERB_UPDATE_STATUS, Resource::VERB_DELETE})};
  for (const std::string& resource : CniResources()) {
    d.declared_resources.push_back(sdk::UsesResource(resource, {}));
    d.declared_resources.back().set_optional(true);
    d.wake_up_events.push_back(
        sdk::WakeOn(resource, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}));
  }
  d.signature = sdk::SignedParts(
      d.needed_fields, {"metadata.labels['outboard/static-ip']", "metadata.ownerReferences",
                        "metadata.name if metadata.labels['outboard/static-ip']"});
  for (const char* key : kAnnotations)
    d.signature->push_back(absl::StrCat("metadata.name if metadata.annotations['", key, "']"));
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<StaticIp>(ReadArgs(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::static_ip
