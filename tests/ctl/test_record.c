/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/keys.h"
#include "ctl/nodes.h"
#include "tec/base/clock.h"
#include "tec/ctl/record.h"
#include "tec/render/regkey.h"

#define DAY_S 86400
#define MAP   MODEL_RECORD_REVOKED "0"

static struct ctl_runner *waker;
static size_t n_woken;

static struct queue_next step(void *self, const struct kobj_key *key)
{
	n_woken++;
	return (struct queue_next){.verdict = QUEUE_SETTLED};
}

static void boot(const char *controllers)
{
	world_boot(&w, controllers);
	waker = ctl_runner_new(w.loop, &(struct queue_conf){.name = "test"}, NS, step, NULL);
	ctl_runner_on(waker);
	n_woken = 0;
}

static void end(void)
{
	ctl_record_off(w.life->record);
	ctl_runner_free(waker);
	world_kill(&w);
}

static void down(void)
{
	end();
	nodes_down();
}

TestSuite(ctl_record, .init = nodes_up, .fini = down);

static void add(enum model_record_kind kind, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ak.%u", i);
		ctl_record_add(w.life->record, kind, name, clock_wall_s(), waker, name);
	}
}

static enum ctl_recorded state_of(unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "ak.%u", i);
	return ctl_record_state(w.life->record, MODEL_RECORD_VALUE, name, 0);
}

static void put_map(const char *name, const char *text)
{
	cleanup_json struct json_object *data = json_add_str(json_obj(), MODEL_RECORD_FILE, text);
	cleanup_free char *json = json_text(data);
	cleanup_free char *o =
		xasprintf("{\"metadata\":{\"name\":\"%s\"},\"data\":%s}", name, json);

	fake_api_put(w.api, &kobj_configmap, NS, o);
	if (w.life)
		loop_drain(w.loop);
}

static const char *map_text(const char *name)
{
	const char *text = world_str(&w, &kobj_configmap, name, "data/" MODEL_RECORD_FILE);

	return text ? text : "";
}

static size_t writes(void)
{
	return fake_transport_count(w.life->f, "create", "configmaps") +
	       fake_transport_count(w.life->f, "patch", "configmaps");
}

Test(ctl_record, what_waits_goes_into_few_writes_and_wakes_each_once)
{
	boot("");
	add(MODEL_RECORD_VALUE, 0, 2000);
	add(MODEL_RECORD_VALUE, 0, 2000); /* again, by the same */
	cr_assert_eq(state_of(0), CTL_RECORD_WAITS);
	cr_assert_eq(state_of(2000), CTL_RECORD_MISSING);
	world_run(&w, 3000);
	cr_assert_eq(writes(), 8);
	cr_assert_eq(n_woken, 2000);
	for (unsigned i = 0; i < 2000; i++)
		cr_assert_eq(state_of(i), CTL_RECORDED);
	cr_assert_null(world_str(&w, &kobj_configmap, MAP, "metadata/ownerReferences"));
	/* settled */
	fake_transport_forget(w.life->f);
	world_run(&w, 3 * 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	/* and a new life reads what was written */
	end();
	boot("");
	cr_assert_eq(state_of(1999), CTL_RECORDED);
	cr_assert_eq(writes(), 0);
}

Test(ctl_record, what_is_too_old_makes_place_and_nothing_else_is_lost)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (unsigned i = 0; i < MODEL_RECORD_ENTRIES; i++)
		strbuf_addf(&text, "%lld value ak.old%u\n",
			(long long)clock_wall_s() - (i < 10 ? 31 : 29) * DAY_S, i);
	put_map(MAP, strbuf_str(&text));
	boot("");
	add(MODEL_RECORD_VALUE, 0, 12);
	world_run(&w, 3000);
	cr_assert(strstr(map_text(MAP), " ak.9\n") && !strstr(map_text(MAP), " ak.10\n"));
	cr_assert(!strstr(map_text(MAP), " ak.old9\n") && strstr(map_text(MAP), " ak.old10\n"));
	cr_assert(strstr(map_text(MODEL_RECORD_REVOKED "1"), " ak.10\n"));
	cr_assert_eq(writes(), 2);
}

/* It was edited while the write was under way. */
Test(ctl_record, a_conflict_loses_nothing)
{
	put_map(MAP, "1800000000 value ak.a\n");
	boot("");
	fake_api_hold_watches(w.api, true);
	put_map(MAP, "1800000000 value ak.a\n1800000000 value ak.b\n");
	add(MODEL_RECORD_VALUE, 0, 1);
	world_run(&w, 1000);
	cr_assert_eq(state_of(0), CTL_RECORD_WAITS);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 30000);
	cr_assert_eq(state_of(0), CTL_RECORDED);
	cr_assert(strstr(map_text(MAP), "ak.a\n") && strstr(map_text(MAP), "ak.b\n"));
}

