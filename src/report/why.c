/* SPDX-License-Identifier: MIT */
/*
 * A refusal is an Event about the Machine or one of its keys. Its note is for people; only "PCR N
 * is HASH" is parsed from it, to find the approved images that have that value. Anybody who can
 * create Events can imitate the operator's, so they are evidence, not proof.
 *
 * Text:
 *
 *   Machine m, id UUID: something needed for its disk key is missing
 *     ok    disk key: KeyMade: ...
 *     no    attestation key: NoApprovedKey: ...
 *           -> Boot the node so that it registers its key; ...
 *
 *   Refusals and warnings, latest first
 *     2m ago  AttestationRefused: ...
 *       PCR 4 shown     HASH, which no approved image has
 *       PCR 4 expected  HASH for image fcos
 */
#include "config.h"

#include "tec/report/why.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/pcrs.h"
#include "tec/report/advice.h"
#include "tec/report/handover.h"
#include "tec/report/status.h"
#include "tec/report/text.h"

#define REFUSALS_MAX 5
#define IMAGES_MAX   10

/* ---- what must hold */

static const char *const hows[] = {
	[REPORT_STATE_GOOD] = "ok", [REPORT_STATE_PASSES] = "wait", [REPORT_STATE_ACT] = "no"};

/* how is one of REPORT_STATE_*; text and next are copied, next may be NULL. */
static void add_check(
	struct json_object *checks, const char *what, int how, const char *text, const char *next)
{
	struct json_object *c = json_add_str(json_obj(), "what", what);

	json_add_str(json_add_str(c, "is", hows[how]), "text", text);
	json_push(checks, json_add_str(c, "next", next));
}

/* Report one condition of an object; what names it in the output. */
static void check_condition(struct json_object *checks, enum report_kind kind,
	struct json_object *o, const char *type, const char *what)
{
	struct json_object *c = report_condition(o, type);
	const char *reason = json_get_str(c, "reason"), *message = json_get_str(c, "message");
	cleanup_free char *text = NULL;
	cleanup_strbuf struct strbuf next = STRBUF_INIT;

	if (!c) {
		add_check(checks, what, REPORT_STATE_PASSES, "the operator has not observed it yet",
			"tecctl doctor");
		return;
	}
	text = xasprintf("%s: %s", reason ? reason : "-", message ? message : "");
	if (str_eq(json_get_str(c, "status"), "True")) {
		add_check(checks, what, REPORT_STATE_GOOD, text, NULL);
		return;
	}
	report_advice(kind, reason, report_name(o), &next);
	add_check(checks, what,
		report_passes(kind, reason) ? REPORT_STATE_PASSES : REPORT_STATE_ACT, text,
		next.len ? strbuf_str(&next) : NULL);
}

/* The bound key and its delivery, then the other keys with this id: a key that waits for approval
 * is among those. */
static void check_keys(
	const struct report_world *w, struct json_object *machine, struct json_object *checks)
{
	struct json_object *key = report_machine_key(w, machine), *other;
	size_t at = 0;

	if (w->list[REPORT_KEY].problem) {
		add_check(checks, "attestation keys", REPORT_STATE_PASSES,
			w->list[REPORT_KEY].problem, NULL);
		return;
	}
	check_condition(checks, REPORT_MACHINE, machine, "AttestationKeyBound", "attestation key");
	if (key) {
		cleanup_free char *what = xasprintf("key %s", report_name(key));

		check_condition(checks, REPORT_KEY, key, "Delivered", what);
	}
	while ((other = report_machine_other_key(w, machine, &at))) {
		cleanup_free char *what = xasprintf("another key, %s", report_name(other));

		check_condition(checks, REPORT_KEY, other, "Approved", what);
	}
}

/* Report an operator that does not decide: it writes no conditions on its copies and accepts no
 * new nodes. */
static void check_authority(
	const struct report_world *w, struct json_object *machine, struct json_object *checks)
{
	struct json_object *cluster = report_cluster(w);
	cleanup_free char *text = NULL, *then = NULL;
	struct report_authority a;

	if (!cluster)
		return;
	report_authority(cluster, &a);
	switch (a.is) {
	case MODEL_AUTHORITY_SELF:
		return;
	case MODEL_AUTHORITY_FOLLOWING:
		text = xasprintf("this cluster follows %s, which decides",
			a.peer ? a.peer : "another cluster");
		then = xasprintf("tecctl why %s at that cluster", report_name(machine));
		add_check(checks, "authority", REPORT_STATE_GOOD, text, then);
		return;
	case MODEL_AUTHORITY_FROZEN:
		add_check(checks, "authority", REPORT_STATE_PASSES,
			"spec.authority is Frozen: installed nodes get their keys, new nodes wait",
			"finish the promotion, or tecctl promote --abort");
		return;
	case MODEL_AUTHORITY_RETIRED:
		add_check(checks, "authority", REPORT_STATE_ACT,
			"spec.authority is Retired: this cluster no longer delivers keys",
			"give the node another server: tec-node rebind-servers");
		return;
	}
}

