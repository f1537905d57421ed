/* SPDX-License-Identifier: MIT */
/* Approved images where a child of the operator computes, or somebody hands values in. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/images.h"

/* Computations that are under way: of one image each. */
struct computation {
	struct op op; /* first */
	char *reference, *nonce, *platforms;
	ctl_said_fn said;
	ctl_computed_fn done;
	void *arg;
	struct computation *next;
};
static struct computation *under_way;
static unsigned n_begun;

static void computation_free(struct computation *c)
{
	struct computation **pp = &under_way;

	while (*pp != c)
		pp = &(*pp)->next;
	*pp = c->next;
	free(c->reference);
	free(c->nonce);
	free(c->platforms);
	free(c);
}

static void abort_it(struct op *op)
{
	computation_free((struct computation *)op);
}

static struct op *compute(void *arg, struct op_scope *scope, const char *reference,
	const char *nonce, struct json_object *platforms, ctl_said_fn said, ctl_computed_fn done,
	void *done_arg)
{
	struct computation *c = xcalloc(1, sizeof(*c));

	n_begun++;
	c->reference = xstrdup(reference);
	c->nonce = xstrdup(nonce);
	c->platforms = json_text(platforms);
	c->said = said;
	c->done = done;
	c->arg = done_arg;
	c->next = under_way;
	under_way = c;
	op_begin(&c->op, scope, abort_it);
	return &c->op;
}

static void ends(struct computation *c, const struct err *err, const char *text)
{
	ctl_computed_fn done = c->done;
	void *arg = c->arg;

	op_finish(&c->op);
	computation_free(c);
	done(arg, err, text, strlen(text));
	world_run(&w, 5000);
}

static void fails(struct computation *c, const char *why)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_TRANSIENT, "%s", why);
	ends(c, &err, "");
}

/* What tec-compute-pcrs prints of these values. */
static char *values(const char *nonce, const char *reference, bool b)
{
	cleanup_json struct json_object *entry = entry_of(reference, b);
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	struct strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(pcr_events_from_json(json_get_arr(entry, "pcrs"), &m.events, &err), 0);
	cr_assert_eq(model_pcrmsg_write(nonce, model_image_digest(reference), &m, &text, &err), 0);
	return strbuf_steal(&text);
}

static void succeeds(struct computation *c, const char *nonce, bool b)
{
	cleanup_free char *text = values(nonce ? nonce : c->nonce, c->reference, b);
	struct err none = ERR_INIT;

	ends(c, &none, text);
}

static void up(void)
{
	images_up();
	w.image_compute = compute;
	n_begun = 0;
}

static void down(void)
{
	images_down();
	cr_assert_null(under_way, "a computation is still under way");
}

TestSuite(ctl_image_child, .init = up, .fini = down);

static void approved(void)
{
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cr_assert_eq(n_begun, 1);
	cr_assert(under_way);
}

Test(ctl_image_child, what_it_computes_is_announced_and_written)
{
	approved();
	cr_assert_str_eq(under_way->reference, REF_A);
	cr_assert_str_eq(under_way->platforms, "{}");
	cr_assert_str_eq(reason("coreos"), "Computing");
	cr_assert_not(has_job("coreos"));
	succeeds(under_way, NULL, false);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert(in_file(PCR4_A));
	world_run(&w, 3600 * 1000);
	cr_assert_eq(n_begun, 1, "nothing is computed twice");
}

Test(ctl_image_child, it_is_begun_again_by_the_next_process_and_ends_with_its_image)
{
	approved();
	world_kill(&w);
	cr_assert_null(under_way, "ended with the process");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_eq(n_begun, 2);
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	world_run(&w, 5000);
	cr_assert_null(under_way, "ended with the image");
}

Test(ctl_image_child, its_words_are_in_the_condition)
{
	approved();
	world_run(&w, 6000);
	under_way->said(under_way->arg, "layer 1 of 2, 3.0 MB");
	world_run(&w, 3000);
	cr_assert(strstr(message("coreos"), "layer 1 of 2, 3.0 MB"), "%s", message("coreos"));
	/* Not each of them: a condition is a write. */
	under_way->said(under_way->arg, "layer 2 of 2, 1.0 MB");
	world_run(&w, 1000);
	cr_assert(strstr(message("coreos"), "layer 1 of 2"), "%s", message("coreos"));
	fails(under_way, "the image has no kernel");
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "the image has no kernel"), "%s", message("coreos"));
}

Test(ctl_image_child, what_failed_is_tried_again_later_and_later)
{
	static const unsigned waits_s[] = {60, 120, 240};

	approved();
	for (size_t i = 0; i < ARRAY_LEN(waits_s); i++) {
		fails(under_way, "no luck");
		world_run(&w, (waits_s[i] - 15) * 1000);
		cr_assert_eq(n_begun, 1 + i, "not yet");
		world_run(&w, 30000);
		cr_assert_eq(n_begun, 2 + i);
	}
	succeeds(under_way, NULL, false);
	cr_assert(committed("coreos"), "%s", message("coreos"));
}

