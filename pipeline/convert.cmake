# mr_convert: any source into .mrec.
set(PIPELINE_CONVERT_SOURCES convert.c convert_output.c convert_pool.c convert_fields.c convert_sample.c
    convert_picture.c)
