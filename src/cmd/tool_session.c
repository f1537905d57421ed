/* SPDX-License-Identifier: MIT */
/*
 * One connection, its requests, and the terminal. Each call runs the loop until its answer has come; a struct on
 * the stack receives it, which is safe as tool_run() cancels what it does not wait for.
 */
#include "config.h"

#include "tool_session.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/k8s/client.h"
#include "tec/kobj/key.h"
#include "tec/loop/timer.h"
#include "tec/model/cluster.h"
#include "tec/model/configmap.h"
#include "tec/model/lost.h"
#include "tec/model/pcrs.h"
#include "tec/report/handover.h"
#include "tec/report/text.h"

#define ANSWER_MAX      (48u << 20) /* bytes of one answer */
#define PAGE            "500"       /* objects per request, as kubectl */
#define ASKED_MAX       5           /* times that a server can postpone a request */
#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/* Limits for a page of objects, each as large as the API accepts. */
static const struct json_limits limits = {ANSWER_MAX, 64, 4000000, true};

/* ---- kubeconfig */

/* The first file of a ':'-separated list that exists, or else the first one, for the error
 * message. The caller frees. */
static char *first_file(const char *list)
{
	cleanup_free char *copy = xstrdup(list);
	char *rest = copy, *file, *first = NULL;

	while ((file = strsep(&rest, ":"))) {
		if (!*file)
			continue;
		if (access(file, F_OK) == 0) {
			free(first);
			return xstrdup(file);
		}
		if (!first)
			first = xstrdup(file);
	}
	return first;
}

/* --kubeconfig, else $KUBECONFIG, else ~/.kube/config, else the Pod's service account, as
 * kubectl. */
static struct k8s_kubeconfig *load_config(struct tool *t, struct err *err)
{
	const char *option = conf_str(t->conf, "kubeconfig"),
		   *context = conf_str(t->conf, "context"), *env = getenv("KUBECONFIG"),
		   *home = getenv("HOME"), *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");
	cleanup_free char *usual = xasprintf("%s/.kube/config", home ? home : "");

	if (option)
		t->from = xstrdup(option);
	else if (env && *env)
		t->from = first_file(env);
	if (!t->from && (access(usual, F_OK) == 0 || !host || !*host))
		t->from = steal_ptr(&usual);
	if (t->from && !option && !(env && *env) && access(t->from, F_OK) < 0) {
		err_set(err, ERR_NOT_FOUND,
			"no kubeconfig found; next step: --kubeconfig FILE, or KUBECONFIG; for tec-operator --standalone=DIR it is DIR/kubeconfig, or the file of its --write-kubeconfig");
		return NULL;
	}
	if (t->from)
		return k8s_kubeconfig_load(t->from, context, err);
	t->from = xstrdup(SERVICE_ACCOUNT);
	return k8s_kubeconfig_in_cluster(host, port, SERVICE_ACCOUNT, err);
}

/* Ends the running tool_run(), and each one after it. */
static void on_signal(int signo, void *arg)
{
	struct tool *t = arg;

	t->interrupted = true;
	loop_stop(t->loop);
}

/* The namespace of the place or option, else that of the kubeconfig, else "default". The second
 * place of a command shares the loop and the HTTP client of the first. */
int tool_connect(struct tool *t, const char *place, struct err *err)
{
	cleanup_free char *of_place = NULL;
	const char *ns;
	struct k8s_kubeconfig *k;

	if (place && report_place(place, &t->from, &of_place, err) < 0)
		return -1;
	k = place ? k8s_kubeconfig_load(t->from, NULL, err) : load_config(t, err);
	if (!k)
		return -1;
	t->server = xstrdup(k->server);
	ns = place ? of_place : conf_str(t->conf, "namespace");
	if (!ns)
		ns = k->namespace_ ? k->namespace_ : "default";
	if (!kobj_label_valid(ns, strlen(ns))) {
		err_set(err, ERR_INVALID,
			"%s is not a valid namespace name; next step: -n NAMESPACE", log_esc(ns));
		k8s_kubeconfig_free(k);
		return -1;
	}
	t->ns = xstrdup(ns);
	if (!t->loop) {
		t->loop = loop_new();
		t->http = httpc_new(t->loop);
		t->intr = loop_signal_new(t->loop, SIGINT, on_signal, t);
		t->term = loop_signal_new(t->loop, SIGTERM, on_signal, t);
	}
	t->api = k8s_client_new(t->loop, t->http, k, "tecctl/" PACKAGE_VERSION, false);
	return 0;
}

/* Both connections share the loop and its scope. */
void tool_swap(struct tool *t, struct tool_server *other)
{
	struct tool_server mine = {t->api, t->from, t->server, t->ns};

	t->api = other->api;
	t->from = other->from;
	t->server = other->server;
	t->ns = other->ns;
	*other = mine;
}

