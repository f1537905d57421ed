/* SPDX-License-Identifier: MIT */
/*
 * First the document (the functions *_json and add_*), then the text from the document (print_*).
 * The second half must not look at report_world: the two outputs would drift apart.
 *
 * The document:
 *
 *   namespace       the one that was read
 *   cluster         name, registration, approval, authority{}, conditions[]; null: none was found
 *   trusteeServers  [address, field of spec or why there is none, whether the operator writes keys there]
 *   images          [name, image, state, message, variants, ageSeconds]
 *   bootSets        register sets that are approved; absent: unknown
 *   machines        total, ready, and the number in each state
 *   keys            the number of AttestationKeys
 *   waiting         [kind, name, reason, message, next step, whether it passes without action]
 *   unreadable      [kind, why]: lists whose absence above proves nothing
 *
 * Programs get it with -o json and -o yaml.
 */
#include "config.h"

#include "tec/report/status.h"

#include <inttypes.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/meta.h"
#include "tec/model/configmap.h"
#include "tec/model/lost.h"
#include "tec/model/pcrs.h"
#include "tec/report/advice.h"
#include "tec/report/text.h"

#define WAITING_MAX 20 /* entries in the text; the document has all */

static const char *const kind_names[REPORT_N_KINDS] = {[REPORT_CLUSTER] = "TrustedExecutionCluster",
	[REPORT_MACHINE] = "Machine",
	[REPORT_KEY] = "AttestationKey",
	[REPORT_IMAGE] = "ApprovedImage",
	[REPORT_CONFIGMAP] = "ConfigMap",
	[REPORT_EVENT] = "Event"};

/* ---- the state of one object */

/* "Deleting" outranks other reasons but Revoking, which tells more. Without any condition the
 * object is "New": the operator has not reached it. */
struct report_state report_state_of(enum report_kind kind, struct json_object *o)
{
	/* In the order in which they become true: the first that is not names the state. Revoking
	 * outranks it: what was undone before is not what the object waits for. */
	static const char *const types[REPORT_N_KINDS][5] = {
		[REPORT_CLUSTER] = {"Installed", "KnownTrusteeAddress", "TrusteeSynced",
			"Authority"},
		[REPORT_MACHINE] = {"KeyReady", "AttestationKeyBound", "Delivered"},
		[REPORT_KEY] = {"Approved", "Delivered"},
		[REPORT_IMAGE] = {"Committed"},
	};
	struct report_state s = {"New", NULL, REPORT_STATE_PASSES};
	bool any = false;

	for (const char *const *t = types[kind]; *t; t++) {
		struct json_object *c = report_condition(o, *t);
		const char *reason = json_get_str(c, "reason");

		any = any || c;
		if (!c || str_eq(json_get_str(c, "status"), "True") ||
			(!str_eq(s.word, "New") && !str_eq(reason, "Revoking")))
			continue;
		s.word = reason ? reason : "Unknown";
		s.message = json_get_str(c, "message");
		s.how = report_passes(kind, s.word) ? REPORT_STATE_PASSES : REPORT_STATE_ACT;
	}
	if (report_deleting(o) && !str_eq(s.word, "Revoking"))
		return (struct report_state){"Deleting", s.message, REPORT_STATE_PASSES};
	if (any && str_eq(s.word, "New"))
		return (struct report_state){"Ready", NULL, REPORT_STATE_GOOD};
	return s;
}

enum report_colour report_state_colour(enum report_kind kind, const char *word)
{
	return str_eq(word, "Ready") ? REPORT_GOOD
	       : report_passes(kind, word) || str_eq(word, "New") || str_eq(word, "Deleting")
		       ? REPORT_WAITS
		       : REPORT_BAD;
}

enum report_colour report_condition_colour(enum report_kind kind, struct json_object *condition)
{
	return str_eq(json_get_str(condition, "status"), "True")        ? REPORT_GOOD
	       : report_passes(kind, json_get_str(condition, "reason")) ? REPORT_WAITS
									: REPORT_BAD;
}

/* ---- the document */

/* Copy members that hold text; one that is absent stays absent. */
static struct json_object *copy_texts(
	struct json_object *to, struct json_object *from, const char *const *names)
{
	for (; *names; names++)
		json_add_str(to, *names, json_get_str(from, *names));
	return to;
}

