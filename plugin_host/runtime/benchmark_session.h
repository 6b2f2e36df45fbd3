// A cluster and the default profile, for benchmarks.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_BENCHMARK_SESSION_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_BENCHMARK_SESSION_H_

#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::runtime {

// The plugins of the default profile from PreFilter to Score, in its order.
v1beta1::ConfigureRequest DefaultProfile(const sdk::PluginRegistry& registry);

// At version 1: nodes `node-0`… in three zones and racks of 100, each with one running pod, and a
// pending pod `default/p`.
void FillSession(int nodes, Session* session);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_BENCHMARK_SESSION_H_
