/* kernels/graph.c: the public calls on graphs. Checks arguments, then calls the kind's table, where it has
 * one. */
#include "kernels/backend/backend.h"

int mr_graph_begin(mr_stream *s)
{
    MRI_OWN_AS(NULL, s, s->device->process);
    const struct mri_graph_calls *graphs = s->device->backend->graphs;
    return graphs ? graphs->begin(s) : MR_EUNSUPPORTED;
}

int mr_graph_end(mr_stream *s, mr_graph **out, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN_AS(err, s, s->device->process);
    if (s->device->backend->graphs) return s->device->backend->graphs->end(s, out, err);
    return mr_error_set(err, MR_EUNSUPPORTED, "%s does not record graphs", s->device->name);
}

int mr_graph_launch_async(mr_graph *g, mr_stream *s)
{
    MRI_OWN_AS(NULL, g, g->device->process);
    if (!s || g->device != s->device) return MR_EINVAL;
    return g->device->backend->graphs->launch_async(g, s);
}

void mr_graph_destroy(mr_graph *g)
{
    if (g && !mri_is_inherited(g->device->process)) g->device->backend->graphs->destroy(g);
}
