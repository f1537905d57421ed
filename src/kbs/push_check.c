/* SPDX-License-Identifier: MIT */
/*
 * Checking: after everything was sent to a store, compare once what it reports with what it
 * confirmed: LocalJson loses acknowledged writes. First the list of resources, if the server has
 * one, then the values one by one. Whatever is missing or different becomes unknown and is sent
 * again. A key cannot be read back, and a server without the list answers with an error, which
 * proves nothing. Sends only GET.
 */
#include "config.h"

#include "push_internal.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define LIST_MAX   (4u * 1024 * 1024) /* enough for 70,000 Machines */
#define AGAIN_MS   1000u              /* delay after a failed read */
#define LOSSES_MAX 10u                /* failed reads in a row that end the check */

/* Forget the confirmation, which queues the entry again. */
static void repair(struct kbs_push *p, enum kbs_kind kind, const char *name)
{
	log_warn(NULL, "Trustee lost a confirmed entry, sending it again", "trustee=%s name=%s",
		log_esc(p->target), log_esc(name));
	kbs_sync_set_unknown(p->sync, p->target, kind, name);
}

void push_check_stop(struct kbs_push *p)
{
	timer_cancel(&p->check);
	strbuf_fini(&p->check_names);
	p->checking = false;
}

/* Compare as JSON: Trustee may format a value differently. */
static bool is_same(const struct secret *want, const char *json, size_t len)
{
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *is = json_parse(json, len, &json_limits_object, &ignored);
	cleanup_json struct json_object *ought = NULL;

	ought = json_parse(
		(const char *)secret_peek(want), secret_len(want), &json_limits_object, &ignored);
	return is && ought && json_object_equal(is, ought);
}

/* A read that fails proves nothing, so only an answer repairs. */
static void on_value(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;
	const char *name = strbuf_str(&p->check_names) + p->check_at;
	cleanup_secret struct secret *want = NULL;

	if (err_is_set(err) && err->kind != ERR_NOT_FOUND) {
		if (++p->check_losses > LOSSES_MAX)
			push_check_stop(p);
		else
			timer_set(&p->check, AGAIN_MS);
		return;
	}
	/* NULL if it changed meanwhile or is in flight: then it is not lost. */
	want = kbs_sync_confirmed(p->sync, p->t, KBS_REFVALUE, name);
	if (want && (err_is_set(err) || !is_same(want, answer->body, answer->body_len)))
		repair(p, KBS_REFVALUE, name);
	p->check_at += strlen(name) + 1;
	p->check_losses = 0;
	push_check_next(p);
}

/* One value at a time, so that the check does not crowd out deliveries. */
void push_check_next(void *arg)
{
	struct kbs_push *p = arg;

	if (p->check_at >= p->check_names.len) {
		push_check_stop(p);
		return;
	}
	(void)kbs_admin_get_value(
		p->transport, &p->ops, strbuf_str(&p->check_names) + p->check_at, on_value, p);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Repair each declared resource that was confirmed but is missing in the list. Names are copied
 * first, because repair() calls listeners that may change the table. */
static void compare_list(struct kbs_push *p, struct json_object *list)
{
	size_t n = json_object_array_length(list);
	const char **v = xcalloc(n + 1, sizeof(*v)), *name;
	cleanup_strbuf struct strbuf missing = STRBUF_INIT;
	struct kbs_entry *e;

	for (size_t i = 0; i < n; i++) {
		v[i] = json_object_get_string(json_object_array_get_idx(list, i));
		v[i] = v[i] ? v[i] : "";
	}
	/* Sorted once for many lookups; the list may have 70,000 names. */
	qsort(v, n, sizeof(*v), by_text);
	EACH_ENTRY (p->sync, e) {
		name = e->name;
		if (e->kind == KBS_RESOURCE && e->objects &&
			!bsearch(&name, v, n, sizeof(*v), by_text))
			strbuf_add(&missing, name, strlen(name) + 1);
	}
	for (size_t at = 0; at < missing.len; at += strlen(missing.data + at) + 1) {
		cleanup_secret struct secret *want =
			kbs_sync_confirmed(p->sync, p->t, KBS_RESOURCE, missing.data + at);

		if (want)
			repair(p, KBS_RESOURCE, missing.data + at);
	}
	free(v);
}

/* Compare the list, if the server supports it, then go on to the values. */
static void on_list(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	static const struct json_limits limits = {
		.bytes = LIST_MAX, .depth = 2, .tokens = LIST_MAX / 8};
	struct kbs_push *p = arg;
	struct err why = ERR_INIT;
	cleanup_json struct json_object *o = NULL;

	why = *err;
	if (!err_is_set(err))
		o = json_parse(answer->body, answer->body_len, &limits, &why);
	if (o && json_object_is_type(o, json_type_array))
		compare_list(p, o);
	else
		log_debug(NULL, "Trustee does not list its resources", "trustee=%s reason=%s",
			log_esc(p->target), log_esc(why.text));
	push_check_next(p);
}

/* Take the names first: entries may come and go while values are read. */
void push_check_start(struct kbs_push *p)
{
	struct kbs_entry *e;

	push_check_stop(p);
	p->check_due = false;
	p->checking = true;
	p->check_at = p->check_losses = 0;
	EACH_ENTRY (p->sync, e) {
		/* Identities of shared mode are one array, which others may write too. */
		if (e->kind == KBS_REFVALUE && e->objects &&
			!(p->shared_mode && str_starts(e->name, KBS_IDENTITY_PREFIX)))
			strbuf_add(&p->check_names, e->name, strlen(e->name) + 1);
	}
	(void)kbs_admin_list_resources(p->transport, &p->ops, LIST_MAX, on_list, p);
}
