/* SPDX-License-Identifier: MIT */
/*
 * follow, promote and retire: look at both clusters, take the step that report/handover decides,
 * look again. Between two looks only the ticket and the printed messages are remembered, so that
 * the command may be killed and run again at any time. A conflict, or a server that is briefly
 * unreachable, only leads to another look.
 *
 * follow               one step: the target becomes Following
 * promote              the steps of enum report_step; see the table in report/handover.c
 * promote --abort      fences the target's ticket, then unfreezes the source
 * promote --from-lost  one step, with the target alone
 * retire               one step, with the cluster that retires
 *
 * Servers: t has the one in use, h->other the other one; use() exchanges them.
 */
#include "config.h"

#include "tool.h"
#include "tool_account.h"
#include "tool_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/report/deletes.h"
#include "tec/report/handover.h"
#include "tec/report/text.h"

#define POLL_MS    250
#define DELETES_MS 500 /* the same for deletions, for which whole lists are read */
#define TIMEOUT_S  300
#define COPIES     (1u << REPORT_CLUSTER | 1u << REPORT_MACHINE | 1u << REPORT_KEY | 1u << REPORT_IMAGE)

enum end { FROM, TO, N_ENDS };
static const char *const end_names[N_ENDS] = {"source", "target"};

struct handover {
	struct tool *t;
	struct tool_server other; /* the end that t does not use */
	enum end used;
	bool both;               /* two clusters are involved */
	bool standalone[N_ENDS]; /* its Trustee is the broker of its process */
	const char *
		name; /* static; of a command with one step; NULL: a promotion, which has several */
	enum { FOLLOW, PROMOTE, ABORT, FROM_LOST, RETIRE } what;
	struct report_findings f;
	struct report_world world[N_ENDS];
	struct report_authority a[N_ENDS]; /* borrowed from world */
	struct report_promotion with;
	char *version[N_ENDS], *told; /* owned; told: the last "waiting" message */
	char ticket[UUID_TEXT_LEN + 1];
	enum report_step step; /* steps before it were reported as done */
	bool given[N_ENDS];    /* this run has given the end a kubeconfig */
	bool follows;          /* and has set its spec.follow */
	bool confirmed;
	uint64_t end_ms;
};

/* Make this end the server in use. */
static void use(struct handover *h, enum end e)
{
	if (h->used != e && h->both)
		tool_swap(h->t, &h->other);
	h->used = e;
}

/* ---- reading */

/* Name the end in an error, if there are two. */
static int wrap_end(const struct handover *h, enum end e, struct err *err)
{
	return h->both ? err_wrap(err, "the %s", end_names[e]) : -1;
}

/* also: what else the person can do; "" or words that end in "or ". Returns -1. */
static int no_cluster(const struct tool *t, const char *also, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
		"no TrustedExecutionCluster in namespace %.63s of %.80s; next step: %sappend its namespace after a colon: KUBECONFIG:NS",
		t->ns, t->server, also);
}

/* Read an end's TrustedExecutionCluster, and other kinds. A partial answer is an error. */
static int read_end(struct handover *h, enum end e, unsigned kinds, struct err *err)
{
	struct report_world *w = &h->world[e];
	struct json_object *cluster;

	use(h, e);
	kinds |= 1u << REPORT_CLUSTER;
	report_world_fini(w);
	*w = (struct report_world){.ns = NULL};
	if (tool_load(h->t, kinds, w, err) < 0)
		return wrap_end(h, e, err);
	if (tool_all_read(w, kinds, err) < 0)
		return -1;
	cluster = report_cluster(w);
	if (!cluster) {
		(void)!no_cluster(h->t, "create one, or ", err);
		return wrap_end(h, e, err);
	}
	report_authority(cluster, &h->a[e]);
	if (h->standalone[e])
		h->a[e].trustee = NULL;
	return 0;
}

/* What to do next. A target that was made to follow in this run needs no new kubeconfig. Without a
 * source (--from-lost) the target is the only cluster, and is kept as FROM. */
static struct report_next decide(const struct handover *h)
{
	switch (h->what) {
	case FOLLOW:
		return report_follow_next(&h->a[FROM], &h->a[TO], h->follows);
	case PROMOTE:
		return report_promote_next(&h->a[FROM], &h->a[TO], &h->with);
	case ABORT:
		return report_abort_next(&h->a[FROM], &h->a[TO]);
	case FROM_LOST:
		return report_from_lost_next(&h->a[FROM]);
	case RETIRE:
		break;
	}
	return report_retire_next(&h->a[FROM], conf_bool(h->t->conf, "last"));
}

