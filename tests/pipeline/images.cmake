millrace_test(image_crop SOURCES test_image_crop.c pictures.c)
millrace_test(image SOURCES test_image.c pictures.c LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(resample SOURCES test_resample.c LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(augment SOURCES test_augment.c pictures.c LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(geometry SOURCES test_geometry.c pictures.c)
millrace_test(road SOURCES test_road.c pictures.c LIBRARIES MRDEP::jpeg LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(augment_spec SOURCES test_augment_spec.c)

add_executable(bench_resample EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/bench_resample.c)
target_link_libraries(bench_resample PRIVATE millrace_static millrace_settings ${MILLRACE_LIBRARIES})

add_executable(bench_difference EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/bench_difference.c)
target_link_libraries(bench_difference PRIVATE millrace_static millrace_settings ${MILLRACE_LIBRARIES})

# Every odd and broken picture there is, for the tests of the library and of the command.
set(MRT_ODD_SOURCES odd.c odd_jpeg.c odd_jpeg_damage.c odd_png.c odd_other.c pictures.c)
list(TRANSFORM MRT_ODD_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
add_library(mrt_odd STATIC ${MRT_ODD_SOURCES})
target_include_directories(mrt_odd PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(mrt_odd PUBLIC mrt MRDEP::jpeg MRDEP::isal PRIVATE millrace_settings)
millrace_test(odd_pictures SOURCES test_odd_pictures.c LIBRARIES mrt_odd)
