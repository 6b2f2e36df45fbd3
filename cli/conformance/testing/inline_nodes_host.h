// A correct host without a cache, for tests of the kit.
#ifndef OUTBOARD_CLI_CONFORMANCE_TESTING_INLINE_NODES_HOST_H_
#define OUTBOARD_CLI_CONFORMANCE_TESTING_INLINE_NODES_HOST_H_

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/score.pb.h"
#include "proto/testing/fake_host.h"

namespace outboard::conformance {

// Serves the plugin `Inline` at filter and score, with the capability INLINE_NODES. It rejects
// cordoned nodes, and fails for the pod `huge` on the node in slot 7. It keeps all sessions; with
// `single_session` it has the capability SINGLE_SESSION and keeps one.
//
// Threading: thread-safe.
// Lifetime: the destructor stops the server.
// Errors: Start returns null if it cannot listen on the address.
class InlineNodesHost {
 public:
  static std::unique_ptr<InlineNodesHost> Start(const std::string& address,
                                                bool single_session = false);

  const std::string& address() const { return host_->address(); }

 private:
  explicit InlineNodesHost(bool single_session) : single_session_(single_session) {}
  void ServePlugin();
  void ServeSessions();
  grpc::Status Configure(const v1beta1::ConfigureRequest& request,
                         v1beta1::ConfigureResponse* response) ABSL_LOCKS_EXCLUDED(mu_);
  grpc::Status Filter(const v1beta1::FilterRequest& request, v1beta1::FilterResponse* response);
  grpc::Status Score(const v1beta1::ScoreRequest& request, v1beta1::ScoreResponse* response);
  // `named` and `sent`: how many nodes the call names, and how many come with it.
  grpc::Status Check(const v1beta1::CallHeader& header, bool has_pod, int named, int sent)
      ABSL_LOCKS_EXCLUDED(mu_);

  const bool single_session_;
  absl::Mutex mu_;
  std::map<std::string, std::set<std::string>> sessions_ ABSL_GUARDED_BY(mu_);  // with profiles
  std::unique_ptr<testing::FakeHost> host_;  // last: its threads use the others
};

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_TESTING_INLINE_NODES_HOST_H_
