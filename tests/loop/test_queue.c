/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/loop/queue.h"
#include "tec/loop/timer.h"

static struct loop *loop;
static struct queue *queue;
static struct strbuf trace;
static struct queue_next next; /* what work answers */
static unsigned n_work;
static void (*inside)(const char *key); /* runs within work */
static uint64_t worked_at;

static void no_log(enum log_level level, const char *line, void *arg)
{
}

static void setup(void)
{
	alarm(60); /* ends a test that hangs; Criterion's .timeout leaks in its runner */
	clock_fake_start(1000000, 0);
	loop = loop_new();
	log_capture(no_log, NULL);
}

static void teardown(void)
{
	queue_free(queue);
	loop_free(loop);
	strbuf_fini(&trace);
	metric_reset_all();
	log_capture(NULL, NULL);
	clock_fake_stop();
}

/* Keys that are due, as the gauge shows them. */
static unsigned depth(void)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const char *at;

	metric_render(&text);
	at = strstr(strbuf_str(&text), "tec_queue_depth{queue=\"test\"} ");
	cr_assert_not_null(at);
	return (unsigned)strtoul(strchr(at, ' ') + 1, NULL, 10);
}

TestSuite(loop_queue, .init = setup, .fini = teardown);

static struct queue_next work(void *arg, const char *key)
{
	cr_assert_eq(arg, &trace);
	n_work++;
	worked_at = clock_boot_ms();
	if (trace.len < 10000)
		strbuf_addf(&trace, "%s,", key);
	if (inside)
		inside(key);
	return next;
}

static void make(unsigned burst)
{
	struct queue_conf conf = {.name = "test", .burst = burst};

	queue = queue_new(loop, &conf, work, &trace);
}

static const char *traced(void)
{
	static char text[10240];

	snprintf(text, sizeof(text), "%s", strbuf_str(&trace));
	strbuf_reset(&trace);
	return text;
}

Test(loop_queue, keys_are_worked_once_in_order_from_the_loop)
{
	char key[8] = "a";

	make(0);
	queue_add(queue, key);
	key[0] = 'b'; /* keys are copied */
	queue_add(queue, key);
	queue_add(queue, "a");
	cr_assert_eq(depth(), 2);
	cr_assert_eq(n_work, 0);
	loop_drain(loop);
	cr_assert_str_eq(traced(), "a,b,");
	cr_assert_eq(depth(), 0);
	loop_advance(loop, 100000000);
	cr_assert_eq(n_work, 2);
}

Test(loop_queue, the_earlier_deadline_wins)
{
	make(0);
	queue_add_after(queue, "a", 500);
	queue_add_after(queue, "a", 900);
	loop_advance(loop, 499);
	cr_assert_eq(n_work, 0);
	loop_advance(loop, 1);
	cr_assert_eq(n_work, 1);
	loop_advance(loop, 10000);
	cr_assert_eq(n_work, 1);
	queue_add_after(queue, "a", 900);
	queue_add_after(queue, "a", 500);
	loop_advance(loop, 500);
	cr_assert_eq(n_work, 2);
	queue_add_after(queue, "a", 900);
	queue_add(queue, "a");
	queue_add_after(queue, "a", 900);
	loop_drain(loop);
	cr_assert_eq(n_work, 3);
	loop_advance(loop, 10000);
	cr_assert_eq(n_work, 3);
}

static void add_self_once(const char *key)
{
	inside = NULL;
	queue_add(queue, key);
	cr_assert_eq(depth(), 1);
}

Test(loop_queue, a_key_added_while_worked_on_runs_again)
{
	make(0);
	inside = add_self_once;
	queue_add(queue, "a");
	loop_drain(loop);
	cr_assert_str_eq(traced(), "a,a,");
	/* Also when the answer was to wait: the earlier deadline wins. */
	next = (struct queue_next){QUEUE_RETRY, 5000, "waiting"};
	inside = add_self_once;
	queue_add(queue, "a");
	loop_drain(loop);
	cr_assert_str_eq(traced(), "a,a,");
	next = (struct queue_next){QUEUE_SETTLED, 0, NULL};
	loop_advance(loop, 5000);
	cr_assert_str_eq(traced(), "a,");
}

Test(loop_queue, retry_after_a_given_time)
{
	make(0);
	next = (struct queue_next){QUEUE_RETRY, 300, "probe"};
	queue_add(queue, "a");
	loop_advance(loop, 299);
	cr_assert_eq(n_work, 1);
	loop_advance(loop, 1);
	cr_assert_eq(n_work, 2);
	loop_advance(loop, 3000);
	cr_assert_eq(n_work, 12);
}