void tool_server_fini(struct tool_server *s)
{
	k8s_transport_free(s->api);
	free(s->from);
	free(s->server);
	free(s->ns);
}

/* Cancel first: callbacks of calls in flight would use the transports. */
void tool_close(struct tool *t)
{
	if (t->loop) {
		op_scope_cancel(&t->ops);
		k8s_transport_free(t->api);
		httpc_free(t->http);
		loop_signal_free(t->intr);
		loop_signal_free(t->term);
		loop_free(t->loop);
	}
	free(t->from);
	free(t->server);
	free(t->ns);
}

/* ---- waiting */

/* loop_run() can return for another reason than ours, so it is called until tool_done(). */
int tool_run(struct tool *t, struct err *err)
{
	t->done = false;
	while (!t->done && !t->interrupted)
		loop_run(t->loop);
	if (t->done)
		return 0;
	op_scope_cancel(&t->ops);
	return err_set(err, ERR_TRANSIENT, "interrupted");
}

void tool_done(struct tool *t)
{
	t->done = true;
	loop_stop(t->loop);
}

static void on_time(void *arg)
{
	tool_done(arg);
}

/* An interrupt ends it early. */
int tool_sleep(struct tool *t, uint64_t ms, struct err *err)
{
	struct timer timer;
	int rc;

	timer_init(&timer, t->loop, on_time, t);
	timer_set(&timer, ms);
	rc = tool_run(t, err);
	timer_fini(&timer);
	return rc;
}

/* ---- the person at the terminal */

void tool_say(FILE *to, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT, line = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	report_line(&line, "%s", strbuf_str(&text));
	fputs(strbuf_str(&line), to);
}

void tool_document(const struct tool *t, struct json_object *o, struct strbuf *out)
{
	if (t->output == TOOL_YAML)
		report_yaml(out, o);
	else
		report_json(out, o);
}

int tool_refuse_name(const struct tool *t, struct err *err)
{
	return t->output == TOOL_NAME ? err_set(err, ERR_INVALID,
						"option --output: name is only available for lists")
				      : 0;
}

struct question {
	struct tool *t;
	char line[256];
	size_t len;
};

/* Read a line byte by byte, so that nothing after it is taken from the terminal. */
static void on_stdin(int fd, bool readable, bool writable, void *arg)
{
	struct question *q = arg;
	char c;
	ssize_t n = read(fd, &c, 1);

	if (n == 1 && c != '\n') {
		/* A longer line is cut: it is no valid answer anyway. */
		if (q->len + 1 < sizeof(q->line))
			q->line[q->len++] = c;
		return;
	}
	tool_done(q->t);
}

/* --yes answers the question in advance. */
int tool_confirm(struct tool *t, const char *question, struct err *err)
{
	return t->yes ? 0 : tool_confirm_word(t, question, "yes", err);
}

/* The loop runs meanwhile, so that Ctrl-C ends the question without a change. */
int tool_confirm_word(struct tool *t, const char *question, const char *word, struct err *err)
{
	struct question q = {.t = t};
	cleanup_strbuf struct strbuf safe = STRBUF_INIT;
	struct loop_fd *in;
	int rc;

	report_safe(&safe, question);
	fputs(strbuf_str(&safe), stderr);
	if (!isatty(STDIN_FILENO)) {
		fputc('\n', stderr);
		return err_set(err, ERR_INVALID,
			"cannot ask for confirmation without a terminal; next step: --yes");
	}
	fprintf(stderr, " Type %s to continue: ", word);
	fflush(stderr);
	in = loop_fd_new(t->loop, STDIN_FILENO, true, false, on_stdin, &q);
	rc = tool_run(t, err);
	loop_fd_free(in);
	if (rc < 0)
		fputc('\n', stderr);
	else if (!str_eq(q.line, word))
		rc = err_set(err, ERR_INVALID, "nothing was changed");
	return rc;
}

/* ---- one request */

struct asking {
	struct tool *t;
	struct strbuf body;
	struct err *err;
};

/* Collect the body, up to ANSWER_MAX. */
static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct asking *a = arg;

	if (a->body.len + len > ANSWER_MAX)
		return err_set(
			err, ERR_INVALID, "the answer is larger than %u MiB", ANSWER_MAX >> 20);
	strbuf_add(&a->body, data, len);
	return 0;
}

/* Any end of the request: an answer, an error, or the deadline. */
static void on_answer(void *arg, const struct err *err, const struct k8s_answer *answer)
{
	struct asking *a = arg;

	(void)!k8s_answer_check(err, answer, a->err); /* the result is in a->err */
	tool_done(a->t);
}

int tool_ask(struct tool *t, const char *method, const char *path, const char *type,
	struct json_object *body, struct json_object **out, struct err *err)
{
	return tool_ask_text(t, method, path, type, body ? json_text(body) : NULL, out, err);
}

