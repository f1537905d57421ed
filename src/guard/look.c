/* SPDX-License-Identifier: MIT */
/* One request at a time: the next one is scheduled when the last one has ended. */
#include "config.h"

#include "tec/guard/look.h"

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/loop/timer.h"

#define ANSWER_MS     3000
#define MAX_IN_FLIGHT 1024 /* far above UPSTREAM_MAX: node requests never delay the probe */

struct guard_look {
	struct httpc *http;
	struct httpc_tls *tls;
	char *url;
	uint32_t every_ms;
	struct op_scope ops;
	struct timer next;
	bool answers, told; /* told: the state was logged at least once */
};

static struct metric up = METRIC_GAUGE_INIT(
	"tec_guard_upstream_up", "1 if Trustee answered the last probe.", NULL, NULL);

/* Any HTTP status counts as an answer. Only changes are logged, and the first result. */
static void on_answer(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct guard_look *k = arg;
	bool answers = !err_is_set(err);

	/* Trustee counts as not answering before the first result, so the first failure must be
	 * logged as well. */
	if (!answers && (k->answers || !k->told))
		log_err(LOG_WARN, NULL, "Trustee does not answer", err);
	else if (answers && !k->answers)
		log_info(NULL, "Trustee answers", "status=%d", a->status);
	k->told = true;
	k->answers = answers;
	metric_set(&up, NULL, NULL, answers);
	timer_set(&k->next, k->every_ms);
}

/* Send one probe. Its answer schedules the next one. */
static void look(void *arg)
{
	struct guard_look *k = arg;
	const struct httpc_request req = {.method = "GET",
		.url = k->url,
		.tls = k->tls,
		.deadline_ms = ANSWER_MS,
		.max_in_flight = MAX_IN_FLIGHT};

	httpc_start(k->http, &k->ops, &req, NULL, on_answer, k);
}

/* The first probe is sent from the loop: a callback must not run before this returns. */
struct guard_look *guard_look_new(struct loop *l, struct httpc *http, const char *upstream,
	struct httpc_tls *tls, uint32_t every_ms)
{
	struct guard_look *k = xcalloc(1, sizeof(*k));

	k->http = http;
	k->tls = tls;
	k->url = xasprintf("%s/healthz", upstream);
	k->every_ms = every_ms;
	timer_init(&k->next, l, look, k);
	timer_set(&k->next, 0);
	return k;
}

void guard_look_free(struct guard_look *k)
{
	if (!k)
		return;
	op_scope_cancel(&k->ops);
	timer_fini(&k->next);
	free(k->url);
	free(k);
}

bool guard_look_answers(const struct guard_look *k)
{
	return k->answers;
}
