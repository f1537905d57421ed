/* SPDX-License-Identifier: MIT */
/*
 * The commands that change something. Each change names exactly the object that the person saw
 * (its uid, and for a patch its version), and a question precedes each loss of a key.
 *
 * approve         annotates the key and waits for the condition Approved
 * deny            deletes the key
 * rebind          deletes the key that is bound to a Machine, so that another Machine can have it
 * server lost     annotates the TrustedExecutionCluster and waits until the operator forgot the server
 * machine delete  deletes the Machine; its finalizer stays until every Trustee has revoked the keys
 *
 * The operator does the work. These commands wait for it (--wait), and repeat nothing themselves.
 */
#include "config.h"

#include "tool.h"

#include <stdio.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/lost.h"
#include "tec/report/status.h"

#define POLL_MS           250
#define MACHINES_AND_KEYS (1u << REPORT_MACHINE | 1u << REPORT_KEY)

/* ---- waiting for the operator */

/* 1: reached; 0: not yet; -1: it will not be reached. */
typedef int (*wait_fn)(struct json_object *o, struct err *err);

/* Poll the object until the state is reached or --wait is over. is_so gets NULL if the object
 * is gone; `what` completes "the operator has not ...". */
static int wait_until(struct tool *t, const struct kobj_gvk *gvk, const char *name, wait_fn is_so,
	const char *what, struct err *err)
{
	uint64_t end = clock_boot_ms() + t->wait_ms;

	while (t->wait_ms) {
		cleanup_json struct json_object *o = tool_get(t, gvk, name, err);
		int so;

		if (!o && err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		so = is_so(o, err);
		if (so != 0)
			return so < 0 ? -1 : 0;
		if (clock_boot_ms() >= end) {
			const char *message =
				json_get_str(report_condition(o, "Approved"), "message");

			return err_set(err, ERR_INVALID,
				"the operator has not %s within %llu s%s%.100s; next step: tecctl doctor",
				what, (unsigned long long)t->wait_ms / 1000, message ? ": " : "",
				message ? message : "");
		}
		if (tool_sleep(t, POLL_MS, err) < 0)
			return -1;
	}
	return 0;
}

/* 1: the key is approved. One that disappears while we wait was denied by somebody else. */
static int is_approved(struct json_object *o, struct err *err)
{
	if (!o)
		return err_set(
			err, ERR_NOT_FOUND, "the AttestationKey was deleted in the meantime");
	return report_is_true(o, "Approved");
}

static int is_gone(struct json_object *o, struct err *err)
{
	return o == NULL;
}

/* ---- keys */

/* Find the key by its own name, or the only key that waits for the Machine of that name.
 * Borrowed from w. */
static struct json_object *find_key(struct tool *t, const struct report_world *w, struct err *err)
{
	const char *text = conf_operand(t->conf);
	struct json_object *key = report_find(w, REPORT_KEY, text), *machine, *other;
	struct err unused = ERR_INIT;
	size_t at = 0;

	if (key)
		return key;
	machine = report_machine_find(w, text, &unused);
	if (!machine) {
		err_set(err, ERR_NOT_FOUND,
			"no AttestationKey or Machine in namespace %.63s has the name %.80s; next step: tecctl key list",
			t->ns, log_esc(text));
		return NULL;
	}
	while ((other = report_machine_other_key(w, machine, &at))) {
		if (key) {
			err_set(err, ERR_CONFLICT,
				"several keys wait for Machine %.60s (%.50s, %.50s); next step: approve one of them by name",
				report_name(machine), report_name(key), report_name(other));
			return NULL;
		}
		key = other;
	}
	if (!key)
		err_set(err, ERR_NOT_FOUND,
			"no key waits for Machine %.80s; next step: tecctl why %.80s",
			report_name(machine), report_name(machine));
	return key;
}

/* The Machine with the key's uuid; NULL: none. */
static struct json_object *machine_of(const struct report_world *w, struct json_object *key)
{
	const char *uuid = json_get_str(key, "spec/uuid");
	struct err unused = ERR_INIT;

	return uuid ? report_machine_find(w, uuid, &unused) : NULL;
}

/* The annotation asks the operator to approve; what it checks is up to the operator. */
int tool_approve(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	struct json_object *key, *machine, *holds;
	const char *name;

	if (tool_load_all(t, MACHINES_AND_KEYS, &w, err) < 0 || !(key = find_key(t, &w, err)))
		return -1;
	name = report_name(key);
	if (report_is_true(key, "Approved")) {
		tool_say(stdout, "attestationkey %s is already approved", name);
		return 0;
	}
	machine = machine_of(&w, key);
	if (!machine)
		return err_set(err, ERR_NOT_FOUND,
			"no Machine has the uuid of AttestationKey %.60s; next step: create the Machine first, or tecctl deny %.60s",
			name, name);
	holds = report_machine_key(&w, machine);
	if (holds && holds != key) {
		cleanup_free char *question = xasprintf(
			"Key %s becomes the key of Machine %s and replaces %s, which can no longer attest.",
			name, report_name(machine), report_name(holds));

		if (tool_confirm(t, question, err) < 0)
			return -1;
	}
	if (tool_patch(t, &kobj_ak, key,
		    json_add_str(json_obj(), MODEL_APPROVED_ANNOTATION, "true"), NULL, err) < 0 ||
		wait_until(t, &kobj_ak, name, is_approved, "approved the key", err) < 0)
		return -1;
	tool_say(stdout, "attestationkey %s %s", name,
		t->wait_ms ? "approved" : "will be approved by the operator");
	return 0;
}

/* Deletion takes until every Trustee has confirmed the revocation; the finalizer waits for that. */
static int delete_and_wait(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o,
	const char *kind, const char *did, struct err *err)
{
	if (tool_delete(t, gvk, o, err) < 0 ||
		wait_until(t, gvk, report_name(o), is_gone,
			"deleted it (its keys must first be revoked in every Trustee)", err) < 0)
		return -1;
	tool_say(stdout, "%s %s %s", kind, report_name(o), did);
	return 0;
}

/* Only by the key's own name: a Machine's name could mean any of its keys. */
int tool_deny(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	struct json_object *key, *machine;

	if (tool_load_all(t, MACHINES_AND_KEYS, &w, err) < 0)
		return -1;
	key = report_find(&w, REPORT_KEY, conf_operand(t->conf));
	if (!key)
		return err_set(err, ERR_NOT_FOUND,
			"no AttestationKey in namespace %.63s has the name %.80s; next step: tecctl key list",
			t->ns, log_esc(conf_operand(t->conf)));
	machine = machine_of(&w, key);
	if (report_is_true(key, "Approved") ||
		(machine && report_machine_key(&w, machine) == key)) {
		cleanup_free char *question = xasprintf(
			"Key %s is approved: without it, the node of Machine %s cannot open its disk until an administrator approves another key of that node.",
			report_name(key), machine ? report_name(machine) : "-");

		if (tool_confirm(t, question, err) < 0)
			return -1;
	}
	return delete_and_wait(t, &kobj_ak, key, "attestationkey", "denied and deleted", err);
}

/* ---- Machines */

/* A key belongs to one Machine at a time: a reinstalled node has a new id, and its key must be
 * released first. */
int tool_rebind(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_free char *question = NULL;
	struct json_object *machine, *key;

	if (tool_load_all(t, MACHINES_AND_KEYS, &w, err) < 0 ||
		!(machine = report_machine_find(&w, conf_operand(t->conf), err)))
		return -1;
	key = report_machine_key(&w, machine);
	if (!key)
		return err_set(err, ERR_NOT_FOUND,
			"Machine %.80s has no bound key to remove; next step: tecctl why %.80s",
			report_name(machine), report_name(machine));
	question = xasprintf(
		"Key %s is removed from Machine %s: that Machine's disk can be opened again only after an administrator approves a key for it.",
		report_name(key), report_name(machine));
	if (tool_confirm(t, question, err) < 0 ||
		delete_and_wait(
			t, &kobj_ak, key, "attestationkey", "removed from its Machine", err) < 0)
		return -1;
	puts("Next step: boot the node, which registers its key for its new Machine. Then: tecctl status");
	return 0;
}

/* The question has the id, too: names of Machines are hard to tell apart. */
int tool_machine_delete(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_free char *question = NULL;
	struct json_object *machine;

	if (tool_load_all(t, MACHINES_AND_KEYS, &w, err) < 0 ||
		!(machine = report_machine_find(&w, conf_operand(t->conf), err)))
		return -1;
	question = xasprintf(
		"Machine %s is deleted with its disk key: the data on the disk of node %s is lost permanently.",
		report_name(machine), json_get_str(machine, "spec/id"));
	if (tool_confirm(t, question, err) < 0)
		return -1;
	return delete_and_wait(t, &kobj_machine, machine, "machine",
		t->wait_ms ? "deleted" : "is being deleted", err);
}

/* ---- Trustee servers */

/* Refuse what is not lost: a server that spec names, one that the operator does not know, and one that
 * answers. 1: it was declared lost before. */
static int check_lost(const struct report_world *w, const struct model_cluster *c,
	struct json_object *lost, const char *address, struct err *err)
{
	cleanup_json struct json_object *kept = report_servers(w);
	struct json_object *one = model_lost_find(kept, address);
	bool named = str_eq(c->public_trustee_addr, address);

	for (unsigned i = 0; i < c->n_servers; i++)
		named |= str_eq(c->server_addr[i], address);
	if (named)
		return err_set(err, ERR_INVALID,
			"spec still names %.260s; next step: remove it from spec.trusteeServers: kubectl edit tec %.63s",
			log_esc(address), c->obj.name);
	if (model_lost_find(lost, address))
		return 1;
	if (!one)
		return err_set(err, ERR_NOT_FOUND,
			"nothing waits for a Trustee server %.260s; next step: tecctl status",
			log_esc(address));
	if (!json_get_bool(one, MODEL_SERVER_AWAY, false))
		return err_set(err, ERR_INVALID,
			"%.260s is not known to be away: it answers, or the operator is still connecting; next step: tecctl status",
			log_esc(address));
	return 0;
}

/* Wait until the operator's memory no longer has the server. */
static int wait_forgotten(struct tool *t, const char *address, struct err *err)
{
	uint64_t end = clock_boot_ms() + t->wait_ms;

	while (t->wait_ms) {
		cleanup_show_world struct report_world w = {.ns = NULL};
		cleanup_json struct json_object *kept = NULL;
		struct json_object *o = tool_get(t, &kobj_configmap, MODEL_SERVERS_CONFIGMAP, err);

		if (!o && err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		report_world_take(&w, REPORT_CONFIGMAP, o);
		kept = report_servers(&w);
		if (!model_lost_find(kept, address))
			return 0;
		if (clock_boot_ms() >= end)
			return err_set(err, ERR_INVALID,
				"the operator has not ended the wait within %llu s; next step: tecctl doctor",
				(unsigned long long)t->wait_ms / 1000);
		if (tool_sleep(t, POLL_MS, err) < 0)
			return -1;
	}
	return 0;
}

/* The question names what is at stake: the server may be alive, only not for the operator. */
int tool_server_lost(struct tool *t, struct err *err)
{
	const char *address = conf_operand(t->conf);
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_kobj const struct kobj *o = tool_load_cluster(t, 1u << REPORT_CONFIGMAP, &w, err);
	cleanup_json struct json_object *lost = NULL;
	cleanup_free char *by = NULL, *text = NULL, *question = NULL;
	int rc;

	if (!o || tool_all_read(&w, 1u << REPORT_CONFIGMAP, err) < 0)
		return -1;
	lost = model_lost_list(model_cluster(o)->lost_servers);
	rc = check_lost(&w, model_cluster(o), lost, address, err);
	if (rc > 0)
		tool_say(stdout, "trustee server %s was already declared lost", address);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (json_len(lost) >= MODEL_LOST_MAX)
		return err_set(err, ERR_INVALID,
			"%d servers are declared lost, which is the maximum; next step: remove old ones from annotation " MODEL_LOST_ANNOTATION,
			MODEL_LOST_MAX);
	question = xasprintf(
		"Trustee server %s is declared lost: deletions are completed without it. If it still runs, it keeps the keys that are deleted, and nodes can get them there.",
		address);
	if (tool_confirm(t, question, err) < 0)
		return -1;
	by = tool_whoami(t, err);
	if (!by && err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	model_lost_add(lost, address, clock_wall_s(), by);
	text = json_text(lost);
	if (tool_patch(t, &kobj_cluster, report_cluster(&w),
		    json_add_str(json_obj(), MODEL_LOST_ANNOTATION, text), NULL, err) < 0 ||
		wait_forgotten(t, address, err) < 0)
		return -1;
	tool_say(stdout, "trustee server %s declared lost", address);
	return 0;
}
