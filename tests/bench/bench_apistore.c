/* SPDX-License-Identifier: MIT */
/*
 * bench_apistore [DIR]: what the built-in API's store costs in this process, on a database in DIR
 * (/tmp): creating 10,000 Machines with a Secret each by the in-process transport, events of a
 * watch, pages of a list, the start over them, and memory. One line per figure, with its limit
 * behind it; exit 1 when one is passed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tec/apistore/objects.h"
#include "tec/apistore/transport.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"

#define MACHINES  10000
#define PER_TURN  16 /* requests that one turn of the loop reads */
#define API       "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/tec/machines"
#define SECRETS   "/api/v1/namespaces/tec/secrets"
#define FIXED_KEY "0123456789abcdef0123456789abcdef"

static struct loop *loop;
static struct apistore_objects *objects;
static struct k8s_transport *t;
static struct op_scope ops;
static unsigned done, bad;
static size_t bytes, lines;
static bool over;

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static long rss_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all = 0, here = 0;

	if (!f || fscanf(f, "%ld %ld", &all, &here) != 2)
		here = 0;
	if (f)
		fclose(f);
	return here * (sysconf(_SC_PAGESIZE) / 1024);
}

static void figure(const char *what, double value, const char *unit, double limit)
{
	bool ok = value <= limit;

	printf("%-42s %10.3f %s (limit %g)%s\n", what, value, unit, limit, ok ? "" : "  TOO MUCH");
	over |= !ok;
}

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	done++;
	bad += err_is_set(err) || a->status / 100 != 2;
	bytes += a->body_len;
}

static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	bytes += len;
	for (size_t i = 0; i < len; i++)
		lines += data[i] == '\n';
	return 0;
}

static void send(
	const char *method, const char *type, char *take_path, char *take_body, bool stream)
{
	struct k8s_request req = {
		.method = method, .content_type = type, .verb = "get", .path = take_path};

	if (take_body)
		req.body = body_of_text(take_body);
	k8s_transport_start(t, &ops, &req, stream ? on_data : NULL, on_answer, NULL);
}

static char *machine(unsigned i)
{
	return xasprintf(
		"{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\","
		"\"metadata\":{\"name\":\"m%05u\",\"labels\":{\"pool\":\"p%u\"},\"annotations\":"
		"{\"trusted-execution-clusters.io/key-hash\":\"%064u\"},"
		"\"finalizers\":[\"trusted-execution-clusters.io/machine\"]},"
		"\"spec\":{\"id\":\"%08x-0000-4000-8000-000000000000\",\"registrationAddress\":\"10.0.0.1\"},"
		"\"status\":{\"conditions\":[{\"type\":\"KeyReady\",\"status\":\"True\",\"reason\":\"Ready\","
		"\"message\":\"The disk key is in Trustee\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}",
		i, i % 7, i, i);
}

static char *secret(unsigned i)
{
	return xasprintf(
		"{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"k%05u\"},"
		"\"immutable\":true,\"data\":{\"root\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"}}",
		i);
}

static void wait_for(unsigned n)
{
	while (done < n)
		loop_turn(loop, 0);
	done -= n;
}

static double create_all(const char *path, char *(*make)(unsigned))
{
	double start = cpu_us();

	for (unsigned i = 0; i < MACHINES; i += PER_TURN) {
		unsigned n = MACHINES - i < PER_TURN ? MACHINES - i : PER_TURN;

		for (unsigned k = 0; k < n; k++)
			send("POST", "application/json", xstrdup(path), make(i + k), false);
		wait_for(n);
	}
	return (cpu_us() - start) / MACHINES;
}