/* Defaults of the CRD are filled in here: objects do not store them. Of conditions and of
 * status.authority only the members that matter to people are kept; the authority that spec
 * requests is "wanted". */
static struct json_object *cluster_json(struct json_object *o)
{
	static const char *const of_condition[] = {"type", "status", "reason", "message", NULL},
				 *const of_authority[] = {"seen", "digest", NULL};
	struct json_object *c = json_obj(), *to = json_obj(), *conditions = json_arr(),
			   *from = json_get_obj(o, "status/authority"),
			   *all = json_get_arr(o, "status/conditions");
	const char *mode = json_get_str(o, "spec/registration/mode"),
		   *approval = json_get_str(o, "spec/registration/approval"),
		   *wanted = json_get_str(o, "spec/authority");
	int64_t behind = json_get_int(from, "behind", -1);

	json_add_str(c, "name", report_name(o));
	json_add_str(c, "registration", mode ? mode : "Open");
	json_add_str(c, "approval", approval ? approval : "Automatic");
	json_add_str(to, "wanted", wanted ? wanted : "Self");
	json_add_str(to, "reason", json_get_str(report_condition(o, "Authority"), "reason"));
	json_add_str(to, "peer", json_get_str(from, "peer"));
	if (behind >= 0)
		json_add_int(to, "behind", behind);
	json_add(c, "authority", copy_texts(to, from, of_authority));
	for (size_t i = 0; i < json_len(all); i++)
		json_push(conditions, copy_texts(json_obj(), json_at(all, i), of_condition));
	return json_add(c, "conditions", conditions);
}

static struct json_object *server_json(const char *address, const char *field)
{
	return json_add_str(json_add_str(json_obj(), "address", address), "field", field);
}

/* Append the servers that spec no longer names: those that the operator waits for, and those that were
 * declared lost. */
static void add_left_servers(
	struct json_object *out, const struct report_world *w, struct json_object *cluster)
{
	cleanup_json struct json_object *kept = report_servers(w);
	cleanup_json struct json_object *lost =
		model_lost_list(kobj_annotation(cluster, MODEL_LOST_ANNOTATION));

	for (size_t i = 0; i < json_len(kept); i++) {
		const char *address = json_get_str(json_at(kept, i), "address");
		bool away = json_get_bool(json_at(kept, i), MODEL_SERVER_AWAY, false);

		if (address && !model_lost_find(out, address))
			json_push(out, json_add_bool(server_json(address,
							     away ? "not in spec, does not answer"
								  : "not in spec"),
					       "administered", true));
	}
	for (size_t i = 0; i < json_len(lost); i++) {
		struct json_object *one = json_at(lost, i);
		const char *address = json_get_str(one, "address");
		cleanup_free char *since = xasprintf("lost since %s", json_get_str(one, "at"));

		if (!model_lost_find(out, address))
			json_push(out,
				json_add_bool(server_json(address, since), "administered", false));
	}
}

/* All servers that nodes may contact, publicTrusteeAddr first; "administered" are those that the
 * operator writes keys to. An address that is not set is left out. */
static struct json_object *servers_json(const struct report_world *w, struct json_object *cluster)
{
	struct json_object *out = json_arr(), *more = json_get_arr(cluster, "spec/trusteeServers");

	for (size_t i = 0; i <= json_len(more); i++) {
		struct json_object *s = i ? json_at(more, i - 1) : NULL;
		const char *address = s ? json_get_str(s, "address")
					: json_get_str(cluster, "spec/publicTrusteeAddr");
		cleanup_free char *field =
			s ? xasprintf("trusteeServers[%zu]", i - 1) : xstrdup("publicTrusteeAddr");

		if (!address)
			continue;
		json_push(out, json_add_bool(server_json(address, field), "administered",
				       !s || json_get_str(s, "adminSecret") != NULL));
	}
	add_left_servers(out, w, cluster);
	return out;
}

/* Without known values an image has no number of variants: sets of PCR values it may boot with. */
static struct json_object *images_json(const struct report_world *w)
{
	cleanup_model_pcrs struct model_pcrs *pcrs = report_pcrs(w);
	struct json_object *out = json_arr();

