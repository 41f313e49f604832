# SPDX-License-Identifier: Apache-2.0
# What is tested of a cross build, under qemu-user.
sp_folder(sampler_emulated FROM sampler DEPENDS module thread core)
target_compile_options(sp_sampler_emulated PUBLIC -include ${CMAKE_CURRENT_SOURCE_DIR}/emulator_sig.h)

foreach(folder core thread tracer module profile otlp export)
  sp_tests(unit/${folder} LINK sp_${folder})
endforeach()
sp_tests(unit/sampler LINK sp_sampler_emulated)
target_compile_definitions(unit_module_unwind_table PRIVATE MUTATIONS=5000) # a tenth of the speed

target_compile_definitions(unit_tracer_sample_attributes PRIVATE EMULATED) # has threads in forked children

# sp_not_emulated(TEST REASON): built, so that it compiles, but not run; ctest lists it as disabled.
function(sp_not_emulated test reason)
  set_tests_properties(${test} PROPERTIES DISABLED TRUE)
  message(STATUS "not run under the emulator: ${test} (${reason})")
endfunction()
sp_not_emulated(unit/profile/symbolizer "runs this machine's binutils, and wants a vdso")
sp_not_emulated(unit/tracer/ids "makes threads in forked children, which the emulator does not bear")
sp_not_emulated(unit/tracer/queue "takes the address space away, which the emulator shares")
message(STATUS "not built for another machine: tests of unit/sdk and of the other folders (real clocks and signals, peers, fork with threads)")
