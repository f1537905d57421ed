/* SPDX-License-Identifier: MIT */
/* Shared by the two ways of installing Trustee: the frame of every object, kbs-config.toml, and the
 * parts of its Pod that are the same for both. Takers take every json_object. */
#ifndef TEC_RENDER_INTERNAL_H
#define TEC_RENDER_INTERNAL_H

#include "tec/base/json.h"
#include "tec/kobj/gvk.h"
#include "tec/render/trustee.h"

#define RENDER_STORAGE_DIR "/opt/trustee/storage"
#define RENDER_TLS_DIR     "/etc/tls"

/* apiVersion, kind, metadata. c NULL: no owner. app NULL: no label app. */
struct json_object *render_frame(const struct kobj_gvk *gvk, const char *name, const char *ns,
	const struct model_cluster *c, const char *app);
struct json_object *render_hashed(struct json_object *take_o);
/* {...,"data":{NAME:<base64 of key>,NAME2:<base64 of text>}}; text_name NULL: the key alone. */
struct secret *render_secret_text(struct json_object *take_o, const char *key_name,
	const struct secret *key, const char *text_name, const char *text);

/* etc/FILE with its markers resolved (see the head of etc/kbs-config.toml). */
void render_kbs_config(const char *file, const struct model_cluster *c,
	const struct render_trustee_inputs *in, struct strbuf *out);
/* ConfigMap trustee-data with it. */
struct json_object *render_kbs_data(const char *file, const struct model_cluster *c, const char *ns,
	const struct render_trustee_inputs *in);

struct json_object *render_mount(const char *name, const char *path, bool read_only);
/* {"name":NAME,SOURCE:V} */
struct json_object *render_named(const char *name, const char *source, struct json_object *take_v);
/* key NULL: all of the Secret. fsGroup makes its mode readable. */
struct json_object *render_secret_source(const char *secret, const char *key);
struct json_object *render_config_map_source(const char *config_map);
struct json_object *render_item(const char *key, const char *path);

/* The container's name, image and the rest that every container of ours has. */
struct json_object *render_container(const char *name, const char *image, const char *cpu,
	const char *memory, const char *cpu_limit, const char *memory_limit);

struct render_pod {
	const char *config;                                         /* file of etc/ */
	struct json_object *take_init, *take_mounts, *take_volumes; /* init: NULL for none */
	bool has_healthz;
	const char *contents; /* render/volumes.h; NULL: none */
};
/* The Deployment: what both have in common (config, storage, signers, TLS), and `p`. */
struct json_object *render_kbs_deployment(const struct model_cluster *c, const char *ns,
	const char *image, const struct render_trustee_inputs *in, const struct render_pod *p);

#endif