	for (size_t i = 0; i < w->list[REPORT_IMAGE].n; i++) {
		struct json_object *o = w->list[REPORT_IMAGE].v[i], *to = json_obj();
		const struct model_pcrs_entry *e =
			pcrs ? model_pcrs_find(pcrs, report_name(o)) : NULL;
		struct report_state s = report_state_of(REPORT_IMAGE, o);

		json_add_str(to, "name", report_name(o));
		json_add_str(to, "image", json_get_str(o, "spec/image"));
		json_add_str(json_add_str(to, "state", s.word), "message", s.message);
		if (e && !e->why)
			json_add_int(to, "variants", 1 + (int64_t)e->variants.n);
		json_push(out, json_add_int(to, "ageSeconds", report_age_of(w, o)));
	}
	return out;
}

/* Count Machines by state: there may be thousands, so they are not listed one by one. */
static struct json_object *machines_json(const struct report_world *w)
{
	struct json_object *by = json_obj();
	int64_t ready = 0;

	for (size_t i = 0; i < w->list[REPORT_MACHINE].n; i++) {
		struct report_state s =
			report_state_of(REPORT_MACHINE, w->list[REPORT_MACHINE].v[i]);

		ready += s.how == REPORT_STATE_GOOD;
		json_object_object_add(
			by, s.word, json_object_new_int64(json_get_int(by, s.word, 0) + 1));
	}
	return json_add(
		json_add_int(json_add_int(json_obj(), "total", (int64_t)w->list[REPORT_MACHINE].n),
			"ready", ready),
		"byState", by);
}

/* Append the objects of one kind that are not Ready, with the advice for the reason. */
static void add_waiting(
	struct json_object *out, const struct report_world *w, enum report_kind kind)
{
	for (size_t i = 0; i < w->list[kind].n; i++) {
		struct json_object *o = w->list[kind].v[i], *to;
		struct report_state s = report_state_of(kind, o);
		cleanup_strbuf struct strbuf next = STRBUF_INIT;

		if (s.how == REPORT_STATE_GOOD)
			continue;
		to = json_add_str(json_obj(), "kind", kind_names[kind]);
		json_add_str(json_add_str(to, "name", report_name(o)), "reason", s.word);
		json_add_str(to, "message", s.message);
		if (report_advice(kind, s.word, report_name(o), &next))
			json_add_str(to, "next", strbuf_str(&next));
		json_push(out, json_add_bool(to, "passes", s.how == REPORT_STATE_PASSES));
	}
}

/* What waits is listed in the order in which it blocks the rest: the cluster, images, keys,
 * Machines. The register sets of all images that Trustee accepts as an approved boot are counted
 * in its list of names; without the ConfigMap their number is unknown. */
struct json_object *report_status(const struct report_world *w)
{
	static const enum report_kind order[] = {
		REPORT_CLUSTER, REPORT_IMAGE, REPORT_KEY, REPORT_MACHINE};
	struct json_object *out = json_obj(), *cluster = report_cluster(w), *waiting = json_arr(),
			   *unreadable = json_arr();
	size_t len;
	const char *text = report_file(w, MODEL_RV_CONFIGMAP, MODEL_RV_NAMES, &len);
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *sets =
		text ? json_parse(text, len, &json_limits_object, &ignored) : json_arr();

	json_add_str(out, "namespace", w->ns);
	json_add(out, "cluster", cluster ? cluster_json(cluster) : NULL);
	json_add(out, "trusteeServers", servers_json(w, cluster));
	json_add(out, "images", images_json(w));
	if (report_find(w, REPORT_CONFIGMAP, MODEL_RV_CONFIGMAP) &&
		json_object_is_type(sets, json_type_array))
		json_add_int(out, "bootSets", (int64_t)json_len(sets));
	json_add(out, "machines", machines_json(w));
	json_add_int(out, "keys", (int64_t)w->list[REPORT_KEY].n);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		add_waiting(waiting, w, order[i]);
	json_add(out, "waiting", waiting);
	for (int k = 0; k < REPORT_N_KINDS; k++)
		if (w->list[k].problem)
			json_push(unreadable,
				json_add_str(json_add_str(json_obj(), "kind", kind_names[k]), "why",
					w->list[k].problem));
	return json_add(out, "unreadable", unreadable);
}

/* ---- the text */

/* Whether the list of this kind could not be read; then its count says nothing. */
static bool is_unreadable(struct json_object *s, enum report_kind kind)
{
	struct json_object *all = json_get_arr(s, "unreadable");

	for (size_t i = 0; i < json_len(all); i++)
		if (str_eq(json_get_str(json_at(all, i), "kind"), kind_names[kind]))
			return true;
	return false;
}

