/* SPDX-License-Identifier: MIT */
/*
 * tec-publish-pcrs: the second half of the compute-pcrs Job. Reads {"pcrs":[...]}, "platforms" and
 * "variants" when there are any, from standard input and puts it as one entry into ConfigMap
 * image-pcrs, which many Jobs share: get, merge patch under the resourceVersion that was seen, and
 * once more when somebody else was faster. It never creates the ConfigMap, leaves every other entry
 * as it is, and writes nothing when its entry is there already.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/conf.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/k8s/call.h"
#include "tec/k8s/client.h"
#include "tec/kobj/key.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"
#include "tec/model/platforms.h"
#include "tec/model/variants.h"

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define MAP_NAME            "image-pcrs"
#define MAP_KEY             "image-pcrs.json"
#define MAP_MAX             1000000 /* etcd takes 1.5 MiB, the API server 1 MiB of data */
#define INPUT_MAX           (1u << 20)
#define DEADLINE_MS         120000
#define BACKOFF_MIN_MS      200
#define BACKOFF_MAX_MS      10000

static const struct conf_option table[] = {
	{"image", CONF_STRING, "REF", NULL, "The image's reference.", false},
	{"resource-name", CONF_STRING, "NAME", NULL, "The ApprovedImage's name.", false},
	{"kubeconfig", CONF_STRING, "FILE", NULL, "Kubernetes configuration.", false},
	{"namespace", CONF_STRING, "NS", NULL, "Where the ConfigMap is.", false},
};

struct publish {
	struct op_scope ops;
	struct loop *loop;
	struct httpc *http;
	struct k8s_transport *api;
	struct timer again;
	uint64_t end_ms; /* boot clock */
	unsigned attempts;
	char *ns;                 /* owned */
	const char *image, *name; /* borrowed from conf */
	struct pcr_events events;
	struct model_platforms platforms;
	struct model_variants variants;
	int status;
};

static void finish(struct publish *p, const struct err *err)
{
	if (err && err_is_set(err)) {
		fprintf(stderr, "tec-compute-pcrs: ConfigMap %s in namespace %s: %s\n", MAP_NAME,
			p->ns, err->text);
		if (err->kind == ERR_NOT_FOUND)
			fprintf(stderr,
				"tec-compute-pcrs: next step: the operator makes it; is it running in this namespace?\n");
		else if (err->kind == ERR_DENIED)
			fprintf(stderr,
				"tec-compute-pcrs: next step: run with the ServiceAccount compute-pcrs of k8s/role.yaml\n");
		p->status = 1;
	}
	loop_stop(p->loop);
}

/* Somebody else wrote in between, or the API is not there for a moment: later again. */
static void retry_or_fail(struct publish *p, const struct err *err)
{
	uint64_t wait = BACKOFF_MIN_MS, now = clock_boot_ms();

	if (err->kind != ERR_CONFLICT && err->kind != ERR_TRANSIENT) {
		finish(p, err);
		return;
	}
	for (unsigned i = 0; i < p->attempts && wait < BACKOFF_MAX_MS; i++)
		wait *= 2;
	p->attempts++;
	/* Jobs that met once would meet again: keyed per process, this parts them. */
	wait = wait / 2 + str_hash(&p->attempts, sizeof(p->attempts)) % wait;
	if (err->retry_after_ms > wait)
		wait = err->retry_after_ms;
	if (now + wait > p->end_ms) {
		finish(p, err);
		return;
	}
	log_info(NULL, "not written yet", "attempt=%u err=%s", p->attempts, log_esc(err->text));
	timer_set(&p->again, wait);
}

/* ---- the entry */

/* Entries so far; an object that the caller puts. */
static struct json_object *read_entries(struct json_object *map, struct err *err)
{
	struct json_object *data = json_get_obj(map, "data"), *text = NULL, *o;

