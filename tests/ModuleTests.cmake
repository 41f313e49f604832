# SPDX-License-Identifier: Apache-2.0
# Programs and libraries whose frame information has no index, and libraries that a test loads by unusual paths.
if(CMAKE_CROSSCOMPILING)
  set(walk_library sp_unwind_emulated)
else()
  set(walk_library sp_unwind)
endif()

# sp_unindexed(WAY option…): a test that runs unindexed_program.c, linked with these options.
function(sp_unindexed way)
  set(program unindexed_${way})
  add_executable(${program} unit/unwind/unindexed_program.c)
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(${program} PRIVATE -fomit-frame-pointer)
  target_link_libraries(${program} PRIVATE sp_flags ${walk_library})
  target_link_options(${program} PRIVATE ${ARGN})
  sp_label_needs(unit ${program})
  add_test(NAME unit/unwind/${program} COMMAND ${program})
  set_tests_properties(unit/unwind/${program} PROPERTIES LABELS unit TIMEOUT 600)
endfunction()

sp_unindexed(dynamic -Wl,--no-eh-frame-hdr)
sp_unindexed(without_build_id -Wl,--no-eh-frame-hdr,--build-id=none)
if(NOT SPANPROF_SANITIZE) # for static programs gcc makes no index, also without the option
  set(static -static $<$<C_COMPILER_ID:Clang>:-Wl,--no-eh-frame-hdr>)
  sp_unindexed(static ${static})
  sp_unindexed(static_without_build_id ${static} -Wl,--build-id=none)
endif()

# A copy of the program without section headers: e_shoff, 8 bytes at offset 40, becomes 0.
set(stripped ${CMAKE_CURRENT_BINARY_DIR}/unindexed_without_sections)
add_custom_command(TARGET unindexed_dynamic POST_BUILD
                   COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:unindexed_dynamic> ${stripped}
                   COMMAND dd if=/dev/zero of=${stripped} bs=1 seek=40 count=8 conv=notrunc status=none)
add_test(NAME unit/unwind/unindexed_without_sections COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} ${stripped} no-table)
set_tests_properties(unit/unwind/unindexed_without_sections PROPERTIES LABELS unit TIMEOUT 600)

# Libraries that unit/unwind/module_file loads. They are built without sanitizers.
foreach(kind plain no_id no_index)
  add_library(module_${kind} MODULE unit/unwind/plugin.c)
  set_target_properties(module_${kind} PROPERTIES C_VISIBILITY_PRESET default)
  add_dependencies(unit_unwind_module_file module_${kind})
endforeach()
target_link_options(module_plain PRIVATE -Wl,--build-id=sha1)
target_link_options(module_no_id PRIVATE -Wl,--build-id=none)
target_link_options(module_no_index PRIVATE -Wl,--no-eh-frame-hdr)
target_compile_definitions(unit_unwind_module_file PRIVATE PLUGIN_PLAIN="$<TARGET_FILE:module_plain>"
                           PLUGIN_NO_ID="$<TARGET_FILE:module_no_id>" PLUGIN_NO_INDEX="$<TARGET_FILE:module_no_index>")

if(CMAKE_CROSSCOMPILING)
  target_compile_definitions(unit_unwind_module_file PRIVATE EMULATED=1)
endif()

# Programs that the test unit/symbol/program_names starts in different ways.
if(NOT CMAKE_CROSSCOMPILING)
  foreach(kind plain no_id other)
    add_executable(names_program_${kind} unit/symbol/names_program.c)
    target_include_directories(names_program_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(names_program_${kind} PRIVATE sp_flags sp_symbol)
    add_dependencies(unit_symbol_program_names names_program_${kind})
  endforeach()
  target_link_options(names_program_plain PRIVATE -Wl,--build-id=sha1)
  target_link_options(names_program_no_id PRIVATE -Wl,--build-id=none)
  target_link_options(names_program_other PRIVATE -Wl,--build-id=none)
  target_compile_definitions(names_program_other PRIVATE OTHER_NAMES)
  file(GLOB loader /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1)
  target_compile_definitions(unit_trace_detect PRIVATE LOADER="${loader}")
  target_compile_definitions(unit_symbol_program_names PRIVATE LOADER="${loader}"
                             PROGRAM="$<TARGET_FILE:names_program_plain>" PROGRAM_NO_ID="$<TARGET_FILE:names_program_no_id>"
                             PROGRAM_OTHER="$<TARGET_FILE:names_program_other>"
                             LIBRARY="$<TARGET_FILE:module_plain>" LIBRARY_NO_ID="$<TARGET_FILE:module_no_id>")
  add_dependencies(unit_symbol_program_names module_plain module_no_id)
endif()

# Its reference, libgcc, needs frame information for the linkage table: GNU ld makes it, mold and lld do not.
target_link_options(unit_unwind_walk_steps PRIVATE -fuse-ld=bfd)

# Programs with lazy binding and a procedure linkage table that has no unwind information, as some linkers make it; the second program also has the
# linkage table for checked control flow (IBT).
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  sp_test(unit/unwind/walk_linkage_checked SOURCES unit/unwind/test_walk_linkage.c LINK sp_unwind LABELS unit)
  foreach(program unit_unwind_walk_linkage unit_unwind_walk_linkage_checked)
    target_link_options(${program} PRIVATE -fuse-ld=bfd -Wl,--no-ld-generated-unwind-info -Wl,-z,lazy)
  endforeach()
  target_link_options(unit_unwind_walk_linkage_checked PRIVATE -Wl,-z,ibtplt)
endif()
