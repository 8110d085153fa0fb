# The functions every folder uses, so that warnings, sanitizers and checks are set in one place:
#   kvasir_library(NAME n [HDRS ...] SRCS ... [DEPS ...])   a static library
#   kvasir_binary(NAME n SRCS ... [DEPS ...])                an executable under <build>/bin
#   kvasir_test(NAME n SRCS ... [DEPS ...] [LABELS ...])     a GoogleTest binary, one ctest entry per test
#   kvasir_fuzz(NAME n SRCS ... CORPUS dir [DEPS ...])       a libFuzzer target and its corpus replay test
#   kvasir_bench(NAME n SRCS ... [DEPS ...])                 a benchmark, run by tools/bench
#   kvasir_check(NAME n COMMAND ... [LABELS ...])            a script as a test; exit 77 is "skipped"

include(GoogleTest)

# Debian's libraries are built by g++ 12. Since clang 18 the names of some templates with constraints differ from g++'s
# (absl::Cord's constructor from a string is one), and programs that use them would not link.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 18)
  add_compile_options(-fclang-abi-compat=17)
endif()

set(KVASIR_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)
# g++ 12 takes "literal" + std::string for an overlapping copy (GCC bug 105651), and at -O2 the inactive members of a
# std::variant for values that are read. clang's warnings about uninitialised values stay on.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND KVASIR_WARNINGS -Wno-restrict)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND KVASIR_WARNINGS -Wno-maybe-uninitialized)
  endif()
  # Nor does it know that a precompiled <string> is a system header; preset dev builds with these.
  if(KVASIR_PCH)
    list(APPEND KVASIR_WARNINGS -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()

function(kvasir_compile_settings target)
  # Threads everywhere: whoever reads a precompiled header must be compiled as it was.
  target_compile_options(${target} PRIVATE ${KVASIR_WARNINGS} -pthread)
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

# Headers that most files include, parsed once for libraries and once for tests. The files say all that they need none
# the less: some presets build without.
if(KVASIR_PCH)
  if(NOT EXISTS ${CMAKE_BINARY_DIR}/pch.cc)
    file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "")
  endif()
  foreach(kind library test)
    add_library(kvasir_pch_${kind} OBJECT ${CMAKE_BINARY_DIR}/pch.cc)
    kvasir_compile_settings(kvasir_pch_${kind})
    target_compile_options(kvasir_pch_${kind} PRIVATE
                           "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
    target_precompile_headers(kvasir_pch_${kind} PRIVATE <algorithm> <cstdint> <functional> <map> <memory> <optional>
                              <string> <string_view> <utility> <vector> <absl/status/statusor.h>
                              <absl/strings/str_format.h>)
  endforeach()
  target_precompile_headers(kvasir_pch_test PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(kvasir_pch_test PRIVATE ${KVASIR_TEST_LEVEL})
  target_link_libraries(kvasir_pch_test PRIVATE GTest::gmock)
endif()

function(kvasir_precompiled target kind)
  if(KVASIR_PCH)
    target_precompile_headers(${target} REUSE_FROM kvasir_pch_${kind})
    # What ccache asks for.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                                             "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endfunction()

function(kvasir_library)
  cmake_parse_arguments(ARG "" "NAME" "HDRS;SRCS;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
  set_target_properties(${ARG_NAME} PROPERTIES LINKER_LANGUAGE CXX)
  kvasir_compile_settings(${ARG_NAME})
  kvasir_precompiled(${ARG_NAME} library)
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS})
endfunction()

function(kvasir_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  kvasir_compile_settings(${ARG_NAME})
  kvasir_precompiled(${ARG_NAME} library)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
endfunction()

# A test that takes longer is stuck; ThreadSanitizer slows the engine's threads by an order of magnitude.
set(KVASIR_TEST_SECONDS 300)
if(KVASIR_SANITIZE STREQUAL "thread")
  set(KVASIR_TEST_SECONDS 1500)
endif()

function(kvasir_test)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  kvasir_compile_settings(${ARG_NAME})
  target_compile_options(${ARG_NAME} PRIVATE ${KVASIR_TEST_LEVEL})
  kvasir_precompiled(${ARG_NAME} test)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} testing_main)
  target_compile_definitions(${ARG_NAME} PRIVATE KVASIR_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                 KVASIR_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  # gtest_discover_tests flattens lists, so several labels become one: ctest -L matches parts of a label.
  list(JOIN ARG_LABELS "+" label)
  gtest_discover_tests(${ARG_NAME} TEST_PREFIX ${ARG_NAME}. DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${label}" TIMEOUT ${KVASIR_TEST_SECONDS})
endfunction()

function(kvasir_check)
  cmake_parse_arguments(ARG "" "NAME" "COMMAND;LABELS" ${ARGN})
  list(JOIN ARG_LABELS "+" label)
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${label}" TIMEOUT ${KVASIR_TEST_SECONDS} SKIP_RETURN_CODE 77)
endfunction()

function(kvasir_bench)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  kvasir_compile_settings(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} benchmark::benchmark benchmark::benchmark_main)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endfunction()

# With KVASIR_FUZZ (clang) the target is a libFuzzer binary, a part of the target `fuzzers`, and a line "name corpus" of
# <build>/fuzz_targets.txt, which tools/fuzz reads. Otherwise it is linked with a small main that replays every file of
# CORPUS once, so that each compiler runs the corpus as an ordinary test.
if(KVASIR_FUZZ)
  add_custom_target(fuzzers)
  file(WRITE ${CMAKE_BINARY_DIR}/fuzz_targets.txt "")
endif()

function(kvasir_fuzz)
  cmake_parse_arguments(ARG "" "NAME;CORPUS" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  kvasir_compile_settings(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
  if(KVASIR_FUZZ)
    target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${ARG_NAME})
    file(APPEND ${CMAKE_BINARY_DIR}/fuzz_targets.txt "${ARG_NAME} ${ARG_CORPUS}\n")
  else()
    target_sources(${ARG_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests/testing/replay_corpus.cc)
    add_test(NAME ${ARG_NAME}.corpus COMMAND ${ARG_NAME} ${CMAKE_SOURCE_DIR}/${ARG_CORPUS})
    set_tests_properties(${ARG_NAME}.corpus PROPERTIES LABELS fuzz TIMEOUT ${KVASIR_TEST_SECONDS})
  endif()
endfunction()
