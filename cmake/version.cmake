# The version is written in base.h, once. Sets MILLRACE_VERSION, before project(); what is made from it (the package files, the name of
# the shared library) follows when the header changes.
set(header ${CMAKE_CURRENT_SOURCE_DIR}/base/include/millrace/base.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
set(MILLRACE_VERSION "")
foreach(part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "^#define MR_VERSION_${part} +[0-9]+$")
    if(NOT line MATCHES " ([0-9]+)$")
        message(FATAL_ERROR "no MR_VERSION_${part} in ${header}")
    endif()
    list(APPEND MILLRACE_VERSION ${CMAKE_MATCH_1})
endforeach()
list(JOIN MILLRACE_VERSION "." MILLRACE_VERSION)
