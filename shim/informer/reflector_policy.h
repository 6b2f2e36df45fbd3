// Decides the next step of a reflector: list, watch including the initial state, or watch; from
// which version, and after which pause. No I/O and no clock.
#ifndef OUTBOARD_SHIM_INFORMER_REFLECTOR_POLICY_H_
#define OUTBOARD_SHIM_INFORMER_REFLECTOR_POLICY_H_

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "absl/time/time.h"
#include "shim/kube/wire/decode.h"

namespace outboard::informer {

// The next step.
struct Step {
  enum class Kind {
    kList,       // one page of a consistent list
    kWatchList,  // a watch that starts with the whole state
    kWatch,      // a watch from `resource_version`
  };
  Kind kind = Kind::kList;
  absl::Duration delay = absl::ZeroDuration();
  std::string resource_version;
  // Lists: where the next page starts. Empty for the first page, which discards collected objects.
  std::string continue_token;
  int page_size = 0;        // 0: all in one page
  int timeout_seconds = 0;  // for a watch, sent to the server
};

// Why a list or watch failed or ended.
struct Failure {
  enum class Kind {
    kClean,        // the server ended the watch, as it does after timeout_seconds
    kConnection,   // not established, or lost
    kSilence,      // no data within the limit
    kHttp,         // answered with `code`
    kEvent,        // an ERROR event with `code` inside the stream
    kUndecodable,  // invalid bytes
  };
  Kind kind = Kind::kClean;
  int code = 0;
  std::string reason;  // of the Status, such as "Expired"
  bool version_too_large = false;
  absl::Duration retry_after = absl::ZeroDuration();
  std::string message;
};

// Why a complete state was needed.
enum class ListReason {
  kStart,
  kExpired,   // the server has no history from the known version on
  kRewound,   // the server's version went backwards
  kFailures,  // watches from the known version failed several times
};
inline constexpr std::array<const char*, 4> kListReasons = {"start", "expired", "rewound",
                                                            "failures"};

// The reason of the failure that a rewind is reported as.
inline constexpr char kRewound[] = "Rewound";

// What to do with one event of a watch.
enum class EventVerdict {
  kApply,        // an object for the store, or for the collection
  kIgnore,       // an outdated event
  kBookmark,     // only a version
  kInitialDone,  // the initial state is complete: commit the collection
  kReset,        // the version went backwards: end this watch, start over
};

struct ReflectorPolicyOptions {
  bool watch_list = true;
  int page_size = 500;
  absl::Duration min_backoff = absl::Milliseconds(800);
  absl::Duration max_backoff = absl::Seconds(30);
  absl::Duration backoff_reset = absl::Minutes(2);
  // The server is asked to end a watch after one to two times this duration.
  absl::Duration min_watch = absl::Minutes(5);
  absl::Duration silence = absl::Seconds(90);
  absl::Duration initial_silence = absl::Seconds(30);
  uint64_t seed = 0;  // 0: random
};

// Decides about lists, watches, errors and pauses, so that no change is missed for long.
//
// Use: Next, execute the step, report the outcome (On…), Next.
//
// Threading: thread-compatible.
// Errors: none; failures are input.
class ReflectorPolicy {
 public:
  explicit ReflectorPolicy(ReflectorPolicyOptions options);

  Step Next(absl::Time now);

  // A page of a list has arrived. Returns true if it was the last: the collection becomes the
  // store.
  bool OnPage(const std::string& resource_version, const std::string& continue_token);
  // The server accepted the watch of the last step.
  void OnWatchOpened(absl::Time now);
  // Data has arrived.
  void OnData(absl::Time now) { last_data_ = now; }
  EventVerdict OnEvent(kube::WatchEventType type, const std::string& resource_version,
                       bool initial_events_end);
  // The list or watch of the last step has ended.
  void OnEnd(const Failure& failure, absl::Time now);

  // When to end the open watch if no more data arrives.
  absl::Time SilenceDeadline() const;

  const std::string& resource_version() const { return resource_version_; }
  uint64_t rewinds() const { return rewinds_; }
  // Of the last complete list, or of the list that is needed now.
  ListReason list_reason() const { return list_reason_; }

 private:
  void Fail(absl::Time now, absl::Duration retry_after);
  void StartOver(ListReason reason);
  void OnInitialWatchEnd(const Failure& failure, absl::Time now);
  double Uniform();

  const ReflectorPolicyOptions options_;
  std::mt19937_64 random_;

  bool watch_list_;
  // Use lists instead of WatchList until the next complete state.
  bool list_this_time_ = false;
  int page_size_;
  std::string resource_version_;  // empty: a complete state is needed
  ListReason list_reason_ = ListReason::kStart;
  // The newest version seen, to detect that the server's version went backwards.
  std::string newest_version_;
  std::string list_version_;
  std::string continue_token_;
  Step::Kind doing_ = Step::Kind::kList;
  bool open_ = false;
  int events_ = 0;
  absl::Time step_start_;
  absl::Time last_data_;
  absl::Duration watch_timeout_;
  bool periodic_bookmarks_ = false;
  int failures_at_version_ = 0;

  absl::Duration delay_ = absl::ZeroDuration();
  absl::Duration backoff_;
  absl::Time last_failure_ = absl::InfinitePast();
  uint64_t rewinds_ = 0;
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_REFLECTOR_POLICY_H_
