# Writes a header with a digest of the contents of FILES (with semicolons): cmake -DFILES=… -DOUT=… -P abi_digest.cmake
set(all "")
foreach(file ${FILES})
  file(SHA256 ${file} digest)
  get_filename_component(name ${file} NAME)
  string(APPEND all "${name} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
# Only if it differs, to avoid unnecessary recompilation.
file(CONFIGURE OUTPUT ${OUT} CONTENT [[// Generated: a digest of the SDK's headers and of the contract.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_ABI_DIGEST_H_
#define OUTBOARD_PLUGIN_HOST_SDK_ABI_DIGEST_H_
#define OUTBOARD_ABI_DIGEST "@digest@"
#endif  // OUTBOARD_PLUGIN_HOST_SDK_ABI_DIGEST_H_
]] @ONLY)
