// A plugin as a shared object, which `outboard-host --plugin-dir` loads while it runs.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_SHARED_OBJECT_H_
#define OUTBOARD_PLUGIN_HOST_SDK_SHARED_OBJECT_H_

#include <google/protobuf/stubs/common.h>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "plugin_host/sdk/abi_digest.h"
#include "plugin_host/sdk/plugin_registry.h"

// Increase when the SDK's meaning changes without a change of its headers.
#define OUTBOARD_ABI_NUMBER 1

#define OUTBOARD_ABI_TEXT_OF(x) #x
#define OUTBOARD_ABI_TEXT(x) OUTBOARD_ABI_TEXT_OF(x)
#if defined(__clang__)
#define OUTBOARD_ABI_COMPILER "clang-" OUTBOARD_ABI_TEXT(__clang_major__)
#else
#define OUTBOARD_ABI_COMPILER "gcc-" OUTBOARD_ABI_TEXT(__GNUC__)
#endif
// Containers have another layout with the address sanitizer.
#if defined(__SANITIZE_ADDRESS__)
#define OUTBOARD_ABI_SANITIZER " sanitizer=address"
#else
#define OUTBOARD_ABI_SANITIZER ""
#endif

// All that object and host must have in common; errors name the differences. `sdk` is a digest of
// the SDK's headers and of the contract, so that the host rejects an object built for another
// release, instead of misreading memory.
#define OUTBOARD_ABI \
  "abi=" OUTBOARD_ABI_TEXT(OUTBOARD_ABI_NUMBER) " sdk=" OUTBOARD_ABI_DIGEST                    \
  " compiler=" OUTBOARD_ABI_COMPILER " c++abi=" OUTBOARD_ABI_TEXT(__GXX_ABI_VERSION)           \
  " strings=" OUTBOARD_ABI_TEXT(_GLIBCXX_USE_CXX11_ABI) " c++=" OUTBOARD_ABI_TEXT(__cplusplus) \
  " protobuf=" OUTBOARD_ABI_TEXT(GOOGLE_PROTOBUF_VERSION)                                      \
  " absl=" OUTBOARD_ABI_TEXT(ABSL_LTS_RELEASE_VERSION) OUTBOARD_ABI_SANITIZER

// The host reads OUTBOARD_ABI from this section before it loads an object and runs any of its code.
#define OUTBOARD_ABI_SECTION ".outboard.abi"

// The C symbol that the host calls once, after loading. If `status` is not OK, the host rejects the
// object.
#define OUTBOARD_REGISTER_SYMBOL "outboard_register_plugins"
extern "C" typedef void (*OutboardRegisterFunction)(outboard::sdk::PluginRegistry* registry,
                                                    absl::Status* status);

// In one source of the object, outside of namespaces:
// OUTBOARD_PLUGIN_OBJECT(&my_plugin::Descriptor); Several descriptors are separated by commas.
//
// Rules for an object: no threads, and no state that outlives its plugins, because the host unloads
// it with the last instance that uses it. Link no Outboard libraries; the host exports all symbols.
#define OUTBOARD_PLUGIN_OBJECT(...)                                                       \
  extern "C" __attribute__((visibility("default"), used, section(OUTBOARD_ABI_SECTION)))  \
  const char outboard_plugin_abi[] = OUTBOARD_ABI;                                        \
  extern "C" __attribute__((visibility("default"), used)) void outboard_register_plugins( \
      ::outboard::sdk::PluginRegistry* registry, ::absl::Status* status) {                \
    for (::outboard::sdk::PluginDescriptor(*descriptor)() : {__VA_ARGS__}) {              \
      status->Update(registry->Add(descriptor()));                                        \
    }                                                                                     \
  }                                                                                       \
  static_assert(true, "requires the semicolon")

#endif  // OUTBOARD_PLUGIN_HOST_SDK_SHARED_OBJECT_H_
