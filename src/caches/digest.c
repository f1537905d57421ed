/* SPDX-License-Identifier: MIT */
/*
 * The lines are sorted, because two clusters list their objects differently: the kinds in the order
 * of their names, Machines and AttestationKeys by what their lines begin with, so that only lines
 * with the same beginning are in memory. Each line is canonical JSON, so that no text can imitate
 * another line.
 */
#include "config.h"

#include "tec/caches/digest.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/model/ak.h"
#include "tec/model/image.h"
#include "tec/caches/cluster.h"
#include "tec/caches/machine.h"

#define DIGEST_VERSION "[\"tec-state\",1]\n"

struct lines {
	const struct caches *caches;
	struct caches_digest *out;
	char **v; /* owned; not hashed yet */
	size_t n, cap;
	struct bytes_sha256_run run;
};

/* Take one fact and keep it as a line; sorting and hashing come later. */
static void add_line(struct lines *l, struct json_object *take_array)
{
	struct strbuf text = STRBUF_INIT;

	json_canonical(&text, take_array);
	strbuf_addc(&text, '\n');
	json_object_put(take_array);
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		l->v = xreallocarray(l->v, l->cap, sizeof(*l->v));
	}
	l->v[l->n++] = strbuf_steal(&text);
}

/* Hash the lines collected so far; later ones are behind them in the order. */
static void flush(struct lines *l)
{
	if (l->n > 0)
		qsort(l->v, l->n, sizeof(*l->v), str_order);
	for (size_t i = 0; i < l->n; i++) {
		bytes_sha256_add(&l->run, l->v[i], strlen(l->v[i]));
		free(l->v[i]);
	}
	l->n = 0;
}

static struct json_object *line(const char *kind)
{
	return json_push_str(json_arr(), kind);
}

/* Append a text; an absent one is "", so that members keep their places. */
static struct json_object *push(struct json_object *array, const char *text)
{
	return json_push_str(array, text ? text : "");
}

/* Objects being deleted are left out: the other side may have removed them already. */
static bool counts(const struct kobj *o)
{
	return !o->unreadable && !o->deleting;
}

/* A disk key is included only when the Machine announces it, i.e. when it is the operator's own. */
static void add_machine(void *arg, const struct kobj *o)
{
	struct lines *l = arg;
	const struct model_machine *m = model_machine(o);
	const struct model_secret *secret;
	char hex[SHA256_HEX_LEN + 1] = "";
	struct json_object *a;

	if (!counts(o))
		return;
	if (caches_cluster_withholds(l->caches, m->withheld) && !model_machine_delivered(m))
		return;
	secret = caches_secret(l->caches, m->id);
	if (caches_machine_announces(m, secret))
		(void)model_secret_key_sha256(secret, hex);
	a = push(push(line("machine"), m->id), hex);
	add_line(l, push(a, m->bound_spki));
	l->out->machines++;
}

/* The mark counts as approval, not the condition, which clients could write. */
static void add_ak(void *arg, const struct kobj *o)
{
	struct lines *l = arg;
	const struct model_ak *ak = model_ak(o);
	struct json_object *a;

	if (!counts(o))
		return;
	if (caches_cluster_withholds(l->caches, ak->withheld) && !ak->approved_at)
		return;
	a = push(push(line("attestationkey"), ak->spki_sha256), ak->uuid);
	add_line(l, json_push(a, json_object_new_boolean(ak->approved_at != NULL)));
	l->out->aks++;
}

/* What an image permits is included, and not the values computed for it: those have lines of their
 * own. */
static void add_image(void *arg, const struct kobj *o)
{
	struct lines *l = arg;
	const struct model_image *i = model_image(o);
	struct json_object *a;

	if (!counts(o))
		return;
	a = json_push(push(line("image"), i->image), json_object_new_int((int)i->boot_path));
	a = json_push(a, json_object_new_boolean(i->any_secure_boot));
	add_line(l, json_push(a, json_object_new_boolean(i->handed_in)));
	l->out->images++;
}

/* ---- objects in the order of their lines */

struct object {
	const char *key; /* hexadecimal digits after the kind; borrowed */
	const struct kobj *o;
};

struct objects {
	struct object *v; /* owned */
	size_t n;
	const char *(*key)(const struct kobj *o); /* NULL: the object has no line */
};

static const char *machine_key(const struct kobj *o)
{
	return model_machine(o)->id_valid ? model_machine(o)->id : NULL;
}

static const char *ak_key(const struct kobj *o)
{
	return model_ak(o)->spki_sha256;
}

static void collect(void *arg, const struct kobj *o)
{
	struct objects *all = arg;
	const char *key = all->key(o);

	if (key)
		all->v[all->n++] = (struct object){key, o};
}

static int key_order(const void *a, const void *b)
{
	return strcmp(((const struct object *)a)->key, ((const struct object *)b)->key);
}

/* The keys of a kind are of one length and need no escapes, so lines are ordered as their keys. */
static void add_all(struct lines *l, const struct k8s_cache *cache,
	const char *(*key)(const struct kobj *o), void (*add)(void *lines, const struct kobj *o))
{
	struct objects all = {xcalloc(k8s_cache_count(cache) + 1, sizeof(*all.v)), 0, key};

	k8s_cache_each(cache, collect, &all);
	qsort(all.v, all.n, sizeof(*all.v), key_order);
	for (size_t i = 0; i < all.n; i++) {
		if (i > 0 && key_order(&all.v[i - 1], &all.v[i]) != 0)
			flush(l);
		add(l, all.v[i].o);
	}
	flush(l);
	free(all.v);
}

/* DIGEST_VERSION separates forms: digests of different forms never match by accident. Entries with
 * values that are refused do not count, so they make no difference; of spec, only the members count
 * that decide what nodes must prove and who gets keys. */
void caches_digest(const struct caches *s, struct caches_digest *out)
{
	static const char *const members[] = {
		"attestation", "registration", "trustee/keyIsolation"};
	const struct model_configmap *pcrs = caches_configmap(s, MODEL_PCRS_CONFIGMAP);
	const struct model_cluster *c = caches_cluster_oldest(s);
	const char *text = c && c->extended_spec ? c->extended_spec : "{}";
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *spec =
		json_parse(text, strlen(text), &json_limits_object, &ignored);
	struct json_object *said = json_obj();
	struct lines l = {.caches = s, .out = out};
	uint8_t sha256[SHA256_LEN];

	memset(out, 0, sizeof(*out));
	bytes_sha256_init(&l.run);
	bytes_sha256_add(&l.run, DIGEST_VERSION, strlen(DIGEST_VERSION));
	add_all(&l, s->aks, ak_key, add_ak);
	k8s_cache_each(s->images, add_image, &l);
	flush(&l);
	add_all(&l, s->machines, machine_key, add_machine);
	for (size_t i = 0; pcrs && pcrs->pcrs && i < pcrs->pcrs->n; i++) {
		const struct model_pcrs_entry *e = &pcrs->pcrs->v[i];

		if (!e->why)
			add_line(&l, push(push(line("pcrs"), e->reference), e->sha256));
	}
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (json_get(spec, members[i]))
			json_add(said, members[i], json_object_get(json_get(spec, members[i])));
	add_line(&l, json_push(line("spec"), said));
	flush(&l);
	free(l.v);
	bytes_sha256_end(&l.run, sha256);
	bytes_sha256_fini(&l.run);
	bytes_to_hex(sha256, SHA256_LEN, out->hex);
}
