/* SPDX-License-Identifier: MIT */
/*
 * An object of another operator's API server and its copy, as ctl/follow makes it: a (AttestationKey), m
 * (Machine) or s (Secret) and the object. What is read of the copy is what was read of the original;
 * otherwise the follower would find a conflict with itself, or copy it again and again.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/model/secretobj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(enum log_level level, const char *line, void *arg)
{
}

/* As the API stores it. Takes o. */
static struct kobj *stored(
	struct json_object *o, struct kobj *(*extract)(struct json_object *, struct err *))
{
	struct json_object *meta = json_get_obj(o, "metadata");
	struct err err = ERR_INIT;
	struct kobj *copy;

	json_add_str(json_add_str(meta, "uid", "copy"), "resourceVersion", "1");
	json_add_str(meta, "name", "copy");
	json_add_str(meta, "creationTimestamp", "2026-01-02T03:04:05Z");
	copy = extract(o, &err);
	if (!copy)
		DIE("the copy cannot be read: %s", err.text);
	json_object_put(o);
	return copy;
}

static void copy_ak(const struct model_ak *a)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	const struct model_ak *b;
	struct kobj *o;

	model_ak_public_key(a, &pem);
	o = stored(model_ak_new_json("copy", strbuf_str(&pem), a->uuid), model_ak_extract);
	b = model_ak(o);
	if (a->public_hash != b->public_hash || !str_eq(a->spki_sha256, b->spki_sha256) ||
		!str_eq(a->uuid, b->uuid))
		DIE("the copy has another key");
	kobj_unref(o);
}

static void copy_machine(const struct model_machine *a)
{
	struct kobj *o;

	if (!a->id_valid)
		return;
	o = stored(model_machine_new_json(a->id, "tec", "u", false), model_machine_extract);
	if (!model_machine(o)->id_valid || !str_eq(a->id, model_machine(o)->id))
		DIE("the copy has another id");
	kobj_unref(o);
}

static void copy_secret(const struct model_secret *a)
{
	char want[SHA256_HEX_LEN + 1], have[SHA256_HEX_LEN + 1];
	cleanup_secret struct secret *text = NULL;
	struct err err = ERR_INIT;
	struct json_object *json;
	struct kobj *o;

	if (a->shape != MODEL_SECRET_LUKS || !a->root)
		return;
	text = model_luks_secret_text("copy", "m", "u", a->root);
	json = json_parse(
		(const char *)secret_peek(text), secret_len(text), &json_limits_api, &err);
	if (!json)
		DIE("the copy is not JSON: %s", err.text);
	o = stored(json, model_secret_extract);
	if (!str_eq(model_secret_key_sha256(a, want),
		    model_secret_key_sha256(model_secret(o), have)))
		DIE("the copy has another disk key");
	kobj_unref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char kind = size ? (char)data[0] : '\0';
	struct err err = ERR_INIT;
	struct json_object *json;
	struct kobj *o = NULL;

	log_capture(ignore, NULL);
	if (!size || !strchr("ams", kind) || !kind)
		return 0;
	json = json_parse((const char *)data + 1, size - 1, &json_limits_object, &err);
	if (json_object_is_type(json, json_type_object))
		o = kind == 'a'   ? model_ak_extract(json, &err)
		    : kind == 'm' ? model_machine_extract(json, &err)
				  : model_secret_extract(json, &err);
	json_object_put(json);
	if (o && kind == 'a')
		copy_ak(model_ak(o));
	else if (o && kind == 'm')
		copy_machine(model_machine(o));
	else if (o)
		copy_secret(model_secret(o));
	kobj_unref(o);
	if (secret_count() != 0)
		DIE("a key is left");
	return 0;
}
