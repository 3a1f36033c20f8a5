# cmake --install: libraries, headers, pkg-config file, CMake package.
install(TARGETS millrace_static millrace_shared
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(room IN ITEMS base formats kernels ranks pipeline train run)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${room}/include/millrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
            FILES_MATCHING PATTERN "*.h")
endforeach()

# What an archive of ours stands on, by name and not as packages: whoever links the shared library needs none of them, and pkg-config
# asks for the files of all packages that are named as required, for --cflags, too.
get_property(private GLOBAL PROPERTY MILLRACE_PC_PRIVATE)
list(REMOVE_DUPLICATES private)
list(JOIN private " " MILLRACE_PC_PRIVATE)
if(MILLRACE_DNNL STREQUAL "LINK") # what an archive of ours needs besides the libraries that pkg-config knows
    set(MILLRACE_PC_DNNL "-ldnnl ")
    set(MILLRACE_CONFIG_DNNL "dnnl;")
endif()
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/millraceConfig.cmake.in ${PROJECT_BINARY_DIR}/millraceConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/millrace
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/millraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/millraceConfig.cmake ${PROJECT_BINARY_DIR}/millraceConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)

# The copy may be installed or moved to any prefix: pkg-config says where this file lies.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" pc_up ${pc_up})
    set(pc_prefix "\${pcfiledir}/${pc_up}")
endif()
configure_file(cmake/millrace.pc.in ${PROJECT_BINARY_DIR}/millrace.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/millrace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