/* ---- refusals */

/* The latest time that an Event carries; events.k8s.io/v1 keeps old clients' times in deprecated*
 * fields. */
static const char *event_time(struct json_object *e)
{
	static const char *const paths[] = {"series/lastObservedTime", "deprecatedLastTimestamp",
		"eventTime", "metadata/creationTimestamp"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (json_get_str(e, paths[i]))
			return json_get_str(e, paths[i]);
	return NULL;
}

/* An Event without a UID is about nothing that we can identify. */
static bool is_about(struct json_object *e, struct json_object *o)
{
	const char *uid = json_get_str(e, "regarding/uid");

	return o && uid && str_eq(uid, json_get_str(o, "metadata/uid"));
}

/* Whether an Event is about the Machine or one of its keys. By UID: names can be reused. */
static bool concerns(
	const struct report_world *w, struct json_object *machine, struct json_object *e)
{
	struct json_object *other;
	size_t at = 0;

	if (is_about(e, machine) || is_about(e, report_machine_key(w, machine)))
		return true;
	while ((other = report_machine_other_key(w, machine, &at)))
		if (is_about(e, other))
			return true;
	return false;
}

/* INT64_MIN, the oldest time, for a missing or malformed one. */
static int64_t time_us(const char *text)
{
	int64_t us;

	return text && clock_parse(text, &us) == 0 ? us : INT64_MIN;
}

/* Who claims to report the Event; NULL: the operator. Anybody with the right to create Events can
 * claim that too. */
static const char *claimed_by(struct json_object *e)
{
	const char *who = json_get_str(e, "reportingController"),
		   *source = json_get_str(e, "deprecatedSource/component");

	if (str_eq(who, PACKAGE_NAME))
		return NULL;
	return who && *who ? who : source && *source ? source : "nobody";
}

/* Insert an Event into the list of the REFUSALS_MAX that are shown, later before earlier. The
 * operator's come first, so that others cannot displace them with a flood of Events. */
static void insert_refusal(struct json_object **found, size_t *n, struct json_object *e)
{
	bool claimed = claimed_by(e) != NULL;
	size_t at = *n;

	for (; at > 0; at--) {
		struct json_object *before = found[at - 1];

		if (claimed != (claimed_by(before) != NULL)
				? claimed
				: time_us(event_time(e)) <= time_us(event_time(before)))
			break;
	}
	if (at == REFUSALS_MAX)
		return;
	if (*n < REFUSALS_MAX)
		(*n)++;
	memmove(&found[at + 1], &found[at], (*n - 1 - at) * sizeof(*found));
	found[at] = e;
}

/* ---- what the refused node presented, and what is approved */

/* Find the next "PCR N is HASH" in the note and return what follows it; NULL: none. N is at most
 * 23, HASH exactly a SHA-256. */
static const char *next_pcr(const char *note, unsigned *pcr, char hex[SHA256_HEX_LEN + 1])
{
	while ((note = strstr(note, "PCR "))) {
		size_t n = strspn(note += 4, "0123456789");
		uint64_t number;
		cleanup_free char *digits = xstrndup(note, n);

		note += n;
		if (str_to_u64(digits, 23, &number) < 0 || strncmp(note, " is ", 4) != 0)
			continue;
		note += 4;
		if (strspn(note, "0123456789abcdef") != SHA256_HEX_LEN)
			continue;
		*pcr = (unsigned)number;
		memcpy(hex, note, SHA256_HEX_LEN);
		hex[SHA256_HEX_LEN] = '\0';
		return note + SHA256_HEX_LEN;
	}
	return NULL;
}

/* The value to which the events extend the register, in hexadecimal; false: to none. */
static bool value_of(const struct pcr_events *e, unsigned pcr, char hex[SHA256_HEX_LEN + 1])
{
	uint8_t value[SHA256_LEN];

	if (!pcr_events_value(e, pcr, value))
		return false;
	bytes_to_hex(value, SHA256_LEN, hex);
	return true;
}

/* Whether any boot of the image, variants and platforms included, has this value. */
static bool image_has(const struct model_pcrs_entry *e, unsigned pcr, const char *hex)
{
	char have[SHA256_HEX_LEN + 1];
	bool found = value_of(&e->events, pcr, have) && str_eq(have, hex);

	for (size_t i = 0; !found && i < e->variants.n; i++)
		found = value_of(&e->variants.v[i].events, pcr, have) && str_eq(have, hex);
	for (size_t i = 0; !found && i < e->platforms.n; i++)
		found = value_of(&e->platforms.v[i].events, pcr, have) && str_eq(have, hex);
	return found;
}

/* Append one register: the value shown, the images that have it, and what up to IMAGES_MAX images
 * expect. */
static void compare_pcr(
	const struct model_pcrs *pcrs, unsigned pcr, const char *hex, struct json_object *out)
{
	struct json_object *one = json_add_int(json_obj(), "pcr", pcr), *have = json_arr(),
			   *expected = json_arr();

	json_add_str(one, "shown", hex);
	for (size_t i = 0; pcrs && i < pcrs->n; i++) {
		const struct model_pcrs_entry *e = &pcrs->v[i];
		char text[SHA256_HEX_LEN + 1];

		if (e->why)
			continue;
		if (image_has(e, pcr, hex))
			json_push_str(have, e->name);
		if (json_len(expected) < IMAGES_MAX && value_of(&e->events, pcr, text))
			json_push(expected, json_add_str(json_add_str(json_obj(), "image", e->name),
						    "value", text));
	}
	json_push(out, json_add(json_add(one, "imagesWithIt", have), "expected", expected));
}

/* Compare every register that the note names with the values of the approved images. */
static struct json_object *compared(const struct report_world *w, const char *note)
{
	cleanup_model_pcrs struct model_pcrs *pcrs = report_pcrs(w);
	struct json_object *out = json_arr();
	char hex[SHA256_HEX_LEN + 1];
	unsigned pcr;

	while (note && (note = next_pcr(note, &pcr, hex)))
		compare_pcr(pcrs, pcr, hex, out);
	return out;
}

/* Only the latest Event is compared, and only if the operator reports it: a claimed value could
 * send people after a wrong image. */
static struct json_object *refusals_json(const struct report_world *w, struct json_object *machine)
{
	struct json_object *found[REFUSALS_MAX + 1], *out = json_arr();
	size_t n = 0;

	for (size_t i = 0; i < w->list[REPORT_EVENT].n; i++) {
		struct json_object *e = w->list[REPORT_EVENT].v[i];

		if (str_eq(json_get_str(e, "type"), "Warning") && concerns(w, machine, e))
			insert_refusal(found, &n, e);
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *one = json_obj();
		const char *note = json_get_str(found[i], "note");
		int64_t us = time_us(event_time(found[i]));

		json_add_str(one, "claimedBy", claimed_by(found[i]));
		json_add_str(one, "reason", json_get_str(found[i], "reason"));
		json_add_str(one, "time", event_time(found[i]));
		json_add_int(one, "ageSeconds", us == INT64_MIN ? -1 : w->now_s - us / 1000000);
		json_add_str(one, "note", note);
		if (i == 0 && !claimed_by(found[i]))
			json_add(one, "registers", compared(w, note));
		json_push(out, one);
	}
	return out;
}

/* ---- together */

/* Checks come in the order in which they come true, so that the first failure is the one to work
 * on. Without a cluster nothing is served; TrusteeSynced is left out while it was never reported. No
 * image in force means that every boot is refused, whatever the Machine's state. */
struct json_object *report_why(const struct report_world *w, struct json_object *machine)
{
	struct json_object *out = json_obj(), *checks = json_arr(), *cluster = report_cluster(w);
	const struct report_list *clusters = &w->list[REPORT_CLUSTER],
				 *images = &w->list[REPORT_IMAGE];
	size_t good = report_count_true(w, REPORT_IMAGE, "Committed");
	cleanup_free char *in_force = xasprintf("%zu of %zu in force", good, images->n);

	json_add_str(json_add_str(out, "machine", report_name(machine)), "id",
		json_get_str(machine, "spec/id"));
	json_add_str(out, "state", report_state_of(REPORT_MACHINE, machine).word);
	check_authority(w, machine, checks);
	if (report_deleting(machine))
		add_check(checks, "machine", REPORT_STATE_ACT,
			"being deleted; its keys are revoked", NULL);
	check_condition(checks, REPORT_MACHINE, machine, "KeyReady", "disk key");
	check_keys(w, machine, checks);
	check_condition(checks, REPORT_MACHINE, machine, "Delivered", "delivery to Trustee");
	if (clusters->problem || !cluster)
		add_check(checks, "cluster", REPORT_STATE_ACT,
			clusters->problem ? clusters->problem
					  : "no readable TrustedExecutionCluster",
			"tecctl doctor");
	else
		check_condition(checks, REPORT_CLUSTER, cluster, "Installed", "cluster");
	if (!clusters->problem && report_condition(cluster, "TrusteeSynced"))
		check_condition(checks, REPORT_CLUSTER, cluster, "TrusteeSynced", "Trustee");
	if (images->problem)
		add_check(checks, "approved images", REPORT_STATE_PASSES, images->problem, NULL);
	else
		add_check(checks, "approved images", good ? REPORT_STATE_GOOD : REPORT_STATE_ACT,
			in_force,
			good ? NULL
			     : "Without an approved image, every boot is refused: tecctl image approve");
	json_add(json_add(out, "checks", checks), "refusals", refusals_json(w, machine));
	if (w->list[REPORT_EVENT].problem)
		json_add_str(out, "eventsUnreadable", w->list[REPORT_EVENT].problem);
	return out;
}

/* Columns are aligned by hand: "shown" and "expected" values stand below each other. */
static void print_register(struct json_object *r, struct strbuf *out)
{
	struct json_object *have = json_get_arr(r, "imagesWithIt"),
			   *expected = json_get_arr(r, "expected");
	int64_t pcr = json_get_int(r, "pcr", 0);
	cleanup_strbuf struct strbuf whose = STRBUF_INIT;

	for (size_t i = 0; i < json_len(have); i++)
		strbuf_addf(&whose, "%s%s", i ? ", " : "belongs to image ",
			json_object_get_string(json_at(have, i)));
	report_line(out, "    PCR %" PRId64 " shown     %s, which %s", pcr, report_str(r, "shown"),
		whose.len ? strbuf_str(&whose) : "no approved image has");
	for (size_t i = 0; i < json_len(expected); i++)
		report_line(out, "    PCR %" PRId64 " expected  %s for image %s", pcr,
			report_str(json_at(expected, i), "value"),
			report_str(json_at(expected, i), "image"));
}

/* Others than the operator are named as claimants: they can only imitate its Events. */
static void print_refusals(struct json_object *why, bool colours, struct strbuf *out)
{
	struct json_object *all = json_get_arr(why, "refusals");
	size_t n = json_len(all);

	strbuf_addc(out, '\n');
	if (json_get_str(why, "eventsUnreadable")) {
		report_line(out, "Refusals are unknown: %s", json_get_str(why, "eventsUnreadable"));
		return;
	}
	report_text(out, colours, REPORT_TITLE, n ? "Refusals and warnings, latest first" : "");
	strbuf_adds(out, n ? "\n" : "No refusal Event found; Events are kept for about an hour.\n");
	for (size_t i = 0; i < n; i++) {
		struct json_object *one = json_at(all, i),
				   *registers = json_get_arr(one, "registers");

		strbuf_adds(out, "  ");
		report_age(out, json_get_int(one, "ageSeconds", -1));
		strbuf_adds(out, " ago  ");
		if (json_get_str(one, "claimedBy")) {
			strbuf_adds(out, "claimed by ");
			report_safe(out, json_get_str(one, "claimedBy"));
			strbuf_adds(out, ": ");
		}
		report_text(out, colours, REPORT_BAD, json_get_str(one, "reason"));
		report_line(out, ": %s", report_str(one, "note"));
		for (size_t k = 0; k < json_len(registers); k++)
			print_register(json_at(registers, k), out);
	}
}

void report_why_text(struct json_object *why, bool colours, struct strbuf *out)
{
	struct json_object *checks = json_get_arr(why, "checks");
	size_t bad = 0;

	for (size_t i = 0; i < json_len(checks); i++)
		bad += !str_eq(json_get_str(json_at(checks, i), "is"), "ok");
	strbuf_adds(out, "Machine ");
	report_text(out, colours, REPORT_TITLE, json_get_str(why, "machine"));
	report_line(out, ", id %s: %s", report_str(why, "id"),
		bad ? "something needed for its disk key is missing"
		    : "everything needed for its disk key is in place");
	for (size_t i = 0; i < json_len(checks); i++) {
		struct json_object *c = json_at(checks, i);
		const char *is = report_str(c, "is"), *next = json_get_str(c, "next");
		enum report_colour colour = str_eq(is, "ok")     ? REPORT_GOOD
					    : str_eq(is, "wait") ? REPORT_WAITS
								 : REPORT_BAD;

		strbuf_adds(out, "  ");
		report_text(out, colours, colour, is);
		strbuf_addf(out, "%*s", (int)(6 - strlen(is)), "");
		report_line(out, "%s: %s", report_str(c, "what"), report_str(c, "text"));
		if (next)
			report_line(out, "        -> %s", next);
	}
	print_refusals(why, colours, out);
}