Test(ctl_record, when_all_are_full_the_oldest_go_and_that_is_told)
{
	for (unsigned map = 0; map < MODEL_RECORD_MAPS; map++) {
		cleanup_strbuf struct strbuf text = STRBUF_INIT;
		char name[sizeof(MODEL_RECORD_REVOKED) + 10];

		for (unsigned i = 0; i < MODEL_RECORD_ENTRIES; i++)
			strbuf_addf(&text, "%lld value ak.%u.%u\n",
				(long long)clock_wall_s() - (map == 7 ? 9 : 1) * DAY_S, map, i);
		model_record_name(map, name);
		put_map(name, strbuf_str(&text));
	}
	world_cluster(&w, "tec", "{" ADDRESS "}");
	boot("");
	cr_assert_eq(caches_record_dropped_s(&w.life->caches), 0);
	add(MODEL_RECORD_VALUE, 0, 300);
	world_run(&w, 3000);
	cr_assert_eq(state_of(254), CTL_RECORDED);
	cr_assert(strstr(map_text(MODEL_RECORD_REVOKED "7"), " dropped -\n"));
	cr_assert(!strstr(map_text(MODEL_RECORD_REVOKED "7"), "ak.7."));
	cr_assert_gt(caches_record_dropped_s(&w.life->caches), 0);
	cr_assert_geq(world_events(&w, "RevocationsForgotten"), (size_t)1);
	cr_assert_eq(fake_api_count(w.api, &kobj_configmap, NS), MODEL_RECORD_MAPS + 1);
}

Test(ctl_record, a_write_that_is_refused_is_told_and_tried_again)
{
	struct fake_expect *e;

	boot("");
	e = fake_transport_expect(w.life->f, "POST", "/api/v1/namespaces/" NS "/configmaps*");
	fake_expect_answer(e, 403,
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"message\":\"exceeded quota\",\"code\":403}");
	add(MODEL_RECORD_VALUE, 0, 1);
	world_run(&w, 600);
	cr_assert_eq(state_of(0), CTL_RECORD_FAILS);
	cr_assert(strstr(ctl_record_problem(w.life->record), "exceeded quota"));
	cr_assert_eq(n_woken, 1);
	world_run(&w, 60000);
	cr_assert_eq(state_of(0), CTL_RECORDED);
	cr_assert_str_empty(ctl_record_problem(w.life->record));
}

/* ---- ids */

/* Of the form that a listener hands out, in the epoch of a day. */
static const char *ticket(unsigned i, int64_t at_s)
{
	static char out[40];
	unsigned epoch = (unsigned)(at_s / DAY_S % 1024);
	uint8_t raw[16] = {0};

	memcpy(raw, &i, sizeof(i));
	raw[6] = (uint8_t)(0x80 | epoch >> 6);
	raw[7] = (uint8_t)(epoch << 2);
	raw[8] = 0x80;
	uuid_from_bytes(raw, out);
	return out;
}

#define AT_KEY "{" ADDRESS ",\"registration\":{\"machine\":\"AtKey\"}}"

static void fill_ids(int64_t at_s)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (unsigned i = 0; i < MODEL_RECORD_IDS_MAX; i++)
		model_record_add(&text, MODEL_RECORD_ID, ticket(i, clock_wall_s()), at_s);
	put_map(MODEL_RECORD_IDS, strbuf_str(&text));
}

static enum ctl_recorded id_state(const char *id)
{
	return ctl_record_state(w.life->record, MODEL_RECORD_ID, id, 1);
}

Test(ctl_record, ids_are_kept_while_they_may_be_valid)
{
	char id[40];

	world_cluster(&w, "tec", AT_KEY);
	boot("");
	cr_assert(!ctl_record_id_counts(w.life->record, ID_A));
	cr_assert(!ctl_record_id_counts(w.life->record, ticket(1, clock_wall_s() - 3 * DAY_S)));
	snprintf(id, sizeof(id), "%s", ticket(1, clock_wall_s()));
	cr_assert(ctl_record_id_counts(w.life->record, id));
	ctl_record_add(w.life->record, MODEL_RECORD_ID, id, clock_wall_s(), waker, "a");
	world_run(&w, 1000);
	cr_assert_eq(id_state(id), CTL_RECORDED);
	cr_assert(strstr(map_text(MODEL_RECORD_IDS), id));
	clock_fake_advance(3 * DAY_S * UINT64_C(1000));
	ctl_record_add(w.life->record, MODEL_RECORD_ID, ticket(2, clock_wall_s()), clock_wall_s(),
		waker, "b");
	world_run(&w, 1000);
	cr_assert(!strstr(map_text(MODEL_RECORD_IDS), id), "it has ended");
}

Test(ctl_record, without_a_place_an_id_waits_until_all_ids_have_ended)
{
	char id[40];

	world_cluster(&w, "tec", AT_KEY);
	fill_ids(clock_wall_s());
	boot("");
	cr_assert(ctl_record_ids_full(w.life->record));
	snprintf(id, sizeof(id), "%s", ticket(MODEL_RECORD_IDS_MAX, clock_wall_s()));
	ctl_record_add(w.life->record, MODEL_RECORD_ID, id, clock_wall_s(), waker, "a");
	add(MODEL_RECORD_VALUE, 0, 1);
	world_run(&w, 30000);
	cr_assert_eq(id_state(id), CTL_RECORD_WAITS);
	cr_assert_eq(state_of(0), CTL_RECORDED, "revocations have their own place");
	ctl_record_end_ids(w.life->record, clock_wall_s());
	cr_assert(!ctl_record_ids_full(w.life->record));
	world_run(&w, 30000); /* a listener may not know it yet */
	cr_assert_eq(id_state(id), CTL_RECORD_WAITS);
	world_run(&w, 50000);
	cr_assert_eq(id_state(id), CTL_RECORDED);
	cr_assert_lt(strlen(map_text(MODEL_RECORD_IDS)), (size_t)100);
}

