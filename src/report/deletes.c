/* SPDX-License-Identifier: MIT */
/* Names are sorted and searched by bisection, as both clusters may have thousands of objects. */
#include "config.h"

#include "tec/report/deletes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/model/machine.h"

#define NAMES_SHOWN 20

static const char *const words[REPORT_N_KINDS][2] = {[REPORT_MACHINE] = {"Machine", "Machines"},
	[REPORT_KEY] = {"AttestationKey", "AttestationKeys"},
	[REPORT_IMAGE] = {"ApprovedImage", "ApprovedImages"}};

/* ---- a set of strings */

struct texts {
	const char **v; /* owned array of borrowed texts, sorted */
	size_t n;
};

/* Collect the strings at path, sorted for bsearch(). Borrowed from the objects; the caller
 * frees .v. */
static struct texts texts_of(struct json_object *const *v, size_t n, const char *path)
{
	struct texts t = {.v = xcalloc(n + 1, sizeof(*t.v))};

	for (size_t i = 0; i < n; i++) {
		const char *text = json_get_str(v[i], path);

		if (text)
			t.v[t.n++] = text;
	}
	qsort(t.v, t.n, sizeof(*t.v), str_order);
	return t;
}

/* ---- which */

/* Append the objects of one kind: those absent from the source, or without a source those that the
 * target's operator found gone there and keeps until somebody confirms. */
static void find_kind(const struct report_world *from, const struct report_world *to,
	enum report_kind kind, struct report_deletes *out)
{
	const struct report_list *l = &to->list[kind];
	struct texts there = {.v = NULL};

	out->v[kind] = xcalloc(l->n + 1, sizeof(struct json_object *));
	if (from)
		there = texts_of(from->list[kind].v, from->list[kind].n, "metadata/name");
	for (size_t i = 0; i < l->n; i++) {
		const char *name = report_name(l->v[i]);
		struct json_object *marks = json_get_obj(l->v[i], "metadata/annotations");

		if (from ? !bsearch(&name, there.v, there.n, sizeof(*there.v), str_order)
			 : json_object_object_get_ex(marks, MODEL_WITHHELD_ANNOTATION, NULL))
			out->v[kind][out->n[kind]++] = l->v[i];
	}
	out->all += out->n[kind];
	free(there.v);
}

/* Images are never withheld by an operator, so they are selected only with a source to compare. */
void report_deletes_find(
	const struct report_world *from, const struct report_world *to, struct report_deletes *out)
{
	*out = (struct report_deletes){.all = 0};
	find_kind(from, to, REPORT_MACHINE, out);
	find_kind(from, to, REPORT_KEY, out);
	if (from)
		find_kind(from, to, REPORT_IMAGE, out);
}

void report_deletes_fini(struct report_deletes *d)
{
	for (unsigned k = 0; k < REPORT_N_KINDS; k++)
		free(d->v[k]);
	*d = (struct report_deletes){.all = 0};
}

/* The limit of names applies to all kinds together; what is left out is counted. */
void report_deletes_text(const struct report_deletes *d, struct strbuf *out)
{
	size_t shown = 0;

	for (unsigned k = 0; k < REPORT_N_KINDS; k++) {
		size_t i;

		if (!d->n[k])
			continue;
		strbuf_addf(
			out, "%s%zu %s (", out->len ? ", " : "", d->n[k], words[k][d->n[k] > 1]);
		for (i = 0; i < d->n[k] && shown < NAMES_SHOWN; i++, shown++)
			strbuf_addf(out, "%s%s", i ? ", " : "", report_name(d->v[k][i]));
		if (i < d->n[k])
			strbuf_addf(out, "%s%zu more", i ? " and " : "", d->n[k] - i);
		strbuf_addc(out, ')');
	}
}

/* Compared by UID: an object of the same name that was created since then is not the old one. */
size_t report_deletes_left(const struct report_deletes *d, const struct report_world *now)
{
	size_t left = 0;

	for (unsigned k = 0; k < REPORT_N_KINDS; k++) {
		struct texts there = texts_of(now->list[k].v, now->list[k].n, "metadata/uid");

		for (size_t i = 0; i < d->n[k]; i++) {
			const char *uid = json_get_str(d->v[k][i], "metadata/uid");

			left += uid && bsearch(&uid, there.v, there.n, sizeof(*there.v), str_order);
		}
		free(there.v);
	}
	return left;
}

/* ---- whether */

/* A refusal: the reason, a detail that may be "", and the next step. */
static struct report_next refuse(const char *then, const char *why, const char *more)
{
	struct report_next n = {.act = REPORT_DO_REFUSE, .step = REPORT_STEP_FOLLOW, .next = then};

	snprintf(n.why, sizeof(n.why), "%s%s%s", why, *more ? ": " : "", more);
	return n;
}

/* Refuse unless the target follows this source and has read it: absence in a source that was
 * never read proves nothing. */
struct report_next report_deletes_next(
	const struct report_authority *from, const struct report_authority *to)
{
	if (!to->known || to->is != MODEL_AUTHORITY_FOLLOWING)
		return refuse("use tecctl machine delete at the cluster that decides",
			"the target does not follow another cluster", "");
	if (from && from->is == MODEL_AUTHORITY_FOLLOWING)
		return refuse("give the cluster that decides as --from",
			"the source does not decide: it follows another cluster", "");
	if (from && to->peer_uid && !str_eq(to->peer_uid, from->uid))
		return refuse("give the kubeconfig of the cluster that it follows",
			"the target follows another cluster", to->peer ? to->peer : to->peer_uid);
	if (!to->observed || !to->peer_uid || str_eq(to->reason, "SourceUnreachable") ||
		str_eq(to->reason, "SourceDiffers"))
		return refuse("check that the target's operator runs and reaches the source",
			"the target has not read the cluster that it follows",
			to->message ? to->message : "");
	return (struct report_next){.act = REPORT_DO_DONE, .step = REPORT_STEP_FOLLOW};
}