Test(ctl_image_child, a_message_with_another_nonce_is_not_taken)
{
	approved();
	succeeds(under_way, "0123456789abcdef0123456789abcdef", false);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "nonce"), "%s", message("coreos"));
	cr_assert_not(in_file(PCR4_A));
}

Test(ctl_image_child, platforms_are_read_and_others_begin_it_again)
{
	static const char spec[] =
		"{\"publicTrusteeAddr\":\"kbs-service\",\"attestation\":{\"platformConfigMaps\":[\"ovmf\"]}}";

	fake_api_put(w.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"ovmf\"},\"data\":{\"db-d719b2cb-3d3a-4596-a3bc-dad00e67656f\":\"x\"}}");
	world_cluster(&w, "tec", spec);
	approved();
	cr_assert(strstr(under_way->platforms, "\"ovmf\":{"), "%s", under_way->platforms);
	cr_assert(strstr(under_way->platforms, "db-d719b2cb"), "%s", under_way->platforms);
	fake_api_merge(w.api, &kobj_configmap, NS, "ovmf",
		"{\"data\":{\"db-d719b2cb-3d3a-4596-a3bc-dad00e67656f\":\"y\"}}");
	world_run(&w, 5000);
	cr_assert_eq(n_begun, 2);
	cr_assert(strstr(under_way->platforms, "\"y\""), "%s", under_way->platforms);
	cr_assert_null(under_way->next, "the earlier one has ended");
}

/* ---- handed in */

static int hand_in(const char *name, const char *text, struct err *err)
{
	int rc = ctl_image_hand_in(w.life->image, name, text, strlen(text), err);

	world_run(&w, 5000);
	return rc;
}

static void approve_handed_in(void)
{
	world_boot(&w, NULL);
	fake_api_put(w.api, &kobj_image, NS,
		"{\"metadata\":{\"name\":\"coreos\",\"annotations\":{\"" MODEL_IMAGE_VALUES
		"\":\"" MODEL_IMAGE_HANDED_IN "\"}},\"spec\":{\"image\":\"" REF_A "\"}}");
	world_run(&w, 5000);
}

Test(ctl_image_child, values_are_handed_in_and_such_an_image_is_never_fetched)
{
	cleanup_free char *text = values("0123456789abcdef0123456789abcdef", REF_A, false);
	struct err err = ERR_INIT;

	approve_handed_in();
	cr_assert_str_eq(reason("coreos"), "ValuesAwaited");
	cr_assert_eq(hand_in("coreos", text, &err), 0, "%s", err.text);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	/* Its hash was announced before: a stranger's values count as little as ever. */
	stranger_writes("coreos", entry_of(REF_A, true));
	world_run(&w, 5000);
	cr_assert(in_file(PCR4_A));
	cr_assert_not(in_file(PCR4_B));
	world_run(&w, 7200 * 1000);
	cr_assert_eq(n_begun + label.asked, 0);
}

Test(ctl_image_child, what_is_handed_in_ends_a_computation)
{
	cleanup_free char *text = values("0123456789abcdef0123456789abcdef", REF_A, false);
	struct err err = ERR_INIT;

	approved();
	cr_assert_eq(hand_in("coreos", text, &err), 0, "%s", err.text);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert_null(under_way);
}

Test(ctl_image_child, bad_values_are_refused)
{
	cleanup_free char *other = values("0123456789abcdef0123456789abcdef", REF_B, false);
	const struct {
		const char *name, *text;
		enum err_kind kind;
	} rows[] = {
		{"coreos", other, ERR_INVALID},
		{"coreos", "", ERR_INVALID},
		{"coreos", "tec-pcrs/3 0123456789abcdef0123456789abcdef", ERR_INVALID},
		{"coreos", "tec-pcrs/3 short " MOK_LIST " AAAA", ERR_INVALID},
		{"other", other, ERR_TRANSIENT},
	};

	approve_handed_in();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;

		cr_assert_eq(hand_in(rows[i].name, rows[i].text, &err), -1, "row %zu", i);
		cr_assert_eq(err.kind, rows[i].kind, "row %zu: %s", i, err.text);
	}
	cr_assert_str_eq(reason("coreos"), "ValuesAwaited");
}

static void decides(const char *authority)
{
	cleanup_free char *patch = xasprintf("{\"spec\":{\"authority\":\"%s\"}}", authority);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 30000);
}

/* Nothing that is computed while Frozen is written, then or later. */
Test(ctl_image_child, ends_with_the_authority_and_begins_again_with_it)
{
	approved();
	decides("Frozen");
	cr_assert_null(under_way);
	cr_assert_eq(n_begun, 1);
	decides("Self");
	cr_assert_eq(n_begun, 2);
	succeeds(under_way, NULL, false);
	cr_assert_str_eq(world_reason(&w, &kobj_image, "coreos", "Committed"), "ImageCommitted");
}