/* Read both ends and decide. The Machines of the source may be many, so they are listed only
 * when the decision depends on them. */
static int look(struct handover *h, struct report_next *n, struct err *err)
{
	for (enum end e = FROM; e <= (h->both ? TO : FROM); e++)
		if (read_end(h, e, 0, err) < 0)
			return -1;
	h->with.ticket = h->ticket[0] ? h->ticket : NULL;
	h->with.deleting = 0;
	*n = decide(h);
	/* Deletions matter only if everything else allows the promotion. */
	if (h->a[FROM].is != MODEL_AUTHORITY_SELF ||
		(n->act != REPORT_DO_ANNOUNCE && n->act != REPORT_DO_FREEZE))
		return 0;
	if (read_end(h, FROM, 1u << REPORT_MACHINE, err) < 0)
		return -1;
	for (size_t i = 0; i < h->world[FROM].list[REPORT_MACHINE].n; i++)
		h->with.deleting += report_deleting(h->world[FROM].list[REPORT_MACHINE].v[i]);
	*n = decide(h);
	return 0;
}

/* Check the rights that the steps need at both ends. A promotion must not stop half-way for
 * lack of them. 1: something is missing, and reported. */
static int look_at_rights(struct handover *h, struct err *err)
{
	static const struct {
		const struct kobj_gvk *gvk;
		const char *verb;
	} rights[] = {{&kobj_cluster, "patch"}, {&kobj_secret, "create"}, {&kobj_secret, "patch"}};
	int missing = 0;

	for (enum end e = FROM; e <= TO; e++) {
		use(h, e);
		for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
			if (tool_may(h->t, rights[i].gvk, rights[i].verb, err))
				continue;
			if (err_is_set(err))
				return wrap_end(h, e, err);
			missing = 1;
			report_found(&h->f, REPORT_IS_NO, "rights",
				"ask an administrator for a Role that allows it",
				"these credentials may not %s %s in namespace %s of the %s",
				rights[i].verb, rights[i].gvk->plural, h->t->ns, end_names[e]);
		}
	}
	return missing;
}

/* ---- changing */

/* Set spec.authority, the ticket (NULL: unchanged, "": removed) and other fields of spec, at
 * the version that was read. A cluster that begins to follow may have followed another one
 * earlier; that mark is removed, so that its operator records the new one. */
static int patch(struct handover *h, enum end e, const char *authority, const char *ticket,
	struct json_object *take_spec, struct err *err)
{
	struct json_object *spec = take_spec, *marks = NULL;

	if (authority)
		spec = json_add_str(spec ? spec : json_obj(), "authority", authority);
	if (ticket && *ticket)
		marks = json_add_str(json_obj(), REPORT_TICKET, ticket);
	else if (ticket)
		marks = json_add(json_obj(), REPORT_TICKET, NULL);
	if (marks && json_get_obj(spec, "follow"))
		json_add(marks, MODEL_CLUSTER_FOLLOWED_MARK, NULL);
	use(h, e);
	if (tool_patch(h->t, &kobj_cluster, report_cluster(&h->world[e]), marks, spec, err) < 0)
		return wrap_end(h, e, err);
	return 0;
}

/* Let a spec name the cluster in whose place it administers Trustee. */
static struct json_object *take_over(struct json_object *spec, const char *uid)
{
	return json_add(spec, "trustee", json_add_str(json_obj(), "takeOver", uid));
}

/* spec.follow of a cluster that follows this end. If both have one Trustee, it is left to this end. */
static struct json_object *follow_of(struct handover *h, enum end of)
{
	struct json_object *follow = json_add_str(json_obj(), "kubeconfigSecret", TOOL_ACCOUNT),
			   *spec;

	use(h, of);
	json_add_str(follow, "namespace", h->t->ns);
	spec = json_add(json_obj(), "follow", follow);
	return report_shares_trustee(&h->a[FROM], &h->a[TO]) ? take_over(spec, h->a[of].uid) : spec;
}

/* Give the operator of one end access to the other end. Once per run: after a conflict the step
 * is repeated, and the account still exists. */
