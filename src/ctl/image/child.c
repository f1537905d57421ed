/* SPDX-License-Identifier: MIT */
/*
 * Where no Jobs run (--standalone), a child process computes an image's values. Its state is in
 * memory: the child ends with this process, and the next process starts another. The caches hold
 * only digests of the platforms, so their ConfigMaps are read first.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define SHOW_MS     5000 /* minimum time between two lines in a condition */
#define RETRY_S     60   /* doubles with each attempt */
#define LOST_S      10   /* delay after a result was lost */
#define RETRY_MAX_S 3600

struct image_child {
	struct ctl_image *c;
	struct op_scope ops;
	char *image, *reference;               /* owned */
	char name[RENDER_PCRJOB_NAME_LEN + 1]; /* as in struct image_look */
	char nonce[MODEL_PCRMSG_NONCE_LEN + 1];
	unsigned attempt;
	struct render_pcrjob_platforms want; /* the names are owned */
	size_t n_read;
	struct json_object
		*platforms; /* ConfigMaps read so far; owned; NULL once the child has them */
	char line[200];     /* last line of its output; "": none yet */
	uint64_t shown_ms;  /* boot clock: when a line was last shown */
	bool ended;
	int64_t ended_s;
	char *message; /* owned; NULL: none */
	char why[320]; /* why there is no message */
};

/* Cancelling the ops ends the child process, too. */
void image_child_free(struct image_child *ch)
{
	if (!ch)
		return;
	op_scope_cancel(&ch->ops);
	for (size_t i = 0; i < ch->want.n; i++)
		free((char *)(uintptr_t)ch->want.v[i].name);
	json_object_put(ch->platforms);
	free(ch->message);
	free(ch->reference);
	free(ch->image);
	free(ch);
}

/* ---- the next attempt */

/* The delay doubles from RETRY_S up to RETRY_MAX_S with each attempt. */
void image_child_due(struct image_look *l, unsigned attempt, int64_t ended_s, bool lost)
{
	int64_t delay_s = RETRY_S, left_s;

	for (unsigned i = attempt; i > 1 && delay_s < RETRY_MAX_S; i--)
		delay_s *= 2;
	if (delay_s > RETRY_MAX_S)
		delay_s = RETRY_MAX_S;
	if (lost)
		delay_s = LOST_S;
	left_s = ended_s + delay_s - clock_wall_s();
	l->v.due = left_s <= 0;
	if (left_s > 0)
		ctl_look_again(&l->base, left_s * 1000, "job");
}

/* ---- the computation */

/* Also called with an error before the child was started. The step takes the message. */
static void on_computed(void *arg, const struct err *err, const char *message, size_t len)
{
	struct image_child *ch = arg;
	struct log_ctx lc = {"ApprovedImage", ch->c->kind.env->ns, ch->image, NULL};

	ch->ended = true;
	ch->ended_s = clock_wall_s();
	if (err_is_set(err)) {
		snprintf(ch->why, sizeof(ch->why), "%.300s", err->text);
		log_err(LOG_WARN, &lc, "values not computed", err);
	} else {
		ch->message = xstrndup(message, len);
	}
	ctl_runner_wake(ch->c->kind.runner, ch->image);
}

/* Show progress in the condition, at most every SHOW_MS: each line would be a status write. */
static void on_said(void *arg, const char *line)
{
	struct image_child *ch = arg;
	uint64_t now = clock_boot_ms();

	snprintf(ch->line, sizeof(ch->line), "%.199s", line);
	if (now - ch->shown_ms < SHOW_MS)
		return;
	ch->shown_ms = now;
	ctl_runner_wake(ch->c->kind.runner, ch->image);
}

static void next(struct image_child *ch);

/* Take one platform. Its digest must still be the one that the computation was announced for;
 * otherwise the result would be filed under the wrong variables. */
