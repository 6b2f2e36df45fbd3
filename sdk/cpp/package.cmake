# The package for plugin authors: component `package` of cmake --install. See README.md.
include(GNUInstallDirs)
set(in COMPONENT package EXCLUDE_FROM_ALL)

install(TARGETS outboard outboard-host outboard-shim outboard-node-probe RUNTIME DESTINATION bin ${in})

# Headers keep their folders.
set(node_facts_headers ${OUTBOARD_SDK_HEADERS})
list(FILTER node_facts_headers INCLUDE REGEX "/sdk/node_facts/")
set(run_facts_headers ${OUTBOARD_SDK_HEADERS})
list(FILTER run_facts_headers INCLUDE REGEX "/sdk/run_facts/")
set(other_headers ${OUTBOARD_SDK_HEADERS})
list(FILTER other_headers EXCLUDE REGEX "/sdk/(node|run)_facts/")
install(FILES ${other_headers} ${CMAKE_BINARY_DIR}/plugin_host/sdk/abi_digest.h DESTINATION include/plugin_host/sdk ${in})
install(FILES ${node_facts_headers} DESTINATION include/plugin_host/sdk/node_facts ${in})
install(FILES ${run_facts_headers} DESTINATION include/plugin_host/sdk/run_facts ${in})
install(DIRECTORY plugin_host/sdk/testing/ DESTINATION include/plugin_host/sdk/testing ${in} FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${CMAKE_BINARY_DIR}/outboard DESTINATION include ${in} FILES_MATCHING PATTERN *.pb.h PATTERN *.grpc.pb.h EXCLUDE
  PATTERN v1alpha1 EXCLUDE)

foreach(part outboard_sdk_testing outboard_runtime outboard_host_cache outboard_sdk outboard_trace_context outboard_workloads outboard_contract)
  install(TARGETS ${part} ARCHIVE DESTINATION lib/outboard ${in})
endforeach()
install(FILES sdk/cpp/OutboardConfig.cmake DESTINATION lib/cmake/Outboard ${in})

install(DIRECTORY proto/outboard DESTINATION share/outboard/proto ${in} FILES_MATCHING PATTERN *.proto
  PATTERN v1alpha1 EXCLUDE)
install(FILES proto/call_errors/rpc_status.proto DESTINATION share/outboard/proto/call_errors ${in})
install(DIRECTORY sdk/python/outboard_plugin DESTINATION share/outboard/python ${in} FILES_MATCHING PATTERN *.py)
install(FILES sdk/checkpoint/outboard_checkpoint.py DESTINATION share/outboard/checkpoint ${in})
install(PROGRAMS sdk/checkpoint/outboard-checkpoint.sh DESTINATION share/outboard/checkpoint ${in})
install(DIRECTORY sdk/templates/cpp sdk/templates/python DESTINATION share/outboard/templates ${in} PATTERN __pycache__ EXCLUDE)
install(FILES plugin_host/sdk/README.md DESTINATION share/outboard RENAME sdk.md ${in})