Test(ctl_record, a_book_that_is_refused_fails_until_it_is_written_itself)
{
	struct fake_expect *e;
	char id[40];

	world_cluster(&w, "tec", AT_KEY);
	put_map(MAP, "");
	boot("");
	e = fake_transport_expect(
		w.life->f, "PATCH", "/api/v1/namespaces/" NS "/configmaps/" MAP "*");
	fake_expect_answer(e, 403,
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"message\":\"exceeded quota\",\"code\":403}");
	fake_expect_times(e, 0);
	add(MODEL_RECORD_VALUE, 0, 1);
	world_run(&w, 1000);
	cr_assert_eq(state_of(0), CTL_RECORD_FAILS);
	snprintf(id, sizeof(id), "%s", ticket(1, clock_wall_s()));
	ctl_record_add(w.life->record, MODEL_RECORD_ID, id, clock_wall_s(), waker, "a");
	for (int i = 0; i < 400; i++) {
		cr_assert_neq(id_state(id), CTL_RECORD_FAILS);
		cr_assert_eq(state_of(0), CTL_RECORD_FAILS, "%d", i);
		world_run(&w, 50);
	}
	cr_assert_eq(id_state(id), CTL_RECORDED);
	cr_assert(strstr(ctl_record_problem(w.life->record), "exceeded quota"));
}

/* Both registration keys go, and one is made: once. */
Test(ctl_record, a_full_record_ends_what_was_handed_out)
{
	const char *first, *second;

	world_cluster(&w, "tec", AT_KEY);
	boot(NULL);
	world_run(&w, 10000);
	first = xstrdup(world_str(&w, &kobj_secret, RENDER_REGKEY_CURRENT, "metadata/uid"));
	fill_ids(clock_wall_s());
	world_run(&w, 10000);
	second = xstrdup(world_str(&w, &kobj_secret, RENDER_REGKEY_CURRENT, "metadata/uid"));
	cr_assert_str_neq(first, second);
	cr_assert_null(world_get(&w, &kobj_secret, RENDER_REGKEY_PREVIOUS));
	cr_assert_eq(world_events(&w, "RegistrationKeysReplaced"), 1);
	cr_expect_eq(world_events(&w, "Both registration keys"), 0, "there was one");
	world_run(&w, 3600 * 1000);
	cr_assert_str_eq(
		world_str(&w, &kobj_secret, RENDER_REGKEY_CURRENT, "metadata/uid"), second);
	free((char *)first);
	free((char *)second);
}

/* ---- the whole way */

static const char *ready(void)
{
	return world_reason(&w, &kobj_machine, "a", "Ready");
}

Test(ctl_record, a_deleted_machine_goes_when_it_is_recorded)
{
	char path[RATS_RESOURCE_PATH_MAX], name[300];

	world_cluster(&w, "tec", "{" ADDRESS "}");
	boot(NULL);
	world_run(&w, 5000);
	join(15000);
	cr_assert_str_eq(ready(), "AllReady");
	rats_resource_path(ID_A, path);
	identity_of(test_pem[0], name);
	fake_transport_forget(w.life->f);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	fake_api_collect(w.api);
	for (int i = 0; i < 100 && !strstr(map_text(MAP), path); i++) {
		cr_assert(world_get(&w, &kobj_machine, "a"), "gone before it is recorded");
		world_run(&w, 50);
		fake_api_collect(w.api);
	}
	world_run(&w, 5000);
	fake_api_collect(w.api);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_null(world_get(&w, &kobj_secret, "key"));
	cr_assert(strstr(map_text(MAP), path) && strstr(map_text(MAP), name));
	cr_assert_null(
		world_get(&w, &kobj_configmap, MODEL_RECORD_IDS), "not an id that was handed out");
	cr_assert_leq(writes(), (size_t)2);

	/* Trustee is set back, and a new operator fills it. */
	end();
	fake_kbs_put_resource(kbs, path, "{\"key\":\"old\"}");
	fake_kbs_put_value(kbs, name, "{\"ak\":\"x\",\"machine\":\"" ID_A "\"}");
	fake_kbs_put_value(kbs, "0.operator.generation", "{\"cluster\":\"x\",\"sum\":\"00\"}");
	boot(NULL);
	world_run(&w, 15000);
	cr_assert_null(fake_kbs_resource(kbs, path));
	cr_assert_str_eq(fake_kbs_value(kbs, name), "null");
	cr_assert_str_eq(synced(), "Synced");
}
