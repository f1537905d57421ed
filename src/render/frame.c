/* SPDX-License-Identifier: MIT */
/*
 * What rendered objects have in common: templates of etc/, the frame with its owner, Services, the
 * text of a Secret, and parts of a Pod. Private keys are written into their Secret's text inside the locked
 * arena and never become a json-c string.
 */
#include "config.h"

#include "render_internal.h"

#include <assert.h>

#include "tec/base/yaml.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/render/etc.h"

const char *render_etc(const char *file_name)
{
	for (const struct render_etc_file *f = render_etc_files; f->name; f++) {
		if (str_eq(f->name, file_name))
			return f->text;
	}
	return NULL;
}

/* A template is parsed as YAML once and kept as JSON, which takes a sixth of the time to parse. */
struct json_object *render_template(const char *file)
{
	static struct known {
		const char *yaml; /* borrowed; NULL: free */
		char *json;       /* owned, never freed */
	} known[16];
	struct known *k = known;
	const char *yaml = render_etc(file);
	struct err err = ERR_INIT;
	struct json_object *o;

	/* Texts are static, so their addresses identify them. */
	while (k->yaml && k->yaml != yaml)
		k++;
	assert(k < known + ARRAY_LEN(known) - 1);
	o = k->json ? json_parse(k->json, strlen(k->json), &json_limits_object, &err)
		    : yaml_parse(yaml, strlen(yaml), &err);
	if (!o)
		DIE("etc/%s: %s", file, err.text);
	if (!k->json)
		k->json = json_text(o);
	k->yaml = yaml;
	return o;
}

/* Owner references make the garbage collector delete what a deleted owner leaves. */
struct json_object *render_object(const struct render_meta *m)
{
	struct json_object *meta, *o = kobj_new(m->gvk, m->name, &meta), *labels = json_obj();

	/* Services and NetworkPolicies select by this label. */
	json_add_str(labels, "app", m->app);
	json_add_str(labels, "app.kubernetes.io/managed-by", "tec-operator");
	json_add(json_add_str(meta, "namespace", m->ns), "labels", labels);
	if (m->take_marks)
		json_add(meta, "annotations", m->take_marks);
	if (m->owner)
		kobj_owner_add(meta, m->owner_gvk, m->owner->name, m->owner->uid);
	return o;
}

struct json_object *render_frame(const struct kobj_gvk *gvk, const char *name, const char *ns,
	const struct model_cluster *c, const char *app)
{
	return render_object(&(struct render_meta){.gvk = gvk,
		.name = name,
		.ns = ns,
		.app = app,
		.owner_gvk = &kobj_cluster,
		.owner = c ? &c->obj : NULL});
}

/* The hash lets a controller skip the request if nothing changed. */
struct json_object *render_hashed(struct json_object *take_o)
{
	kobj_render_hash_set(take_o);
	return take_o;
}

struct json_object *render_configmap(const char *name, const char *ns,
	const struct model_cluster *c, struct json_object *take_data)
{
	struct json_object *o = render_frame(&kobj_configmap, name, ns, c, NULL);

	return render_hashed(json_add(o, "data", take_data));
}

/* type NULL is omitted: the API server's default applies and a user's choice is kept. */
struct json_object *render_service(struct json_object *take_frame, const char *type,
	const char *app, const char *port_name, int port, int target)
{
	struct json_object *p = json_obj(), *spec = json_obj();

	json_add_str(p, "name", port_name);
	json_add_int(p, "port", port);
	json_add_int(p, "targetPort", target);
	json_add_str(p, "protocol", "TCP");
	json_add_str(spec, "type", type);
	json_add(spec, "selector", json_add_str(json_obj(), "app", app));
	json_add(spec, "ports", json_push(json_arr(), p));
	return render_hashed(json_add(take_frame, "spec", spec));
}

/* Write the JSON by hand: json-c would copy the key into ordinary memory. */
struct secret *render_secret_text(struct json_object *take_o, const char *key_name,
	const struct secret *key, const char *text_name, const char *text)
{
	cleanup_json struct json_object *o = take_o;
	cleanup_secret struct secret *b64 = secret_to_b64(key);
	cleanup_strbuf struct strbuf head = STRBUF_INIT, tail = STRBUF_INIT;
	cleanup_free char *json = NULL;
	struct secret *s;
	uint8_t *p;

	json_add_str(o, "type", "Opaque");
	json = json_text(o);
	strbuf_add(&head, json, strlen(json) - 1); /* all but the last brace */
	strbuf_addf(&head, ",\"data\":{\"%s\":\"", key_name);
	if (text_name) {
		strbuf_addf(&tail, "\",\"%s\":\"", text_name);
		bytes_to_b64(&tail, text, strlen(text));
	}
	strbuf_adds(&tail, "\"}}");
	/* Sized exactly: a growing buffer would leave copies of the key behind. */
	s = secret_new(head.len + secret_len(b64) + tail.len);
	p = secret_bytes(s);
	memcpy(p, head.data, head.len);
	memcpy(p + head.len, secret_peek(b64), secret_len(b64));
	memcpy(p + head.len + secret_len(b64), tail.data, tail.len);
	return s;
}

/* ---- parts of a Pod */

struct json_object *render_element(struct json_object *list, const char *name)
{
	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *o = json_at(list, i);

		if (str_eq(json_get_str(o, "name"), name))
			return o;
	}
	DIE("the template has no element %s", name);
}

void render_push_all(struct json_object *list, struct json_object *more)
{
	for (size_t i = 0; i < json_len(more); i++)
		json_push(list, json_object_get(json_at(more, i)));
}

struct json_object *render_mount(const char *name, const char *path)
{
	struct json_object *m = json_add_str(json_obj(), "name", name);

	return json_add_bool(json_add_str(m, "mountPath", path), "readOnly", true);
}

struct json_object *render_named(const char *name, const char *source, struct json_object *take_v)
{
	return json_add(json_add_str(json_obj(), "name", name), source, take_v);
}

struct json_object *render_item(const char *key, const char *path)
{
	return json_add_str(json_add_str(json_obj(), "key", key), "path", path);
}

/* Only the named key is mounted. */
struct json_object *render_secret_source(const char *secret, const char *key)
{
	struct json_object *s = json_add_str(json_obj(), "secretName", secret);

	/* readable through the Pod's fsGroup */
	json_add_int(s, "defaultMode", 0440);
	return json_add(s, "items", json_push(json_arr(), render_item(key, key)));
}

/* Ports and readiness are the guard's from here on; other probes of kbs come from `more`. */
void render_add_guard(struct json_object *containers, struct json_object *kbs,
	struct json_object *more, const char *image)
{
	struct json_object *guard = json_get_obj(more, "guard");
	struct json_object *of_kbs = json_get_obj(more, "kbs");

	json_add_str(guard, "image", image);
	json_object_object_del(kbs, "ports");
	json_object_object_del(kbs, "readinessProbe");
	json_object_object_foreach (of_kbs, probe, value)
		json_add(kbs, probe, json_object_get(value));
	json_push(containers, json_object_get(guard));
}
