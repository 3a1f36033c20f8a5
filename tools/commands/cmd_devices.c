/* tools/commands/cmd_devices.c: `millrace devices`: lists devices, and whether they can be used. */
#include <stdio.h>
#include <string.h>

#include "millrace/kernels.h"
#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/commands/commands.h"
#include "tools/session/setup.h"

typedef struct devices_args {
    output_args output;
} devices_args;

static void list_json(void)
{
    mr_device_listing row;
    for (uint32_t at = 0; mr_device_list(at, &row); at++) {
        json_line j = json_begin(stdout, "device");
        json_text(&j, "kind", row.kind);
        json_text(&j, "name", row.spec);
        json_text(&j, "hardware", row.hardware);
        if (row.id[0]) json_text(&j, "id", row.id);
        json_text(&j, "state", row.state);
        json_end(&j);
    }
}

static int wider(int width, const char *text)
{
    const int length = (int)strlen(text);
    return length > width ? length : width;
}

/* Columns as wide as their widest row; asked twice because nothing bounds how many there are. */
static void list_text(void)
{
    mr_device_listing row;
    int kind = 4, name = 4, hardware = 8;
    for (uint32_t at = 0; mr_device_list(at, &row); at++) {
        kind = wider(kind, row.kind);
        name = wider(name, row.spec);
        hardware = wider(hardware, row.hardware);
    }
    printf("%-*s  %-*s  %-*s  %s\n", kind, "kind", name, "name", hardware, "hardware", "state");
    for (uint32_t at = 0; mr_device_list(at, &row); at++)
        printf("%-*s  %-*s  %-*s  %s\n", kind, row.kind, name, row.spec, hardware, row.hardware, row.state);
}

static int run(const void *args)
{
    const devices_args *a = args;
    if (a->output.json) list_json();
    else list_text();
    return EXIT_DONE;
}

static const opt_group groups[] = {GROUP(OUTPUT, devices_args, output)};

const command command_devices = {
    .name = "devices",
    .summary = "list the devices for --devices",
    .text = "Lists the devices: each kind that this build supports, its hardware, and whether it is ready "
            "or why not. CUDA_VISIBLE_DEVICES limits and numbers the GPUs.",
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(devices_args),
    .run = run,
};