/* Where and how the text is written. */
struct page {
	struct strbuf *out;
	bool colours;
};

/* Start a section: an empty line between sections, none before the first. */
static void title(const struct page *p, const char *text)
{
	if (p->out->len)
		strbuf_addc(p->out, '\n');
	report_text(p->out, p->colours, REPORT_TITLE, text);
}

/* Tell who decides, if it is not this operator, and how far its copy lags. */
static void print_authority(const struct page *p, struct json_object *a)
{
	const char *wanted = json_get_str(a, "wanted"), *peer = json_get_str(a, "peer"),
		   *seen = json_get_str(a, "seen"), *digest = json_get_str(a, "digest");
	int64_t behind = json_get_int(a, "behind", -1);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (!a || str_eq(wanted, "Self"))
		return;
	if (peer)
		strbuf_addf(&text, ", follows %s", peer);
	if (behind >= 0)
		strbuf_addf(&text, ", %" PRId64 " objects behind", behind);
	if (seen)
		strbuf_addf(&text, ", seen %s", seen);
	report_line(p->out, "  This operator does not decide: spec.authority is %s%s", wanted,
		strbuf_str(&text));
	if (digest)
		report_line(p->out, "  State digest %s", digest);
}

/* Print the message of a condition only if it is not True: a good state needs no explanation. */
static void print_cluster(const struct page *p, struct json_object *s)
{
	struct json_object *c = json_get_obj(s, "cluster"), *all = json_get_arr(c, "conditions");
	const char *ns = report_str(s, "namespace");

	title(p, "Cluster");
	if (c)
		report_line(p->out, " %s in namespace %s, registration %s, approval %s",
			report_str(c, "name"), ns, report_str(c, "registration"),
			report_str(c, "approval"));
	else
		report_line(p->out, " - in namespace %s", ns);
	if (!c)
		strbuf_adds(p->out,
			is_unreadable(s, REPORT_CLUSTER)
				? "  not readable\n"
				: "  No TrustedExecutionCluster found. Next step: create one, or give its namespace with -n.\n");
	print_authority(p, json_get_obj(c, "authority"));
	for (size_t i = 0; i < json_len(all); i++) {
		struct json_object *one = json_at(all, i);
		enum report_colour colour = report_condition_colour(REPORT_CLUSTER, one);
		cleanup_strbuf struct strbuf name = STRBUF_INIT;

		report_safe(&name, json_get_str(one, "type"));
		strbuf_addf(p->out, "  %-20s  ", strbuf_str(&name));
		report_text(p->out, p->colours, colour, json_get_str(one, "reason"));
		if (colour == REPORT_GOOD)
			strbuf_addc(p->out, '\n');
		else
			report_line(p->out, ": %s", report_str(one, "message"));
	}
}

static void print_servers(const struct page *p, struct json_object *s)
{
	static const char *const titles[] = {"ADDRESS", "FIELD", "ADMINISTERED", NULL};
	struct json_object *all = json_get_arr(s, "trusteeServers");
	struct report_table *t;

	if (!json_len(all))
		return;
	title(p, "Trustee servers");
	strbuf_addc(p->out, '\n');
	t = report_table_new(titles);
	for (size_t i = 0; i < json_len(all); i++) {
		struct json_object *one = json_at(all, i);

		report_table_row(t);
		report_table_cell(t, REPORT_PLAIN, json_get_str(one, "address"));
		report_table_cell(t, REPORT_PLAIN, json_get_str(one, "field"));
		report_table_cell(
			t, REPORT_PLAIN, json_get_bool(one, "administered", false) ? "yes" : "no");
	}
	report_table_print(t, "  ", p->colours, p->out);
}

