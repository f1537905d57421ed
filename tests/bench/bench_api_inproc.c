/* SPDX-License-Identifier: MIT */
/*
 * bench_api_inproc [DIR]: what the built-in API's store costs in this process, on a database in DIR
 * (/tmp), with the kinds and the schemas of the operator: creating 10,000 Machines with an
 * AttestationKey and a Secret each by the in-process transport, events of a watch, pages of a list,
 * the start over them, and memory. One line per figure, with its limit behind it; exit 1 when one is
 * passed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tec/apireq/inproc.h"
#include "tec/apireq/kinds.h"
#include "tec/store/objects.h"
#include "tec/apireq/transport.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"
#include "tec/base/yaml.h"
#include "tec/render/etc.h"

#define MACHINES  10000
#define EVENTS    2000
#define PAGE      500
#define PER_TURN  16 /* requests that one turn of the loop reads */
#define OURS      "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/tec/"
#define API       OURS "machines"
#define KEYS      OURS "attestationkeys"
#define SECRETS   "/api/v1/namespaces/tec/secrets"
#define FIXED_KEY "0123456789abcdef0123456789abcdef"

#define SETTLE 64 /* turns after which nothing is left to do */

extern const struct render_etc_file standalone_crds[]; /* of crd/ */

static struct loop *loop;
static struct apireq_kinds *kinds;
static struct store_objects *objects;
static struct k8s_transport *t;
static struct op_scope ops;
static unsigned done, bad;
static size_t bytes, lines;
static char next_page[1024];
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

/* Where a list goes on: its metadata comes before or after its items, which name no continue. */
static void note_next(const char *body, size_t len)
{
	static const char member[] = "\"continue\":\"";
	const char *at = body ? memmem(body, len, member, strlen(member)) : NULL;

	next_page[0] = '\0';
	if (at)
		(void)snprintf(next_page, sizeof(next_page), "%.*s",
			(int)strcspn(at + strlen(member), "\""), at + strlen(member));
}

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	done++;
	bad += err_is_set(err) || a->status / 100 != 2;
	bytes += a->body_len;
	note_next(a->body, a->body_len);
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
		"\"finalizers\":[\"finalizer.machine.trusted-execution-clusters.io\"]},"
		"\"spec\":{\"id\":\"%08x-0000-4000-8000-000000000000\"}}",
		i, i % 7, i, i);
}

static char *ak(unsigned i)
{
	return xasprintf(
		"{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":"
		"\"AttestationKey\",\"metadata\":{\"name\":\"ak%05u\"},\"spec\":{\"publicKey\":"
		"\"-----BEGIN PUBLIC KEY-----\\n%0400u\\n-----END PUBLIC KEY-----\\n\","
		"\"uuid\":\"%08x-0000-4000-8000-000000000000\"}}",
		i, i, i);
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

static double create_all(
	const char *path, char *(*make)(unsigned), unsigned first, unsigned n, unsigned per_turn)
{
	double start = cpu_us();

	for (unsigned i = 0; i < n; i += per_turn) {
		for (unsigned k = 0; k < per_turn; k++)
			send("POST", "application/json", xstrdup(path), make(first + i + k), false);
		wait_for(per_turn);
	}
	return (cpu_us() - start) / n;
}

/* Patches of EVENTS Machines; to: the label's new value. */
static double patch_us(char to)
{
	double start = cpu_us();

	for (unsigned i = 0; i < EVENTS; i++) {
		send("PATCH", "application/merge-patch+json", xasprintf(API "/m%05u", i),
			xasprintf("{\"metadata\":{\"labels\":{\"n\":\"%c%u\"}}}", to, i), false);
		if (i % PER_TURN == PER_TURN - 1)
			wait_for(PER_TURN);
	}
	return cpu_us() - start;
}

static double watch_events(void)
{
	double writes, start;

	patch_us('a'); /* the first write of a label is dearer */
	writes = patch_us('b');
	send("GET", NULL,
		xasprintf(API "?watch=1&resourceVersion=%llu",
			(unsigned long long)store_objects_rv(objects)),
		NULL, true);
	lines = 0;
	start = cpu_us();
	patch_us('c');
	while (lines < EVENTS)
		loop_turn(loop, 0);
	return (cpu_us() - start - writes) / EVENTS;
}

static struct store_objects *open_store(const char *dir)
{
	static struct store_schema schema = {.namespaces = true};
	cleanup_secret struct secret *key = secret_new_copy(FIXED_KEY, SEAL_KEY_LEN);
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){dir, NULL, key}, &err);

	if (!db) {
		fprintf(stderr, "bench_api_inproc: %s\n", err.text);
		exit(1);
	}
	kinds = apireq_kinds_new();
	for (const struct render_etc_file *f = standalone_crds; f->name; f++)
		apireq_kinds_add(kinds, f->text);
	apireq_kinds_use(kinds, &schema);
	return store_objects_new(db, &schema, loop);
}

