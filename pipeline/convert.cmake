# mr_convert: any source into .mrec, TFRecord, tar.
set(PIPELINE_CONVERT_SOURCES convert.c convert_place.c convert_mrec.c convert_files.c convert_read_back.c convert_tfrecord.c convert_tar.c convert_pool.c convert_fields.c convert_sample.c
    convert_picture.c convert_beside.c)
