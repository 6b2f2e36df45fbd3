// A place in a configuration file.
#ifndef OUTBOARD_SHIM_CONFIG_LOCATION_H_
#define OUTBOARD_SHIM_CONFIG_LOCATION_H_

#include <string>

namespace outboard::config {

// A position in the configuration file.
struct Location {
  int line = 0;      // starts at 1; 0: a default without position
  int column = 0;    // starts at 1
  std::string path;  // "profiles[0].plugins.score.enabled[1]"
};

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_LOCATION_H_
