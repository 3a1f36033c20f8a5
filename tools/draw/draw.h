/* tools/draw/draw.h: what an autoencoder makes of pictures, as a picture. */
#ifndef TOOLS_DRAW_H
#define TOOLS_DRAW_H

#include "tools/session/session.h"

/* The points of a network that are looked at; none: it gives back nothing that could be drawn. */
typedef struct draw_points {
    session_points kept; /* the pictures, the network's outputs for them, the input of its drawing */
    bool logits;         /* the second are logits of the first */
} draw_points;

draw_points draw_points_of(const mr_net *net);

/* After an evaluation: pictures of its last part above the network's outputs for them, and below, if the
 * network draws, its outputs for codes. A PNG at path; force: over a file that is there. */
int draw_to(tool_session *s, const draw_points *p, const char *path, bool force);

#endif
