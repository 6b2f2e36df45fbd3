// What the shim's page of hosts says of an instance that is awaited.
#ifndef OUTBOARD_SHIM_AUTHOR_REPLACEMENT_H_
#define OUTBOARD_SHIM_AUTHOR_REPLACEMENT_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace outboard::author {

// The instance that is awaited, by the set of objects that it has.
struct Awaited {
  std::string set;              // its digest; empty: no objects
  std::set<std::string> hosts;  // names, one of which it has; empty: any
  // One that failed before this is somebody else's; one that serves is as good as a new one.
  absl::Time changed = absl::InfinitePast();
};

struct Progress {
  enum class Kind { kNotThere, kUnderWay, kServes, kFailed };
  Kind kind = Kind::kNotThere;
  std::string host, instance, state, why;
  std::string shadow;  // what the comparison has said, for people; empty: nothing was compared
};

// Of the instances with that set, the one that started last. Errors: INTERNAL if the page is not
// what it should be. Pure.
absl::StatusOr<Progress> ProgressOf(const std::string& hosts_page, const Awaited& awaited);

// Names of hosts that have an instance with this set. Errors: as ProgressOf. Pure.
absl::StatusOr<std::set<std::string>> HostsWith(const std::string& hosts_page,
                                                const std::string& set);

}  // namespace outboard::author

#endif  // OUTBOARD_SHIM_AUTHOR_REPLACEMENT_H_
