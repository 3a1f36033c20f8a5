# libmillrace, static and shared, from the rooms' objects.
get_property(rooms GLOBAL PROPERTY MILLRACE_ROOMS)
set(MILLRACE_LIBRARIES MRDEP::uring MRDEP::jpeg MRDEP::spng MRDEP::isal MRDEP::xxhash MRDEP::cjson MRDEP::dnnl MRDEP::openmp
    Threads::Threads m ${CMAKE_DL_LIBS}) # dlopen(): libcurl, libarchive, libcrypto, and CUDA's libraries
if(MILLRACE_DNNL STREQUAL "LOAD" OR MILLRACE_PYTHON) # kernels/host/compute_library.h
    list(REMOVE_ITEM MILLRACE_LIBRARIES MRDEP::dnnl MRDEP::openmp)
endif()
set(MILLRACE_SHARED_LIBRARIES ${MILLRACE_LIBRARIES})
if(MILLRACE_STATIC_DEPS) # archives are made for programs: their code cannot go into a shared library
    list(TRANSFORM MILLRACE_SHARED_LIBRARIES REPLACE "^MRDEP::(uring|jpeg|xxhash)$" "PkgConfig::\\1")
endif()

# The name that programs ask for. While the major number is 0 a minor one may change the interface, and carries the name.
set(MILLRACE_SOVERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(MILLRACE_SOVERSION 0.${PROJECT_VERSION_MINOR})
endif()
foreach(kind IN ITEMS STATIC SHARED)
    string(TOLOWER millrace_${kind} target)
    add_library(${target} ${kind})
    foreach(room IN LISTS rooms)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:millrace_${room}>)
    endforeach()
    foreach(room IN ITEMS base formats kernels ranks pipeline train run)
        target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${room}/include>)
    endforeach()
    if(kind STREQUAL SHARED)
        target_link_libraries(${target} PRIVATE millrace_compile ${MILLRACE_SHARED_LIBRARIES})
    else()
        target_link_libraries(${target} PRIVATE millrace_compile ${MILLRACE_LIBRARIES})
    endif()
    set_target_properties(${target} PROPERTIES OUTPUT_NAME millrace LINKER_LANGUAGE C
                          VERSION ${PROJECT_VERSION} SOVERSION ${MILLRACE_SOVERSION})
endforeach()

add_library(millrace::millrace ALIAS millrace_shared) # the name that an installed copy has

# mr_* and nothing else leaves the shared library, whatever is linked into it. Instrumented builds export what their run-time needs.
if(NOT MILLRACE_SANITIZE AND NOT MILLRACE_FUZZ)
    set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    target_link_options(millrace_shared PRIVATE "SHELL:-Xlinker \"--version-script=${exports}\"") # -Wl, would end at a comma
    set_property(TARGET millrace_shared APPEND PROPERTY LINK_DEPENDS ${exports})
endif()
