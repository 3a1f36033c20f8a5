millrace_test(idct SOURCES test_idct.c pixel_work.c)
millrace_test(colour_out SOURCES test_colour_out.c)
millrace_test(variants_pixels SOURCES variants_pixels.c pixel_work.c)

add_executable(bench_pixels EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/bench_pixels.c)
target_link_libraries(bench_pixels PRIVATE millrace_static millrace_settings ${MILLRACE_LIBRARIES})