Test(loop_queue, backoff_doubles_with_jitter_between_its_bounds)
{
	static const unsigned base[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000};
	bool spread = false;

	make(0);
	next = (struct queue_next){QUEUE_RETRY, 0, "unreachable"};
	queue_add(queue, "a");
	queue_add(queue, "b");
	loop_drain(loop);
	queue_forget(queue, "b");
	for (size_t i = 0; i < ARRAY_LEN(base); i++) {
		uint64_t start = worked_at, wait;
		unsigned n = n_work;

		while (n_work == n)
			loop_advance(loop, 1);
		wait = worked_at - start;
		cr_assert_geq(wait, 800);
		cr_assert_geq(wait, base[i] * 4 / 5);
		cr_assert_leq(wait, base[i] * 5 / 4);
		cr_assert_leq(wait, 30000);
		spread |= wait != base[i];
	}
	cr_assert(spread);
}

Test(loop_queue, a_backoff_can_be_forgotten)
{
	uint64_t start;

	make(0);
	next = (struct queue_next){QUEUE_RETRY, 0, "x"};
	queue_add(queue, "a");
	loop_advance(loop, 60000); /* deep in the backoff by now */
	queue_forget_backoff(queue, "a");
	queue_forget_backoff(queue, "unknown");
	queue_add(queue, "a");
	loop_drain(loop);
	start = worked_at;
	n_work = 0;
	while (!n_work)
		loop_advance(loop, 1);
	cr_assert_leq(worked_at - start, 1000);
}

Test(loop_queue, settling_forgets_the_backoff_and_in_flight_keeps_it)
{
	uint64_t start;

	make(0);
	next = (struct queue_next){QUEUE_RETRY, 0, "x"};
	queue_add(queue, "a");
	loop_advance(loop, 60000); /* deep in the backoff by now */
	next = (struct queue_next){QUEUE_IN_FLIGHT, 0, "act"};
	queue_add(queue, "a");
	loop_drain(loop);
	n_work = 0;
	loop_advance(loop, 1000000);
	cr_assert_eq(n_work, 0); /* in flight: nothing on its own */
	next = (struct queue_next){QUEUE_RETRY, 0, "x"};
	queue_add(queue, "a");
	loop_drain(loop);
	start = worked_at;
	loop_advance(loop, 23000);
	cr_assert_eq(worked_at, start); /* still the long wait */
	next = (struct queue_next){QUEUE_SETTLED, 0, NULL};
	loop_advance(loop, 7000);
	cr_assert_neq(worked_at, start);
	next = (struct queue_next){QUEUE_RETRY, 0, "x"};
	queue_add(queue, "a");
	loop_drain(loop);
	start = worked_at;
	loop_advance(loop, 1000);
	cr_assert_neq(worked_at, start); /* the short one again */
}

Test(loop_queue, settled_keys_are_looked_at_again_with_jitter)
{
	char key[16];
	uint64_t seen[50];
	unsigned same = 0;

	next = (struct queue_next){.verdict = QUEUE_SETTLED, .after_ms = 3600000};
	make(0);
	for (unsigned i = 0; i < 50; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		queue_add(queue, key);
	}
	loop_drain(loop);
	cr_assert_eq(n_work, 50);
	loop_advance(loop, 3600000 * 9 / 10 - 1);
	cr_assert_eq(n_work, 50);
	for (unsigned i = 0; i < 50; i++) {
		while (n_work < 51 + i)
			loop_advance(loop, 1000);
		seen[i] = worked_at;
		same += i > 0 && seen[i] / 1000 == seen[i - 1] / 1000;
	}
	cr_assert_leq(worked_at, 1000000 + 3600000 * 11 / 10);
	cr_assert_lt(same, 25);
}

Test(loop_queue, settled_keys_without_a_time_are_forgotten)
{
	make(0);
	queue_add(queue, "a");
	loop_advance(loop, 100000000);
	cr_assert_eq(n_work, 1);
}

static void forget_self(const char *key)
{
	queue_forget(queue, key);
}

Test(loop_queue, a_forgotten_key_has_no_deadline_and_no_backoff)
{
	next = (struct queue_next){.verdict = QUEUE_SETTLED, .after_ms = 3600000};
	make(0);
	queue_add(queue, "due");
	queue_add_after(queue, "later", 10);
	queue_forget(queue, "due");
	queue_forget(queue, "later");
	queue_forget(queue, "never seen");
	loop_advance(loop, 10000000);
	cr_assert_eq(n_work, 0);
	inside = forget_self; /* from its own work */
	queue_add(queue, "a");
	loop_advance(loop, 10000000);
	cr_assert_eq(n_work, 1);
	inside = NULL;
	queue_add(queue, "a"); /* a new object of that name has its deadline again */
	loop_advance(loop, 4000000);
	cr_assert_eq(n_work, 3);
}