static int give(struct handover *h, enum end of, enum end to, struct err *err)
{
	cleanup_wiped_strbuf struct strbuf kubeconfig = STRBUF_INIT;

	if (h->given[to])
		return 0;
	use(h, of);
	if (tool_account_make(h->t, &kubeconfig, err) < 0)
		return wrap_end(h, of, err);
	use(h, to);
	if (tool_account_give(h->t, &kubeconfig, err) < 0)
		return wrap_end(h, to, err);
	h->given[to] = true;
	return 0;
}

/* A follower revokes the keys of Machines that the source lacks, so a target that has any is
 * refused. One that follows already keeps its ticket: this may be a repetition within a
 * promotion. */
static int do_follow(struct handover *h, struct err *err)
{
	bool decides = h->a[TO].is != MODEL_AUTHORITY_FOLLOWING;
	const char *first = NULL;
	size_t n = 0;

	if (decides) {
		if (read_end(h, FROM, 1u << REPORT_MACHINE, err) < 0 ||
			read_end(h, TO, 1u << REPORT_MACHINE, err) < 0)
			return -1;
		n = report_strangers(&h->world[FROM], &h->world[TO], &first);
	}
	if (n)
		return err_set(err, ERR_INVALID,
			"%zu Machines of the target do not exist at the source (%.63s) and would lose their disk keys; next step: tecctl machine delete at the target if no node needs them",
			n, first);
	if (give(h, FROM, TO, err) < 0 ||
		patch(h, TO, "Following", decides ? "" : NULL, follow_of(h, FROM), err) < 0)
		return -1;
	h->follows = true;
	return 0;
}

/* The account for the way back is created first: after the takeover the source must be able to
 * follow. */
static int do_announce(struct handover *h, struct err *err)
{
	char ticket[UUID_TEXT_LEN + 1];

	if (give(h, TO, FROM, err) < 0)
		return -1;
	uuid_new_v4(ticket);
	if (patch(h, TO, NULL, ticket, NULL, err) < 0)
		return -1;
	memcpy(h->ticket, ticket, sizeof(ticket));
	return 0;
}

/* Confirm by the cluster's name: typed, or as the operand with --yes. Once per run. */
static int confirm_name(
	struct handover *h, const char *question, const char *command, struct err *err)
{
	const char *given = conf_operand(h->t->conf), *name = h->a[FROM].name;

	if (given && !str_eq(given, name))
		return err_set(err, ERR_INVALID,
			"the TrustedExecutionCluster of this namespace is %.63s, not %.63s", name,
			log_esc(given));
	if (h->t->yes && !given)
		return err_set(err, ERR_INVALID,
			"--yes requires the cluster's name; next step: %s --yes %.63s", command,
			name);
	if (!h->t->yes && !h->confirmed && tool_confirm_word(h->t, question, name, err) < 0)
		return -1;
	h->confirmed = true;
	return 0;
}

/* The question tells what would be lost: how old the copy is, and how much it holds. */
static int do_take_alone(struct handover *h, struct err *err)
{
	const struct report_authority *a = &h->a[FROM];
	cleanup_free char *seen = report_last_seen(a, clock_wall_s()), *question = NULL;
	cleanup_show_world struct report_world has = {.ns = NULL};
	struct json_object *spec;

	if (tool_load(h->t, 1u << REPORT_MACHINE | 1u << REPORT_KEY, &has, err) < 0)
		return -1;
	question = xasprintf(
		"TrustedExecutionCluster %s at %s will decide from now on, with %zu Machines and %zu AttestationKeys. %s If the other cluster still runs, both decide until they reach each other.",
		a->name, h->t->server, has.list[REPORT_MACHINE].n, has.list[REPORT_KEY].n, seen);
	if (confirm_name(h, question, "tecctl promote --from-lost", err) < 0)
		return -1;
	spec = json_add_int(json_obj(), "epoch", report_next_epoch(NULL, a));
	/* Both had one Trustee, but nobody told this cluster. */
	if (a->conflict && a->peer_uid && strstr(a->conflict, a->peer_uid))
		take_over(spec, a->peer_uid);
	return patch(h, FROM, "Self", "", spec, err);
}

