// What most sources include, compiled once (CMakeLists.txt, outboard_pch). Do not include this
// file.
#ifndef OUTBOARD_PROTO_PRECOMPILED_H_
#define OUTBOARD_PROTO_PRECOMPILED_H_

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"

#endif  // OUTBOARD_PROTO_PRECOMPILED_H_