/* The body and the answer may contain keys: both are wiped. */
static int ask_once(struct tool *t, const char *method, const char *path, const char *type,
	char *take_body, struct json_object **out, struct err *err)
{
	static const char *const verbs[][2] = {
		{"GET", "get"}, {"POST", "create"}, {"PATCH", "patch"}, {"DELETE", "delete"}};
	struct asking a = {.t = t, .err = err};
	struct k8s_request req = {.method = method,
		.content_type = take_body ? type : NULL,
		.verb = "get", /* for the client's metrics */
		.resource = "tecctl",
		.path = xstrdup(path),
		.deadline_ms = t->timeout_ms};
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (str_eq(method, verbs[i][0]))
			req.verb = verbs[i][1];
	if (take_body)
		req.body = body_of_text(take_body);
	(void)k8s_transport_start(t->api, &t->ops, &req, on_data, on_answer, &a);
	rc = tool_run(t, err);
	if (rc == 0)
		rc = err_is_set(err) ? -1 : 0;
	if (rc == 0 && out) {
		*out = json_parse(strbuf_str(&a.body), a.body.len, &limits, err);
		if (!*out)
			rc = err_wrap(
				err, "%s: the answer is not from a Kubernetes API", t->server);
	}
	secret_strbuf_fini(&a.body);
	return rc;
}

/* A server that answers 429 with Retry-After did nothing, so the request can be repeated. */
int tool_ask_text(struct tool *t, const char *method, const char *path, const char *type,
	char *take_body, struct json_object **out, struct err *err)
{
	int rc;

	for (unsigned n = 0;; n++) {
		uint32_t wait;

		rc = ask_once(t, method, path, type, xstrdup(take_body), out, err);
		wait = rc < 0 && err->http == 429 ? backoff_asked(err->retry_after_ms) : 0;
		if (wait == 0 || n == ASKED_MAX)
			break;
		tool_say(stderr, "tecctl: %s; retrying in %u s", err->text, (wait + 999) / 1000);
		err_clear(err);
		rc = tool_sleep(t, wait, err);
		if (rc < 0)
			break;
	}
	if (take_body)
		secret_wipe(take_body, strlen(take_body));
	free(take_body);
	return rc;
}

struct json_object *tool_get(
	struct tool *t, const struct kobj_gvk *gvk, const char *name, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct json_object *o = NULL;

	kobj_path(gvk, t->ns, name, NULL, &path);
	return tool_ask(t, "GET", strbuf_str(&path), NULL, NULL, &o, err) < 0 ? NULL : o;
}

char *tool_whoami(struct tool *t, struct err *err)
{
	cleanup_json struct json_object *ask = json_obj(), *who = NULL;
	const char *name;

	json_add_str(json_add_str(ask, "apiVersion", "authentication.k8s.io/v1"), "kind",
		"SelfSubjectReview");
	if (tool_ask(t, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		    "application/json", ask, &who, err) < 0)
		return NULL;
	name = json_get_str(who, "status/userInfo/username");
	return xstrdup(name ? name : "?");
}

/* A merge patch (RFC 7386): members that are absent stay, null removes. uid and resourceVersion name
 * the object as the person saw it. */
int tool_patch(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o,
	struct json_object *take_annotations, struct json_object *take_spec, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_json struct json_object *patch = json_obj();
	struct json_object *meta = json_obj();

	json_add_str(meta, "uid", json_get_str(o, "metadata/uid"));
	json_add_str(meta, "resourceVersion", json_get_str(o, "metadata/resourceVersion"));
	if (take_annotations)
		json_add(meta, "annotations", take_annotations);
	json_add(patch, "metadata", meta);
	if (take_spec)
		json_add(patch, "spec", take_spec);
	kobj_path(gvk, t->ns, report_name(o), NULL, &path);
	strbuf_adds(&path, "?fieldManager=tecctl");
	return tool_ask(
		t, "PATCH", strbuf_str(&path), "application/merge-patch+json", patch, NULL, err);
}

/* Background propagation, as kubectl: dependents are deleted by the API server. */
int tool_delete(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_json struct json_object *options = json_obj();

	json_add_str(json_add_str(options, "apiVersion", "v1"), "kind", "DeleteOptions");
	json_add_str(options, "propagationPolicy", "Background");
	json_add(options, "preconditions",
		json_add_str(json_obj(), "uid", json_get_str(o, "metadata/uid")));
	kobj_path(gvk, t->ns, report_name(o), NULL, &path);
	return tool_ask(t, "DELETE", strbuf_str(&path), "application/json", options, NULL, err);
}

/* ---- lists */

/* List in pages; the API server serves all of them from one snapshot. */
static int list_pages(struct tool *t, const struct kobj_gvk *gvk, enum report_kind kind,
	struct report_world *w, struct err *err)
{
	cleanup_free char *next = NULL;

