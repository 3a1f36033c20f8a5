millrace_test(image_crop SOURCES test_image_crop.c pictures.c)
millrace_test(image SOURCES test_image.c pictures.c LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(resample SOURCES test_resample.c LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(augment SOURCES test_augment.c pictures.c LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(road SOURCES test_road.c pictures.c LIBRARIES MRDEP::jpeg LINK_OPTIONS ${MRT_WRAP_ALLOC})
millrace_test(augment_spec SOURCES test_augment_spec.c)

add_executable(bench_resample EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/bench_resample.c)
target_link_libraries(bench_resample PRIVATE millrace_static millrace_settings ${MILLRACE_LIBRARIES})

add_executable(bench_difference EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/bench_difference.c)
target_link_libraries(bench_difference PRIVATE millrace_static millrace_settings ${MILLRACE_LIBRARIES})
