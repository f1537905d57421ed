/* SPDX-License-Identifier: MIT */
/*
 * follow --confirm-deletes and --accept-source: deletes copies that the source does not have any more, after
 * they were shown. The target's operator revokes their keys and takes its finalizers off; nothing is
 * written at the source. It may be run again at any time.
 */
#include "config.h"

#include "tool.h"

#include <stdio.h>
#include <stdlib.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/show/deletes.h"

#define POLL_MS   500
#define TIMEOUT_S 300
#define COPIES    (1u << SHOW_CLUSTER | 1u << SHOW_MACHINE | 1u << SHOW_KEY | 1u << SHOW_IMAGE)

struct takes {
	struct tool *t;
	const char *name;          /* static: of the option */
	struct tool_server source; /* when the source was read */
	struct show_world from, to;
	bool accept; /* from is read */
	struct show_findings f;
	uint64_t end_ms;
};

/* Everything, or an error: what is missing in part of a list must not count as missing. */
static int read_all(struct takes *x, const char *end, struct show_world *w, struct err *err)
{
	show_world_fini(w);
	*w = (struct show_world){.ns = NULL};
	if (tool_load(x->t, COPIES, w, err) < 0)
		return err_wrap(err, "the %s", end);
	for (unsigned k = 0; k < SHOW_N_KINDS; k++)
		if (w->list[k].problem)
			return err_set(err, ERR_DENIED, "the %s: %s", end, w->list[k].problem);
	if (!show_cluster(w))
		return err_set(err, ERR_NOT_FOUND,
			"no TrustedExecutionCluster in namespace %.63s of %.80s; next step: name its namespace after a colon: KUBECONFIG:NS",
			x->t->ns, x->t->server);
	return 0;
}

/* The target first: show_deletes_find(). It stays the server in use. */
static int read_both(struct takes *x, struct err *err)
{
	struct tool *t = x->t;
	int rc;

	if (tool_connect(t, conf_str(t->conf, "to"), err) < 0 ||
		read_all(x, "target", &x->to, err) < 0)
		return -1;
	if (!x->accept)
		return 0;
	tool_swap(t, &x->source);
	rc = tool_connect(t, conf_str(t->conf, "from"), err);
	if (rc == 0)
		rc = read_all(x, "source", &x->from, err);
	tool_swap(t, &x->source);
	return rc;
}

/* 1: refused, and said. */
static int may(struct takes *x)
{
	struct show_authority from = {.name = NULL}, to;
	struct show_next n;

	show_authority(show_cluster(&x->to), &to);
	if (x->accept)
		show_authority(show_cluster(&x->from), &from);
	n = show_deletes_next(x->accept ? &from : NULL, &to);
	if (n.act == SHOW_DO_DONE)
		return 0;
	show_found(&x->f, SHOW_IS_NO, x->name, n.next, "%s", n.why);
	return 1;
}

static int ask(struct takes *x, const struct show_deletes *d, struct err *err)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_free char *number = xasprintf("%zu", d->all);

	show_deletes_text(d, &text);
	if (x->accept)
		strbuf_addf(&text,
			": the target has them, and the source, with %zu Machines, %zu AttestationKeys and %zu ApprovedImages, lacks them.",
			x->from.list[SHOW_MACHINE].n, x->from.list[SHOW_KEY].n,
			x->from.list[SHOW_IMAGE].n);
	else
		strbuf_adds(&text, ": the source does not show them, and nobody saw them deleted.");
	strbuf_adds(
		&text, " They are deleted at the target, with the disk keys of these Machines.");
	return x->t->yes ? 0 : tool_confirm_word(x->t, strbuf_str(&text), number, err);
}

static int delete_all(struct takes *x, const struct show_deletes *d, struct err *err)
{
	static const struct kobj_gvk *const gvk[SHOW_N_KINDS] = {
		[SHOW_MACHINE] = &kobj_machine, [SHOW_KEY] = &kobj_ak, [SHOW_IMAGE] = &kobj_image};

	for (unsigned k = 0; k < SHOW_N_KINDS; k++)
		for (size_t i = 0; i < d->n[k]; i++) {
			if (tool_delete(x->t, gvk[k], d->v[k][i], err) == 0)
				continue;
			/* Gone, or another object of that name meanwhile. */
			if (err->kind != ERR_NOT_FOUND && err->kind != ERR_CONFLICT)
				return -1;
			err_clear(err);
		}
	return 0;
}

/* Until the operator has revoked them all; 1: not in time, and said. */
static int wait_for(struct takes *x, const struct show_deletes *d, struct err *err)
{
	cleanup_show_world struct show_world now = {.ns = NULL};

	for (;;) {
		size_t left;

		if (read_all(x, "target", &now, err) < 0)
			return -1;
		left = show_deletes_left(d, &now);
		if (!left)
			return 0;
		if (clock_boot_ms() >= x->end_ms) {
			show_found(&x->f, SHOW_IS_NO, x->name,
				"tecctl status at the target: its operator goes on",
				"%zu of %zu objects are still being deleted: not every Trustee of the target has confirmed it",
				left, d->all);
			return 1;
		}
		if (tool_sleep(x->t, POLL_MS, err) < 0)
			return -1;
	}
}

static int take(struct takes *x, struct err *err)
{
	cleanup_show_deletes struct show_deletes d = {.all = 0};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	int rc = may(x);

	if (rc != 0)
		return rc;
	show_deletes_find(x->accept ? &x->from : NULL, &x->to, &d);
	if (!d.all) {
		show_found(&x->f, SHOW_IS_OK, x->name, NULL, "nothing is to be deleted");
		return 0;
	}
	show_deletes_text(&d, &text);
	rc = ask(x, &d, err);
	if (rc == 0)
		rc = delete_all(x, &d, err);
	if (rc == 0)
		rc = wait_for(x, &d, err);
	if (rc == 0)
		show_found(&x->f, SHOW_IS_OK, x->name, NULL, "deleted: %s", strbuf_str(&text));
	return rc;
}

int tool_follow_deletes(struct tool *t, bool accept, struct err *err)
{
	struct takes x = {
		.t = t, .name = accept ? "accept-source" : "confirm-deletes", .accept = accept};
	uint64_t s = TIMEOUT_S;
	int rc;

	if (conf_is_set(t->conf, "timeout") &&
		conf_number(t->conf, "timeout", 1, 86400, &s, err) < 0)
		return -1;
	if (tool_findings_start(t, &x.f, err) < 0)
		return -1;
	x.end_ms = clock_boot_ms() + s * 1000;
	rc = read_both(&x, err);
	if (rc == 0)
		rc = take(&x, err);
	show_world_fini(&x.from);
	show_world_fini(&x.to);
	rc = tool_findings_end(t, &x.f, rc < 0 ? -1 : 0);
	tool_server_fini(&x.source);
	return rc;
}
