# SPDX-License-Identifier: Apache-2.0
# Programs and libraries that tests load and start by odd paths.
# Libraries that unit/module/module_file loads. None brings a sanitizer.
foreach(kind plain no_id)
  add_library(module_${kind} MODULE unit/module/plugin.c)
  set_target_properties(module_${kind} PROPERTIES C_VISIBILITY_PRESET default)
  add_dependencies(unit_module_module_file module_${kind})
endforeach()
target_link_options(module_plain PRIVATE -Wl,--build-id=sha1)
target_link_options(module_no_id PRIVATE -Wl,--build-id=none)
target_compile_definitions(unit_module_module_file PRIVATE PLUGIN_PLAIN="$<TARGET_FILE:module_plain>"
                           PLUGIN_NO_ID="$<TARGET_FILE:module_no_id>")

# Programs that unit/profile/program_names starts in different ways.
if(NOT CMAKE_CROSSCOMPILING)
  foreach(kind plain no_id other)
    add_executable(names_program_${kind} unit/profile/names_program.c)
    target_include_directories(names_program_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(names_program_${kind} PRIVATE sp_flags sp_profile)
    add_dependencies(unit_profile_program_names names_program_${kind})
  endforeach()
  target_link_options(names_program_plain PRIVATE -Wl,--build-id=sha1)
  target_link_options(names_program_no_id PRIVATE -Wl,--build-id=none)
  target_link_options(names_program_other PRIVATE -Wl,--build-id=none)
  target_compile_definitions(names_program_other PRIVATE OTHER_NAMES)
  file(GLOB loader /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1)
  target_compile_definitions(unit_profile_program_names PRIVATE LOADER="${loader}"
                             PROGRAM="$<TARGET_FILE:names_program_plain>" PROGRAM_NO_ID="$<TARGET_FILE:names_program_no_id>"
                             PROGRAM_OTHER="$<TARGET_FILE:names_program_other>")
endif()
