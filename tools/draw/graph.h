/* tools/draw/graph.h: a network as a picture of its layers. */
#ifndef TOOLS_GRAPH_H
#define TOOLS_GRAPH_H

#include <stdio.h>

#include "millrace/train.h"

/* An SVG by itself, without a network and without scripts, light or dark as the reader's settings are: a row
 * for each layer, and a line from every output to what takes it. */
void graph_put(FILE *f, const mr_net *net);

#endif