	do {
		cleanup_strbuf struct strbuf path = STRBUF_INIT;
		cleanup_json struct json_object *page = NULL;
		struct json_object *items;
		const char *more;

		kobj_path(gvk, t->ns, NULL, NULL, &path);
		strbuf_adds(&path, "?limit=" PAGE);
		if (next) {
			strbuf_adds(&path, "&continue=");
			str_percent_encode(&path, next, strlen(next));
		}
		if (tool_ask(t, "GET", strbuf_str(&path), NULL, NULL, &page, err) < 0)
			return -1;
		items = json_get_arr(page, "items");
		for (size_t i = 0; i < json_len(items); i++)
			report_world_take(w, kind, json_object_get(json_at(items, i)));
		/* A token that has expired (410) ends the list with an error; the command can
		 * be repeated. */
		more = json_get_str(page, "metadata/continue");
		free(next);
		next = more && *more ? xstrdup(more) : NULL;
	} while (next);
	return 0;
}

/* Read the ConfigMaps that reports need; any of them may not exist. */
static int get_maps(struct tool *t, struct report_world *w, struct err *err)
{
	static const char *const names[] = {
		MODEL_PCRS_CONFIGMAP, MODEL_RV_CONFIGMAP, MODEL_SERVERS_CONFIGMAP};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct json_object *o = tool_get(t, &kobj_configmap, names[i], err);

		if (!o && err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		if (o)
			report_world_take(w, REPORT_CONFIGMAP, o);
	}
	return 0;
}

/* Lists that fail with 403 are recorded in w. If every list fails, the first error is returned. */
int tool_load(struct tool *t, unsigned kinds, struct report_world *w, struct err *err)
{
	static const struct kobj_gvk *const gvks[REPORT_N_KINDS] = {
		[REPORT_CLUSTER] = &kobj_cluster,
		[REPORT_MACHINE] = &kobj_machine,
		[REPORT_KEY] = &kobj_ak,
		[REPORT_IMAGE] = &kobj_image,
		[REPORT_CONFIGMAP] = NULL,
		[REPORT_EVENT] = &kobj_event};
	unsigned read = 0;

	w->ns = t->ns;
	w->now_s = clock_wall_s();
	for (unsigned k = 0; k < REPORT_N_KINDS; k++) {
		struct err why = ERR_INIT;
		int rc;

		if (!(kinds & 1u << k))
			continue;
		rc = gvks[k] ? list_pages(t, gvks[k], (enum report_kind)k, w, &why)
			     : get_maps(t, w, &why);
		if (rc == 0) {
			read++;
			continue;
		}
		/* A 403 may concern this kind only; without an answer there is nothing to show. */
		report_world_problem(w, (enum report_kind)k, why.text);
		if (why.kind == ERR_TRANSIENT || (why.kind == ERR_DENIED && why.http != 403)) {
			*err = why;
			return -1;
		}
		if (why.kind == ERR_NOT_FOUND && k == REPORT_CLUSTER)
			return err_set(err, ERR_NOT_FOUND,
				"%.100s has no resource TrustedExecutionCluster; next step: kubectl apply -k crd/, or choose another server",
				t->server);
		if (!err_is_set(err))
			*err = why;
	}
	report_world_sort(w);
	if (!read)
		return -1;
	err_clear(err);
	return 0;
}

int tool_all_read(const struct report_world *w, unsigned kinds, struct err *err)
{
	for (unsigned k = 0; k < REPORT_N_KINDS; k++)
		if (kinds & 1u << k && w->list[k].problem)
			return err_set(err, ERR_DENIED, "%s", w->list[k].problem);
	return 0;
}

int tool_load_all(struct tool *t, unsigned kinds, struct report_world *w, struct err *err)
{
	report_world_fini(w);
	*w = (struct report_world){.ns = NULL};
	return tool_load(t, kinds, w, err) < 0 ? -1 : tool_all_read(w, kinds, err);
}

/* Parse the cluster as the operator does, so that both agree on defaults. */
const struct kobj *tool_load_cluster(
	struct tool *t, unsigned kinds, struct report_world *w, struct err *err)
{
	struct json_object *cluster;
	const struct kobj *o;

	if (tool_load(t, kinds | 1u << REPORT_CLUSTER, w, err) < 0)
		return NULL;
	cluster = report_cluster(w);
	if (!cluster) {
		err_set(err, ERR_NOT_FOUND,
			"no TrustedExecutionCluster in namespace %.63s; next step: create one, or give -n NAMESPACE",
			t->ns);
		return NULL;
	}
	o = model_cluster_extract(cluster, err);
	if (!o)
		err_wrap(err, "TrustedExecutionCluster");
	return o;
}
