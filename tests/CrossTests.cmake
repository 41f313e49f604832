# SPDX-License-Identifier: Apache-2.0
# Tests of a cross build, under qemu-user. Only code that differs between architectures is tested: the context (its layout and atomics), the walk
# with its tables, and the join. All other code is the same on every architecture. The whole library is still built.
foreach(folder unwind wall)
  sp_folder(${folder}_emulated FROM ${folder} DEPENDS context core)
  target_compile_options(sp_${folder}_emulated PUBLIC -include ${CMAKE_CURRENT_SOURCE_DIR}/emulator_sig.h)
endforeach()
target_link_libraries(sp_wall_emulated PUBLIC sp_unwind_emulated)

# These tests are linked with the copies of the walk's folders that were compiled for the emulator.
sp_tests(unit/context LINK sp_unwind_emulated)
sp_tests(unit/unwind LINK sp_unwind_emulated)
sp_tests(unit/wall LINK sp_wall_emulated)
sp_test(unit/collect/join SOURCES unit/collect/test_join.c LINK sp_collect LABELS unit)
target_compile_definitions(unit_unwind_unwind_table PRIVATE MUTATIONS=5000) # fewer, because the emulator is ten times slower

message(STATUS "not built for another machine: tests of code that is the same everywhere, and of real clocks, signals and peers")
