/* SPDX-License-Identifier: MIT */
/*
 * follow --confirm-deletes and --accept-source: shows the copies that the source no longer has,
 * then deletes them. The target's operator revokes their keys and removes its finalizers; nothing
 * is written at the source. The command may be repeated at any time.
 */
#include "config.h"

#include "tool.h"
#include "tool_check.h"

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
	const char *name;          /* static: name of the option */
	struct tool_server source; /* the connection to the source, once it was used */
	struct show_world from, to;
	bool accept; /* --accept-source: from is read, too */
	struct show_findings f;
	uint64_t end_ms;
};

/* Read all lists of a cluster, or fail: an object missing from a partial list would seem to be
 * deleted. */
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
			"no TrustedExecutionCluster in namespace %.63s of %.80s; next step: append its namespace after a colon: KUBECONFIG:NS",
			x->t->ns, x->t->server);
	return 0;
}

/* Read the target, then the source; show_deletes_find() needs that order. The target stays the
 * server in use. */
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

/* Check whether the target may delete copies. 1: no, and reported. */
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

/* Ask for the number of objects: typing it shows that the list was read. */
static int ask(struct takes *x, const struct show_deletes *d, struct err *err)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_free char *number = xasprintf("%zu", d->all);

	show_deletes_text(d, &text);
	if (x->accept)
		strbuf_addf(&text,
			": the target has them; the source, with %zu Machines, %zu AttestationKeys and %zu ApprovedImages, does not.",
			x->from.list[SHOW_MACHINE].n, x->from.list[SHOW_KEY].n,
			x->from.list[SHOW_IMAGE].n);
	else
		strbuf_adds(&text,
			": the source no longer lists them, and their deletion was not observed.");
	strbuf_adds(&text,
		" They will be deleted at the target, together with the disk keys of these Machines.");
	return x->t->yes ? 0 : tool_confirm_word(x->t, strbuf_str(&text), number, err);
}

/* Delete by UID, so that what was created since the list was read stays. */
static int delete_all(struct takes *x, const struct show_deletes *d, struct err *err)
{
	static const struct kobj_gvk *const gvk[SHOW_N_KINDS] = {
		[SHOW_MACHINE] = &kobj_machine, [SHOW_KEY] = &kobj_ak, [SHOW_IMAGE] = &kobj_image};

	for (unsigned k = 0; k < SHOW_N_KINDS; k++)
		for (size_t i = 0; i < d->n[k]; i++) {
			if (tool_delete(x->t, gvk[k], d->v[k][i], err) == 0)
				continue;
			/* Already gone, or replaced by another object of that name. */
			if (err->kind != ERR_NOT_FOUND && err->kind != ERR_CONFLICT)
				return -1;
			err_clear(err);
		}
	return 0;
}

/* Wait until the operator has revoked all of them. 1: not in time, and reported. */
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
				"tecctl status at the target; its operator continues",
				"%zu of %zu objects are still being deleted: not every Trustee of the target has confirmed the revocation",
				left, d->all);
			return 1;
		}
		if (tool_sleep(x->t, POLL_MS, err) < 0)
			return -1;
	}
}

/* Check, show, ask, delete, wait. */
static int take(struct takes *x, struct err *err)
{
	cleanup_show_deletes struct show_deletes d = {.all = 0};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	int rc = may(x);

	if (rc != 0)
		return rc;
	show_deletes_find(x->accept ? &x->from : NULL, &x->to, &d);
	if (!d.all) {
		show_found(&x->f, SHOW_IS_OK, x->name, NULL, "nothing to delete");
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

/* The result is a finding, as of the other commands of a handover. */
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
