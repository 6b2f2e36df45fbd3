// Lists and watches one resource of the API server until stopped.
#ifndef OUTBOARD_SHIM_INFORMER_REFLECTOR_H_
#define OUTBOARD_SHIM_INFORMER_REFLECTOR_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shim/informer/reflector_policy.h"
#include "shim/kube/api_client.h"
#include "shim/kube/watch_decoder.h"
#include "shim/kube/wire/decode.h"

namespace outboard::informer {

enum class Encoding { kProtobuf, kJson };

struct PageInfo {
  std::string resource_version;
  std::string continue_token;
};

// One decoded event. The target keeps the object until Apply or Collect.
struct EventInfo {
  kube::WatchEventType type = kube::WatchEventType::kError;
  std::string resource_version;
  bool initial_events_end = false;
  kube::ApiStatus status;  // for kError
};

// Holds the objects; the reflector does not know their type. All calls are on the reflector's
// thread.
class ReflectorTarget {
 public:
  virtual ~ReflectorTarget() = default;
  // Discards the collected objects.
  virtual void BeginSnapshot() = 0;
  // Collects the items of one page.
  virtual absl::StatusOr<PageInfo> AddPage(Encoding encoding, absl::string_view body) = 0;
  // Decodes one frame and keeps its object for the next Apply or Collect.
  virtual absl::StatusOr<EventInfo> Decode(Encoding encoding, absl::string_view frame) = 0;
  virtual absl::StatusOr<kube::ApiStatus> DecodeStatus(Encoding encoding,
                                                       absl::string_view body) = 0;
  // Applies the last decoded event to the store, or to the collected objects.
  virtual void Apply() = 0;
  virtual void Collect() = 0;
  // Replaces the store by the collected objects.
  virtual void CommitSnapshot() = 0;
};

// Counters; never reset.
struct ReflectorStats {
  // Complete states received, by list or watch, and why they were needed: by ListReason.
  std::array<std::atomic<uint64_t>, kListReasons.size()> lists{};
  std::atomic<uint64_t> pages{0};
  std::atomic<uint64_t> watches{0};  // opened
  // By the first three of kube::WatchEventType: added, modified, deleted.
  std::array<std::atomic<uint64_t>, 3> events{};
  std::atomic<uint64_t> bookmarks{0};
  std::atomic<uint64_t> ignored_events{0};  // outdated
  std::atomic<uint64_t> expired{0};
  std::atomic<uint64_t> silences{0};
  std::atomic<uint64_t> failures{0};  // all other failures
  std::atomic<uint64_t> rewinds{0};   // resource version went backwards; an alarm
};

struct ReflectorOptions {
  // For messages and the path: "/api/v1/pods".
  std::string name;
  std::string path;
  std::string field_selector;
  std::string label_selector;
  // A 404 for the first list means an empty resource. It is not a failure, but is retried
  // like one.
  bool may_be_absent = false;
  bool only_json = false;
  ReflectorPolicyOptions policy;
};

// Threading: Start and Stop from one thread. All work and all calls of the target happen on the
// reflector's own thread. Stats may be read from any thread.
// Lifetime: client and target outlive this object; the destructor stops it.
// Errors: every failure is logged, counted and retried forever.
class Reflector {
 public:
  Reflector(kube::ApiClient& client, ReflectorTarget& target, ReflectorOptions options);
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void Start();
  // Returns when the thread has ended.
  void Stop();
  const ReflectorStats& stats() const { return stats_; }

 private:
  class WatchSink;

  void Run();
  Failure List(const Step& step, bool* failed);
  Failure Watch(const Step& step);
  // Replaces the target's state by the collected objects.
  void Commit();
  void Count(const Step& step, const Failure& failure);
  // Whether `failure` means that the server does not know the resource; its state is then empty.
  bool IsAbsent(const Step& step, const Failure& failure);
  std::string Query(const Step& step) const;

  kube::ApiClient& client_;
  ReflectorTarget& target_;
  const ReflectorOptions options_;
  ReflectorPolicy policy_;
  ReflectorStats stats_;
  // The target has received a complete state. Reflector's thread only.
  bool have_state_ = false;
  bool absence_logged_ = false;
  kube::CancelToken cancel_;
  std::thread thread_;
};

// Percent-encodes a query value.
std::string QueryEscape(absl::string_view text);

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_REFLECTOR_H_
