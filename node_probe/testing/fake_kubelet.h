// A kubelet's PodResources server on a temporary socket.
#ifndef OUTBOARD_NODE_PROBE_TESTING_FAKE_KUBELET_H_
#define OUTBOARD_NODE_PROBE_TESTING_FAKE_KUBELET_H_

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "node_probe/pod_resources.grpc.pb.h"

namespace outboard::node_probe::testing {

// Adds a pod with one container that has these devices.
inline void AddPod(v1::ListPodResourcesResponse* pods, const std::string& object_namespace,
                   const std::string& name, const std::vector<std::string>& devices,
                   const std::string& resource = "nvidia.com/gpu") {
  v1::PodResources* const pod = pods->add_pod_resources();
  pod->set_namespace_(object_namespace);
  pod->set_name(name);
  v1::ContainerDevices* const entry = pod->add_containers()->add_devices();
  entry->set_resource_name(resource);
  for (const std::string& device : devices) entry->add_device_ids(device);
}

// Threading: thread-compatible; change the answer between calls only.
// Lifetime: the destructor ends calls and removes the socket.
class FakeKubelet : private v1::PodResourcesLister::Service {
 public:
  explicit FakeKubelet(std::string socket = NewSocket()) : socket_(std::move(socket)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeKubelet() override {
    released_.Notify();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    unlink(socket_.c_str());
  }

  static std::string NewSocket() {
    static std::atomic<int> count{0};
    return absl::StrCat(::testing::TempDir(), "kubelet-", getpid(), "-", count++, ".sock");
  }
  const std::string& socket() const { return socket_; }
  v1::ListPodResourcesResponse* pods() { return &pods_; }
  // Later calls are not answered.
  void Hang() { hangs_ = true; }

 private:
  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override {
    if (hangs_) released_.WaitForNotification();
    *response = pods_;
    return grpc::Status::OK;
  }

  const std::string socket_;
  v1::ListPodResourcesResponse pods_;
  std::atomic<bool> hangs_{false};
  absl::Notification released_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace outboard::node_probe::testing

#endif  // OUTBOARD_NODE_PROBE_TESTING_FAKE_KUBELET_H_
