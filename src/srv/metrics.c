/* SPDX-License-Identifier: MIT */
/* Object counts change with the caches; process figures are read from /proc on each scrape. */
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
#include "tec/model/kbsconfig.h"
#include "tec/model/machine.h"
#include "tec/model/trusteeconfig.h"

static struct metric objects =
	METRIC_GAUGE_INIT("tec_objects", "Objects seen, by kind and state.", "kind", "state");
static struct metric kbsconfigs = METRIC_GAUGE_INIT(
	"tec_kbsconfigs", "KbsConfigs seen, by namespace and state.", "namespace", "state");
static struct metric trusteeconfigs = METRIC_GAUGE_INIT(
	"tec_trusteeconfigs", "TrusteeConfigs seen, by namespace and state.", "namespace", "state");
static struct metric build = METRIC_GAUGE_INIT(
	"tec_build_info", "Always 1; version and compiler are labels.", "version", "compiler");
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

/* Read a file of /proc/self. The caller frees; NULL: unreadable. */
static char *read_proc(const char *path)
{
	struct err ignored = ERR_INIT;
	size_t len;

	return file_read(path, 4096, &len, NULL, &ignored);
}

/* The second field of statm is the resident set in pages (proc(5)). 0 if it cannot be read. */
static double read_rss(void)
{
	cleanup_free char *text = read_proc("/proc/self/statm");
	unsigned long resident;

	if (!text || sscanf(text, "%*u %lu", &resident) != 1)
		return 0;
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* The start time of the process as a Unix time: field 22 of /proc/self/stat is in clock ticks
 * after boot (proc(5)). */
static double read_start(void)
{
	cleanup_free char *text = read_proc("/proc/self/stat");
	char *p =
		text ? strrchr(text, ')') : NULL; /* the name in parentheses may contain anything */
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

/* The first unmet step names the state; the same order as tecctl status shows. */
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

static const char *kbsconfig_state(const struct kobj *o)
{
	const struct model_kbsconfig *m = model_kbsconfig(o);

	if (o->deleting)
		return "deleting";
	if (m->is_ready)
		return "ready";
	return m->cond[KBSCONFIG_INSTALLED].status == KOBJ_COND_TRUE ? "installed" : "waiting";
}

static const char *trusteeconfig_state(const struct kobj *o)
{
	const struct model_trusteeconfig *m = model_trusteeconfig(o);

	if (o->deleting)
		return "deleting";
	if (m->is_ready)
		return "ready";
	return m->cond[TRUSTEECONFIG_CONFIGURED].status == KOBJ_COND_TRUE ? "configured"
									  : "waiting";
}

/* Move one object from state a to state b; NULL: it was added or deleted. Comparing pointers is
 * enough: the states are string literals of one function. */
static void count(struct metric *m, const char *label, const char *a, const char *b)
{
	if (a == b)
		return;
	if (a)
		metric_add(m, label, a, -1);
	if (b)
		metric_add(m, label, b, 1);
}

#define STATE_OF(fn, o) ((o) ? fn(o) : NULL)

static void on_machine(void *arg, const struct kobj *was, const struct kobj *now)
{
	count(&objects, "Machine", STATE_OF(machine_state, was), STATE_OF(machine_state, now));
}

static void on_ak(void *arg, const struct kobj *was, const struct kobj *now)
{
	count(&objects, "AttestationKey", STATE_OF(ak_state, was), STATE_OF(ak_state, now));
}

static void on_kbsconfig(void *ns, const struct kobj *was, const struct kobj *now)
{
	count(&kbsconfigs, ns, STATE_OF(kbsconfig_state, was), STATE_OF(kbsconfig_state, now));
}

static void on_trusteeconfig(void *ns, const struct kobj *was, const struct kobj *now)
{
	count(&trusteeconfigs, ns, STATE_OF(trusteeconfig_state, was),
		STATE_OF(trusteeconfig_state, now));
}

void srv_metrics_count(const struct state *state)
{
	k8s_cache_listen(state->machines, on_machine, NULL);
	k8s_cache_listen(state->aks, on_ak, NULL);
}

/* The namespace is the label, as one operator may serve Trustees in several namespaces. */
void srv_metrics_count_trustees(const struct state *state, const char *ns)
{
	k8s_cache_listen(state->kbsconfigs, on_kbsconfig, (void *)ns);
	k8s_cache_listen(state->trusteeconfigs, on_trusteeconfig, (void *)ns);
}
