/* SPDX-License-Identifier: MIT */
/* The Services of the two listeners. They select the operator's own Pods (label in
 * k8s/deployment.yaml); every replica serves, regardless of leadership. */
#include "config.h"

#include "tec/render/listener.h"

#include "render_internal.h"

struct json_object *render_register_service(const struct model_cluster *c, const char *ns)
{
	return render_service(render_frame(&kobj_service, "register-server", ns, c, NULL),
		"ClusterIP", "tec-operator", "register", c->register_port, 8000);
}

struct json_object *render_ak_service(const struct model_cluster *c, const char *ns)
{
	return render_service(render_frame(&kobj_service, "attestation-key-register", ns, c, NULL),
		"ClusterIP", "tec-operator", "register-ak", c->ak_port, 8001);
}