static double watch_events(void)
{
	double start, writes;

	start = cpu_us();
	for (unsigned i = 0; i < 2000; i++) {
		send("PATCH", "application/merge-patch+json", xasprintf(API "/m%05u", i),
			xasprintf("{\"metadata\":{\"labels\":{\"n\":\"a%u\"}}}", i), false);
		if (i % PER_TURN == PER_TURN - 1)
			wait_for(PER_TURN);
	}
	writes = cpu_us() - start;
	send("GET", NULL,
		xasprintf(API "?watch=1&resourceVersion=%llu",
			(unsigned long long)apistore_objects_rv(objects)),
		NULL, true);
	lines = 0;
	start = cpu_us();
	for (unsigned i = 0; i < 2000; i++) {
		send("PATCH", "application/merge-patch+json", xasprintf(API "/m%05u", i),
			xasprintf("{\"metadata\":{\"labels\":{\"n\":\"b%u\"}}}", i), false);
		if (i % PER_TURN == PER_TURN - 1)
			wait_for(PER_TURN);
	}
	while (lines < 2000)
		loop_turn(loop, 0);
	return (cpu_us() - start - writes) / 2000;
}

static struct apistore_objects *open_store(const char *dir)
{
	static const struct apistore_kind kinds[] = {{.group = "trusted-execution-clusters.io",
		.kind = "Machine",
		.generation = true,
		.status = true,
		.custom = true}};
	static const struct apistore_schema schema = {.kinds = kinds, .n_kinds = ARRAY_LEN(kinds)};
	cleanup_secret struct secret *key = secret_new_copy(FIXED_KEY, SEAL_KEY_LEN);
	struct err err = ERR_INIT;
	struct apistore_db *db =
		apistore_db_open(&(const struct apistore_db_conf){dir, NULL, key}, &err);

	if (!db) {
		fprintf(stderr, "bench_apistore: %s\n", err.text);
		exit(1);
	}
	return apistore_objects_new(db, &schema, loop);
}

static double pages(const char *path)
{
	double start = cpu_us();

	for (unsigned i = 0; i < 20; i++) {
		send("GET", NULL, xasprintf("%s?limit=500", path), NULL, false);
		wait_for(1);
	}
	return (cpu_us() - start) / 20;
}

static void start_over(const char *dir)
{
	double start;

	k8s_transport_free(t);
	apistore_objects_free(objects);
	start = cpu_us();
	objects = open_store(dir);
	figure("start over 20,000 objects, checked", (cpu_us() - start) / 1e6, "s", 1);
	t = apistore_transport_new(loop, objects);
	figure("memory after the start", (double)rss_kib() / 1024, "MiB", 40);
	figure("page of 500 Machines", pages(API) / 1e3, "ms", 20);
	bytes = 0;
	start = cpu_us();
	send("GET", NULL, xstrdup(API), NULL, true);
	wait_for(1);
	figure("whole list of 10,000 Machines", (cpu_us() - start) / 1e3, "ms", 400);
	figure("memory after it", (double)rss_kib() / 1024, "MiB", 40);
}

int main(int argc, char **argv)
{
	cleanup_free char *dir = xasprintf("%s/bench-apistore-XXXXXX", argc > 1 ? argv[1] : "/tmp"),
			  *clean = NULL;

	if (!mkdtemp(dir))
		return 1;
	loop = loop_new();
	objects = open_store(dir);
	t = apistore_transport_new(loop, objects);
	figure("create a Machine", create_all(API, machine) / 1e3, "ms CPU", 0.15);
	figure("create a Secret", create_all(SECRETS, secret) / 1e3, "ms CPU", 0.15);
	figure("event of a watch", watch_events(), "us CPU", 50);
	op_scope_cancel(&ops);
	figure("memory with 10,000 Machines and Secrets", (double)rss_kib() / 1024, "MiB", 40);
	start_over(dir);
	op_scope_cancel(&ops);
	k8s_transport_free(t);
	apistore_objects_free(objects);
	loop_free(loop);
	clean = xasprintf("rm -r %s", dir);
	if (bad)
		printf("%u requests were refused\n", bad);
	return system(clean) != 0 || bad || over;
}
