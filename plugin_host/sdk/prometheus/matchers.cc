#include "plugin_host/sdk/prometheus/matchers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/prometheus/samples.h"
#include "plugin_host/sdk/prometheus/server_args.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::prometheus {

Matchers ReadMatchers(const sdk::ArgsObject& server) {
  const sdk::ArgsObject object = server.Object("matchers");
  Matchers matchers;
  for (const std::string& label : object.Keys()) {
    matchers[label] = object.String(label, "");
    if (!IsLabelName(label))
      object.Problem(label, sdk::InvalidValue(label, "must be the name of a Prometheus label"));
  }
  return matchers;
}

std::string SelectorOf(const Matchers& matchers) {
  return absl::StrCat("{",
                      absl::StrJoin(matchers, ",",
                                    [](std::string* out, const Matchers::value_type& matcher) {
                                      absl::StrAppend(out, matcher.first, "=",
                                                      Quoted(matcher.second));
                                    }),
                      "}");
}

}  // namespace outboard::prometheus
