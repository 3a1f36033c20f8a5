/* kernels/graph.c: the public calls on graphs. Checks arguments, then calls the kind's table, where it has
 * one. */
#include "kernels/backend/backend.h"

int mr_graph_begin(mr_stream *s)
{
    if (!s) return MR_EINVAL;
    const struct mri_graph_calls *graphs = s->device->backend->graphs;
    return graphs ? graphs->begin(s) : MR_EUNSUPPORTED;
}

int mr_graph_end(mr_stream *s, mr_graph **out, mr_error *err)
{
    if (!s || !out) return mr_error_set(err, MR_EINVAL, "mr_graph_end: the stream and out must not be NULL");
    *out = NULL;
    if (s->device->backend->graphs) return s->device->backend->graphs->end(s, out, err);
    return mr_error_set(err, MR_EUNSUPPORTED, "%s does not record graphs", s->device->name);
}

int mr_graph_launch_async(mr_graph *g, mr_stream *s)
{
    if (!g || !s || g->device != s->device) return MR_EINVAL;
    return g->device->backend->graphs->launch_async(g, s);
}

void mr_graph_destroy(mr_graph *g)
{
    if (g) g->device->backend->graphs->destroy(g);
}
