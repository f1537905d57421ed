/* SPDX-License-Identifier: MIT */
/* The Services in front of the listeners; they select the operator's own Pods. The caller puts
 * the result. */
#ifndef TEC_RENDER_LISTENER_H
#define TEC_RENDER_LISTENER_H

#include <json-c/json.h>

#include "tec/model/cluster.h"

struct json_object *render_register_service(const struct model_cluster *c, const char *ns);
struct json_object *render_ak_service(const struct model_cluster *c, const char *ns);

#endif
