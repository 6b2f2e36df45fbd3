// What a scheduler can be told.
#ifndef OUTBOARD_SHIM_CYCLE_SCHEDULER_OPTIONS_H_
#define OUTBOARD_SHIM_CYCLE_SCHEDULER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/cycle/custom_resources.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// How a pod compares with others in the eyes of plugins.
struct Likeness {
  // Nothing that plugins look at tells pods of one kind apart but `amount`, when they were created
  // and what they are called. Empty: like no other.
  std::string kind;
  // Only plugins that read `amount_field`, which is one that they declare (PluginInfo), go by the
  // amount, and by who was created first. Where a pod finds no node, one that asks for more and was
  // created later does not either. Empty: no plugin does.
  int64_t amount = 0;
  absl::string_view amount_field;
};
using LikenessOf = std::function<Likeness(const kube::PodObject&)>;

struct SchedulerOptions {
  absl::Duration cycle_deadline = absl::Seconds(1);
  absl::Duration reserve_deadline = absl::Seconds(1);
  absl::Duration permit_deadline = absl::Seconds(1);
  absl::Duration pre_bind_deadline = absl::Seconds(1);
  absl::Duration queue_deadline = absl::Milliseconds(100);
  // How long pods stay in the queue, untouched, while their host is away; after that each one is
  // parked with an event.
  absl::Duration host_grace = absl::Seconds(5);
  // After so many calls in a row without a usable answer a host is not asked until it has answered
  // a probe, for each of them keeps all pods waiting; 0: it is asked all the same.
  int breaker_failures = 3;
  // How many pods a host may place at once where it can; 1: one at a time.
  size_t batch_size = 128;
  // Fewer are placed one by one, with all that is said of each node.
  size_t min_batch_size = 8;
  // The simulator's mode: a pod is tried once, and forgotten by the queue when it fails.
  bool single_attempt = false;
  // For virtual time, in which pods are tried again at every event and not after a backoff:
  // attempts that cannot place their pods are not made (vain_attempts.h). Null: all are.
  LikenessOf likeness;
  // What plugins may have done with custom resources.
  std::vector<CustomResourceRule> custom_resources;
  // Hosts say what their scores are made of; for people who look at single pods.
  bool explain = false;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_SCHEDULER_OPTIONS_H_
