/* SPDX-License-Identifier: MIT */
/* Objects of one owner, on an in-memory API: an owner of a kind that no controller knows. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "ctl/world.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/ctl/install.h"
#include "tec/kobj/owner.h"

Test(ctl_install_decide, every_state_of_every_kind)
{
	static const struct {
		enum ctl_install_state state;
		enum ctl_install_do applied, created, unwanted;
	} cases[] = {
		{CTL_INSTALL_ABSENT, CTL_INSTALL_APPLY, CTL_INSTALL_CREATE, CTL_INSTALL_NOTHING},
		{CTL_INSTALL_UNREAD, CTL_INSTALL_READ, CTL_INSTALL_READ, CTL_INSTALL_READ},
		{CTL_INSTALL_STALE, CTL_INSTALL_APPLY, CTL_INSTALL_APPLY, CTL_INSTALL_APPLY},
		{CTL_INSTALL_REPLACE, CTL_INSTALL_DELETE, CTL_INSTALL_DELETE, CTL_INSTALL_DELETE},
		{CTL_INSTALL_OF_OTHER, CTL_INSTALL_TAKE, CTL_INSTALL_TAKE, CTL_INSTALL_TAKE},
		{CTL_INSTALL_CURRENT, CTL_INSTALL_NOTHING, CTL_INSTALL_NOTHING,
			CTL_INSTALL_NOTHING},
		{CTL_INSTALL_CONFLICT, CTL_INSTALL_NOTHING, CTL_INSTALL_NOTHING,
			CTL_INSTALL_NOTHING},
		{CTL_INSTALL_DELETING, CTL_INSTALL_NOTHING, CTL_INSTALL_NOTHING,
			CTL_INSTALL_NOTHING},
		{CTL_INSTALL_UNREADABLE, CTL_INSTALL_NOTHING, CTL_INSTALL_NOTHING,
			CTL_INSTALL_NOTHING},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum ctl_install_state s = cases[i].state;

		cr_expect_eq(ctl_install_decide(CTL_INSTALL_APPLIED, s), cases[i].applied);
		cr_expect_eq(ctl_install_decide(CTL_INSTALL_CREATED, s), cases[i].created);
		cr_expect_eq(ctl_install_decide(CTL_INSTALL_UNWANTED, s), cases[i].unwanted);
	}
}

enum { SERVICE, CONFIG, FIRST, OLD, N };
#define INPUT 1u

static struct world w;
static struct op_scope ops;
static struct op *call;
static struct ctl_install in;
static struct kobj owner = {.name = "k", .uid = "uid-of-k", .generation = 1};
static unsigned at; /* the object that the act is about */
static enum ctl_install_do doing;
static const char *input;
static bool old_form;

static struct json_object *render(void *self, const struct kobj *of, unsigned i)
{
	static const struct kobj_gvk kind = {.group = "x", .version = "v1", .kind = "Thing"};
	struct json_object *o = json_obj(), *meta = json_obj();
	const struct ctl_install_object *t = &in.conf->objects[i];

	cr_assert_eq(self, (void *)&w);
	json_add_str(json_add_str(meta, "name", t->name), "namespace", NS);
	json_add(meta, "ownerReferences",
		json_push(json_arr(), kobj_owner_json(&kind, of->name, of->uid)));
	json_add_str(json_add_str(o, "apiVersion", "v1"), "kind", t->gvk->kind);
	json_add(meta, "labels", json_add_str(json_obj(), "app", input));
	return json_add(o, "metadata", meta);
}

static bool saw(void *self, const struct kobj *of, unsigned i, struct json_object *o)
{
	return !old_form;
}

static const struct ctl_install_object objects[N] = {
	[SERVICE] = {&kobj_service, "s", CTL_INSTALL_APPLIED, 0},
	[CONFIG] = {&kobj_configmap, "c", CTL_INSTALL_APPLIED, INPUT},
	[FIRST] = {&kobj_configmap, "f", CTL_INSTALL_CREATED, 0},
	[OLD] = {&kobj_deployment, "d", CTL_INSTALL_UNWANTED, 0},
};
static const struct kobj_gvk owner_kind = {.group = "x", .version = "v1", .kind = "Thing"};
static const struct ctl_install_conf conf = {
	.owner = &owner_kind, .objects = objects, .n = N, .render = render, .saw = saw};

static void up(void)
{
	world_start(&w);
	world_boot(&w, "");
	world_run(&w, 1000);
	ctl_install_init(&in, &w.life->env, &conf, &w, &ops);
	input = "a";
	old_form = false;
	owner.uid = "uid-of-k";
	ctl_install_follow(&in, &owner);
	fake_transport_forget(w.life->f);
}

static void down(void)
{
	op_scope_cancel(&ops);
	ctl_install_follow(&in, NULL);
	free(in.owner_uid);
	world_stop(&w);
}

TestSuite(ctl_install, .init = up, .fini = down);

static void done(void *arg, const struct err *err, const struct k8s_result *r)
{
	ctl_install_done(&in, &owner, at, doing, err, r);
}

/* Until nothing is to be done. */
static void settle(void)
{
	for (unsigned n = 0; n < 20; n++) {
		struct err err = ERR_INIT;

		for (at = 0; at < N; at++) {
			doing = ctl_install_decide(
				objects[at].kind, ctl_install_state(&in, &owner, at));
			if (doing != CTL_INSTALL_NOTHING)
				break;
		}
		if (at == N)
			return;
		op_hold(&call, ctl_install_start(&in, &owner, at, doing, done, NULL, &err));
		world_run(&w, 1000);
	}
	cr_assert_fail("it does not settle");
}

