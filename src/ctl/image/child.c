/* SPDX-License-Identifier: MIT */
/*
 * Where no Jobs run, a child of this process computes an image's values. What is known of it is in memory:
 * it ends with this process, and the next one starts another. Of platforms the caches have digests
 * alone, so their ConfigMaps are read first.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define SHOW_MS 5000 /* between two lines in a condition, at least */

struct platform {
	char *name; /* owned */
	uint8_t variables[SHA256_LEN];
};

struct image_child {
	struct ctl_image *c;
	struct op_scope ops;
	char *image, *reference;               /* owned */
	char name[RENDER_PCRJOB_NAME_LEN + 1]; /* as in struct image_look */
	char nonce[MODEL_PCRMSG_NONCE_LEN + 1];
	unsigned attempt;
	struct platform want[MODEL_PLATFORMS_MAX];
	size_t n_want, n_read;
	struct json_object *platforms; /* those that were read; owned; NULL: none, or handed on */
	char line[200];                /* what it said last; "": nothing yet */
	uint64_t shown_ms;             /* boot clock */
	bool ended;
	int64_t ended_s;
	char *message; /* owned; NULL: none */
	char why[320]; /* there is no message */
};

void image_child_free(struct image_child *ch)
{
	if (!ch)
		return;
	op_scope_cancel(&ch->ops);
	for (size_t i = 0; i < ch->n_want; i++)
		free(ch->want[i].name);
	json_object_put(ch->platforms);
	free(ch->message);
	free(ch->reference);
	free(ch->image);
	free(ch);
}

/* ---- the computation */

static struct log_ctx log_of(const struct image_child *ch)
{
	return (struct log_ctx){"ApprovedImage", ch->c->kind.env->ns, ch->image, NULL};
}

static void on_computed(void *arg, const struct err *err, const char *message, size_t len)
{
	struct image_child *ch = arg;
	const struct log_ctx lc = log_of(ch);

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

static void on_platform(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct image_child *ch = arg;
	const struct platform *p = &ch->want[ch->n_read];
	struct err e = *err;
	cleanup_kobj const struct kobj *o =
		err_is_set(&e) ? NULL : model_configmap_extract(r->object, &e);
	const struct model_configmap *map = (const struct model_configmap *)(const struct kobj *)o;

	if (map && memcmp(map->variables, p->variables, SHA256_LEN) != 0)
		err_set(&e, ERR_CONFLICT, "it has just changed");
	if (err_is_set(&e)) {
		err_wrap(&e, "ConfigMap %.100s", p->name);
		on_computed(ch, &e, NULL, 0);
		return;
	}
	json_add(ch->platforms, p->name, json_object_get(r->object));
	ch->n_read++;
	next(ch);
}

static void next(struct image_child *ch)
{
	const struct ctl_env *env = ch->c->kind.env;

	if (ch->n_read < ch->n_want) {
		(void)k8s_call_get(env->api, &ch->ops, &kobj_configmap, env->ns,
			ch->want[ch->n_read].name, on_platform, ch);
		return;
	}
	(void)env->image_compute(env->image_compute_arg, &ch->ops, ch->reference, ch->nonce,
		ch->platforms, on_said, on_computed, ch);
	json_object_put(steal_ptr(&ch->platforms));
}

/* ---- the way */

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
		image_job_due(l, ch->attempt, ch->ended_s, false);
}

static void want_ended(struct image_look *l)
{
	const struct image_child *ch = l->info->child;

	if (!ch->message)
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
			"The values cannot be computed, which is tried again later: %s.%s", ch->why,
			l->info->note);
	else if (l->info->result_why[0])
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
			"The values that were computed are not used: %s. They are computed again later.",
			l->info->result_why);
	else
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
			"The values that were computed do not cover the current state of every platform. They are computed again later.");
}

static void child_want(const struct ctl_image *c, struct image_look *l)
{
	const struct image_child *ch = l->info->child;

	if (l->v.run == CTL_IMAGE_RUN_ENDED)
		want_ended(l);
	else if (l->v.run == CTL_IMAGE_RUN_RUNNING && ch->line[0])
		IMAGE_WANT(l, IMAGE_COMPUTING, "Its values are being computed: %s.%s", ch->line,
			l->info->note);
	else
		IMAGE_WANT(l, IMAGE_COMPUTING,
			"Its values are being computed, of one image at a time.%s", l->info->note);
}

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
	for (size_t p = 0; p < l->platforms.job.n; p++) {
		ch->want[p].name = xstrdup(l->platforms.job.v[p].name);
		memcpy(ch->want[p].variables, l->platforms.job.v[p].variables, SHA256_LEN);
		ch->n_want++;
	}
	next(ch);
	return NULL;
}

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
