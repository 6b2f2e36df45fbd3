// Storms of gangs, made up from a number: what there is, what happens to it, and that it can be
// solved.
#ifndef OUTBOARD_SHIM_SIMULATE_STORMS_PLAN_H_
#define OUTBOARD_SHIM_SIMULATE_STORMS_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::simulate::storms {

// How the pods of a gang say that they belong together.
enum class Dialect {
  kJob,
  kKoordinator,
  kLegacy,
  kSchedulerPlugins,  // from here on with an object
  kVolcano,
  kKai,
  kKubernetes,
};
inline constexpr int kDialects = 7;
absl::string_view DialectName(Dialect dialect);

struct Amounts {
  int64_t cpu_millis = 0;
  int64_t gpus = 0;
  bool Covers(const Amounts& other) const {
    return cpu_millis >= other.cpu_millis && gpus >= other.gpus;
  }
  void Take(const Amounts& other, int sign) {
    cpu_millis -= sign * other.cpu_millis;
    gpus -= sign * other.gpus;
  }
};

struct Gang {
  std::string name;
  Dialect dialect = Dialect::kJob;
  int32_t priority = 0;
  int min = 1;                   // so many are placed together
  std::vector<Amounts> members;  // `min` of them or more
  absl::Duration arrives;
  absl::Duration spread;  // within which its members come
  // From when `min` of them were bound until it ends; InfiniteDuration: it never does.
  absl::Duration run = absl::InfiniteDuration();
  absl::Duration object_late;  // its object comes so long after it
};

struct Disturbance {
  enum Kind {
    kDeleteMember,  // one pod of a gang; its controller makes another
    kDeleteGang,    // all of it; it may come again
    kFailNode,      // goes with its pods, and comes back
    kNewHost,       // another host process takes over
    kKillHost,      // the host process that serves is killed; another takes over, or comes later
    kSwapBack,      // the one before takes over again
  } kind = kDeleteMember;
  absl::Duration when;
  uint32_t dice = 0;  // decides on whom, and how
};

enum class StormKind {
  // Pods of one shape, room for all gangs at once, and none ever ends.
  kRoomForAll,
  // Gangs of many shapes that want more than there is, run and end. Each would fit alone.
  kComeAndGo,
};

struct Storm {
  uint64_t seed = 0;
  StormKind kind = StormKind::kRoomForAll;
  std::vector<Amounts> nodes;
  std::vector<Gang> gangs;
  std::vector<Disturbance> disturbances;  // by time
  absl::Duration calm;                    // from here on nothing disturbs

  std::string Summary() const;
};

// A storm of about so many gangs. The same numbers give the same storm. Gangs are made by placing
// their members on nodes first and forgetting where. Pure.
Storm MakeStorm(uint64_t seed, int gangs);

}  // namespace outboard::simulate::storms

#endif  // OUTBOARD_SHIM_SIMULATE_STORMS_PLAN_H_
