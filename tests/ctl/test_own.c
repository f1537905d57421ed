/* SPDX-License-Identifier: MIT */
/* One Secret of an owner, on an in-memory API: the owner is of a kind that no controller knows. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/ctl/own.h"
#include "tec/kobj/owner.h"
#include "tec/model/mark.h"

#define NAME "thing-key"

Test(ctl_own_decide, every_state)
{
	static const struct {
		enum ctl_own_state state;
		enum ctl_own_do unwanted, wanted, announced;
	} cases[CTL_OWN_N] = {
		{CTL_OWN_ABSENT, CTL_OWN_NOTHING, CTL_OWN_ANNOUNCE, CTL_OWN_CREATE},
		{CTL_OWN_UNREAD, CTL_OWN_READ, CTL_OWN_READ, CTL_OWN_READ},
		{CTL_OWN_GOOD, CTL_OWN_NOTHING, CTL_OWN_NOTHING, CTL_OWN_NOTHING},
		{CTL_OWN_OLDER, CTL_OWN_ANNOUNCE, CTL_OWN_ANNOUNCE, CTL_OWN_ANNOUNCE},
		{CTL_OWN_PLANTED, CTL_OWN_NOTHING, CTL_OWN_NOTHING, CTL_OWN_NOTHING},
		{CTL_OWN_FOREIGN, CTL_OWN_NOTHING, CTL_OWN_NOTHING, CTL_OWN_NOTHING},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cr_expect_eq(ctl_own_decide(cases[i].state, false, false), cases[i].unwanted);
		cr_expect_eq(ctl_own_decide(cases[i].state, true, false), cases[i].wanted);
		cr_expect_eq(ctl_own_decide(cases[i].state, true, true), cases[i].announced);
	}
}

/* The owner, with the one announcement that it can have. */
struct thing {
	struct kobj obj;
	char *hashes; /* owned */
};
static struct thing thing = {.obj = {.name = "k", .uid = "uid-of-k"}};
static const struct kobj_gvk thing_kind = {.group = "x", .version = "v1", .kind = "Thing"};

static struct world w;
static struct op_scope ops;
static struct op *call;
static struct ctl_own own;
static enum ctl_own_do doing;
static unsigned n_made;

static const char *announced(const struct kobj *owner, const char *secret)
{
	return str_eq(secret, NAME) ? ((const struct thing *)owner)->hashes : NULL;
}

/* content: in base64. */
static char *text_of(const char *owner_uid, const char *content)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *meta = json_obj();

	json_add_str(json_add_str(meta, "name", NAME), "namespace", NS);
	json_add(meta, "ownerReferences",
		json_push(json_arr(), kobj_owner_json(&thing_kind, "k", owner_uid)));
	json_add_str(json_add_str(o, "apiVersion", "v1"), "kind", "Secret");
	json_add_str(json_add(o, "metadata", meta), "type", "Opaque");
	json_add(o, "data", json_add_str(json_obj(), "key", content));
	return xstrdup(json_object_to_json_string(o));
}

static struct secret *make(void *self, const struct kobj *owner, const char *name, struct err *err)
{
	static const char *const contents[] = {"QQ==", "Qg==", "Qw=="};
	cleanup_free char *text = text_of(owner->uid, contents[n_made % ARRAY_LEN(contents)]);

	cr_assert_eq(self, (void *)&w);
	n_made++;
	return secret_new_copy(text, strlen(text));
}

static const struct ctl_own_conf conf = {announced, make, {"key"}};

static void up(void)
{
	world_start(&w);
	world_boot(&w, "");
	world_run(&w, 1000);
	n_made = 0;
	thing.hashes = NULL;
	thing.obj.created_s = clock_wall_s() + 3600;
	ctl_own_init(&own, &w.life->env, &conf, &w, NAME);
	fake_transport_forget(w.life->f);
}

static void down(void)
{
	op_scope_cancel(&ops);
	ctl_own_reset(&own);
	free(steal_ptr(&thing.hashes));
	world_stop(&w);
}

TestSuite(ctl_own, .init = up, .fini = down);

static void done(void *arg, const struct err *err, const struct k8s_result *r)
{
	own.must_read = r->already_exists;
	if (!err_is_set(err) && doing != CTL_OWN_DELETE)
		ctl_own_saw(&own, &thing.obj, r->object);
}