Test(ctl_install, makes_what_is_absent_and_rests)
{
	settle();
	for (at = 0; at < OLD; at++)
		cr_expect_eq(ctl_install_state(&in, &owner, at), CTL_INSTALL_CURRENT, "%u", at);
	cr_expect_eq(fake_transport_writes(w.life->f), 3);
	cr_expect_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	/* Another generation is looked at once, and nothing is written for it. */
	owner.generation++;
	cr_expect_not(ctl_install_follow(&in, &owner));
	settle();
	cr_expect_eq(fake_transport_writes(w.life->f), 3);
	cr_expect_eq(fake_transport_count(w.life->f, "get", NULL), 2);
}

Test(ctl_install, repairs_what_it_applies_and_nothing_else)
{
	settle();
	fake_api_merge(
		w.api, &kobj_configmap, NS, "c", "{\"metadata\":{\"labels\":{\"app\":\"x\"}}}");
	fake_api_merge(
		w.api, &kobj_configmap, NS, "f", "{\"metadata\":{\"labels\":{\"app\":\"x\"}}}");
	world_run(&w, 1000);
	settle();
	cr_expect_str_eq(world_str(&w, &kobj_configmap, "c", "metadata/labels/app"), "a");
	cr_expect_str_eq(world_str(&w, &kobj_configmap, "f", "metadata/labels/app"), "x");
}

Test(ctl_install, another_input_is_compared_and_written)
{
	settle();
	fake_transport_forget(w.life->f);
	input = "b";
	settle();
	cr_expect_eq(fake_transport_requests(w.life->f), 0, "nobody said so");
	ctl_install_forget(&in, INPUT);
	settle();
	cr_expect_eq(fake_transport_writes(w.life->f), 1);
	cr_expect_str_eq(world_str(&w, &kobj_configmap, "c", "metadata/labels/app"), "b");
}

/* What was sent is what was rendered before. */
Test(ctl_install, an_input_that_changes_during_a_write_is_written_too)
{
	struct err err = ERR_INIT;

	at = CONFIG;
	doing = CTL_INSTALL_APPLY;
	op_hold(&call, ctl_install_start(&in, &owner, at, doing, done, NULL, &err));
	input = "b";
	ctl_install_forget(&in, INPUT);
	world_run(&w, 1000);
	cr_expect_str_eq(world_str(&w, &kobj_configmap, "c", "metadata/labels/app"), "a");
	settle();
	cr_expect_str_eq(world_str(&w, &kobj_configmap, "c", "metadata/labels/app"), "b");
}

Test(ctl_install, somebody_elses_is_a_conflict)
{
	fake_api_put(w.api, &kobj_service, NS,
		"{\"metadata\":{\"name\":\"s\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"Y\","
		"\"name\":\"y\",\"uid\":\"other\",\"controller\":true}]}}");
	world_run(&w, 1000);
	settle();
	cr_expect_eq(ctl_install_state(&in, &owner, SERVICE), CTL_INSTALL_CONFLICT);
	cr_expect_eq(fake_transport_count(w.life->f, NULL, "services"), 0);
}

Test(ctl_install, one_of_another_form_is_replaced_if_it_is_the_owners)
{
	settle();
	ctl_install_forget(&in, INPUT);
	old_form = true;
	at = CONFIG;
	doing = CTL_INSTALL_READ;
	op_hold(&call, ctl_install_start(&in, &owner, at, doing, done, NULL, &(struct err){0}));
	world_run(&w, 1000);
	cr_expect_eq(ctl_install_state(&in, &owner, CONFIG), CTL_INSTALL_REPLACE);
	old_form = false;
	settle();
	cr_expect_eq(fake_transport_count(w.life->f, "delete", "configmaps"), 1);
	cr_expect(world_get(&w, &kobj_configmap, "c"));
}

Test(ctl_install, an_unwanted_one_goes_only_when_it_is_the_owners)
{
	fake_api_put(w.api, &kobj_deployment, NS, "{\"metadata\":{\"name\":\"d\"}}");
	world_run(&w, 1000);
	settle();
	cr_expect(world_get(&w, &kobj_deployment, "d"));
	fake_api_delete(w.api, &kobj_deployment, NS, "d");
	fake_api_put(w.api, &kobj_deployment, NS,
		"{\"metadata\":{\"name\":\"d\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"Thing\","
		"\"name\":\"k\",\"uid\":\"uid-of-k\",\"controller\":true}]}}");
	world_run(&w, 1000);
	settle();
	cr_expect_null(world_get(&w, &kobj_deployment, "d"));
}

/* The answer of an act for an owner that was replaced meanwhile. */
Test(ctl_install, an_answer_for_another_owner_says_nothing_about_this_one)
{
	struct kobj next = {.name = "k", .uid = "another", .generation = 1};
	struct err err = ERR_INIT;

	at = SERVICE;
	doing = CTL_INSTALL_APPLY;
	op_hold(&call, ctl_install_start(&in, &owner, at, doing, done, NULL, &err));
	cr_expect(ctl_install_follow(&in, &next));
	world_run(&w, 1000);
	cr_expect_eq(ctl_install_state(&in, &next, SERVICE), CTL_INSTALL_CONFLICT);
}
