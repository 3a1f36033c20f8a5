/* tools/cmd_devices.c: `millrace devices`: what is here and whether it can be used. */
#include <stdio.h>

#include "millrace/kernels.h"
#include "tools/json.h"
#include "tools/setup.h"
#include "tools/tool.h"

typedef struct devices_args {
    output_args output;
} devices_args;

static int run(const void *args)
{
    const devices_args *a = args;
    mr_device_listing   row;
    if (!a->output.json) printf("%-10s %-12s %-44s %s\n", "kind", "name", "hardware", "state");
    for (uint32_t at = 0; mr_device_list(at, &row); at++) {
        if (!a->output.json) {
            printf("%-10s %-12s %-44s %s\n", row.kind, row.spec, row.hardware, row.state);
            continue;
        }
        json j = json_begin(stdout, "device");
        json_text(&j, "kind", row.kind);
        json_text(&j, "name", row.spec);
        json_text(&j, "hardware", row.hardware);
        json_text(&j, "state", row.state);
        json_end(&j);
    }
    return EXIT_DONE;
}

static const opt_group groups[] = {OUTPUT_GROUP(devices_args, output)};

const command command_devices = {
    .name = "devices",
    .summary = "lists the devices that --devices can name",
    .text = "Lists what is here: each kind of device this build knows, what hardware stands behind it, and whether it is ready "
            "or why not.",
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(devices_args),
    .run = run,
};
