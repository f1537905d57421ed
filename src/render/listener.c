/* SPDX-License-Identifier: MIT */
/*
 * The Services of the two listeners. They select the operator's own Pods (label of
 * k8s/deployment.yaml); every replica serves, so leadership does not matter here.
 */
#include "config.h"

#include "tec/render/listener.h"

#include "tec/base/json.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"

static struct json_object *service(const struct model_cluster *c, const char *ns, const char *name,
	const char *port_name, int port, int target)
{
	struct json_object *o = json_obj(), *meta = json_obj(), *spec = json_obj(), *p = json_obj();

	json_add_str(meta, "name", name);
	json_add_str(meta, "namespace", ns);
	json_add(meta, "labels",
		json_add_str(json_obj(), "app.kubernetes.io/managed-by", "tec-operator"));
	json_add(meta, "ownerReferences",
		json_push(json_arr(), kobj_owner_json(&kobj_cluster, c->obj.name, c->obj.uid)));
	json_add_str(p, "name", port_name);
	json_add_int(p, "port", port);
	json_add_int(p, "targetPort", target);
	json_add_str(p, "protocol", "TCP");
	json_add_str(spec, "type", "ClusterIP");
	json_add(spec, "selector", json_add_str(json_obj(), "app", "tec-operator"));
	json_add(spec, "ports", json_push(json_arr(), p));
	json_add_str(o, "apiVersion", kobj_service.version);
	json_add_str(o, "kind", kobj_service.kind);
	json_add(o, "metadata", meta);
	json_add(o, "spec", spec);
	kobj_render_hash_set(o);
	return o;
}

struct json_object *render_register_service(const struct model_cluster *c, const char *ns)
{
	return service(c, ns, "register-server", "register", c->register_port, 8000);
}

struct json_object *render_ak_service(const struct model_cluster *c, const char *ns)
{
	return service(c, ns, "attestation-key-register", "register-ak", c->ak_port, 8001);
}
