# The functions every folder uses, so that warnings, sanitizers and checks are set in one place:
#   kvasir_library(NAME n [HDRS ...] SRCS ... [DEPS ...])   a static library
#   kvasir_binary(NAME n SRCS ... [DEPS ...])                an executable under <build>/bin
#   kvasir_test(NAME n SRCS ... [DEPS ...] [LABELS ...])     a GoogleTest binary, one ctest entry per test
#   kvasir_fuzz(NAME n SRCS ... CORPUS dir [DEPS ...])       a libFuzzer target and its corpus replay test

include(GoogleTest)

set(KVASIR_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)

function(kvasir_compile_settings target)
  target_compile_options(${target} PRIVATE ${KVASIR_WARNINGS})
  # One rounding per operation: results must not depend on whether a compiler fuses a multiply and an add.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  if(KVASIR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${KVASIR_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${KVASIR_SANITIZE})
  endif()
  if(KVASIR_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(kvasir_library)
  cmake_parse_arguments(ARG "" "NAME" "HDRS;SRCS;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
  set_target_properties(${ARG_NAME} PROPERTIES LINKER_LANGUAGE CXX)
  kvasir_compile_settings(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS})
endfunction()

function(kvasir_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  kvasir_compile_settings(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
endfunction()

function(kvasir_test)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  kvasir_compile_settings(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} testing_main)
  target_compile_definitions(${ARG_NAME} PRIVATE KVASIR_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                 KVASIR_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  gtest_discover_tests(${ARG_NAME} TEST_PREFIX ${ARG_NAME}. DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300)
endfunction()

# With KVASIR_FUZZ (clang) the target is a libFuzzer binary; otherwise it is linked with a small main that replays
# every file of CORPUS once, so that each compiler runs the corpus as an ordinary test.
function(kvasir_fuzz)
  cmake_parse_arguments(ARG "" "NAME;CORPUS" "SRCS;DEPS" ${ARGN})
  if(KVASIR_FUZZ)
    add_executable(${ARG_NAME} ${ARG_SRCS})
    kvasir_compile_settings(${ARG_NAME})
    target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${ARG_NAME} ${ARG_SRCS} ${CMAKE_SOURCE_DIR}/tests/testing/replay_corpus.cc)
    kvasir_compile_settings(${ARG_NAME})
    add_test(NAME ${ARG_NAME}.corpus COMMAND ${ARG_NAME} ${CMAKE_SOURCE_DIR}/${ARG_CORPUS})
  endif()
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
endfunction()
