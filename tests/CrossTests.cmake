# SPDX-License-Identifier: Apache-2.0
# What is tested of a cross build, under qemu-user: what differs between machines. That is the context (its layout and atomics), the walk
# with its tables, and the join. The rest is the same code on every machine; the whole library is built all the same.
foreach(folder unwind wall)
  sp_folder(${folder}_emulated FROM ${folder} DEPENDS context core)
  target_compile_options(sp_${folder}_emulated PUBLIC -include ${CMAKE_CURRENT_SOURCE_DIR}/emulator_sig.h)
endforeach()
target_link_libraries(sp_wall_emulated PUBLIC sp_unwind_emulated)

# What a folder of tests is linked with: the walk's folders as the emulator needs them.
sp_tests(unit/context LINK sp_unwind_emulated)
sp_tests(unit/unwind LINK sp_unwind_emulated)
sp_tests(unit/wall LINK sp_wall_emulated)
sp_test(unit/collect/join SOURCES unit/collect/test_join.c LINK sp_collect LABELS unit)
target_compile_definitions(unit_unwind_unwind_table PRIVATE MUTATIONS=5000) # a tenth of the speed

message(STATUS "not built for another machine: tests of code that is the same everywhere, and of real clocks, signals and peers")
