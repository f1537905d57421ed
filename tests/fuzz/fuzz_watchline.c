/* SPDX-License-Identifier: MIT */
/*
 * A whole watch against a server that answers its list well and then streams the input, in pieces
 * of byte 0. Whatever comes, the watch ends up watching, waiting or listing, every object in the
 * cache has a sane name, and nothing is left behind.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/k8s/watch.h"
#include "tec/kobj/key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct k8s_exchange *open_call;
static bool *gone;

static void call_start(struct k8s_exchange *x)
{
	assert(!open_call);
	open_call = x;
}

static void call_stop(struct k8s_exchange *x)
{
	assert(open_call == x);
	open_call = NULL;
	if (gone)
		*gone = true;
}

static void transport_free(struct k8s_transport *t)
{
	(void)t;
}

static void call_end(const struct err *err)
{
	struct k8s_answer a = {.status = 200, .body = ""};

	k8s_transport_end(open_call, err, &a);
}

/* Ends the call when the watch refuses the data or the text is over. */
static void give(const uint8_t *data, size_t size, size_t piece)
{
	struct err err = ERR_INIT;
	bool cancelled = false;
	int rc = 0;

	for (size_t off = 0; off < size && rc == 0 && !cancelled; off += piece) {
		size_t n = piece < size - off ? piece : size - off;
		char *copy = xmalloc(n);

		memcpy(copy, data + off, n);
		gone = &cancelled;
		rc = open_call->to.on_data(open_call->arg, copy, n, &err);
		gone = NULL;
		free(copy);
	}
	assert(rc == 0 || err_is_set(&err));
	if (!cancelled)
		call_end(&err);
}

static struct kobj *extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct kobj k = {0};

	if (kobj_meta_read(&p, o, &k, err) < 0)
		return NULL;
	return kobj_pack_finish(&p, &k, sizeof(k));
}

static const char *by_uid(const struct kobj *o, unsigned i)
{
	(void)i;
	return o->uid;
}

static void check(void *arg, const struct kobj *o)
{
	(void)arg;
	assert(kobj_name_valid(o->name, strlen(o->name)) && o->uid[0] && o->rv[0] && o->refs == 1);
}

static void no_log(enum log_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char list[] =
		"{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"5\"}}]}";
	static const struct k8s_transport_ops ops = {call_start, call_stop, transport_free};
	struct k8s_transport t = {.ops = &ops, .exchange_size = sizeof(struct k8s_exchange)};
	static const struct k8s_cache_type type = {extract, sizeof(struct kobj), by_uid, 1};
	struct k8s_watch_conf conf = {.gvk = &kobj_secret, .ns = "ns", .secret = true};
	struct k8s_cache *cache = k8s_cache_new(&type);
	struct k8s_watch *w;

	if (size == 0) {
		k8s_cache_free(cache);
		return 0;
	}
	if (!clock_is_fake())
		clock_fake_start(1000, 1767323045);
	log_capture(no_log, NULL);
	t.loop = loop_new();
	w = k8s_watch_new(t.loop, &t, cache, &conf);
	k8s_watch_start(w);
	loop_drain(t.loop);
	give((const uint8_t *)list, sizeof(list) - 1, sizeof(list));
	loop_drain(t.loop);
	assert(k8s_watch_state(w) == K8S_WATCH_WATCHING && open_call);
	give(data + 1, size - 1, 1 + data[0] % 64);
	assert(k8s_watch_state(w) == K8S_WATCH_BACKOFF || k8s_watch_state(w) == K8S_WATCH_LISTING);
	assert(!open_call);
	k8s_cache_each(cache, check, NULL);
	loop_advance(t.loop, 2000);
	assert(open_call); /* it goes on, from where it was or with a list */
	k8s_watch_free(w);
	assert(!open_call);
	k8s_cache_free(cache);
	loop_free(t.loop);
	return 0;
}