/* An image without a known number of variants shows "-": its values are not computed yet. */
static void print_images(const struct page *p, struct json_object *s)
{
	static const char *const titles[] = {"NAME", "STATE", "VARIANTS", "AGE", "IMAGE", NULL};
	struct json_object *all = json_get_arr(s, "images");
	int64_t sets = json_get_int(s, "bootSets", -1);
	struct report_table *t;

	title(p, "Images");
	if (is_unreadable(s, REPORT_IMAGE)) {
		strbuf_adds(p->out, "\n  not readable\n");
		return;
	}
	strbuf_addf(p->out, "  %zu", json_len(all));
	if (sets >= 0)
		strbuf_addf(
			p->out, ", %" PRId64 " boot %s approved", sets, sets == 1 ? "set" : "sets");
	strbuf_addc(p->out, '\n');
	if (!json_len(all))
		return;
	t = report_table_new(titles);
	for (size_t i = 0; i < json_len(all); i++) {
		struct json_object *one = json_at(all, i);
		const char *state = json_get_str(one, "state");
		cleanup_free char *variants =
			xasprintf("%" PRId64, json_get_int(one, "variants", -1));

		report_table_row(t);
		report_table_cell(t, REPORT_PLAIN, json_get_str(one, "name"));
		report_table_cell(t, report_state_colour(REPORT_IMAGE, state), state);
		report_table_cell(t, REPORT_PLAIN, variants[0] == '-' ? "-" : variants);
		report_table_age(t, json_get_int(one, "ageSeconds", -1));
		report_table_cell(t, REPORT_PLAIN, json_get_str(one, "image"));
	}
	report_table_print(t, "  ", p->colours, p->out);
}

/* One line per state, in the order in which states were first met. */
static void print_machines(const struct page *p, struct json_object *s)
{
	struct json_object *by = json_get_obj(s, "machines/byState");

	title(p, "Machines");
	if (is_unreadable(s, REPORT_MACHINE)) {
		strbuf_adds(p->out, "\n  not readable\n");
		return;
	}
	strbuf_addf(p->out, "  %" PRId64, json_get_int(s, "machines/total", 0));
	if (!is_unreadable(s, REPORT_KEY))
		strbuf_addf(p->out, ", attestation keys %" PRId64, json_get_int(s, "keys", 0));
	strbuf_addc(p->out, '\n');
	json_object_object_foreach (by, name, n) {
		strbuf_addf(p->out, "  %6" PRId64 "  ", json_object_get_int64(n));
		report_text(p->out, p->colours, report_state_colour(REPORT_MACHINE, name), name);
		strbuf_addc(p->out, '\n');
	}
}

/* At most WAITING_MAX entries: with thousands of Machines the rest is a matter for -o json. */
static void print_waiting(const struct page *p, struct json_object *s)
{
	struct json_object *all = json_get_arr(s, "waiting");
	size_t n = json_len(all);

	if (!n)
		return;
	title(p, "Waiting, and why");
	strbuf_addc(p->out, '\n');
	for (size_t i = 0; i < n && i < WAITING_MAX; i++) {
		struct json_object *one = json_at(all, i);
		const char *message = json_get_str(one, "message"),
			   *next = json_get_str(one, "next");
		cleanup_free char *what =
			xasprintf("  %s %s: ", report_str(one, "kind"), report_str(one, "name"));

		report_safe(p->out, what);
		report_text(p->out, p->colours,
			json_get_bool(one, "passes", false) ? REPORT_WAITS : REPORT_BAD,
			json_get_str(one, "reason"));
		strbuf_addc(p->out, '\n');
		if (message)
			report_line(p->out, "    %s", message);
		if (next)
			report_line(p->out, "    -> %s", next);
	}
	if (n > WAITING_MAX)
		strbuf_addf(p->out, "  and %zu more: tecctl status -o json, tecctl machine list\n",
			n - WAITING_MAX);
}

/* Lists that could not be read, usually for lack of rights. */
static void print_unreadable(const struct page *p, struct json_object *s)
{
	struct json_object *all = json_get_arr(s, "unreadable");

	if (!json_len(all))
		return;
	title(p, "Unreadable, and therefore not shown");
	strbuf_addc(p->out, '\n');
	for (size_t i = 0; i < json_len(all); i++) {
		strbuf_addf(p->out, "  %s: ", report_str(json_at(all, i), "kind"));
		report_text(p->out, p->colours, REPORT_BAD, json_get_str(json_at(all, i), "why"));
		strbuf_addc(p->out, '\n');
	}
}

/* Built in a buffer of its own, so that title() knows whether it is the first section. */
void report_status_text(struct json_object *status, bool colours, struct strbuf *out)
{
	cleanup_strbuf struct strbuf own = STRBUF_INIT;
	struct page p = {&own, colours};

	print_cluster(&p, status);
	print_servers(&p, status);
	print_images(&p, status);
	print_machines(&p, status);
	print_waiting(&p, status);
	print_unreadable(&p, status);
	strbuf_add(out, own.data, own.len);
}