/* One write per step; the next look sees its effect. */
static int act(struct handover *h, const struct report_next *n, struct err *err)
{
	const struct report_authority *from = &h->a[FROM], *to = &h->a[TO];
	struct json_object *spec;
	cleanup_free char *text = NULL;

	switch (n->act) {
	case REPORT_DO_FOLLOW:
		return do_follow(h, err);
	case REPORT_DO_ANNOUNCE:
		return do_announce(h, err);
	case REPORT_DO_FREEZE:
		/* The ticket goes to the source in the same write that freezes it. */
		if (strlen(to->ticket) >= sizeof(h->ticket))
			return err_set(err, ERR_INVALID,
				"the annotation " REPORT_TICKET
				" of the target is not from tecctl; next step: remove it");
		strcpy(h->ticket, to->ticket);
		return patch(h, FROM, "Frozen", h->ticket, NULL, err);
	case REPORT_DO_TAKE:
		spec = json_add_int(json_obj(), "epoch", report_next_epoch(from, to));
		if (report_shares_trustee(from, to))
			take_over(spec, from->uid);
		return patch(h, TO, "Self", NULL, spec, err);
	case REPORT_DO_SWAP:
		return patch(h, FROM, "Following", "", follow_of(h, TO), err);
	case REPORT_DO_FENCE:
		/* From here on no run of tecctl can let this target take over with the old
		 * ticket. */
		text = xasprintf(REPORT_TICKET_ABORTED "%s", to->ticket);
		return patch(h, TO, NULL, text, NULL, err);
	case REPORT_DO_UNFREEZE:
		return patch(h, FROM, "Self", "", NULL, err);
	case REPORT_DO_RETIRE:
		/* The operator revokes; this only asks it to. */
		text = xasprintf(
			"Every disk key of TrustedExecutionCluster %s at %s will be revoked from its Trustee, and the cluster will never serve a node again.",
			from->name, h->t->server);
		if (confirm_name(h, text, "tecctl retire", err) < 0)
			return -1;
		return patch(h, FROM, "Retired", NULL, NULL, err);
	case REPORT_DO_TAKE_ALONE:
		return do_take_alone(h, err);
	case REPORT_DO_REFUSE:
	case REPORT_DO_WAIT:
	case REPORT_DO_DONE:
		break;
	}
	return err_set(err, ERR_BUG, "unknown step %d", (int)n->act);
}

/* ---- the loop */

/* Report a refusal, and each step of a promotion before the next one as done, including those of
 * earlier runs. A finding is named after the command, or after the step of a promotion; one that is
 * complete counts as its last step. 1: refused. */
static int report(struct handover *h, const struct report_next *n, const char **name)
{
	*name = h->name ? h->name
			: report_steps[n->step < REPORT_N_STEPS ? n->step : REPORT_STEP_SWAP].name;
	if (n->act == REPORT_DO_REFUSE) {
		report_found(&h->f, REPORT_IS_NO, *name, n->next, "%s", n->why);
		return 1;
	}
	for (; !h->name && h->step < n->step; h->step++)
		report_found(&h->f, REPORT_IS_OK, report_steps[h->step].name, NULL, "%s",
			report_steps[h->step].done);
	return 0;
}

/* Look, act, look again, until nothing is left. 0: done; 1: refused or timed out, and reported. */
static int go(struct handover *h, struct err *err)
{
	for (;;) {
		struct report_next n;
		const char *name = NULL;
		int rc = look(h, &n, err);

		if (rc == 0 && report(h, &n, &name) != 0)
			return 1;
		if (rc == 0 && n.act == REPORT_DO_DONE)
			return 0;
		/* After a change look again at once; its effect may allow the next step. */
		if (rc == 0 && n.act != REPORT_DO_WAIT && (rc = act(h, &n, err)) == 0)
			continue;
		if (rc < 0) {
			if (h->t->interrupted ||
				(err->kind != ERR_TRANSIENT && err->kind != ERR_CONFLICT))
				return -1;
			/* Another look may resolve it. */
			n = (struct report_next){.act = REPORT_DO_WAIT,
				.step = h->step,
				.next = "run the command again: it continues where it stopped"};
			snprintf(n.why, sizeof(n.why), "%s", err->text);
			err_clear(err);
			(void)report(h, &n, &name);
		}
		/* What is awaited is reported once per reason. */
		if (!str_eq(n.why, h->told)) {
			tool_say(stderr, "tecctl: waiting: %s", n.why);
			free(h->told);
			h->told = xstrdup(n.why);
		}
		if (clock_boot_ms() >= h->end_ms) {
			report_found(&h->f, REPORT_IS_NO, name, n.next, "timed out: %s", n.why);
			return 1;
		}
		if (tool_sleep(h->t, POLL_MS, err) < 0)
			return -1;
	}
}

