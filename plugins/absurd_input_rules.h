// What the READMEs of the plugins that users asked for say of labels and annotations, written down
// a second time: which ones each reads, and what can be read. By regular expressions and ranges,
// and without the plugins' own parsers, so that a parser that takes more than is written is found
// out.
#ifndef OUTBOARD_PLUGINS_ABSURD_INPUT_RULES_H_
#define OUTBOARD_PLUGINS_ABSURD_INPUT_RULES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace outboard::absurd {

enum class Where { kNodeLabel, kNodeAnnotation, kPodLabel, kPodAnnotation };

// The object around a value, as far as it matters: GPUs that a pod asks for.
struct Context {
  int64_t gpus = 0;
};

// A kind of value.
struct Grammar {
  std::function<bool(const std::string& value, const Context& context)> can_be_read;
  std::vector<std::string> good;    // Some that can be read,
  std::vector<std::string> absurd;  // and some that cannot, beside those that no kind can read.
};

// Whether what cannot be read is complained of at once, or where the plugin has use for it.
enum class Complains { kAlways, kWhenUsed };

struct Rule {
  const char* plugin;
  Where where;
  std::string key;
  Grammar grammar;
  Complains complains = Complains::kWhenUsed;
};

// A plugin that users asked for.
struct Requested {
  const char* name;
  // Regular expressions for the reasons that it may give, whole.
  std::vector<const char*> reasons;
};

// The plugins, one entry each. Whatever else comes with the host is kube-scheduler's.
const std::vector<Requested>& RequestedPlugins();
// All their rules.
const std::vector<Rule>& Rules();
// Values that are absurd for most keys.
const std::vector<std::string>& AbsurdValues();

}  // namespace outboard::absurd

#endif  // OUTBOARD_PLUGINS_ABSURD_INPUT_RULES_H_
