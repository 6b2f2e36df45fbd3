// Hosts that are each wrong in one way, as proxies of a correct host, and what the kit says of
// them.
#ifndef OUTBOARD_CLI_CONFORMANCE_TESTING_BAD_HOST_H_
#define OUTBOARD_CLI_CONFORMANCE_TESTING_BAD_HOST_H_

#include <google/protobuf/message.h>
#include <grpcpp/channel.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "cli/conformance/kit.h"
#include "proto/testing/proxy_host.h"

namespace outboard::conformance {

template <typename T>
T* As(google::protobuf::Message* message) {
  return message->GetDescriptor() == T::descriptor() ? static_cast<T*>(message) : nullptr;
}
template <typename T>
const T* As(const google::protobuf::Message& message) {
  return message.GetDescriptor() == T::descriptor() ? static_cast<const T*>(&message) : nullptr;
}

// State shared by all hooks of one bad host.
struct Wrongness {
  testing::ProxyHooks hooks;
  testing::ProxyHost* proxy = nullptr;
  absl::Mutex mu;
  std::shared_ptr<grpc::Channel> upstream;
  std::string instance;
  std::string last_session;  // with the latest snapshot, or configured last
  std::set<std::string> synced;
  std::set<std::pair<std::string, uint64_t>> attempts;
  std::atomic<int> count{0};
};

struct BadHost {
  const char* name;
  // SERVICE/CASE of all cases that must fail.
  std::vector<std::string> fails;
  std::function<void(Wrongness*)> make;
};

// Changes every answer of one kind.
template <typename Response>
std::function<void(Wrongness*)> Answering(std::function<void(Wrongness*, Response*)> change) {
  return [change](Wrongness* wrong) {
    wrong->hooks.on_answer = [wrong, change](const google::protobuf::Message&,
                                             google::protobuf::Message* response,
                                             grpc::Status* status) {
      if (Response* answer = As<Response>(response); answer != nullptr && status->ok())
        change(wrong, answer);
    };
  };
}

template <typename Request>
std::function<void(Wrongness*)> Asked(std::function<void(Wrongness*, Request*)> change) {
  return [change](Wrongness* wrong) {
    wrong->hooks.on_request = [wrong, change](google::protobuf::Message* message) {
      if (Request* request = As<Request>(message); request != nullptr) change(wrong, request);
      return grpc::Status::OK;
    };
  };
}

// With a smaller cluster than the command's.
Options OptionsFor(const std::string& path);

// SERVICE/CASE of all results of one kind, with their messages. `path`: the host's socket.
std::map<std::string, std::string> ResultsOf(const std::string& path,
                                             const std::vector<Case>& cases,
                                             Result::Outcome outcome);

// What fails on a proxy of `upstream` that is wrong in one way. `number`: unique in the process.
std::map<std::string, std::string> FailuresOf(const BadHost& bad, int number,
                                              std::shared_ptr<grpc::Channel> upstream,
                                              const std::vector<Case>& cases);

std::vector<std::string> NamesOf(const std::map<std::string, std::string>& results);
// For a failed expectation.
std::string MessagesOf(const std::map<std::string, std::string>& results);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_TESTING_BAD_HOST_H_
