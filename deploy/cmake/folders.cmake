# gyre_folder: the sources of one folder (not of its sub-folders) as one library, gyre_NAME. A program's main.cc is left out.
function(gyre_folder name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "NEEDS")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  set(scope PUBLIC)
  if(sources)
    add_library(gyre_${name} STATIC ${sources})
  else()
    add_library(gyre_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(gyre_${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(gyre_${name} ${scope} ${arg_NEEDS})
  if(sources AND "gyre_proto" IN_LIST arg_NEEDS)
    gyre_use_rpc_pch(gyre_${name})
  endif()
endfunction()

# gyre_program: one executable from its main file.
function(gyre_program name main)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "NEEDS")
  if(EXISTS ${PROJECT_SOURCE_DIR}/${main})
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE ${arg_NEEDS})
  endif()
endfunction()

# gyre_protos: the wire as a library; generated code lives in the build tree only, and is not held to our warnings.
function(gyre_protos name)
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out}/proto)
  set(sources "")
  foreach(proto ${ARGN})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(made ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
    file(GLOB all_protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/proto/*.proto)
    add_custom_command(
      OUTPUT ${made}
      COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR} --cpp_out=${out} --grpc_out=${out}
              --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${proto}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      DEPENDS ${all_protos}
      VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc ${out}/${stem}.grpc.pb.cc)
  endforeach()
  add_library(gyre_${name} STATIC ${sources})
  target_compile_options(gyre_${name} PRIVATE -w)
  target_include_directories(gyre_${name} SYSTEM PUBLIC ${out})
  target_link_libraries(gyre_${name} PUBLIC gRPC::grpc++ protobuf::libprotobuf)
  gyre_use_rpc_pch(gyre_${name})
endfunction()

# gRPC's headers cost half a minute a file; one precompiled header makes that seconds. Every user shares it.
function(gyre_use_rpc_pch target)
  if(NOT TARGET gyre_rpc_pch)
    file(WRITE ${PROJECT_BINARY_DIR}/rpc_pch.cc "// Carrier of the precompiled header.\n")
    add_library(gyre_rpc_pch STATIC ${PROJECT_BINARY_DIR}/rpc_pch.cc)
    target_precompile_headers(gyre_rpc_pch PRIVATE <grpcpp/grpcpp.h> <google/protobuf/message.h> <absl/status/statusor.h>
                              <memory> <string> <vector>)
    target_link_libraries(gyre_rpc_pch PRIVATE gRPC::grpc++ protobuf::libprotobuf absl::statusor)
  endif()
  target_precompile_headers(${target} REUSE_FROM gyre_rpc_pch)
endfunction()

# gyre_tests: each *_test.cc of a test folder is one program and one ctest entry of the same name.
function(gyre_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "NEEDS")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${arg_NEEDS} GTest::gtest GTest::gmock GTest::gtest_main)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    # g++ 12 misreads the assignment of a literal to a string as overlapping copies.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
    target_compile_definitions(${name} PRIVATE GYRE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  endforeach()
endfunction()