static void on_platform(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct image_child *ch = arg;
	const char *name = ch->want.v[ch->n_read].name;
	struct err e = *err;
	cleanup_kobj const struct kobj *o =
		err_is_set(&e) ? NULL : model_configmap_extract(r->object, &e);
	const struct model_configmap *map = (const struct model_configmap *)(const struct kobj *)o;

	if (map && memcmp(map->variables, ch->want.v[ch->n_read].variables, SHA256_LEN) != 0)
		err_set(&e, ERR_CONFLICT, "it changed while it was being read");
	if (err_is_set(&e)) {
		err_wrap(&e, "ConfigMap %.100s", name);
		on_computed(ch, &e, NULL, 0);
		return;
	}
	json_add(ch->platforms, name, json_object_get(r->object));
	ch->n_read++;
	next(ch);
}

/* Read the next platform; after the last one, start the child. */
static void next(struct image_child *ch)
{
	const struct ctl_env *env = ch->c->kind.env;

	if (ch->n_read < ch->want.n) {
		(void)k8s_call_get(env->api, &ch->ops, &kobj_configmap, env->ns,
			ch->want.v[ch->n_read].name, on_platform, ch);
		return;
	}
	(void)env->image_compute(env->image_compute_arg, &ch->ops, ch->reference, ch->nonce,
		ch->platforms, on_said, on_computed, ch);
	json_object_put(steal_ptr(&ch->platforms));
}

/* ---- struct image_way */

/* A child for other platforms is reported as old, and removed before another one starts. */
static void child_look(struct ctl_image *c, struct image_look *l)
{
	const struct image_child *ch = l->info->child;

	render_pcrjob_name(l->m, &l->platforms.job, NULL, l->what);
	if (!ch)
		return;
	l->v.old_run = !str_eq(ch->name, l->what);
	if (l->v.old_run)
		return;
	l->run = (struct image_run){ch->nonce, ch->message};
	l->v.run = ch->ended ? CTL_IMAGE_RUN_ENDED : CTL_IMAGE_RUN_RUNNING;
	if (ch->ended)
		image_child_due(l, ch->attempt, ch->ended_s, false);
}

/* Three ways to end without values: an error, a rejected message, or one that is incomplete. */
static void want_ended(struct image_look *l)
{
	const struct image_child *ch = l->info->child;

	if (!ch->message)
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
			"The values cannot be computed: %s. This is retried later.%s", ch->why,
			l->info->note);
	else if (l->info->result_why[0])
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
			"The computed values are not used: %s. They are computed again later.",
			l->info->result_why);
	else
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
			"The computed values do not cover the current state of every platform. They are computed again later.");
}

/* Shows the last line of output, so that a long download is visible. */
static void child_want(const struct ctl_image *c, struct image_look *l)
{
	const struct image_child *ch = l->info->child;

	if (l->v.run == CTL_IMAGE_RUN_ENDED)
		want_ended(l);
	else if (l->v.run == CTL_IMAGE_RUN_RUNNING && ch->line[0])
		IMAGE_WANT(l, IMAGE_COMPUTING, "The values are being computed: %s.%s", ch->line,
			l->info->note);
	else
		IMAGE_WANT(l, IMAGE_COMPUTING,
			"The values are being computed, one image at a time.%s", l->info->note);
}

/* Copy all inputs: the look is valid for this step only, the child lives longer. */
static struct op *child_start(struct ctl_kind *k, struct ctl_act *a, const struct image_look *l)
{
	struct image_info *i = l->info;
	struct image_child *ch = xcalloc(1, sizeof(*ch));

	image_child_free(i->child);
	i->child = ch;
	ch->c = (struct ctl_image *)k;
	ch->image = xstrdup(i->name);
	ch->reference = xstrdup(l->m->image);
	ch->attempt = i->attempts + 1;
	ch->platforms = json_obj();
	memcpy(ch->name, l->what, sizeof(ch->name));
	memcpy(ch->nonce, i->nonce, sizeof(ch->nonce));
	ch->want = l->platforms.job;
	for (size_t p = 0; p < ch->want.n; p++)
		ch->want.v[p].name = xstrdup(ch->want.v[p].name);
	next(ch);
	return NULL;
}

/* The number of attempts survives the child, because it determines the next delay. */
static struct op *child_remove(
	struct ctl_kind *k, struct ctl_act *a, const struct image_look *l, bool old)
{
	struct image_info *i = l->info;

	if (!old)
		i->attempts = i->child->attempt;
	image_child_free(steal_ptr(&i->child));
	return NULL;
}

const struct image_way image_by_child = {child_look, child_want, child_start, child_remove};
