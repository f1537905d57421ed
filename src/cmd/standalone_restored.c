/* SPDX-License-Identifier: MIT */
/*
 * A backup may contain the approval of a key that was revoked since, which only a person can
 * know. The Event is about the TrustedExecutionCluster that has the keys; without one, no key is
 * in use.
 */
#include "config.h"

#include "standalone_restored.h"

#include <inttypes.h>

#include "tec/apistore/inproc.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define OUR_API  "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/%s/"
#define NOTE_MAX 1024 /* of events.k8s.io */

/* By the condition: the annotation is only a request. */
static bool is_approved(struct json_object *key)
{
	struct json_object *conditions = json_get_arr(key, "status/conditions");

	for (size_t i = 0; conditions && i < json_object_array_length(conditions); i++) {
		struct json_object *c = json_object_array_get_idx(conditions, i);

		if (str_eq(json_get_str(c, "type"), "Approved"))
			return str_eq(json_get_str(c, "status"), "True");
	}
	return false;
}

/* Append the names of approved keys, as many as fit into the note. */
static void add_names(struct strbuf *note, struct json_object *keys)
{
	static const char more[] = " and others (kubectl get attestationkeys)";
	size_t n = 0;

	for (size_t i = 0; keys && i < json_object_array_length(keys); i++) {
		struct json_object *key = json_object_array_get_idx(keys, i);
		const char *name = json_get_str(key, "metadata/name");

		if (!name || !is_approved(key))
			continue;
		if (note->len + strlen(name) + sizeof(more) + 3 > NOTE_MAX) {
			strbuf_adds(note, more);
			break;
		}
		strbuf_addf(note, "%s%s", n++ > 0 ? ", " : "", name);
	}
	strbuf_adds(note, n > 0 ? "." : "none.");
}

/* One text for restored and converted stores: what to do is the same. */
static void make_note(struct strbuf *note, struct json_object *keys, int64_t at_s)
{
	char at[CLOCK_RFC3339_LEN];

	clock_format(at_s, at);
	strbuf_addf(note,
		"The store was restored from a backup, or converted from a version before 0.3.0, at %s. "
		"Machines created before that without an approved key get one only from an administrator. "
		"Delete each AttestationKey that was revoked after the backup was made. Approved keys: ",
		at);
	add_names(note, keys);
}

/* Render the Event. version, the store's resourceVersion, makes its name unique. */
static struct json_object *event_of(
	const char *ns, struct json_object *cluster, const char *note, uint64_t version)
{
	struct json_object *o = json_obj(), *meta = json_obj(), *about = json_obj();
	const char *name = json_get_str(cluster, "metadata/name");
	cleanup_free char *event_name = xasprintf("%.200s.restored-%" PRIu64, name, version);
	char now[CLOCK_RFC3339_US_LEN];

	clock_format_us(clock_wall_us(), now);
	json_add_str(json_add_str(meta, "name", event_name), "namespace", ns);
	json_add_str(about, "apiVersion", "trusted-execution-clusters.io/v1alpha1");
	json_add_str(about, "kind", "TrustedExecutionCluster");
	json_add_str(json_add_str(about, "namespace", ns), "name", name);
	json_add_str(about, "uid", json_get_str(cluster, "metadata/uid"));
	json_add_str(json_add_str(o, "apiVersion", "events.k8s.io/v1"), "kind", "Event");
	json_add(o, "metadata", meta);
	json_add_str(json_add_str(o, "eventTime", now), "type", "Warning");
	json_add_str(json_add_str(o, "reason", "Restored"), "action", "Restore");
	json_add_str(o, "reportingController", PACKAGE_NAME);
	json_add_str(o, "reportingInstance", PACKAGE_NAME);
	json_add(o, "regarding", about);
	return json_add_str(o, "note", note);
}

/* The API lists by name; one namespace has one cluster that is served. */
static struct json_object *first_cluster(struct json_object *list)
{
	struct json_object *items = json_get_arr(list, "items");

	return items && json_object_array_length(items) > 0 ? json_object_array_get_idx(items, 0)
							    : NULL;
}

/* Through the API, so that validation, defaults and watches apply to it. */
static int post(struct apistore_objects *objects, const char *ns, struct json_object *event,
	struct err *err)
{
	cleanup_free char *path = xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", ns);
	cleanup_free char *text = json_text(event);
	struct apistore_answer a =
		apistore_inproc_ask(objects, "POST", path, "application/json", text, strlen(text));
	int rc = a.code == 201 ? 0 : err_set(err, ERR_BUG, "%s: %.200s", path, a.body);

	apistore_answer_fini(&a);
	return rc;
}

/* The log has the note even if no cluster exists for the Event. */
int standalone_restored_report(struct apistore_objects *objects, const char *ns, struct err *err)
{
	const struct apistore_db *db = apistore_objects_db(objects);
	cleanup_free char *clusters_path = xasprintf(OUR_API "trustedexecutionclusters", ns);
	cleanup_free char *keys_path = xasprintf(OUR_API "attestationkeys", ns);
	cleanup_json struct json_object *clusters = NULL, *keys = NULL, *event = NULL;
	cleanup_strbuf struct strbuf note = STRBUF_INIT;
	struct json_object *cluster;

	if (!apistore_db_just_restored(db))
		return 0;
	clusters = apistore_inproc_get(objects, clusters_path);
	keys = apistore_inproc_get(objects, keys_path);
	make_note(&note, json_get_arr(keys, "items"), apistore_db_restored_s(db));
	log_warn(NULL, strbuf_str(&note), NULL);
	cluster = first_cluster(clusters);
	if (!cluster)
		return 0;
	event = event_of(ns, cluster, strbuf_str(&note), apistore_objects_rv(objects));
	return post(objects, ns, event, err);
}
