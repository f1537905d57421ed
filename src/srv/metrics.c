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
	cleanup_free char *statm = read_proc("/proc/self/statm");
	unsigned long resident = 0;
	struct rusage u;

	/* The second field is the resident set in pages (proc(5)). */
	if (statm)
		(void)sscanf(statm, "%*u %lu", &resident);
	getrusage(RUSAGE_SELF, &u);
	metric_set(&build, PACKAGE_VERSION, __VERSION__, 1);
	metric_set(&rss, NULL, NULL, (double)resident * (double)sysconf(_SC_PAGESIZE));
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

	if (m->cond[MACHINE_READY].status == KOBJ_COND_TRUE)
		return "ready";
	if (m->cond[MACHINE_KEY_READY].status != KOBJ_COND_TRUE)
		return "keyless";
	return m->bound_at ? "undelivered" : "unbound";
}

static const char *ak_state(const struct kobj *o)
{
	const struct model_ak *a = model_ak(o);

	if (a->cond[AK_DELIVERED].status == KOBJ_COND_TRUE)
		return "delivered";
	return a->owner_uid ? "approved" : "waiting";
}

static const char *kbsconfig_state(const struct kobj *o)
{
	const struct model_kbsconfig *m = model_kbsconfig(o);

	if (m->is_ready)
		return "ready";
	return m->cond[KBSCONFIG_INSTALLED].status == KOBJ_COND_TRUE ? "installed" : "waiting";
}

static const char *trusteeconfig_state(const struct kobj *o)
{
	const struct model_trusteeconfig *m = model_trusteeconfig(o);

	if (m->is_ready)
		return "ready";
	return m->cond[TRUSTEECONFIG_CONFIGURED].status == KOBJ_COND_TRUE ? "configured"
									  : "waiting";
}

static const char *state_of(const char *(*state)(const struct kobj *o), const struct kobj *o)
{
	return !o ? NULL : o->deleting ? "deleting" : state(o);
}

/* Move one object from its state to another; it may be added or deleted. Comparing pointers is
 * enough: the states are string literals of one function. */
static void count(struct metric *m, const char *label, const char *(*state)(const struct kobj *o),
	const struct kobj *was, const struct kobj *now)
{
	const char *a = state_of(state, was), *b = state_of(state, now);

	if (a == b)
		return;
	if (a)
		metric_add(m, label, a, -1);
	if (b)
		metric_add(m, label, b, 1);
}

static void on_machine(void *arg, const struct kobj *was, const struct kobj *now)
{
	count(&objects, "Machine", machine_state, was, now);
}

static void on_ak(void *arg, const struct kobj *was, const struct kobj *now)
{
	count(&objects, "AttestationKey", ak_state, was, now);
}

static void on_kbsconfig(void *ns, const struct kobj *was, const struct kobj *now)
{
	count(&kbsconfigs, ns, kbsconfig_state, was, now);
}

static void on_trusteeconfig(void *ns, const struct kobj *was, const struct kobj *now)
{
	count(&trusteeconfigs, ns, trusteeconfig_state, was, now);
}

void srv_metrics_count(const struct caches *caches)
{
	k8s_cache_listen(caches->machines, on_machine, NULL);
	k8s_cache_listen(caches->aks, on_ak, NULL);
}

/* The namespace is the label, as one operator may serve Trustees in several namespaces. */
void srv_metrics_count_trustees(const struct caches *caches, const char *ns)
{
	k8s_cache_listen(caches->kbsconfigs, on_kbsconfig, (void *)ns);
	k8s_cache_listen(caches->trusteeconfigs, on_trusteeconfig, (void *)ns);
}
