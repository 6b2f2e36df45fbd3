#include "plugins/static_ip/reservation_keeper.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::static_ip {
namespace {

using nlohmann::json;

// The shim applies a few hundred effects at a time; the rest follows with the next tick.
constexpr int kMaxPushesPerTick = 100;

bool IsBound(const sdk::PodRecord& pod) { return pod.place == sdk::Place::kBound; }

}  // namespace

void ReservationKeeper::Clear() {
  absences_.clear();
  lost_.clear();
  pace_.Clear();
}

void ReservationKeeper::OnRemoved(const Reservation& reservation) {
  pace_.Changed(reservation.name);
  absences_.erase(reservation.name);
  const sdk::PodRecord* user = book_->UserOf(reservation);
  if (user == nullptr || !IsBound(*user) || !reservation.address) return;
  LOG(WARNING) << "StaticIP: reservation of " << ToText(*reservation.address)
               << " was force-deleted while pod " << user->pod.namespace_() << "/"
               << user->pod.name() << " uses the IP; creating it again";
  Reservation& lost = lost_[reservation.name] = reservation;
  lost.owner.ns = user->pod.namespace_();
  lost.owner.pod = user->pod.name();
  lost.owner.pod_uid = user->pod.uid();
}

void ReservationKeeper::Push(const std::string& name, v1beta1::Effect effect) {
  ++pushed_;
  pushes_->Write(std::move(effect));
}

void ReservationKeeper::Tick(absl::Time now) {
  pushed_ = 0;
  Restore(now);
  for (const auto& [name, reservation] : book_->reservations()) Keep(reservation, now);
}

void ReservationKeeper::Restore(absl::Time now) {
  for (auto it = lost_.begin(); it != lost_.end();) {
    const Reservation& lost = it->second;
    if (book_->Find(it->first) != nullptr || cluster_.FindPod(lost.owner.pod_uid) == nullptr) {
      it = lost_.erase(it);
      continue;
    }
    if (pace_.IsDue(it->first, now)) {
      Push(it->first,
           sdk::CreateObject(kReservations, "", it->first,
                             MakeReservation(*lost.address, lost.pool, lost.owner, lost.node,
                                             lost.policy.value_or(ReleasePolicy::kNever))));
    }
    ++it;
  }
}

void ReservationKeeper::Keep(const Reservation& reservation, absl::Time now) {
  const sdk::PodRecord* user = book_->UserOf(reservation);
  Absence& absence = absences_[reservation.name];
  absence.of_user = user != nullptr ? absl::InfiniteFuture() : std::min(absence.of_user, now);
  // A pod with a higher ordinal indicates that this pod is only being restarted.
  const bool may_come_back =
      user != nullptr || book_->IsLive(reservation.owner) ||
      (reservation.policy == ReleasePolicy::kOnScaleDown &&
       !reservation.owner.stateful_set.empty() &&
       cluster_.objects().Find<v1beta1::PodController>(sdk::WorkloadKey(
           "StatefulSet", reservation.owner.ns, reservation.owner.stateful_set)) != nullptr &&
       book_->HasHigherOrdinal(reservation.owner));
  absence.of_name = may_come_back ? absl::InfiniteFuture() : std::min(absence.of_name, now);
  if (pushed_ >= kMaxPushesPerTick) return;

  const std::string& name = reservation.name;
  const auto* stored =
      cluster_.objects().Find<v1beta1::GenericObject>(sdk::CustomKey(kReservations, "", name));
  if (stored == nullptr) return;
  if (reservation.deleting && user == nullptr && reservation.has_finalizer) {
    if (now - absence.of_user < times_.after_deletion || !pace_.IsDue(name, now)) return;
    json whole = sdk::ParseCustomObject(*stored);
    json& finalizers = whole["metadata"]["finalizers"];
    finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), json(kFinalizer)),
                     finalizers.end());
    return Push(name, sdk::ReplaceObject(*stored, whole));
  }
  const std::string fault = book_->FaultOf(reservation);
  if (!reservation.deleting && IsToBeReleased(reservation, fault, absence, now)) {
    if (!pace_.IsDue(name, now)) return;
    VLOG(1) << "StaticIP: releasing " << name << " of pod " << reservation.owner.ns << "/"
            << reservation.owner.pod;
    return Push(name, sdk::DeleteObject(*stored));
  }
  KeepStatus(reservation, fault, user, now);
}

