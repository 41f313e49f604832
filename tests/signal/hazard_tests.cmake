# SPDX-License-Identifier: Apache-2.0
# What broke other profilers, each as a program under each engine: signal/hazard_THING/ENGINE, and the same with the counts of
# scripts/test --long as signal/hazard_THING/ENGINE_long. docs/design/hazards.md says which hazard is where.
add_library(hazard_plugin MODULE hazard_plugin.c)
target_link_libraries(hazard_plugin PRIVATE sp_flags)
set_target_properties(hazard_plugin PROPERTIES C_VISIBILITY_PRESET default)

function(add_hazard_test name target engine)
  cmake_parse_arguments(ARG "LONG;SERIAL" "" "" ${ARGN})
  set(environment SPANPROF_ENGINE=${engine})
  if(SPANPROF_SANITIZE MATCHES address)
    # LeakSanitizer ends a process that is traced or has no /proc; and what a stop leaves to a stopped thread is left on purpose.
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0)
  endif()
  set(labels signal)
  set(timeout 300)
  if(ARG_LONG)
    list(APPEND environment SPANPROF_HAZARD_LONG=1)
    list(APPEND labels long)
    set(timeout 7200)
  endif()
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${timeout} LABELS "${labels}"
                       ENVIRONMENT "${environment}")
  if(ARG_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# hazard(THING [SERIAL] [LONG] [SOURCES file…]): test_hazard_THING.c. LONG: it has counts that scripts/test --long raises.
function(hazard thing)
  cmake_parse_arguments(ARG "LONG;SERIAL" "" "SOURCES" ${ARGN})
  set(target signal_hazard_${thing})
  add_executable(${target} test_hazard_${thing}.c hazard.c ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE sp_flags spanprof::spanprof Threads::Threads ${CMAKE_DL_LIBS} PkgConfig::CMOCKA)
  target_compile_definitions(${target} PRIVATE HAZARD_PLUGIN="$<TARGET_FILE:hazard_plugin>")
  add_dependencies(${target} hazard_plugin)
  set(serial)
  if(ARG_SERIAL)
    set(serial SERIAL)
  endif()
  foreach(engine timer perf)
    add_hazard_test(signal/hazard_${thing}/${engine} ${target} ${engine} ${serial})
    if(ARG_LONG AND NOT SPANPROF_SANITIZE)
      add_hazard_test(signal/hazard_${thing}/${engine}_long ${target} ${engine} ${serial} LONG)
    endif()
  endforeach()
endfunction()

hazard(threads LONG)
hazard(process LONG)
hazard(loader LONG)
hazard(stacks SOURCES hazard_exceptions.cc)
hazard(handlers)
hazard(limits SERIAL) # it changes kernel.perf_event_paranoid, for all
hazard(debuggers LONG)
hazard(clock)

# The first ones, which are in one process.
add_executable(signal_hazards test_hazards.c)
target_link_libraries(signal_hazards PRIVATE sp_flags spanprof::spanprof Threads::Threads PkgConfig::CMOCKA)
foreach(engine timer perf)
  add_hazard_test(signal/hazards/${engine} signal_hazards ${engine})
endforeach()