	if (!data || !json_object_object_get_ex(data, MAP_KEY, &text))
		return json_obj();
	o = json_parse(json_object_get_string(text), (size_t)json_object_get_string_len(text),
		&json_limits_object, err);
	if (o && json_object_is_type(o, json_type_object))
		return o;
	json_object_put(o);
	err_clear(err);
	err_set(err, ERR_INVALID,
		"%s is no JSON object; next step: set it to {} and let the images be computed again",
		MAP_KEY);
	return NULL;
}

/* NULL: the same entry is there already. */
static struct json_object *make_entry(const struct publish *p, struct json_object *entries)
{
	struct json_object *was = NULL, *pcrs = pcr_events_json(&p->events), *entry;
	struct json_object *platforms = p->platforms.n ? model_platforms_json(&p->platforms) : NULL;
	struct json_object *variants = p->variants.n ? model_variants_json(&p->variants) : NULL;
	const char *first_seen = NULL;
	char now[CLOCK_RFC3339_US_LEN];

	json_object_object_get_ex(entries, p->name, &was);
	if (json_object_is_type(was, json_type_object) &&
		str_eq(json_get_str(was, "reference"), p->image)) {
		first_seen = json_get_str(was, "first_seen");
		if (first_seen && json_object_equal(json_get_arr(was, "pcrs"), pcrs) &&
			json_object_equal(json_get(was, "platforms"), platforms) &&
			json_object_equal(json_get(was, "variants"), variants)) {
			json_object_put(pcrs);
			json_object_put(platforms);
			json_object_put(variants);
			return NULL;
		}
	}
	clock_format_us(clock_wall_us(), now);
	entry = json_add_str(json_obj(), "first_seen", first_seen ? first_seen : now);
	json_add(entry, "pcrs", pcrs);
	if (platforms)
		json_add(entry, "platforms", platforms);
	json_add_str(entry, "reference", p->image);
	return variants ? json_add(entry, "variants", variants) : entry;
}

static void on_patched(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct publish *p = arg;

	if (err_is_set(err)) {
		retry_or_fail(p, err);
		return;
	}
	printf("tec-compute-pcrs: wrote the values of %s\n", p->name);
	finish(p, NULL);
}

static int patch(struct publish *p, struct json_object *map, struct err *err)
{
	cleanup_json struct json_object *entries = read_entries(map, err), *body = NULL;
	cleanup_free char *text = NULL;
	struct json_object *entry;
	const char *rv = json_get_str(map, "metadata/resourceVersion");

	if (!entries)
		return -1;
	if (!rv)
		return err_set(err, ERR_BUG, "the answer has no resourceVersion");
	entry = make_entry(p, entries);
	if (!entry) {
		printf("tec-compute-pcrs: the values of %s are there already\n", p->name);
		finish(p, NULL);
		return 0;
	}
	json_add(entries, p->name, entry);
	text = json_text(entries);
	if (strlen(text) > MAP_MAX)
		return err_set(err, ERR_INVALID,
			"the entries would be larger than %d bytes; next step: delete ApprovedImages that are not needed",
			MAP_MAX);
	body = json_add(json_obj(), "metadata", json_add_str(json_obj(), "resourceVersion", rv));
	json_add(body, "data", json_add_str(json_obj(), MAP_KEY, text));
	(void)k8s_call_merge_patch(
		p->api, &p->ops, &kobj_configmap, p->ns, MAP_NAME, body, on_patched, p);
	return 0;
}

static void on_got(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct publish *p = arg;
	struct err local = ERR_INIT;

	if (err_is_set(err)) {
		retry_or_fail(p, err);
	} else if (!result->object) {
		err_set(&local, ERR_BUG, "the answer is empty");
		finish(p, &local);
	} else if (patch(p, result->object, &local) < 0) {
		finish(p, &local);
	}
}

static void start(void *arg)
{
	struct publish *p = arg;

	(void)k8s_call_get(p->api, &p->ops, &kobj_configmap, p->ns, MAP_NAME, on_got, p);
}

/* ---- life */

