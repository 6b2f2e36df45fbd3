#include "plugins/topology_aware_gpu_gate/parallelism.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::topology_aware_gpu_gate {
namespace {

using sdk::testing::PodBuilder;

constexpr Parallelism kNone{}, kData{true, false}, kTensor{false, true}, kBoth{true, true};

TEST(ParallelismTest, CommandsOfLaunchers) {
  for (const char* command :
       {"torchrun --nproc-per-node=8 train.py", "torchrun --nproc_per_node 8 train.py",
        "/opt/conda/bin/torchrun --standalone --nproc-per-node=gpu train.py", "torchrun train.py",
        "python -m torch.distributed.run --nproc-per-node=4 train.py",
        "python3 -m torch.distributed.launch --nproc_per_node=2 train.py",
        "bash -c 'cd /app && torchrun --nnodes=2 --nproc-per-node=8 train.py'",
        "[\"torchrun\", \"--nproc-per-node\", \"auto\", \"train.py\"]",
        "deepspeed --num_gpus 8 train.py", "deepspeed train.py --deepspeed ds.json",
        "WORLD_SIZE=16 RANK=0 python train.py", "env WORLD_SIZE=2 python train.py",
        "PET_NPROC_PER_NODE=8 python train.py"}) {
    EXPECT_EQ(ParallelismOfCommand(command), kData) << command;
  }
}

TEST(ParallelismTest, CommandsOfServers) {
  for (const char* command : {"vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 4",
                              "vllm serve m -tp 4", "vllm serve m -tp=8",
                              "python3 -m vllm.entrypoints.openai.api_server --model m "
                              "--tensor-parallel-size=2",
                              "[\"--model\",\"m\",\"--tensor-parallel-size\",\"8\"]",
                              "python3 -m sglang.launch_server --model-path m --tp 2",
                              "text-generation-launcher "
                              "--num-shard 4",
                              "python pretrain_gpt.py --tensor-model-parallel-size 8"}) {
    EXPECT_EQ(ParallelismOfCommand(command), kTensor) << command;
  }
}

TEST(ParallelismTest, TrainingMayBeBoth) {
  EXPECT_EQ(ParallelismOfCommand("torchrun --nproc-per-node 8 pretrain_gpt.py "
                                 "--tensor-model-parallel-size 4"),
            kBoth);
}

TEST(ParallelismTest, SingleProcessesAreNeither) {
  for (const char* command : {"",
                              "python train.py",
                              "torchrun --nproc-per-node=1 train.py",
                              "WORLD_SIZE=1 python t.py",
                              "WORLD_SIZE=16 torchrun --nproc-per-node=1 train.py",
                              "deepspeed --num_gpus=1 train.py",
                              "vllm serve m --tensor-parallel-size 1",
                              "vllm serve m -tp",
                              "vllm serve m -tp=$(TP)",
                              "vllm serve m -tp -1",
                              "vllm serve m -tp 99999999999999999999",
                              "echo torchrunner",
                              "WORLD_SIZE= python t.py",
                              "WORLD_SIZE=\u0662 python t.py",
                              "--nproc-per-node=8",
                              "=",
                              "-",
                              "--",
                              "-=-",
                              "\xff\xfe"}) {
    EXPECT_EQ(ParallelismOfCommand(command), kNone) << command;
  }
}

v1beta1::Container Runs(const std::vector<std::string>& command,
                        const std::vector<std::string>& args = {}) {
  v1beta1::Container container;
  for (const std::string& word : command) container.add_command(word);
  for (const std::string& word : args) container.add_args(word);
  return container;
}

// Commands from the projects' manifests.
TEST(ParallelismTest, Containers) {
  EXPECT_EQ(ParallelismOfContainer(Runs({})), kNone);
  EXPECT_EQ(ParallelismOfContainer(Runs({"python3"}, {"train.py"})), kNone);
  EXPECT_EQ(ParallelismOfContainer(
                Runs({"torchrun"}, {"--nnodes=2", "--nproc_per_node", "8", "/workspace/train.py"})),
            kData);
  EXPECT_EQ(ParallelismOfContainer(
                Runs({"/bin/bash", "-c"}, {"cd /app\nexec torchrun --nproc-per-node=8 train.py"})),
            kData);
  EXPECT_EQ(ParallelismOfContainer(Runs(
                {"vllm"}, {"serve", "meta-llama/Llama-3.1-70B", "--tensor-parallel-size", "8"})),
            kTensor);
  EXPECT_EQ(
      ParallelismOfContainer(Runs({"/bin/sh", "-c"}, {"vllm serve m --tensor-parallel-size=4"})),
      kTensor);
  EXPECT_EQ(ParallelismOfContainer(Runs({"deepspeed"}, {"--num_gpus=8", "train.py"})), kData);
  v1beta1::Container world = Runs({"python"}, {"train.py"});
  (*world.mutable_env())["WORLD_SIZE"] = "16";
  EXPECT_EQ(ParallelismOfContainer(world), kData);
  (*world.mutable_env())["WORLD_SIZE"] = "1";
  EXPECT_EQ(ParallelismOfContainer(world), kNone);
  (*world.mutable_env())["TENSOR_PARALLEL_SIZE"] = "2";
  EXPECT_EQ(ParallelismOfContainer(world), kTensor);
  (*world.mutable_env())["WORLD_SIZE"] = "16";
  world.add_args("--nproc-per-node=1");
  world.set_command(0, "torchrun");
  EXPECT_EQ(ParallelismOfContainer(world), kTensor) << "one process per node needs no island";
}

TEST(ParallelismTest, PodsOfPyTorchJobs) {
  PodBuilder owned("p");
  owned.proto().mutable_controller()->set_kind("PyTorchJob");
  owned.proto().mutable_controller()->set_api_version("kubeflow.org/v1");
  EXPECT_EQ(ParallelismOfPod(owned, nullptr), kData);
  // Labels of the training operator.
  EXPECT_EQ(
      ParallelismOfPod(PodBuilder("bert-worker-0")
                           .Label("training.kubeflow.org/job-name", "bert")
                           .Label("training.kubeflow.org/operator-name", "pytorchjob-controller")
                           .Label("training.kubeflow.org/replica-index", "0")
                           .Label("training.kubeflow.org/replica-type", "worker"),
                       nullptr),
      kData);
  EXPECT_EQ(ParallelismOfPod(
                PodBuilder("p").Label("training.kubeflow.org/operator-name", "tfjob-controller"),
                nullptr),
            kNone);
  // Labels of its predecessor.
  EXPECT_EQ(ParallelismOfPod(PodBuilder("p")
                                 .Label("group-name", "kubeflow.org")
                                 .Label("controller-name", "pytorch-operator"),
                             nullptr),
            kData);
  owned.Label(kTensorParallelSizeKey, "2");
  EXPECT_EQ(ParallelismOfPod(owned, nullptr), kBoth);
}

TEST(ParallelismTest, ThePodsOwnLabelDecides) {
  PodBuilder pod("p");
  EXPECT_EQ(ParallelismOfPod(pod, nullptr), kNone);
  v1beta1::Container* container = pod.proto().mutable_containers(0);
  container->add_command("torchrun");
  container->add_args("--nproc-per-node=8");
  EXPECT_EQ(ParallelismOfPod(pod, nullptr), kData);
  pod.Annotation(kParallelismKey, "DDP,tensor-parallel");
  EXPECT_EQ(ParallelismOfPod(pod, nullptr), kBoth);
  pod.Label(kParallelismKey, "none");
  EXPECT_EQ(ParallelismOfPod(pod, nullptr), kNone);
}

TEST(ParallelismTest, WhatCannotBeReadCountsAsAbsent) {
  sdk::MalformedValues malformed("Test");
  PodBuilder pod("p");
  pod.Label(kParallelismKey, "ddp.tensor").Label(kTensorParallelSizeKey, "four");
  EXPECT_EQ(ParallelismOfPod(pod, &malformed), kNone);
  EXPECT_EQ(malformed.warned(), 2);
  pod.Annotation(kTensorParallelSizeKey, "4");
  EXPECT_EQ(ParallelismOfPod(pod, &malformed), kTensor);
  pod.Annotation(kTensorParallelSizeKey, "1");
  EXPECT_EQ(ParallelismOfPod(pod, &malformed), kNone);
}

}  // namespace
}  // namespace outboard::topology_aware_gpu_gate