static void put(const char *path, const char *body)
{
	struct apireq_answer a = apireq_inproc_ask(
		objects, "PATCH", path, "application/apply-patch+yaml", body, strlen(body));

	bad += a.code / 100 != 2;
	apireq_answer_fini(&a);
}

static void fill(void)
{
	put("/api/v1/namespaces/tec?fieldManager=a",
		"{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"tec\"}}");
	for (unsigned i = 0; i < SETTLE; i++)
		loop_turn(loop, 0);
}

static void close_store(void)
{
	op_scope_cancel(&ops);
	k8s_transport_free(t);
	store_objects_free(objects);
	apireq_kinds_free(kinds);
}

/* CPU of each page of 500 Machines: the median of the first and of the second half. */
static void pages(double half[2])
{
	cleanup_strbuf struct strbuf from = STRBUF_INIT;
	double us[MACHINES / PAGE];

	for (unsigned i = 0; i < ARRAY_LEN(us); i++) {
		double start = cpu_us();

		send("GET", NULL, xasprintf(API "?limit=%u%s", PAGE, strbuf_str(&from)), NULL,
			false);
		wait_for(1);
		us[i] = cpu_us() - start;
		strbuf_reset(&from);
		strbuf_addf(&from, "&continue=%s", next_page);
	}
	for (unsigned h = 0; h < 2; h++) {
		double *v = us + h * ARRAY_LEN(us) / 2;

		half[h] = v[0];
		for (unsigned i = 1; i < ARRAY_LEN(us) / 2; i++)
			half[h] = v[i] < half[h] ? v[i] : half[h];
	}
}

static void start_over(const char *dir)
{
	double start, half[2];

	close_store();
	start = cpu_us();
	objects = open_store(dir);
	fill();
	figure("start over 30,000 objects, checked", (cpu_us() - start) / 1e6, "s", 1);
	t = apireq_transport_new(loop, objects);
	figure("memory after the start", (double)rss_kib() / 1024, "MiB", 40);
	pages(half);
	figure("page of 500 Machines", half[0] / 1e3, "ms", 20);
	figure("the last pages / the first", half[1] / half[0], "x", 1.2);
	bytes = 0;
	start = cpu_us();
	send("GET", NULL, xstrdup(API), NULL, true);
	wait_for(1);
	figure("whole list of 10,000 Machines", (cpu_us() - start) / 1e3, "ms", 400);
	figure("memory after it", (double)rss_kib() / 1024, "MiB", 40);
}

int main(int argc, char **argv)
{
	cleanup_free char *dir = xasprintf(
				  "%s/bench-api-inproc-XXXXXX", argc > 1 ? argv[1] : "/tmp"),
			  *clean = NULL;

	if (!mkdtemp(dir))
		return 1;
	loop = loop_new();
	objects = open_store(dir);
	fill();
	t = apireq_transport_new(loop, objects);
	figure("create a Machine", create_all(API, machine, 0, MACHINES, PER_TURN) / 1e3, "ms CPU",
		0.15);
	figure("create an AttestationKey", create_all(KEYS, ak, 0, MACHINES, PER_TURN) / 1e3,
		"ms CPU", 0.15);
	figure("create a Secret", create_all(SECRETS, secret, 0, MACHINES, PER_TURN) / 1e3,
		"ms CPU", 0.15);
	figure("event of a watch", watch_events(), "us CPU", 50);
	op_scope_cancel(&ops);
	figure("memory with all of them", (double)rss_kib() / 1024, "MiB", 40);
	start_over(dir);
	close_store();
	loop_free(loop);
	clean = xasprintf("rm -r %s", dir);
	if (bad)
		printf("%u requests were refused\n", bad);
	return system(clean) != 0 || bad || over;
}
