# find_package(Outboard): functions to build plugins as shared objects.
#
#   outboard_plugin(NAME SRCS…)        NAME.so for `outboard plugin install`
#   outboard_plugin_test(NAME SRCS…)   a GoogleTest program with the harness of plugin_host/sdk/testing; TESTDATA is the
#                                      path of the folder testdata beside the CMakeLists.txt; not with -DBUILD_TESTING=OFF
get_filename_component(OUTBOARD_PACKAGE "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
option(BUILD_TESTING "Build the plugins' tests" ON)

find_package(Protobuf REQUIRED)
find_package(absl REQUIRED CONFIG)

# Settings for plugins and their tests.
function(_outboard_compile name)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # The host's flags, so that scores are equal on every machine.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter -fno-trapping-math -ffp-contract=off)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(${name} SYSTEM PRIVATE ${OUTBOARD_PACKAGE}/include)
  target_link_libraries(${name} PRIVATE protobuf::libprotobuf absl::status absl::statusor absl::strings absl::time
    absl::flat_hash_map absl::hash glog)
endfunction()

function(outboard_plugin name)
  add_library(${name} MODULE ${ARGN})
  _outboard_compile(${name})
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

function(outboard_plugin_test name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  find_package(GTest REQUIRED)
  find_package(yaml-cpp REQUIRED)
  add_executable(${name} ${ARGN})
  _outboard_compile(${name})
  target_compile_definitions(${name} PRIVATE TESTDATA="${CMAKE_CURRENT_SOURCE_DIR}/testdata")
  set(harness)
  foreach(part sdk_testing runtime host_cache sdk trace_context workloads contract)
    list(APPEND harness ${OUTBOARD_PACKAGE}/lib/outboard/liboutboard_${part}.a)
  endforeach()
  target_link_libraries(${name} PRIVATE ${harness} yaml-cpp GTest::gtest GTest::gtest_main
    protobuf::libprotobuf absl::status absl::statusor absl::strings absl::time absl::flat_hash_map absl::hash glog)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