Test(loop_queue, a_key_forgotten_by_its_work_is_not_retried)
{
	static const uint32_t after_ms[] = {0, 300};

	make(0);
	inside = forget_self;
	for (size_t i = 0; i < ARRAY_LEN(after_ms); i++) {
		next = (struct queue_next){QUEUE_RETRY, after_ms[i], "unreachable"};
		queue_add(queue, "a");
		loop_advance(loop, 10000000);
		cr_assert_eq(n_work, i + 1);
	}
	inside = NULL;
	next = (struct queue_next){QUEUE_RETRY, 300, "unreachable"};
	queue_add(queue, "a"); /* a new object of that name is retried */
	loop_advance(loop, 300);
	cr_assert_eq(n_work, 4);
}

static void forget_other(const char *key)
{
	queue_forget(queue, str_eq(key, "a") ? "b" : "a");
}

Test(loop_queue, work_may_forget_a_due_sibling)
{
	make(0);
	inside = forget_other;
	queue_add(queue, "a");
	queue_add(queue, "b");
	queue_add(queue, "c");
	loop_drain(loop);
	cr_assert_str_eq(traced(), "a,c,");
}

Test(loop_queue, a_turn_works_at_most_its_burst)
{
	char key[16];

	make(10);
	for (unsigned i = 0; i < 25; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		queue_add(queue, key);
	}
	loop_turn(loop, 0);
	cr_assert_eq(n_work, 10);
	cr_assert_eq(depth(), 15);
	loop_turn(loop, 0);
	cr_assert_eq(n_work, 20);
	loop_turn(loop, 0);
	cr_assert_eq(n_work, 25);
}

Test(loop_queue, a_key_that_adds_itself_does_not_hold_the_turn)
{
	make(1);
	inside = NULL;
	queue_add(queue, "a");
	queue_add(queue, "b");
	inside = add_self_once; /* asserts a depth of 1, so let b go first */
	queue_forget(queue, "b");
	loop_turn(loop, 0);
	cr_assert_eq(n_work, 1);
	loop_turn(loop, 0);
	cr_assert_eq(n_work, 2);
}

Test(loop_queue, a_paused_queue_keeps_its_keys)
{
	make(0);
	queue_add_after(queue, "timed", 10);
	queue_pause(queue);
	loop_advance(loop, 100);
	queue_add(queue, "added");
	loop_advance(loop, 100);
	cr_assert_eq(n_work, 0);
	cr_assert_eq(depth(), 2);
	queue_resume(queue);
	loop_drain(loop);
	cr_assert_eq(n_work, 2);
}

static void pause_inside(const char *key)
{
	queue_pause(queue);
}

Test(loop_queue, work_may_pause_the_queue)
{
	make(0);
	inside = pause_inside;
	queue_add(queue, "a");
	queue_add(queue, "b");
	loop_drain(loop);
	cr_assert_eq(n_work, 1);
	inside = NULL;
	queue_resume(queue);
	loop_drain(loop);
	cr_assert_eq(n_work, 2);
}

Test(loop_queue, metrics_count_depth_and_reasons)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	make(0);
	next = (struct queue_next){QUEUE_RETRY, 100, "no-quota"};
	queue_add(queue, "a");
	queue_add(queue, "b");
	metric_render(&text);
	cr_assert_not_null(strstr(strbuf_str(&text), "tec_queue_depth{queue=\"test\"} 2\n"));
	loop_drain(loop);
	strbuf_reset(&text);
	metric_render(&text);
	cr_assert_not_null(strstr(strbuf_str(&text), "tec_queue_depth{queue=\"test\"} 0\n"));
	cr_assert_not_null(strstr(strbuf_str(&text),
		"tec_queue_retries_total{queue=\"test\",reason=\"no-quota\"} 2\n"));
}

Test(loop_queue, free_drops_pending_keys_and_takes_null)
{
	make(0);
	queue_add(queue, "a");
	queue_add_after(queue, "b", 100);
	queue_free(queue);
	queue = NULL;
	queue_free(NULL);
	loop_advance(loop, 1000);
	cr_assert_eq(n_work, 0);
}

static void free_inside(const char *key)
{
	queue_free(queue);
}

static unsigned n_records;

static void record_fini(void *record)
{
	n_records -= *(unsigned *)record;
}

static void drop_own(const char *key)
{
	queue_record_drop(queue, key);
}