bool ReservationKeeper::IsToBeReleased(const Reservation& reservation, const std::string& fault,
                                       const Absence& absence, absl::Time now) const {
  const Owner& owner = reservation.owner;
  // Only reservations that a pod has received.
  if (owner.pod.empty() || (owner.pod_uid.empty() && reservation.user_uid.empty())) return false;
  const auto passed = [&](absl::Time since, absl::Duration long_enough) {
    return since <= now && now - since >= long_enough;
  };
  // A second reservation, left by a killed process; the pod has another one.
  if (!fault.empty())
    return reservation.made_by_plugin && passed(absence.of_user, times_.after_deletion);
  switch (reservation.policy.value_or(ReleasePolicy::kNever)) {
    case ReleasePolicy::kNever:
      return false;
    case ReleasePolicy::kOnDelete:
      return passed(absence.of_name, times_.after_deletion);
    case ReleasePolicy::kOnScaleDown: {
      const bool set_is_there = !owner.stateful_set.empty() &&
                                cluster_.objects().Find<v1beta1::PodController>(sdk::WorkloadKey(
                                    "StatefulSet", owner.ns, owner.stateful_set)) != nullptr;
      return passed(absence.of_name,
                    set_is_there ? times_.after_scale_down : times_.after_deletion);
    }
  }
  return false;
}

void ReservationKeeper::KeepStatus(const Reservation& reservation, const std::string& fault,
                                   const sdk::PodRecord* user, absl::Time now) {
  const bool in_use = user != nullptr && IsBound(*user);
  const std::string phase = in_use                          ? "InUse"
                            : !fault.empty()                ? "Refused"
                            : reservation.owner.pod.empty() ? "Held"
                                                            : "Reserved";
  const std::string user_uid = in_use ? user->pod.uid() : "";
  const bool deletion_waits = reservation.deleting && user != nullptr;
  const std::string message = fault.empty() ? "the IP is reserved as in spec" : fault;
  if (phase == reservation.phase && user_uid == reservation.user_uid &&
      reservation.was_accepted == fault.empty() && reservation.message == message &&
      deletion_waits == reservation.deletion_waits) {
    pace_.Forget(reservation.name);
    return;
  }
  if (!pace_.IsDue(reservation.name, now)) return;
  const auto* stored = cluster_.objects().Find<v1beta1::GenericObject>(
      sdk::CustomKey(kReservations, "", reservation.name));
  json whole = sdk::ParseCustomObject(*stored);
  json& status = whole["status"];
  if (!status.is_object()) status = json::object();
  status["phase"] = phase;
  status["podUID"] = user_uid;
  status["pod"] = in_use ? absl::StrCat(user->pod.namespace_(), "/", user->pod.name()) : "";
  sdk::SetCondition({"Accepted", fault.empty(), fault.empty() ? "Accepted" : "Refused", message},
                    now, &status);
  if (deletion_waits) {
    sdk::SetCondition(
        {"DeletionPending", true, "InUse", "kept until the pod that uses the IP is gone"}, now,
        &status);
  } else {
    sdk::RemoveCondition("DeletionPending", &status);
  }
  if (!fault.empty() && !reservation.made_by_plugin && reservation.message != message)
    LOG(WARNING) << "StaticIP: StaticIPReservation " << reservation.name << " refused: " << fault;
  Push(reservation.name, sdk::ReplaceStatus(*stored, whole));
}

}  // namespace outboard::static_ip
