# The CUDA language, where the option KVASIR_CUDA asks for it and a toolkit is found: KVASIR_HAS_CUDA, and
#   kvasir_cuda_library(NAME n [HDRS ...] SRCS ... [DEPS ...])   a static library of .cu and .cc files

find_program(KVASIR_NVCC nvcc HINTS /usr/local/cuda/bin)
if(NOT KVASIR_NVCC)
  message(NOTICE "KVASIR_CUDA: no nvcc was found, so the CPU backend is built alone.")
  return()
endif()
set(KVASIR_HAS_CUDA ON)
set(CMAKE_CUDA_COMPILER ${KVASIR_NVCC})
# What CMake 3.25 knows of these: of Ampere and Hopper machine code, of Blackwell what its driver compiles.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 100-virtual CACHE STRING "Devices to compile for")
enable_language(CUDA)
# CMake 3.25 does not know how nvcc 13 spells it.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit REQUIRED)

function(kvasir_cuda_library)
  cmake_parse_arguments(ARG "" "NAME" "HDRS;SRCS;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS} ${ARG_HDRS})
  set_target_properties(${ARG_NAME} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${ARG_NAME} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${ARG_NAME} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${KVASIR_WARNINGS}>"
                                             $<$<COMPILE_LANGUAGE:CXX>:-pthread>)
  # Relaxed: constexpr functions of common/ are called from kernels.
  target_compile_options(${ARG_NAME} PRIVATE
                         "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--expt-relaxed-constexpr -Werror all-warnings>"
                         "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=-Wall,-Wextra,-Wshadow,-Werror>")
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} CUDA::cudart_static)
endfunction()