static void announce(void)
{
	cleanup_json struct json_object *annotations = json_obj();
	struct err err = ERR_INIT;
	const char *mark;

	cr_assert_eq(ctl_own_announce(&own, &thing.obj, annotations, &err), 0, "%s", err.text);
	mark = json_object_get_string(
		json_object_object_get(annotations, MODEL_ANNOUNCED_PREFIX NAME));
	cr_assert_not_null(mark);
	cr_assert(str_starts(mark, "uid-of-k "), "%s", mark);
	free(thing.hashes);
	thing.hashes = xstrdup(mark + strlen("uid-of-k "));
}

/* Until nothing is to be done. */
static enum ctl_own_state settle(void)
{
	for (unsigned n = 0; n < 20; n++) {
		doing = ctl_own_decide(ctl_own_state(&own, &thing.obj), true,
			ctl_own_text_announced(&own, &thing.obj));
		if (doing == CTL_OWN_NOTHING)
			return ctl_own_state(&own, &thing.obj);
		if (doing == CTL_OWN_ANNOUNCE)
			announce();
		else
			op_hold(&call, ctl_own_start(&own, &ops, doing, done, NULL));
		world_run(&w, 100);
	}
	cr_assert(false, "it does not settle");
	return CTL_OWN_N;
}

/* Another client's, or an earlier life's. */
static void plant(const char *owner_uid, const char *content)
{
	cleanup_free char *text = text_of(owner_uid, content);

	fake_api_put(w.api, &kobj_secret, NS, text);
	world_run(&w, 100);
}

static const char *content(void)
{
	return json_get_str(world_get(&w, &kobj_secret, NAME), "data/key");
}

Test(ctl_own, it_is_announced_then_made_and_then_nothing_is_sent)
{
	cr_expect_eq(settle(), CTL_OWN_GOOD);
	cr_expect_eq(n_made, 1);
	cr_expect_str_eq(content(), "QQ==");
	cr_expect_null(own.text, "it is not kept in memory");
	fake_transport_forget(w.life->f);
	cr_expect_eq(settle(), CTL_OWN_GOOD);
	cr_expect_eq(fake_transport_requests(w.life->f), 0);
}

Test(ctl_own, one_that_another_client_made_is_neither_used_nor_changed)
{
	plant("uid-of-k", "eHh4");
	cr_expect_eq(settle(), CTL_OWN_PLANTED);
	plant("uid-of-another", "eHh4");
	cr_expect_eq(settle(), CTL_OWN_FOREIGN);
	cr_expect_str_eq(content(), "eHh4");
	cr_expect_eq(n_made, 0);
	cr_expect_null(thing.hashes);
}

Test(ctl_own, one_that_is_older_than_the_operator_is_announced_once)
{
	plant("uid-of-k", "eHh4");
	thing.obj.created_s = 0;
	w.life->caches.marker_s = clock_wall_s() + 7200;
	cr_expect_eq(settle(), CTL_OWN_GOOD);
	cr_expect_eq(n_made, 0);
	cr_expect_str_eq(content(), "eHh4");
	plant("uid-of-k", "eXl5");
	w.life->caches.marker_s = 0;
	cr_expect_eq(settle(), CTL_OWN_PLANTED, "it was changed after that");
}

/* The first life was killed after its announcement; its create may still arrive. */
Test(ctl_own, a_later_life_announces_its_own_beside)
{
	announce();
	ctl_own_reset(&own);
	cr_expect_eq(settle(), CTL_OWN_GOOD);
	cr_expect_eq(n_made, 2);
	cr_expect_eq(strlen(thing.hashes), 2 * SHA256_HEX_LEN + 1, "%s", thing.hashes);
	plant("uid-of-k", "QQ==");
	cr_expect_eq(settle(), CTL_OWN_GOOD, "what the first one announced");
}

Test(ctl_own, the_content_of_one_that_was_deleted_is_not_announced_any_more)
{
	cr_expect_eq(settle(), CTL_OWN_GOOD);
	doing = CTL_OWN_DELETE;
	op_hold(&call, ctl_own_start(&own, &ops, doing, done, NULL));
	world_run(&w, 100);
	cr_expect_eq(ctl_own_state(&own, &thing.obj), CTL_OWN_ABSENT);
	cr_expect_eq(settle(), CTL_OWN_GOOD);
	cr_expect_str_eq(content(), "Qg==");
	cr_expect_eq(strlen(thing.hashes), SHA256_HEX_LEN);
}
