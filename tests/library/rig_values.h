/* tests/library/rig_values.h: right values for arguments whose type alone does not say one:
 * RIG_FUNCTION_ARGUMENT. Other arguments get rig_TYPE(), or a room of zeros. Part of test_library_table.c.
 */

static const char *const rig_paths[] = {"set.mrec", NULL};
static const uint64_t rig_counts[] = {BATCH, 0};
static void *rig_memory(int host)
{
    void *memory;
    need(host ? mr_host_alloc(rig_device(), 64, &memory, &err)
              : mr_device_alloc(rig_device(), 64, &memory, &err),
         "memory");
    return memory;
}
static uint64_t rig_bytes_of(void *context, uint64_t sample) { return context ? sample : 1; }
static mr_image *rig_own_image(void)
{
    mr_image *image = rig_image();
    image->pixels = malloc(SIDE * SIDE);
    return image;
}

#define RIG_mr_error_set_format                "text"
#define RIG_mr_error_sys_format                "text"
#define RIG_mr_error_at_file                   "file"
#define RIG_mr_source_open_path                rig_records()
#define RIG_mr_writer_open_path                rig_file("new.mrec")
#define RIG_mr_mrec_open_path                  rig_records()
#define RIG_mr_mrec_verify_sized_path          rig_records()
#define RIG_mr_mrec_verify_until_sized_path    rig_records()
#define RIG_mr_shards_write_list_path          rig_file("list")
#define RIG_mr_shards_write_paths              rig_paths
#define RIG_mr_shards_write_counts             rig_counts
#define RIG_mr_output_check_path               rig_file("x")
#define RIG_mr_output_open_path                rig_file("x")
#define RIG_mr_output_estimate_bytes_of        rig_bytes_of
#define RIG_mr_output_remove_path              rig_file("x")
#define RIG_mr_output_sync_all_folder          mrt_temp()
#define RIG_mr_devices_open_spec               "cpu"
#define RIG_mr_devices_close_devices           rig_devices()
#define RIG_mr_device_free_address             rig_memory(0)
#define RIG_mr_host_free_address               rig_memory(1)
#define RIG_mr_op_param_import_state           false
#define RIG_mr_op_param_import_which           0
#define RIG_mr_op_param_export_state           false
#define RIG_mr_op_param_export_which           0
#define RIG_mr_update_rule_find_name           "sgd"
#define RIG_mr_group_create_streams            rig_streams()
#define RIG_mr_group_sum_async_values          rig_arrays()
#define RIG_mr_group_broadcast_async_values    rig_arrays()
#define RIG_mr_image_free_image                rig_own_image()
#define RIG_mr_augment_create_spec             "flip"
#define RIG_mr_augment_create_own_spec         "flip"
#define RIG_mr_loader_next_sized_out           rig_empty_batch()
#define RIG_mr_loader_release_streams          NULL
#define RIG_mr_digester_run_devices            NULL
#define RIG_mr_convert_sized_dst               rig_file("converted.mrec")
#define RIG_mr_trace_write_path                rig_file("trace.json")
#define RIG_mr_trace_write_parts_path          rig_file("trace.json")
#define RIG_mr_trace_span_track                "track"
#define RIG_mr_trace_span_name                 "name"
#define RIG_mr_net_create_name                 "net"
#define RIG_mr_net_create_numbers_name         "net"
#define RIG_mr_net_create_bare_name            "net"
#define RIG_mr_net_block_name                  "block"
#define RIG_mr_net_choose_text                 "0"
#define RIG_mr_net_place_text                  "rest=0"
#define RIG_mr_net_decode_name                 "net"
#define RIG_mr_net_targets_field               "field"
#define RIG_mr_schedule_parse_text             "cosine"
#define RIG_mr_model_find_name                 "lenet5"
#define RIG_mr_trainer_step_batch              rig_device_batch()
#define RIG_mr_trainer_forward_batch           rig_device_batch()
#define RIG_mr_run_folder_open_path            rig_file("run2")
#define RIG_mr_run_folder_take_over_path       rig_file("run3")
#define RIG_mr_fit_sized_loader                rig_device_loader()
#define RIG_mr_evaluate_loader                 rig_device_loader()
#define RIG_mr_evaluate_until_loader           rig_device_loader()
#define RIG_mr_evaluate_outputs_loader         rig_device_loader()
#define RIG_mr_trainer_save_sized_path         rig_file("saved")
#define RIG_mr_trainer_load_sized_path         rig_checkpoint_path()
#define RIG_mr_checkpoint_find_sized_path      rig_checkpoint_path()
#define RIG_mr_checkpoint_open_path            rig_checkpoint_path()
#define RIG_mr_checkpoint_class_names_path     rig_checkpoint_path()
#define RIG_mr_checkpoint_class_weights_path   rig_checkpoint_path()
#define RIG_mr_form_trial_cost_sized_converted false
#define RIG_mr_form_trial_rate_converted       false
#define RIG_mr_views_create_name               "flip"
#define RIG_mr_views_run_sized_loader          rig_device_loader()
#define RIG_mr_export_sized_folder             rig_file("exported")
#define RIG_mr_card_write_path                 rig_file("card.md")
#define RIG_mr_card_write_set                  rig_records()
#define RIG_mr_card_check_path                 rig_file("card.md")
#define RIG_mr_card_check_set                  rig_records()
#define RIG_mr_bad_list_open_path              rig_file("bad.jsonl")
#define RIG_mr_measure_loader_sized_devices    NULL
#define RIG_mr_output_whole_path               rig_file("whole")
#define RIG_mr_page_may_replace_path           rig_log()
#define RIG_mr_run_page_add_path               rig_log()
#define RIG_mr_run_page_add_text_text          RIG_LOG
#define RIG_mr_run_page_trace_file_path        rig_log()
#define RIG_mr_run_page_bad_list_path          rig_log()
#define RIG_mr_run_page_write_path             rig_file("page.html")
#define RIG_mr_stats_page_write_path           rig_file("stats.html")
#define RIG_mr_net_graph_write_path            rig_file("net.svg")
#define RIG_mr_synth_write_sized_folder        rig_file("synth")
#define RIG_mr_sweep_open_path                 rig_sweep_file()
#define RIG_mr_sweep_option_number_name        "model"
#define RIG_mr_sweep_words_program             "millrace"
#define RIG_mr_sweep_read_result_path          rig_log()
#define RIG_mr_sweep_write_csv_path            rig_file("sweep.csv")
#define RIG_mr_sweep_write_page_path           rig_file("sweep.html")
#define RIG_mr_checkpoint_net_path             rig_checkpoint_path()
#define RIG_mr_weights_export_sized_checkpoint rig_checkpoint_path()
#define RIG_mr_weights_export_sized_path       rig_file("weights.npz")
