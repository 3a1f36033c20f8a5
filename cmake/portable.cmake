# MILLRACE_STATIC_DEPS: what the programs need and no archive brings is copied to BUILD/lib, with everything that needs in turn, and
# found there by the programs themselves.
#
#   BUILD/lib/libdnnl.so.2 ...            PREFIX/lib/...               cmake --install BUILD --component portable --prefix PREFIX, or
#   BUILD/tools/millrace    ─ $ORIGIN/../lib     PREFIX/bin/millrace   the target `portable`, which does it to BUILD/portable
#   BUILD/tests/kernels/test_x ─ $ORIGIN/../../lib
#
# What is left to the other machine: the C library of this machine's version or newer, and GCC's run-time libraries.
# The path goes into DT_RPATH, not DT_RUNPATH: it then holds for what the copies need, too.
include(cmake/needs.cmake)

# Copy libraries and what they need to BUILD/lib, each under the name that programs ask for.
function(millrace_carry)
    foreach(library IN LISTS ARGN)
        millrace_needs(needed ${library})
        foreach(file IN LISTS library needed)
            file(REAL_PATH ${file} real)
            millrace_soname(soname ${real})
            if(NOT soname)
                message(FATAL_ERROR "MILLRACE_STATIC_DEPS: ${file} is no shared library with a name to find it by")
            endif()
            file(COPY_FILE ${real} ${PROJECT_BINARY_DIR}/lib/${soname} ONLY_IF_DIFFERENT)
            set_property(GLOBAL APPEND PROPERTY MILLRACE_CARRIED ${PROJECT_BINARY_DIR}/lib/${soname})
        endforeach()
    endforeach()
endfunction()

file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
get_property(copied GLOBAL PROPERTY MILLRACE_COPIED_DEPS)
millrace_carry(${copied})
if(OpenMP_gomp_LIBRARY)
    millrace_carry(${OpenMP_gomp_LIBRARY})
elseif(OpenMP_omp_LIBRARY)
    millrace_carry(${OpenMP_omp_LIBRARY})
endif()

set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib:$ORIGIN/../../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
add_link_options(LINKER:--disable-new-dtags)

# The component `portable`, and the target that makes it: programs stripped, their libraries, and what runs them. To be called once
# every program is known; those that this build has not are left out.
function(millrace_portable)
    foreach(program IN LISTS ARGN)
        if(TARGET ${program})
            list(APPEND programs ${program})
        endif()
    endforeach()
    install(TARGETS ${programs} RUNTIME DESTINATION bin COMPONENT portable EXCLUDE_FROM_ALL)
    install(DIRECTORY ${PROJECT_BINARY_DIR}/lib/ DESTINATION lib COMPONENT portable EXCLUDE_FROM_ALL)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/ DESTINATION bench COMPONENT portable EXCLUDE_FROM_ALL
            FILES_MATCHING PATTERN "device_*" PATTERN "torch_*.py" PATTERN "results" EXCLUDE PATTERN "__pycache__" EXCLUDE)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION . COMPONENT portable EXCLUDE_FROM_ALL)
    add_custom_target(portable
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${PROJECT_BINARY_DIR}/portable
        COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component portable --prefix ${PROJECT_BINARY_DIR}/portable --strip
        VERBATIM)
    add_dependencies(portable ${programs})
endfunction()
