# SPDX-License-Identifier: Apache-2.0
# What is tested of a cross build, under qemu-user: what differs between machines. That is the context (its layout and atomics), the walk
# with its tables, and the join. The rest is the same code on every machine; the whole library is built all the same.
sp_folder(sampler_emulated FROM sampler DEPENDS module thread core)
target_compile_options(sp_sampler_emulated PUBLIC -include ${CMAKE_CURRENT_SOURCE_DIR}/emulator_sig.h)

sp_tests(unit/thread LINK sp_thread)
sp_tests(unit/module LINK sp_module)
sp_tests(unit/sampler LINK sp_sampler_emulated)
sp_test(unit/profile/join SOURCES unit/profile/test_join.c LINK sp_profile LABELS unit)
target_compile_definitions(unit_module_unwind_table PRIVATE MUTATIONS=5000) # a tenth of the speed

message(STATUS "not built for another machine: tests of code that is the same everywhere, and of real clocks, signals and peers")
