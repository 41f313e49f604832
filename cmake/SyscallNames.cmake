# SPDX-License-Identifier: Apache-2.0
# The names of the system calls, from the compiler's own <sys/syscall.h>, for src/symbol/syscall_names.c: a line SP_SYSCALL(read) for each
# SYS_read that it defines. Included, it adds the step to the build; run with -P, it is the step. Their numbers are left to the compiler.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(names ${CMAKE_BINARY_DIR}/generated/symbol/syscall_names.inc)
  separate_arguments(command UNIX_COMMAND "${CMAKE_C_COMPILER} ${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS}")
  if(CMAKE_C_COMPILER_TARGET)
    list(APPEND command --target=${CMAKE_C_COMPILER_TARGET})
  endif()
  if(CMAKE_SYSROOT)
    list(APPEND command --sysroot=${CMAKE_SYSROOT})
  endif()
  add_custom_command(
    OUTPUT ${names}
    COMMAND ${CMAKE_COMMAND} "-DCOMMAND=${command}" -DNAMES=${names} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${CMAKE_CURRENT_LIST_FILE}
    DEPFILE ${names}.d
    COMMENT "names of the system calls"
    VERBATIM)
  target_sources(sp_symbol PRIVATE ${names})
  target_include_directories(sp_symbol PRIVATE ${CMAKE_BINARY_DIR}/generated)
  return()
endif()

file(WRITE ${NAMES}.h "#include <sys/syscall.h>\n")
execute_process(
  COMMAND ${COMMAND} -E -dM -MD -MF ${NAMES}.d -MT ${NAMES} -x c ${NAMES}.h
  OUTPUT_VARIABLE macros
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "#define SYS_[a-z0-9_]+" defined "${macros}")
if(NOT defined)
  message(FATAL_ERROR "<sys/syscall.h> defines no system call")
endif()
list(TRANSFORM defined REPLACE "#define SYS_([a-z0-9_]+)" "SP_SYSCALL(\\1)")
list(SORT defined)
list(JOIN defined "\n" lines)
file(WRITE ${NAMES} "${lines}\n")
