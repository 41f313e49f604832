# SPDX-License-Identifier: Apache-2.0
# sp_folder(NAME [FROM folder] [DEPENDS folder…] [LINK library…])
#
# One folder of src/ (NAME, unless FROM says which) as the static library sp_NAME. A folder links only folders above it in the list of
# docs/design/words.md, so that a call downwards does not even link; tests/lint/house.py checks the includes.
function(sp_folder name)
  cmake_parse_arguments(ARG "" "FROM" "DEPENDS;LINK" ${ARGN})
  if(NOT ARG_FROM)
    set(ARG_FROM ${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${ARG_FROM}/*.c)
  add_library(sp_${name} STATIC ${sources})
  target_include_directories(sp_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  list(TRANSFORM ARG_DEPENDS PREPEND sp_)
  target_link_libraries(sp_${name} PRIVATE sp_flags PUBLIC ${ARG_DEPENDS} ${ARG_LINK})
endfunction()
