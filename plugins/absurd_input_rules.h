// The label and annotation rules from the READMEs of the user-requested plugins, written a second
// time: which keys each plugin reads, and which values are readable. The rules use regular
// expressions and ranges instead of the plugins' parsers, so that a parser that accepts more than
// documented is found.
#ifndef OUTBOARD_PLUGINS_ABSURD_INPUT_RULES_H_
#define OUTBOARD_PLUGINS_ABSURD_INPUT_RULES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace outboard::absurd {

enum class Where { kNodeLabel, kNodeAnnotation, kPodLabel, kPodAnnotation };

// The relevant context of a value: the pod's GPUs.
struct Context {
  int64_t gpus = 0;
};

// A kind of value.
struct Grammar {
  std::function<bool(const std::string& value, const Context& context)> can_be_read;
  std::vector<std::string> good;    // readable examples
  std::vector<std::string> absurd;  // unreadable examples, besides those that no kind can read
};

// Whether a plugin warns of a malformed value at once, or when it uses the value.
enum class Complains { kAlways, kWhenUsed };

struct Rule {
  const char* plugin;
  Where where;
  std::string key;
  Grammar grammar;
  Complains complains = Complains::kWhenUsed;
};

// A user-requested plugin.
struct Requested {
  const char* name;
  // Regular expressions that match the plugin's possible reasons as a whole.
  std::vector<const char*> reasons;
};

// All user-requested plugins. The host's other plugins are kube-scheduler's.
const std::vector<Requested>& RequestedPlugins();
// All their rules.
const std::vector<Rule>& Rules();
// Values that are unreadable for most keys.
const std::vector<std::string>& AbsurdValues();

}  // namespace outboard::absurd

#endif  // OUTBOARD_PLUGINS_ABSURD_INPUT_RULES_H_
