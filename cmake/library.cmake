# libmillrace, static and shared, from the rooms' objects.
get_property(rooms GLOBAL PROPERTY MILLRACE_ROOMS)
set(MILLRACE_LIBRARIES MRDEP::uring MRDEP::jpeg MRDEP::spng MRDEP::isal MRDEP::xxhash MRDEP::cjson MRDEP::dnnl MRDEP::openmp
    Threads::Threads m)
foreach(kind IN ITEMS STATIC SHARED)
    string(TOLOWER millrace_${kind} target)
    add_library(${target} ${kind})
    foreach(room IN LISTS rooms)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:millrace_${room}>)
    endforeach()
    foreach(room IN ITEMS base formats kernels pipeline train)
        target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${room}/include>)
    endforeach()
    target_link_libraries(${target} PRIVATE millrace_settings ${MILLRACE_LIBRARIES})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME millrace LINKER_LANGUAGE C
                          VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endforeach()
