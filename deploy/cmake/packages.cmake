# What is installed beside the SDK, and the Debian packages: cpack -G DEB --config BUILD/CPackConfig.cmake
set(gyre_files ${PROJECT_SOURCE_DIR}/deploy)

# Manual pages and completion scripts, which the programs know best.
set(made ${PROJECT_BINARY_DIR}/made)
file(MAKE_DIRECTORY ${made})
add_custom_command(OUTPUT ${made}/gyre.1.gz COMMAND gyre __man > ${made}/gyre.1 COMMAND gzip -9nf ${made}/gyre.1 VERBATIM)
add_custom_command(OUTPUT ${made}/gyred.8.gz COMMAND ${gyre_files}/man/gyred-page $<TARGET_FILE:gyred> > ${made}/gyred.8
                   COMMAND gzip -9nf ${made}/gyred.8
                   DEPENDS gyred ${gyre_files}/man/gyred-page VERBATIM)
set(all_made ${made}/gyre.1.gz ${made}/gyred.8.gz)
foreach(shell bash zsh fish)
  add_custom_command(OUTPUT ${made}/completion.${shell} COMMAND gyre completion ${shell} > ${made}/completion.${shell} VERBATIM)
  list(APPEND all_made ${made}/completion.${shell})
endforeach()
add_custom_target(gyre_pages ALL DEPENDS ${all_made})

install(FILES ${made}/gyre.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT cli)
install(FILES ${made}/gyred.8.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT server)
install(FILES ${made}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME gyre COMPONENT cli)
install(FILES ${made}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _gyre COMPONENT cli)
install(FILES ${made}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME gyre.fish COMPONENT cli)
install(FILES ${gyre_files}/systemd/gyred.service ${gyre_files}/systemd/gyred@.service DESTINATION lib/systemd/system COMPONENT server)
install(FILES ${gyre_files}/systemd/gyre.conf DESTINATION lib/sysusers.d COMPONENT server)
install(FILES ${gyre_files}/prometheus/alerts.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/gyre/prometheus COMPONENT server)
install(FILES ${gyre_files}/grafana/gyre.json DESTINATION ${CMAKE_INSTALL_DATADIR}/gyre/grafana COMPONENT server)
install(PROGRAMS ${gyre_files}/rolling-restart ${gyre_files}/certs DESTINATION ${CMAKE_INSTALL_DATADIR}/gyre COMPONENT cli)

# What is installed was built before: packing must not build tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gyre)
set(CPACK_PACKAGE_VENDOR "Gyre")
set(CPACK_PACKAGE_CONTACT "Gyre maintainers <maintainers@gyre.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed key-value store in the manner of Dynamo")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL server cli library dev)

# One package of each component: its name, its description, and what the policy wants beside its files.
function(gyre_debian component package description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION_SUMMARY}: ${description}" PARENT_SCOPE)
  set(doc ${CMAKE_INSTALL_DATADIR}/doc/${package})
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/debian/copyright DESTINATION ${doc} COMPONENT ${component})
  install(FILES ${made}/changelog.Debian.gz DESTINATION ${doc} COMPONENT ${component})
endfunction()
gyre_debian(server gyre-server "the server gyred, one node\n Gyre keeps each key on several nodes. Every node takes every request, and writes go on while nodes are down.")
gyre_debian(cli gyre-cli "the command line\n The program gyre reads and writes keys, and shows and changes the cluster.")
gyre_debian(library libgyre${GYRE_SOVERSION} "shared library of the C++ client\n Programs that use a Gyre cluster need it.")
gyre_debian(dev libgyre-dev "C++ client, for development\n Headers, CMake package and pkg-config file of the client library.")
set(CPACK_DEBIAN_CLI_PACKAGE_RECOMMENDS openssl)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libgyre${GYRE_SOVERSION} (= ${PROJECT_VERSION}-1), libabsl-dev")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${gyre_files}/debian/library/triggers)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${gyre_files}/debian/server/postinst ${gyre_files}/debian/server/prerm
    ${gyre_files}/debian/server/postrm)
install(FILES ${gyre_files}/debian/gyred.toml DESTINATION ${CMAKE_INSTALL_DATADIR}/gyre COMPONENT server)

file(WRITE ${made}/changelog.Debian "gyre (${PROJECT_VERSION}-1) stable; urgency=medium

  * See https://gyre.invalid/CHANGELOG.md

 -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000
")
execute_process(COMMAND gzip -9nf ${made}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)

include(CPack)
