# SPDX-License-Identifier: Apache-2.0
# Labels say in which stages of scripts/test a test runs; CONTRIBUTING.md has the table.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# sp_label_needs(LABEL target…): tests with LABEL run these. The target tests-LABEL builds them, for a stage that wants no others.
function(sp_label_needs label)
  if(NOT TARGET tests-${label})
    add_custom_target(tests-${label})
  endif()
  add_dependencies(tests-${label} ${ARGN})
endfunction()

# sp_measuring_test(NAME [BESIDE] [PLANT fault | EXPECT_BROKEN] LABELS label… [ENVIRONMENT variable…] COMMAND command…)
# A test that asks a clock, a counter of the kernel, or the sampler "how much": by verdict.py, which knows broken from unsure, and alone on
# the machine, unless it bears others BESIDE it. PLANT: the judge has to find this fault in what it reads. EXPECT_BROKEN: the command brings
# a fault of its own.
# scripts/test runs four tests at once. This one counts as two (PROCESSORS): it wants a core, while many exact ones mostly wait.
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
# One cmocka program as one ctest test. MEASURES: it returns verdict_code (verdict.h). A time limit is for what hangs, and many times what a test takes alone: the cores may be shared.
# Exit code 77 means skipped, with the reason printed.
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
    # A forked child that starts its own SDK makes threads, which TSan forbids unless told.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=die_after_fork=0")
  endif()
endfunction()

# sp_tests(FOLDER [LINK library…] [LABELS label…]): every tests/FOLDER/test_*.c as a test named FOLDER/THING, of the label unit and these.
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
