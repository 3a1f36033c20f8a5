millrace_test(image_crop SOURCES test_image_crop.c pictures.c)
