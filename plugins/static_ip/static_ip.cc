#include "plugins/static_ip/static_ip.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/static_ip/address_book.h"
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
    "releasePolicy": {"type": "string", "enum": ["Never", "OnScaleDown", "OnDelete"],
      "default": "OnScaleDown", "description": "When an IP is released, if neither pod nor pool has a policy."},
    "releaseAfter": {"type": "string", "default": "10s",
      "description": "How long a pod must be gone before its IP is released."},
    "scaledDownAfter": {"type": "string", "default": "5m", "description":
      "The same, while its StatefulSet exists and has no pod with a higher ordinal."}}})json";

struct Args {
  ReleasePolicy policy = ReleasePolicy::kOnScaleDown;
  ReleaseTimes times;
};

// The result of PreFilter. Reserve looks pools up by name again, because they may change.
struct Choice : sdk::AttemptState {
  uint64_t version = 0;            // of the cluster cache at which `pools` are valid
  std::vector<const Pool*> pools;  // one of them must serve the node
  Verdict rejection;               // if none does
};

class StaticIp : public sdk::Plugin,
                 public sdk::PreFilterPlugin,
                 public sdk::FilterPlugin,
                 public sdk::ReservePlugin,
                 public sdk::QueueingHintPlugin,
                 public sdk::ClusterObserver {
 public:
  StaticIp(Args args, const sdk::PluginContext& context)
      : policy_(args.policy),
        cluster_(context.cluster),
        book_(context.cluster),
        keeper_(args.times, &book_, context.cluster, context.pushes) {}

  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    const IpRequest request = IpRequestOf(attempt.pod().proto(), nullptr);
    if (!request.wants_ip) return Verdict::Skip();
    auto choice = std::make_unique<Choice>();
    Verdict verdict = Choose(attempt.pod(), request, choice.get());
    if (!verdict.ok()) return verdict;
    attempt.NewFilterState<Choice>() = std::move(*choice);
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
      if (!IsServed(*choice, slot)) sink.RejectWith(i, choice->rejection);
    });
  }

  Verdict Reserve(const sdk::Attempt& attempt, const sdk::NodeView& node,
                  sdk::ReserveAnswer* answer) override {
    const sdk::PodView& pod = attempt.pod();
    const IpRequest request = IpRequestOf(pod.proto(), nullptr);
    if (!request.wants_ip) return Verdict::Success();
    // The choice of PreFilter may be outdated.
    Choice choice;
    Verdict verdict = Choose(pod, request, &choice);
    if (!verdict.ok()) return verdict;
    if (!IsServed(choice, node.slot())) return choice.rejection;
    const Reservation* reserved = book_.ReservedFor(pod.namespace_name(), pod.name());
    if (reserved != nullptr) return Renew(*reserved, pod, node, answer);
    for (const Pool* pool : choice.pools) {
      if (!Serves(*pool, node.slot())) continue;
      const Address address = pool->free.lowest();
      answer->effects.push_back(
          sdk::CreateObject(kReservations, "", NameOf(address),
                            MakeReservation(address, pool->name, OwnerOf(pod), node.name(),
                                            PolicyOf(pod, request, *pool))));
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
    keeper_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override { book_.SetNode(slot); }
  void OnPodChanged(const sdk::PodRecord& pod) override { book_.SetPod(pod); }
  void OnPodRemoved(const sdk::PodRecord& pod) override { book_.RemovePod(pod); }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (!object.has_generic_object()) return;
    const v1beta1::GenericObject& custom = object.generic_object();
    if (custom.resource() == kPools) book_.SetPool(custom);
    if (custom.resource() != kReservations) return;
    book_.SetReservation(custom);
    keeper_.OnChanged(custom.name());
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (!object.has_generic_object()) return;
    const v1beta1::GenericObject& custom = object.generic_object();
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
  static bool IsServed(const Choice& choice, sdk::Slot slot) {
    return std::any_of(choice.pools.begin(), choice.pools.end(),
                       [&](const Pool* pool) { return Serves(*pool, slot); });
  }

  // Chooses the pools that can provide the pod's IP, or returns why there is none.
  Verdict Choose(const sdk::PodView& pod, const IpRequest& request, Choice* choice) const {
    choice->version = cluster_.nodes().version;
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
  Verdict Renew(const Reservation& reserved, const sdk::PodView& pod, const sdk::NodeView& node,
                sdk::ReserveAnswer* answer) const {
    if (reserved.owner.pod_uid == pod.uid() && reserved.node == node.name() &&
        reserved.has_finalizer) {
      return Verdict::Success();
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
    return Verdict::Success();
  }

  static Owner OwnerOf(const sdk::PodView& pod) {
    Owner owner{std::string(pod.namespace_name()), std::string(pod.name()), std::string(pod.uid()),
                ""};
    if (pod.proto().has_controller() && pod.proto().controller().kind() == "StatefulSet")
      owner.stateful_set = pod.proto().controller().name();
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

  const ReleasePolicy policy_;
  const sdk::ClusterView cluster_;
  AddressBook book_;
  ReservationKeeper keeper_;
  const Verdict no_free_ip_ =
      Verdict::Unresolvable("no free static IP in a pool that node can serve");
};

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
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
  d.interests = {std::move(reserve)};
  d.declared_resources = {
      sdk::UsesResource(kPools, {}),
      sdk::UsesResource(kReservations, {Resource::VERB_CREATE, Resource::VERB_UPDATE,
                                        Resource::VERB_UPDATE_STATUS, Resource::VERB_DELETE})};
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