/* Report what go() would do; change nothing. */
static int go_dry(struct handover *h, struct err *err)
{
	struct report_next n;
	const char *name;

	if (look(h, &n, err) < 0)
		return -1;
	if (report(h, &n, &name) != 0)
		return 1;
	for (enum report_step s = n.step; s < REPORT_N_STEPS; s++) {
		if (s == n.step && n.act == REPORT_DO_WAIT)
			report_found(&h->f, REPORT_IS_NOTE, report_steps[s].name, n.next,
				"would wait: %s", n.why);
		else
			report_found(&h->f, REPORT_IS_NOTE, report_steps[s].name, NULL, "would %s",
				report_steps[s].todo);
	}
	return 0;
}

/* ---- the commands */

/* Connect to the place that an option names, or else as the common options say. */
static int connect_to(struct tool *t, const char *option, struct err *err)
{
	if (tool_connect(t, conf_str(t->conf, option), err) == 0)
		return 0;
	return conf_is_set(t->conf, option) ? err_wrap(err, "option --%s", option) : -1;
}

/* --timeout in milliseconds. */
static int read_timeout(struct tool *t, uint64_t *ms, struct err *err)
{
	*ms = TIMEOUT_S;
	if (conf_is_set(t->conf, "timeout") &&
		conf_number(t->conf, "timeout", 1, 86400, ms, err) < 0)
		return -1;
	*ms *= 1000;
	return 0;
}

/* Connect to the server in use, which becomes this end, and check that its cluster exists. */
static int start_end(struct handover *h, enum end e, const char *option, struct err *err)
{
	cleanup_json struct json_object *version = NULL;

	h->used = e;
	if (connect_to(h->t, option, err) < 0)
		return -1;
	if (tool_ask(h->t, "GET", "/version", NULL, NULL, &version, err) < 0)
		return wrap_end(h, e, err);
	h->standalone[e] = report_is_standalone(json_get_str(version, "gitVersion"));
	return read_end(h, e, 0, err);
}

/* Connect to each end. Call end() in any case. */
static int start(struct handover *h, const char *from, struct err *err)
{
	struct tool *t = h->t;
	uint64_t ms;

	if (read_timeout(t, &ms, err) < 0 || tool_findings_start(t, &h->f, err) < 0)
		return -1;
	if (start_end(h, FROM, from, err) < 0)
		return -1;
	if (h->both) {
		tool_swap(t, &h->other);
		if (start_end(h, TO, "to", err) < 0)
			return -1;
	}
	h->end_ms = clock_boot_ms() + ms;
	return 0;
}

/* Print the findings, release everything, and return the exit status. */
static int end(struct handover *h, int rc)
{
	for (size_t i = 0; i < N_ENDS; i++) {
		report_world_fini(&h->world[i]);
		free(h->version[i]);
	}
	free(h->told);
	if (h->f.all)
		rc = tool_findings_end(h->t, &h->f, rc < 0 ? -1 : 0);
	tool_server_fini(&h->other);
	return rc;
}

/* Check that a required place is given, and that no common option contradicts it. */
static int check_place(struct tool *t, const char *option, bool needed, struct err *err)
{
	static const char *const usual[] = {"kubeconfig", "context", "namespace"};

	if (!conf_is_set(t->conf, option))
		return needed ? err_set(err, ERR_INVALID,
					"option --%s is required; next step: --%s KUBECONFIG[:NS]",
					option, option)
			      : 0;
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (conf_is_set(t->conf, usual[i]))
			return err_set(err, ERR_INVALID,
				"options --%s and --%s are mutually exclusive; next step: give the namespace as KUBECONFIG:NS",
				usual[i], option);
	return 0;
}

/* ---- follow --confirm-deletes and --accept-source */

/*
 * Shows the copies that the source no longer has, then deletes them. The target's operator revokes
 * their keys and removes its finalizers; nothing is written at the source. The command may be
 * repeated at any time.
 */
