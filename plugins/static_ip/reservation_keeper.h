// Reconciles the reservation objects with pods and policies. It is level-triggered, so it does not
// depend on what an earlier host has written.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_RESERVATION_KEEPER_H_
#define OUTBOARD_PLUGINS_STATIC_IP_RESERVATION_KEEPER_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/plugin.h"
#include "plugins/static_ip/address_book.h"

namespace outboard::static_ip {

struct ReleaseTimes {
  // How long a pod must be gone before its IP is released.
  absl::Duration after_deletion = absl::Seconds(10);
  // The same, if only the time indicates that its StatefulSet was scaled down.
  absl::Duration after_scale_down = absl::Minutes(5);
};

// Threading: thread-compatible; called on the cluster cache's thread.
// Lifetime:  the constructor's arguments must outlive it.
// Errors:    none; a failed write is requested again.
class ReservationKeeper {
 public:
  ReservationKeeper(ReleaseTimes times, const AddressBook* book, sdk::ClusterView cluster,
                    sdk::ShimNotifier* pushes)
      : times_(times), book_(book), cluster_(cluster), pushes_(pushes) {}

  void Clear();
  // Call OnRemoved before the address book removes it, OnChanged after the book has it.
  void OnRemoved(const Reservation& reservation);
  void OnChanged(const std::string& name) { pace_.Changed(name); }
  void Tick(absl::Time now);

 private:
  // Start of each absence, as this host observed it.
  struct Absence {
    absl::Time of_user = absl::InfiniteFuture();  // no pod uses the IP
    absl::Time of_name = absl::InfiniteFuture();  // no pod has the owner's name either
  };
  void Keep(const Reservation& reservation, absl::Time now);
  bool IsToBeReleased(const Reservation& reservation, const std::string& fault,
                      const Absence& absence, absl::Time now) const;
  void KeepStatus(const Reservation& reservation, const std::string& fault,
                  const sdk::PodRecord* user, absl::Time now);
  void Restore(absl::Time now);
  void Push(const std::string& name, v1beta1::Effect effect);

  const ReleaseTimes times_;
  const AddressBook* const book_;
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  absl::flat_hash_map<std::string, Absence> absences_;  // by name of the reservation
  // Reservations whose objects were force-deleted while a pod used the IP.
  std::map<std::string, Reservation> lost_;
  sdk::WritePace pace_;
  int pushed_ = 0;  // in this tick
};

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_RESERVATION_KEEPER_H_
