/* SPDX-License-Identifier: MIT */
/* Object counts move with cache changes; process figures are read from /proc on request. */
#include "config.h"

#include "tec/srv/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"

static struct metric objects =
	METRIC_GAUGE_INIT("tec_objects", "Objects seen, by kind and state.", "kind", "state");
static struct metric build = METRIC_GAUGE_INIT(
	"tec_build_info", "Always 1; the labels say what runs.", "version", "compiler");
static struct metric rss = METRIC_GAUGE_INIT(
	"process_resident_memory_bytes", "Resident memory size in bytes.", NULL, NULL);
static struct metric cpu = METRIC_COUNTER_INIT(
	"process_cpu_seconds_total", "User and system CPU time in seconds.", NULL, NULL);
static struct metric fds =
	METRIC_GAUGE_INIT("process_open_fds", "Open file descriptors.", NULL, NULL);
static struct metric started = METRIC_GAUGE_INIT("process_start_time_seconds",
	"Start of the process since the Unix epoch in seconds.", NULL, NULL);
static struct metric secrets =
	METRIC_GAUGE_INIT("tec_secrets_in_memory", "Secrets held in locked memory.", NULL, NULL);

/* A file of /proc/self; the caller frees. NULL: it cannot be read. */
static char *read_proc(const char *path)
{
	struct err ignored = ERR_INIT;
	size_t len;

	return file_read(path, 4096, &len, NULL, &ignored);
}

static double read_rss(void)
{
	cleanup_free char *text = read_proc("/proc/self/statm");
	unsigned long resident;

	if (!text || sscanf(text, "%*u %lu", &resident) != 1)
		return 0;
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* Field 22 of /proc/self/stat: clock ticks after boot. */
static double read_start(void)
{
	cleanup_free char *text = read_proc("/proc/self/stat");
	char *p = text ? strrchr(text, ')') : NULL; /* the name in parentheses may hold anything */
	unsigned long long ticks;

	if (!p ||
		sscanf(p + 1,
			" %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
			&ticks) != 1)
		return 0;
	return (double)clock_wall_us() / 1e6 - (double)clock_boot_us() / 1e6 +
	       (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	double n = -3; /* ".", ".." and the directory itself */

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void srv_metrics_render(struct strbuf *out)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	metric_set(&build, PACKAGE_VERSION, __VERSION__, 1);
	metric_set(&rss, NULL, NULL, read_rss());
	metric_set(&cpu, NULL, NULL,
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	metric_set(&started, NULL, NULL, read_start());
	metric_set(&fds, NULL, NULL, count_fds());
	metric_set(&secrets, NULL, NULL, (double)secret_count());
	metric_render(out);
}

/* ---- objects */

static const char *machine_state(const struct kobj *o)
{
	const struct model_machine *m = model_machine(o);

	if (o->deleting)
		return "deleting";
	if (m->cond[MACHINE_READY].status == KOBJ_COND_TRUE)
		return "ready";
	if (m->cond[MACHINE_KEY_READY].status != KOBJ_COND_TRUE)
		return "keyless";
	return m->bound_at ? "undelivered" : "unbound";
}

static const char *ak_state(const struct kobj *o)
{
	const struct model_ak *a = model_ak(o);

	if (o->deleting)
		return "deleting";
	if (a->cond[AK_DELIVERED].status == KOBJ_COND_TRUE)
		return "delivered";
	return a->owner_uid ? "approved" : "waiting";
}

static const struct counted {
	enum state_of of;
	const char *(*state)(const struct kobj *o);
} counted[] = {
	{STATE_MACHINES, machine_state},
	{STATE_AKS, ak_state},
};

static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	const struct counted *c = arg;
	const char *a = was ? c->state(was) : NULL, *b = now ? c->state(now) : NULL;

	if (a == b)
		return;
	if (a)
		metric_add(&objects, state_kinds[c->of].gvk->kind, a, -1);
	if (b)
		metric_add(&objects, state_kinds[c->of].gvk->kind, b, 1);
}

void srv_metrics_count(const struct state *state)
{
	for (size_t i = 0; i < ARRAY_LEN(counted); i++)
		k8s_cache_listen(state->cache[counted[i].of], on_change, (void *)&counted[i]);
}
