/* Around the inputs of docs/fields.md. */
#include <millrace/net.h>
#include <string.h>

int main(void)
{
    mr_net *net = NULL;
    mr_field_input input;
    if (mr_net_create_bare(&net, "fields") != MR_OK) return 1;
#include "paragraph_1.c"
    const char *names[] = {"age", "words", "mask"};
    int wrong = 0;
    for (uint32_t k = 0; k < 3; k++)
        wrong += !mr_net_field_at(net, k, &input) || strcmp(input.name, names[k]) != 0;
    wrong += mr_net_field_at(net, 3, &input);
    mr_net_destroy(net);
    return wrong;
}
