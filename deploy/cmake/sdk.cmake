# The SDK as others use it: the shared library gyre::client, its headers as <gyre/…>, find_package and pkg-config.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The headers of users. In this tree they lie in client/; installed, and for the examples, they are <gyre/NAME>.
set(GYRE_PUBLIC_HEADERS admin.h client.h connection.h export.h resolvers.h types.h version.h mocks/mock_connection.h)
foreach(header ${GYRE_PUBLIC_HEADERS})
  set(source ${PROJECT_SOURCE_DIR}/client/${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REPLACE "#include \"client/" "#include \"gyre/" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/installed/include/gyre/${header} CONTENT "${text}" @ONLY)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/gyre/${header} CONTENT "#include \"client/${header}\"\n" @ONLY)
endforeach()
target_include_directories(gyre_client SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/include)

# One library, which holds the client, the wire and the ring; gRPC and the rest come from the system.
file(WRITE ${PROJECT_BINARY_DIR}/sdk.cc "// The shared library has no source of its own.\n")
add_library(gyre_sdk SHARED ${PROJECT_BINARY_DIR}/sdk.cc)
add_library(gyre::client ALIAS gyre_sdk)
target_link_libraries(gyre_sdk PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,gyre_client> INTERFACE absl::status absl::statusor)
# What only the library itself needs stays inside it, and whatever it links is found when it is linked.
target_link_options(gyre_sdk PRIVATE LINKER:--exclude-libs,libgyre_proto.a:libgyre_ring.a:libgyre_tls.a LINKER:-z,defs LINKER:--as-needed)
target_include_directories(gyre_sdk INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/installed/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(gyre_sdk INTERFACE cxx_std_20)
# Before 1.0 each minor version may change the interface.
set(GYRE_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(gyre_sdk PROPERTIES OUTPUT_NAME gyre EXPORT_NAME client VERSION ${PROJECT_VERSION}
                                          SOVERSION ${GYRE_SOVERSION})

set(gyre_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gyre)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gyreConfig.cmake @ONLY CONTENT [[
# find_package(gyre): the target gyre::client.
include(CMakeFindDependencyMacro)
find_dependency(absl)
include(${CMAKE_CURRENT_LIST_DIR}/gyreTargets.cmake)
]])
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gyreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# Relative to where the file lies, so that an installed tree may be moved.
file(RELATIVE_PATH GYRE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gyre.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@GYRE_PC_PREFIX@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: gyre
Description: C++ client of the Gyre key-value store (needs C++20)
Version: @PROJECT_VERSION@
Requires: absl_status absl_statusor
Libs: -L${libdir} -lgyre
Cflags: -I${includedir}
]])

install(TARGETS gyre_sdk EXPORT gyre LIBRARY COMPONENT library NAMELINK_COMPONENT dev)
install(EXPORT gyre FILE gyreTargets.cmake NAMESPACE gyre:: DESTINATION ${gyre_package_dir} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/gyreConfig.cmake ${PROJECT_BINARY_DIR}/gyreConfigVersion.cmake
        DESTINATION ${gyre_package_dir} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/gyre.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
install(DIRECTORY ${PROJECT_BINARY_DIR}/installed/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(TARGETS gyred COMPONENT server)
install(TARGETS gyre COMPONENT cli)
