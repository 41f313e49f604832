# SPDX-License-Identifier: Apache-2.0
# Labels say in which stages of scripts/test a test runs; CONTRIBUTING.md has the table.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# sp_label_needs(LABEL target…): tests with LABEL run these targets. The target tests-LABEL builds them, for a stage that needs no others.
function(sp_label_needs label)
  if(NOT TARGET tests-${label})
    add_custom_target(tests-${label})
  endif()
  add_dependencies(tests-${label} ${ARGN})
endfunction()

# sp_measuring_test(NAME [BESIDE] [PLANT fault | EXPECT_BROKEN] LABELS label… [ENVIRONMENT variable…] COMMAND command…)
# A test that asks a clock, a counter of the kernel, or the sampler "how much". It is run by verdict.py, which distinguishes broken from unsure.
# It runs alone on the machine; with BESIDE other tests may run at the same time. PLANT: the judge has to find this fault in what it reads.
# EXPECT_BROKEN: the command has a fault already.
# scripts/test runs four tests at once. This test counts as two (PROCESSORS), because it needs a core; many exact tests mostly wait.
function(sp_measuring_test name)
  cmake_parse_arguments(ARG "BESIDE;EXPECT_BROKEN" "PLANT" "LABELS;ENVIRONMENT;COMMAND" ${ARGN})
  set(expect)
  if(ARG_EXPECT_BROKEN)
    set(expect --expect-broken)
  elseif(ARG_PLANT)
    set(expect --plant ${ARG_PLANT})
  endif()
  list(POP_FRONT ARG_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${name} COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/verdict.py ${expect} ${program} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS};measure" ENVIRONMENT "${ARG_ENVIRONMENT}" SKIP_RETURN_CODE 77
                       TIMEOUT 1800 PROCESSORS 2)
  if(NOT ARG_BESIDE)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# sp_test(NAME [MEASURES] SOURCES file… [LINK library…] [LABELS label…] [TIMEOUT seconds])
# One cmocka program as one ctest test. MEASURES: the program returns verdict_code (verdict.h). The time limit only ends a test that hangs. It is many
# times what the test takes alone, because other tests may use the cores. Exit code 77 means skipped; the test has printed the reason.
function(sp_test name)
  cmake_parse_arguments(ARG "MEASURES" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  string(MAKE_C_IDENTIFIER "${name}" target)
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE sp_flags ${ARG_LINK} PkgConfig::CMOCKA)
  foreach(label IN LISTS ARG_LABELS)
    sp_label_needs(${label} ${target})
  endforeach()
  if(ARG_MEASURES)
    sp_measuring_test(${name} BESIDE LABELS ${ARG_LABELS} COMMAND ${target})
  else()
    add_test(NAME ${name} COMMAND ${target})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  endif()
  if(SPANPROF_SANITIZE MATCHES thread)
    # A forked child that starts its own SDK starts threads, which TSan forbids without this option.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=die_after_fork=0")
  endif()
endfunction()

# sp_tests(FOLDER [LINK library…] [LABELS label…]): each tests/FOLDER/test_THING.c becomes a test FOLDER/THING, with the label unit and LABELS.
function(sp_tests folder)
  cmake_parse_arguments(ARG "" "" "LINK;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/test_*.c)
  foreach(source IN LISTS sources)
    get_filename_component(thing ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" thing ${thing})
    file(STRINGS ${source} verdict REGEX "#include \"verdict.h\"")
    set(measures)
    if(verdict)
      set(measures MEASURES)
    endif()
    sp_test(${folder}/${thing} ${measures} SOURCES ${source} LINK ${ARG_LINK} LABELS unit ${ARG_LABELS})
  endforeach()
endfunction()
