// What a reflector does next: list, watch with the initial state in the stream, or watch; from
// where, and after which pause. No I/O and no clock.
#ifndef OUTBOARD_SHIM_INFORMER_REFLECTOR_POLICY_H_
#define OUTBOARD_SHIM_INFORMER_REFLECTOR_POLICY_H_

#include <cstdint>
#include <random>
#include <string>

#include "absl/time/time.h"
#include "shim/kube/wire/decode.h"

namespace outboard::informer {

// The next thing to do.
struct Step {
  enum class Kind {
    kList,       // one page of a consistent list
    kWatchList,  // a watch that begins with the whole state
    kWatch,      // a watch from `resource_version`
  };
  Kind kind = Kind::kList;
  absl::Duration delay = absl::ZeroDuration();
  std::string resource_version;
  // Of a list: where the next page begins; empty for the first, which clears what was collected.
  std::string continue_token;
  int page_size = 0;        // 0: everything in one page
  int timeout_seconds = 0;  // of a watch, told to the server
};

// Why a list or a watch failed or ended.
struct Failure {
  enum class Kind {
    kClean,        // the server ended the watch, as it does when timeout_seconds are over
    kConnection,   // not reached, or lost
    kSilence,      // nothing came for too long
    kHttp,         // answered with `code`
    kEvent,        // an ERROR event with `code` inside the stream
    kUndecodable,  // bytes that are not what they should be
  };
  Kind kind = Kind::kClean;
  int code = 0;
  std::string reason;  // of the Status, as "Expired"
  bool version_too_large = false;
  absl::Duration retry_after = absl::ZeroDuration();
  std::string message;
};

// What to do with one event of a watch.
enum class EventVerdict {
  kApply,        // an object: into the store, or into what is being collected
  kIgnore,       // an event from the past
  kBookmark,     // nothing but a version
  kInitialDone,  // the initial state is complete: what was collected becomes the store
  kReset,        // the version went backwards: end this watch, start from nothing
};

struct ReflectorPolicyOptions {
  bool watch_list = true;
  int page_size = 500;
  absl::Duration min_backoff = absl::Milliseconds(800);
  absl::Duration max_backoff = absl::Seconds(30);
  absl::Duration backoff_reset = absl::Minutes(2);
  // The server is asked to end a watch after once to twice this.
  absl::Duration min_watch = absl::Minutes(5);
  absl::Duration silence = absl::Seconds(90);
  absl::Duration initial_silence = absl::Seconds(30);
  uint64_t seed = 0;  // 0: random
};

// The decisions of reliability.md §1.1 and §1.3 in one place.
//
// Use: Next, carry it out, tell what happened (On…), Next. Threading: thread-compatible. Errors:
// none; failures are input.
class ReflectorPolicy {
 public:
  explicit ReflectorPolicy(ReflectorPolicyOptions options);

  Step Next(absl::Time now);

  // A page of a list has come. True when it was the last: what was collected becomes the store.
  bool OnPage(const std::string& resource_version, const std::string& continue_token);
  // The watch of the last step was accepted.
  void OnWatchOpened(absl::Time now);
  // Bytes have come.
  void OnData(absl::Time now) { last_data_ = now; }
  EventVerdict OnEvent(kube::WatchEventType type, const std::string& resource_version,
                       bool initial_events_end);
  // The list or watch of the last step has ended.
  void OnEnd(const Failure& failure, absl::Time now);

  // When the open watch is to be given up without further data.
  absl::Time SilenceDeadline() const;

  const std::string& resource_version() const { return resource_version_; }
  uint64_t rewinds() const { return rewinds_; }

 private:
  void Fail(absl::Time now, absl::Duration retry_after);
  void StartOver();
  void OnInitialWatchEnd(const Failure& failure, absl::Time now);
  double Uniform();

  const ReflectorPolicyOptions options_;
  std::mt19937_64 random_;

  bool watch_list_;
  // Lists instead of a WatchList, until the next complete state.
  bool list_this_time_ = false;
  int page_size_;
  std::string resource_version_;  // empty: the whole state is needed
  // The newest version ever seen, to notice that the server's clock was turned back.
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
