/* SPDX-License-Identifier: MIT */
/* Shared inside src/render: the frame of every object, templates of etc/, and what both ways of
 * installing Trustee have in common. Every json_object parameter named take_* is consumed. */
#ifndef TEC_RENDER_INTERNAL_H
#define TEC_RENDER_INTERNAL_H

#include "tec/base/json.h"
#include "tec/kobj/gvk.h"
#include "tec/render/trustee.h"

/* ---- frame.c */

/* The frame of an object: apiVersion, kind, metadata. */
struct render_meta {
	const struct kobj_gvk *gvk;
	const char *name, *ns;
	const char *app;                /* label; NULL: none */
	struct json_object *take_marks; /* annotations; NULL: none */
	const struct kobj_gvk *owner_gvk;
	const struct kobj *owner; /* NULL: none */
};
struct json_object *render_object(const struct render_meta *m);
/* The frame of an object owned by a cluster (NULL: no owner). */
struct json_object *render_frame(const struct kobj_gvk *gvk, const char *name, const char *ns,
	const struct model_cluster *c, const char *app);
struct json_object *render_configmap(const char *name, const char *ns,
	const struct model_cluster *c, struct json_object *take_data); /* hashed */
struct json_object *render_service(struct json_object *take_frame, const char *type,
	const char *app, const char *port_name, int port, int target);
/* Parse etc/FILE, a YAML file; the caller puts it. */
struct json_object *render_template(const char *file);
struct json_object *render_hashed(struct json_object *take_o);
/* The text {...,"data":{NAME:<base64 of key>,NAME2:<base64 of text>}}; text_name NULL: the key
 * only. */
struct secret *render_secret_text(struct json_object *take_o, const char *key_name,
	const struct secret *key, const char *text_name, const char *text);

struct json_object *render_mount(const char *name, const char *path); /* read-only */
/* {"name":NAME,SOURCE:V} */
struct json_object *render_named(const char *name, const char *source, struct json_object *take_v);
struct json_object *render_secret_source(const char *secret, const char *key); /* with one key */
struct json_object *render_item(const char *key, const char *path);

/* Ports of the guard (etc/trustee-guard.yaml). */
#define RENDER_GUARD_PORT        8080
#define RENDER_GUARD_HEALTH_PORT 8083
/* Append the guard of `more` (the parsed etc/trustee-guard.yaml) to the containers, and replace
 * ports and probes of kbs by those in `more`. */
void render_add_guard(struct json_object *containers, struct json_object *kbs,
	struct json_object *more, const char *image);
void render_push_all(struct json_object *list, struct json_object *more);

/* The element of this name, borrowed. Aborts if there is none: a template is part of the
 * program. */
struct json_object *render_element(struct json_object *list, const char *name);
/* ---- trustee.c */

/* Replace volume and mount `name` of the Deployment's spec by these; NULL: remove it. */
void render_replace(struct json_object *spec, const char *name, struct json_object *take_volumes,
	struct json_object *take_mounts);

/* Make the Deployment from its spec (of etc/), filling in what both ways of delivery need (images,
 * signers, TLS, guard, annotations). contents: see render/volumes.h; NULL: none. */
struct json_object *render_kbs_deployment(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	struct json_object *take_spec, const char *contents);

#endif