Test(loop_queue, a_record_stays_with_its_key_until_it_is_dropped)
{
	const struct queue_conf conf = {
		.name = "test", .record_size = sizeof(unsigned), .record_fini = record_fini};
	static const char *const keys[] = {"a", "b", "c"};
	const char *own;

	queue = queue_new(loop, &conf, work, &trace);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		unsigned *record = queue_record(queue, keys[i], &own);

		cr_assert_eq(*record, 0);
		cr_assert_str_eq(own, keys[i]);
		*record = 1;
		n_records++;
	}
	queue_add(queue, "a");
	loop_drain(loop); /* settled, without a deadline */
	queue_forget(queue, "a");
	cr_assert_eq(*(unsigned *)queue_record_find(queue, "a"), 1);
	inside = drop_own;
	queue_add(queue, "a");
	loop_drain(loop);
	cr_assert_null(queue_record_find(queue, "a"));
	cr_assert_eq(n_records, 2);
	queue_record_drop(queue, "unknown");
	queue_add_after(queue, "b", 1000);
	queue_records_drop(queue);
	cr_assert_eq(n_records, 0);
	inside = NULL;
	loop_advance(loop, 1000);
	cr_assert_eq(n_work, 3, "a key does not go with its record");
	*(unsigned *)queue_record(queue, "d", &own) = 1;
	n_records++;
	queue_free(steal_ptr(&queue));
	cr_assert_eq(n_records, 0);
}

Test(loop_queue, a_key_with_a_record_is_worked_before_those_without)
{
	const struct queue_conf conf = {.name = "test", .record_size = 1};
	const char *own;

	queue = queue_new(loop, &conf, work, &trace);
	for (const char *const *k = (const char *const[]){"a", "b", "c", "d", NULL}; *k; k++) {
		if (**k >= 'c')
			(void)queue_record(queue, *k, &own);
		queue_add(queue, *k);
	}
	queue_record_drop(queue, "d"); /* it keeps its place */
	cr_assert_eq(depth(), 4);
	loop_drain(loop);
	cr_assert_str_eq(traced(), "c,d,a,b,");
	queue_add(queue, "d");
	queue_add(queue, "c");
	queue_add(queue, "e");
	queue_forget(queue, "c");
	loop_drain(loop);
	cr_assert_str_eq(traced(), "d,e,");
}

Test(loop_queue, freeing_from_work_aborts, .signal = SIGABRT)
{
	make(0);
	inside = free_inside;
	queue_add(queue, "a");
	loop_drain(loop);
}

Test(loop_queue, thirty_thousand_keys)
{
	char key[64];
	size_t before = mallinfo2().uordblks, per_key;

	next = (struct queue_next){.verdict = QUEUE_SETTLED, .after_ms = 3600000};
	make(0);
	for (unsigned i = 0; i < 30000; i++) {
		snprintf(key, sizeof(key), "namespace/machine-%06u", i);
		queue_add(queue, key);
	}
	cr_assert_eq(depth(), 30000);
	loop_drain(loop);
	cr_assert_eq(n_work, 30000);
	per_key = (mallinfo2().uordblks - before) / 30000;
#if !defined(__SANITIZE_ADDRESS__)
	cr_assert_leq(per_key, 150, "%zu bytes per settled key", per_key);
#endif
	(void)per_key;
	for (unsigned i = 0; i < 30000; i += 3) {
		snprintf(key, sizeof(key), "namespace/machine-%06u", i);
		queue_forget(queue, key);
	}
	loop_advance(loop, 3600000 * 11 / 10);
	cr_assert_eq(n_work, 50000);
}

/* Random adds, forgets and verdicts against the simplest model: which keys must be worked by when.
 */
Test(loop_queue, a_random_history_loses_no_key)
{
	enum { N = 200 };
	static uint64_t due[N]; /* 0: none */
	uint64_t seed = 99;

	make(3);
	for (unsigned round = 0; round < 3000; round++) {
		unsigned i, after;
		char key[16];

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		i = (unsigned)(seed >> 33) % N;
		after = (unsigned)(seed >> 20) % 3 ? (unsigned)(seed >> 22) % 400 : 0;
		snprintf(key, sizeof(key), "%u", i);
		if (round % 7 == 6) {
			queue_forget(queue, key);
			due[i] = 0;
		} else {
			queue_add_after(queue, key, after);
			if (!due[i] || clock_boot_ms() + after < due[i])
				due[i] = clock_boot_ms() + after;
		}
		if (round % 10 == 9) {
			unsigned want = 0;

			n_work = 0;
			loop_advance(loop, 20);
			for (unsigned k = 0; k < N; k++) {
				if (due[k] && due[k] <= clock_boot_ms()) {
					want++;
					due[k] = 0;
				}
			}
			cr_assert_eq(n_work, want, "round %u", round);
		}
	}
}
