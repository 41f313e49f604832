# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: headers, both libraries, spanprof.pc, and the CMake package. (src/tool installs the command.)
include(CMakePackageConfigHelpers)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/spanprof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# Two export sets: who links the shared library needs none of the libraries that the static one asks for.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spanprof)
foreach(library spanprof spanprof_static)
  install(TARGETS ${library} EXPORT ${library}Targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${library}Targets NAMESPACE spanprof:: DESTINATION ${package_dir})
endforeach()

# Found by LD_PRELOAD, or linked first.
install(TARGETS spanprof_preload spanprof_run LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/spanprofConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/generated/spanprofConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/spanprofConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/spanprofConfig.cmake ${CMAKE_BINARY_DIR}/generated/spanprofConfigVersion.cmake
        DESTINATION ${package_dir})

# The file finds its prefix by its own place, so that an installed tree may be moved.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/spanprof.pc.in ${CMAKE_BINARY_DIR}/generated/spanprof.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/spanprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
