// The progress of an awaited instance, from the shim's page /hosts.
#ifndef OUTBOARD_CLI_PLUGIN_REPLACEMENT_H_
#define OUTBOARD_CLI_PLUGIN_REPLACEMENT_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace outboard::plugin_command {

// The awaited instance, identified by its set of objects.
struct Awaited {
  std::string set;              // its digest; empty: no objects
  std::set<std::string> hosts;  // possible names of its host; empty: any
  // Ignores instances that failed before. Accepts an instance that serves already.
  absl::Time changed = absl::InfinitePast();
};

struct Progress {
  enum class Kind { kNotThere, kUnderWay, kServes, kFailed };
  Kind kind = Kind::kNotThere;
  std::string host, instance, state, why;
  std::string shadow;  // result of the comparison as text; empty: not compared
};

// The newest instance with the set. Pure. Errors: INTERNAL for a page of another form.
absl::StatusOr<Progress> ProgressOf(const std::string& hosts_page, const Awaited& awaited);

// Names of hosts with an instance with this set. Pure. Errors: as ProgressOf.
absl::StatusOr<std::set<std::string>> HostsWith(const std::string& hosts_page,
                                                const std::string& set);

}  // namespace outboard::plugin_command

#endif  // OUTBOARD_CLI_PLUGIN_REPLACEMENT_H_
