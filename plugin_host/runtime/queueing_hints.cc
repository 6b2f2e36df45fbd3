#include "plugin_host/runtime/queueing_hints.h"

#include <algorithm>

#include "plugin_host/runtime/wake_up_events.h"

namespace outboard::runtime {
namespace {

using v1beta1::ClusterEvent;
using v1beta1::QueueEvent;
using v1beta1::QueueHint;

constexpr absl::string_view kUnscheduledPod = "UnscheduledPod";

QueueHint MakeHint(const std::string& uid, const std::string& plugin,
                   const QueueEvent& event = QueueEvent()) {
  QueueHint hint;
  hint.set_uid(uid);
  hint.set_plugin(plugin);
  if (event.has_event()) *hint.mutable_event() = event.event();
  hint.set_number(event.number());
  return hint;
}

bool ConcernsOnlyItsPod(absl::string_view resource, ClusterEvent::Action action) {
  return resource == kUnscheduledPod && action != ClusterEvent::ACTION_ADD &&
         action != ClusterEvent::ACTION_DELETE;
}

// The pod with the node on which the shim placed it.
std::unique_ptr<v1beta1::Pod> CopyOf(const sdk::PodRecord& record, const sdk::ClusterView& view) {
  auto pod = std::make_unique<v1beta1::Pod>(record.pod);
  if (record.on_node()) pod->set_node_name(view.node(record.slot).name());
  return pod;
}

}  // namespace

bool QueueingHints::Event::concerns_only_its_pod() const {
  return ConcernsOnlyItsPod(resource(), action());
}

bool QueueingHints::Event::complete() const {
  const bool has_old = old_node != nullptr || old_pod != nullptr || old_object != nullptr;
  const bool has_new = new_node != nullptr || new_pod != nullptr || new_object != nullptr;
  switch (action()) {
    case ClusterEvent::ACTION_ADD:
      return has_new;
    case ClusterEvent::ACTION_DELETE:
      return has_old;
    default:
      return has_old && has_new;
  }
}

sdk::ObjectChange QueueingHints::Event::change() const {
  sdk::ObjectChange change;
  change.resource = resource();
  change.action = action();
  change.old_node = old_node.get();
  change.new_node = new_node.get();
  change.old_pod = old_pod.get();
  change.new_pod = new_pod.get();
  change.old_object = old_object.get();
  change.new_object = new_object.get();
  return change;
}

void QueueingHints::Reset() {
  waiting_.clear();
  by_rejector_.clear();
  history_.clear();
  pending_.clear();
  history_from_ = 0;
}

void QueueingHints::Keep(bool after, Event* event) const {
  // An added object has no state before, a removed object none after.
  if (event->action() == (after ? ClusterEvent::ACTION_DELETE : ClusterEvent::ACTION_ADD)) return;
  const sdk::ClusterView view = cache_->view();
  switch (event->told.about_case()) {
    case QueueEvent::kNodeName:
      if (auto node = view.FindNode(event->told.node_name())) {
        (after ? event->new_node : event->old_node) =
            std::make_unique<v1beta1::Node>(node->proto());
      }
      break;
    case QueueEvent::kPodUid:
      if (const sdk::PodRecord* pod = view.FindPod(event->told.pod_uid())) {
        (after ? event->new_pod : event->old_pod) = CopyOf(*pod, view);
      }
      break;
    case QueueEvent::kObject:
      if (const v1beta1::ClusterObject* object = view.objects().FindNamed(event->told.object())) {
        (after ? event->new_object : event->old_object) =
            std::make_unique<v1beta1::ClusterObject>(*object);
      }
      break;
    case QueueEvent::ABOUT_NOT_SET:
      break;  // A kind of a later contract.
  }
}

void QueueingHints::BeforeChange(const v1beta1::SyncRequest& request) {
  pending_.clear();
  for (const QueueEvent& told : request.events()) {
    if (told.event().actions_size() != 1) continue;
    Event& event = pending_.emplace_back();
    event.told = told;
    Keep(/*after=*/false, &event);
  }
}

void QueueingHints::AfterChange(const v1beta1::SyncRequest& request,
                                std::vector<QueueHint>* hints) {
  for (const std::string& uid : request.removed_unschedulable_pod_uids()) StopWaiting(uid);
  for (const v1beta1::UnschedulablePod& told : request.unschedulable_pods())
    BeginWaiting(told, hints);
  for (Event& event : pending_) {
    Keep(/*after=*/true, &event);
    if (!event.complete()) continue;
    EvaluateAll(event, hints);
    history_.push_back(std::move(event));
  }
  pending_.clear();
  // Not earlier: a pod of this message may need events that no attempt needs.
  history_from_ = std::max(history_from_, request.events_needed_from());
  while (!history_.empty() &&
         (history_.front().told.number() < history_from_ || history_.size() > kMaxHistory)) {
    history_from_ = std::max(history_from_, history_.front().told.number() + 1);
    history_.pop_front();
  }
}

void QueueingHints::Resolve(Waiting* waiting) const {
  const Profile* profile = find_profile_(waiting->profile);
  const auto find = [&](const std::string& name) {
    return profile == nullptr ? nullptr : profile->Find(name);
  };
  waiting->rejectors.clear();
  for (const auto* names : {&waiting->told.pending_by(), &waiting->told.rejected_by()}) {
    for (const std::string& name : *names) waiting->rejectors.push_back(find(name));
  }
  waiting->gate = find(waiting->told.gated_by());
}

void QueueingHints::ProfilesChanged() {
  by_rejector_.clear();
  for (auto& [uid, waiting] : waiting_) {
    Resolve(&waiting);
    for (const ProfilePlugin* plugin : waiting.rejectors) by_rejector_[plugin].insert(uid);
  }
}

void QueueingHints::StopWaiting(const std::string& uid) {
  auto it = waiting_.find(uid);
  if (it == waiting_.end()) return;
  for (const ProfilePlugin* plugin : it->second.rejectors) {
    auto pods = by_rejector_.find(plugin);
    if (pods == by_rejector_.end()) continue;
    pods->second.erase(uid);
    if (pods->second.empty()) by_rejector_.erase(pods);
  }
  waiting_.erase(it);
}

void QueueingHints::BeginWaiting(const v1beta1::UnschedulablePod& told,
                                 std::vector<QueueHint>* hints) {
  StopWaiting(told.uid());
  const sdk::PodRecord* pod = cache_->FindPod(told.uid());
  if (pod == nullptr) return;
  if (told.since() < history_from_) {
    const auto& plugins = told.pending_by().empty() ? told.rejected_by() : told.pending_by();
    if (!plugins.empty()) hints->push_back(MakeHint(told.uid(), plugins[0]));
    return;
  }
  Waiting waiting;
  waiting.told = told;
  waiting.profile = pod->pod.scheduler_name();
  Resolve(&waiting);
  for (const Event& event : history_) {
    if (event.told.number() < told.since()) continue;
    const ProfilePlugin* plugin = Evaluate(waiting, event);
    if (plugin == nullptr) continue;
    hints->push_back(MakeHint(told.uid(), plugin->name, event.told));
    return;
  }
  for (const ProfilePlugin* plugin : waiting.rejectors) by_rejector_[plugin].insert(told.uid());
  waiting_[told.uid()] = std::move(waiting);
}

void QueueingHints::EvaluateAll(const Event& event, std::vector<QueueHint>* hints) {
  std::vector<std::string> woken;
  const auto evaluate = [&](const std::string& uid) {
    Waiting& waiting = waiting_.at(uid);
    if (waiting.last_evaluated == event.told.number() || event.told.number() < waiting.told.since())
      return;
    waiting.last_evaluated = event.told.number();
    const ProfilePlugin* plugin = Evaluate(waiting, event);
    if (plugin == nullptr) return;
    hints->push_back(MakeHint(uid, plugin->name, event.told));
    woken.push_back(uid);
  };
  if (event.concerns_only_its_pod()) {
    if (waiting_.contains(event.told.pod_uid())) evaluate(event.told.pod_uid());
  } else {
    for (const auto& [plugin, uids] : by_rejector_) {
      if (plugin == nullptr ||
          !AnyRegistered(plugin->wake_up_events, event.resource(), event.action()))
        continue;
      for (const std::string& uid : uids) evaluate(uid);
    }
  }
  for (const std::string& uid : woken) StopWaiting(uid);
}

const ProfilePlugin* QueueingHints::Evaluate(const Waiting& waiting, const Event& event) const {
  const sdk::PodRecord* pod = cache_->FindPod(waiting.told.uid());
  if (pod == nullptr) return nullptr;
  const bool is_own = event.told.pod_uid() == waiting.told.uid();
  const bool only_own = event.concerns_only_its_pod();
  // The end of a pod's own nomination can help the pod like others; a released place of its own
  // cannot.
  if (is_own ? !only_own && !event.told.has_max_priority() : only_own) return nullptr;
  if (event.told.has_max_priority() && pod->pod.priority() > event.told.max_priority()) {
    return nullptr;
  }
  // As in kube-scheduler, the gating plugin's registration decides which events count, except for
  // updates of the pod itself.
  if (!waiting.told.gated_by().empty() && !only_own &&
      (waiting.gate == nullptr ||
       !AnyRegistered(waiting.gate->wake_up_events, event.resource(), event.action()))) {
    return nullptr;
  }
  for (const ProfilePlugin* plugin : waiting.rejectors) {
    if (plugin != nullptr && Helps(*plugin, *pod, event.change())) return plugin;
  }
  return nullptr;
}

bool Helps(const ProfilePlugin& plugin, const sdk::PodRecord& pod,
           const sdk::ObjectChange& change) {
  // Without a registration only a change of the pod itself helps (PluginInfo.wake_up_events).
  if (plugin.wake_up_events.empty()) return ConcernsOnlyItsPod(change.resource, change.action);
  if (!AnyRegistered(plugin.wake_up_events, change.resource, change.action)) return false;
  if (plugin.queueing_hint == nullptr ||
      !AnyRegistered(plugin.hinted_events, change.resource, change.action)) {
    return true;
  }
  return plugin.queueing_hint->QueueingHint(sdk::PodView(&pod), change) == sdk::Hint::kQueue;
}

}  // namespace outboard::runtime