/* What the other half says was made of an image's files: it is read as if it came from outside. */
static int read_values(struct publish *p, const char *text, size_t len, struct err *err)
{
	static const struct json_limits limits = {.bytes = INPUT_MAX, .depth = 9, .tokens = 65536};
	cleanup_json struct json_object *o = json_parse(text, len, &limits, err);

	if (!o || pcr_events_from_json(json_get_arr(o, "pcrs"), &p->events, err) < 0)
		return -1;
	model_platforms_read(json_get_arr(o, "platforms"), &p->platforms);
	model_variants_read(json_get_arr(o, "variants"), &p->variants);
	return 0;
}

static int read_input(struct publish *p, struct err *err)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char chunk[4096];
	ssize_t n;

	while (text.len <= INPUT_MAX &&
		((n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			strbuf_add(&text, chunk, (size_t)n);
	if (read_values(p, strbuf_str(&text), text.len, err) < 0)
		return err_wrap(err, "standard input");
	return 0;
}

static struct k8s_kubeconfig *load_config(const struct conf *c, struct err *err)
{
	const char *file = conf_str(c, "kubeconfig");

	if (!file && getenv("KUBECONFIG") && *getenv("KUBECONFIG"))
		file = getenv("KUBECONFIG");
	if (file)
		return k8s_kubeconfig_load(file, NULL, err);
	return k8s_kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
		getenv("KUBERNETES_SERVICE_PORT"), SERVICE_ACCOUNT_DIR, err);
}

static int connect_api(struct publish *p, const struct conf *c, struct err *err)
{
	struct k8s_kubeconfig *k = load_config(c, err);
	const char *ns = conf_str(c, "namespace");

	if (!k)
		return -1;
	if (!ns)
		ns = getenv("POD_NAMESPACE");
	if (!ns)
		ns = k->namespace_;
	if (!ns || !kobj_label_valid(ns, strlen(ns))) {
		k8s_kubeconfig_free(k);
		return err_set(err, ERR_INVALID,
			"no valid namespace is known: give --namespace, or set POD_NAMESPACE");
	}
	p->ns = xstrdup(ns);
	p->api = k8s_client_new(p->loop, p->http, k, "tec-compute-pcrs/" PACKAGE_VERSION);
	return 0;
}

static int read_options(struct publish *p, struct conf *c, int argc, char **argv, struct err *err)
{
	if (conf_parse_argv(c, argc, argv, err) < 0)
		return -1;
	p->image = conf_str(c, "image");
	p->name = conf_str(c, "resource-name");
	if (!p->image || !p->name)
		return err_set(err, ERR_INVALID,
			"this is a part of tec-compute-pcrs and needs --image and --resource-name");
	return 0;
}

static void run(struct publish *p)
{
	p->end_ms = clock_boot_ms() + DEADLINE_MS;
	timer_init(&p->again, p->loop, start, p);
	timer_set(&p->again, 0);
	loop_run(p->loop);
	timer_fini(&p->again);
}

int main(int argc, char *argv[])
{
	struct publish p = {.ops = OP_SCOPE_INIT, .events = PCR_EVENTS_INIT};
	struct conf *c = conf_new(table, ARRAY_LEN(table));
	struct err err = ERR_INIT;

	secret_process_init();
	log_setup(LOG_INFO, LOG_TEXT);
	p.loop = loop_new();
	loop_ignore_sigpipe();
	p.http = httpc_new(p.loop);
	if (read_options(&p, c, argc, argv, &err) < 0) {
		p.status = 2;
	} else if (read_input(&p, &err) < 0 || connect_api(&p, c, &err) < 0) {
		p.status = 1;
	} else {
		run(&p);
	}
	if (err_is_set(&err))
		fprintf(stderr, "tec-compute-pcrs: %s\n", err.text);
	op_scope_cancel(&p.ops);
	k8s_transport_free(p.api);
	httpc_free(p.http);
	loop_free(p.loop);
	pcr_events_fini(&p.events);
	model_platforms_fini(&p.platforms);
	model_variants_fini(&p.variants);
	free(p.ns);
	conf_free(c);
	metric_reset_all();
	return p.status;
}