struct takes {
	struct tool *t;
	const char *name;          /* static: name of the option */
	struct tool_server source; /* the connection to the source, once it was used */
	struct report_world from, to;
	bool accept; /* --accept-source: from is read, too */
	struct report_findings f;
	uint64_t end_ms;
};

/* Ask for the number of objects: typing it shows that the list was read. */
static int ask(struct takes *x, const struct report_deletes *d, struct err *err)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_free char *number = xasprintf("%zu", d->all);

	report_deletes_text(d, &text);
	if (x->accept)
		strbuf_addf(&text,
			": the target has them; the source, with %zu Machines, %zu AttestationKeys and %zu ApprovedImages, does not.",
			x->from.list[REPORT_MACHINE].n, x->from.list[REPORT_KEY].n,
			x->from.list[REPORT_IMAGE].n);
	else
		strbuf_adds(&text,
			": the source no longer lists them, and their deletion was not observed.");
	strbuf_adds(&text,
		" They will be deleted at the target, together with the disk keys of these Machines.");
	return x->t->yes ? 0 : tool_confirm_word(x->t, strbuf_str(&text), number, err);
}

/* Delete by UID, so that what was created since the list was read stays. */
static int delete_all(struct takes *x, const struct report_deletes *d, struct err *err)
{
	static const struct kobj_gvk *const gvk[REPORT_N_KINDS] = {[REPORT_MACHINE] = &kobj_machine,
		[REPORT_KEY] = &kobj_ak,
		[REPORT_IMAGE] = &kobj_image};

	for (unsigned k = 0; k < REPORT_N_KINDS; k++)
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

/* Read all lists of a cluster, or fail: an object missing from a partial list would seem to be deleted. */
static int read_copies(struct takes *x, const char *end, struct report_world *w, struct err *err)
{
	if (tool_load_all(x->t, COPIES, w, err) < 0)
		return err_wrap(err, "the %s", end);
	return report_cluster(w) ? 0 : no_cluster(x->t, "", err);
}

/* Wait until the operator has revoked all of them. 1: not in time, and reported. */
static int wait_for(struct takes *x, const struct report_deletes *d, struct err *err)
{
	cleanup_show_world struct report_world now = {.ns = NULL};

	for (;;) {
		size_t left;

		if (read_copies(x, "target", &now, err) < 0)
			return -1;
		left = report_deletes_left(d, &now);
		if (!left)
			return 0;
		if (clock_boot_ms() >= x->end_ms) {
			report_found(&x->f, REPORT_IS_NO, x->name,
				"tecctl status at the target; its operator continues",
				"%zu of %zu objects are still being deleted: not every Trustee of the target has confirmed the revocation",
				left, d->all);
			return 1;
		}
		if (tool_sleep(x->t, DELETES_MS, err) < 0)
			return -1;
	}
}

/* Check, show, ask, delete, wait. The target must be allowed to delete copies. */
static int take(struct takes *x, struct err *err)
{
	struct report_authority from = {.name = NULL}, to;
	cleanup_show_deletes struct report_deletes d = {.all = 0};
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct report_next n;
	int rc;

	report_authority(report_cluster(&x->to), &to);
	if (x->accept)
		report_authority(report_cluster(&x->from), &from);
	n = report_deletes_next(x->accept ? &from : NULL, &to);
	if (n.act != REPORT_DO_DONE) {
		report_found(&x->f, REPORT_IS_NO, x->name, n.next, "%s", n.why);
		return 1;
	}
	report_deletes_find(x->accept ? &x->from : NULL, &x->to, &d);
	if (!d.all) {
		report_found(&x->f, REPORT_IS_OK, x->name, NULL, "nothing to delete");
		return 0;
	}
	report_deletes_text(&d, &text);
	rc = ask(x, &d, err);
	if (rc == 0)
		rc = delete_all(x, &d, err);
	if (rc == 0)
		rc = wait_for(x, &d, err);
	if (rc == 0)
		report_found(&x->f, REPORT_IS_OK, x->name, NULL, "deleted: %s", strbuf_str(&text));
	return rc;
}

/* The target is read first: report_deletes_find() needs that order. It stays the server in use. The
 * result is a finding, as of the other commands of a handover. */
static int follow_deletes(struct tool *t, bool accept, struct err *err)
{
	struct takes x = {
		.t = t, .name = accept ? "accept-source" : "confirm-deletes", .accept = accept};
	uint64_t ms;
	int rc;

	if (read_timeout(t, &ms, err) < 0 || tool_findings_start(t, &x.f, err) < 0)
		return -1;
	x.end_ms = clock_boot_ms() + ms;
	rc = tool_connect(t, conf_str(t->conf, "to"), err);
	if (rc == 0)
		rc = read_copies(&x, "target", &x.to, err);
	if (rc == 0 && accept) {
		tool_swap(t, &x.source);
		rc = tool_connect(t, conf_str(t->conf, "from"), err);
		if (rc == 0)
			rc = read_copies(&x, "source", &x.from, err);
		tool_swap(t, &x.source);
	}
	if (rc == 0)
		rc = take(&x, err);
	report_world_fini(&x.from);
	report_world_fini(&x.to);
	rc = tool_findings_end(t, &x.f, rc < 0 ? -1 : 0);
	tool_server_fini(&x.source);
	return rc;
}

/* Options that exclude each other are refused before any server is contacted. */
int tool_follow(struct tool *t, struct err *err)
{
	struct handover h = {.t = t, .both = true, .name = "follow", .what = FOLLOW};
	bool confirm = conf_bool(t->conf, "confirm-deletes");
	bool accept = conf_bool(t->conf, "accept-source");
	int rc;

	if (check_place(t, "to", false, err) < 0)
		return -1;
	if (confirm && (accept || conf_is_set(t->conf, "from")))
		return err_set(err, ERR_INVALID,
			"options --confirm-deletes and --%s are mutually exclusive",
			accept ? "accept-source" : "from");
	if (confirm)
		return follow_deletes(t, false, err);
	if (!conf_is_set(t->conf, "from"))
		return err_set(err, ERR_INVALID,
			"option --from is required; next step: --from KUBECONFIG[:NS] of the cluster that decides");
	if (accept)
		return follow_deletes(t, true, err);
	rc = start(&h, "from", err);
	if (rc == 0)
		rc = go(&h, err);
	if (rc == 0)
		report_found(&h.f, REPORT_IS_OK, h.name, NULL,
			"the target follows the source and is up to date");
	if (t->interrupted)
		tool_say(stderr,
			"tecctl: interrupted; the target follows the source once its spec.authority is Following. tecctl follow can be run again");
	return end(&h, rc);
}

/* Rights, versions and clocks are checked once, before the first step; the loop checks everything
 * else at each look. Nodes in their first boot cannot register while the source is Frozen, and the
 * target's listener does not know their ids. */
static int promote(struct handover *h, struct err *err)
{
	bool dry = conf_bool(h->t->conf, "dry-run");
	const char *first = NULL;
	int64_t skew_s[N_ENDS];
	int rc = look_at_rights(h, err);
	size_t n;

	for (enum end e = FROM; rc == 0 && e <= TO && h->what == PROMOTE; e++) {
		use(h, e);
		if (tool_operator_version(h->t, &h->version[e], err) < 0 ||
			tool_clock_skew(h->t, &skew_s[e], err) < 0)
			return wrap_end(h, e, err);
	}
	if (rc == 0 && h->what == PROMOTE) {
		h->with.skew_s = skew_s[TO] - skew_s[FROM];
		h->with.from_version = h->version[FROM];
		h->with.to_version = h->version[TO];
	}
	if (rc == 0 && h->what == PROMOTE && h->a[FROM].is == MODEL_AUTHORITY_SELF) {
		if (read_end(h, FROM, 1u << REPORT_MACHINE, err) < 0)
			return -1;
		n = report_unbound(&h->world[FROM], &first);
		if (n)
			report_found(&h->f, REPORT_IS_NOTE, "registering",
				"wait until they have registered, or reboot those nodes afterwards",
				"%zu Machines of the last 10 minutes have no AttestationKey yet (%.63s): their nodes would have to restart their first boot",
				n, first);
	}
	if (rc == 0)
		rc = dry ? go_dry(h, err) : go(h, err);
	if (rc == 0 && h->what == ABORT)
		report_found(&h->f, REPORT_IS_OK, h->name, NULL,
			"the source decides, and the target will not take over");
	return rc;
}

/* Promote without a source (--from-lost): the target is the only cluster, and is kept as FROM. */
static int promote_alone(struct tool *t, struct err *err)
{
	static const char *const others[] = {"from", "abort", "dry-run"};
	struct handover h = {.t = t, .name = "promote", .what = FROM_LOST};
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (conf_is_set(t->conf, others[i]))
			return err_set(err, ERR_INVALID,
				"options --from-lost and --%s are mutually exclusive", others[i]);
	if (check_place(t, "to", true, err) < 0)
		return -1;
	rc = start(&h, "to", err);
	if (rc == 0)
		rc = go(&h, err);
	if (rc == 0)
		report_found(&h.f, REPORT_IS_OK, h.name, NULL,
			"the target decides, with epoch %" PRId64, h.a[FROM].epoch);
	if (t->interrupted && h.confirmed)
		tool_say(stderr,
			"tecctl: interrupted; the operator continues. The command can be run again");
	return end(&h, rc);
}

/* An abort is the same loop with another decision. */
int tool_promote(struct tool *t, struct err *err)
{
	bool aborts = conf_bool(t->conf, "abort");
	struct handover h = {.t = t,
		.both = true,
		.name = aborts ? "abort" : NULL,
		.what = aborts ? ABORT : PROMOTE};
	int rc;

	if (conf_bool(t->conf, "from-lost"))
		return promote_alone(t, err);
	if (conf_operand(t->conf))
		return err_set(err, ERR_INVALID, "a name is accepted only with --from-lost");
	if (check_place(t, "from", true, err) < 0 || check_place(t, "to", true, err) < 0)
		return -1;
	if (aborts && conf_bool(t->conf, "dry-run"))
		return err_set(
			err, ERR_INVALID, "options --dry-run and --abort are mutually exclusive");
	rc = start(&h, "from", err);
	if (rc == 0)
		rc = promote(&h, err);
	if (t->interrupted)
		tool_say(stderr,
			"tecctl: interrupted; installed nodes still get their keys. Run the command again to continue, or with --abort to go back");
	return end(&h, rc);
}

/* Warn of nodes that know only the cluster that retires: their list of servers is in the disk's
 * header since they were installed. Also of the peer's, if the peer names only that cluster. */
static int warn_of_nodes(struct handover *h, struct err *err)
{
	struct json_object *cluster = report_cluster(&h->world[FROM]);
	const char *address = json_get_str(cluster, "spec/publicTrusteeAddr");
	struct report_world *w = &h->world[TO];
	int rc;

	if (report_asks_only(cluster, address))
		report_found(&h->f, REPORT_IS_NOTE, "nodes",
			"make sure that no disk of such a node is still needed, or run tec-node rebind-servers there",
			"spec.trusteeServers names no other server: nodes installed with this cluster use no other");
	if (!conf_is_set(h->t->conf, "peer"))
		return 0;
	tool_swap(h->t, &h->other);
	rc = connect_to(h->t, "peer", err);
	if (rc == 0)
		rc = tool_load(h->t, 1u << REPORT_CLUSTER, w, err);
	if (rc == 0 && !report_cluster(w))
		rc = no_cluster(h->t, "", err);
	tool_swap(h->t, &h->other);
	if (rc == 0 && report_asks_only(report_cluster(w), address))
		report_found(&h->f, REPORT_IS_NOTE, "peer",
			"set publicTrusteeAddr and trusteeServers of the peer, then tec-node rebind-servers on its nodes",
			"the peer names only %s, which is being retired: its nodes use no other server",
			address);
	return rc < 0 ? err_wrap(err, "the peer") : 0;
}

/* Warnings come before the question: they may be a reason to say no. */
int tool_retire(struct tool *t, struct err *err)
{
	struct handover h = {.t = t, .name = "retire", .what = RETIRE};
	int rc;

	if (check_place(t, "at", false, err) < 0)
		return -1;
	rc = start(&h, "at", err);
	if (rc == 0)
		rc = warn_of_nodes(&h, err);
	if (rc == 0)
		rc = go(&h, err);
	if (rc == 0)
		report_found(&h.f, REPORT_IS_OK, h.name, NULL,
			"every key is revoked, and the cluster is Retired");
	if (t->interrupted && h.confirmed)
		tool_say(stderr,
			"tecctl: interrupted; the operator continues. Run tecctl retire again to see when every key is revoked");
	return end(&h, rc);
}
