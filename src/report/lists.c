/* SPDX-License-Identifier: MIT */
/* Tables and details, written directly as text: -o json of these commands prints the objects. */
#include "config.h"

#include "tec/report/lists.h"

#include <inttypes.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/pcrs.h"
#include "tec/report/advice.h"
#include "tec/report/status.h"
#include "tec/report/text.h"

/* The KEY column tells the bound key, "-" if none: NoApprovedKey in STATE then has its reason. */
void report_machines(const struct report_world *w, bool colours, struct strbuf *out)
{
	static const char *const titles[] = {"NAME", "STATE", "KEY", "AGE", "ID", NULL};
	struct report_table *t = report_table_new(titles);

	for (size_t i = 0; i < w->list[REPORT_MACHINE].n; i++) {
		struct json_object *o = w->list[REPORT_MACHINE].v[i],
				   *key = report_machine_key(w, o);
		struct report_state s = report_state_of(REPORT_MACHINE, o);

		report_table_row(t);
		report_table_cell(t, REPORT_PLAIN, report_name(o));
		report_table_cell(t, report_state_colour(REPORT_MACHINE, s.word), s.word);
		report_table_cell(t, REPORT_PLAIN, key ? report_name(key) : "-");
		report_table_age(t, report_age_of(w, o));
		report_table_cell(t, REPORT_PLAIN, json_get_str(o, "spec/id"));
	}
	report_table_print(t, "", colours, out);
}

/* A table of one kind with one more column, taken from the objects by a path. */
static void list(const struct report_world *w, enum report_kind kind, const char *last_title,
	const char *last_path, bool colours, struct strbuf *out)
{
	const char *const titles[] = {"NAME", "STATE", "AGE", last_title, NULL};
	struct report_table *t = report_table_new(titles);

	for (size_t i = 0; i < w->list[kind].n; i++) {
		struct json_object *o = w->list[kind].v[i];
		const char *state = report_state_of(kind, o).word;

		report_table_row(t);
		report_table_cell(t, REPORT_PLAIN, report_name(o));
		report_table_cell(t, report_state_colour(kind, state), state);
		report_table_age(t, report_age_of(w, o));
		report_table_cell(t, REPORT_PLAIN, json_get_str(o, last_path));
	}
	report_table_print(t, "", colours, out);
}

void report_keys(const struct report_world *w, bool colours, struct strbuf *out)
{
	list(w, REPORT_KEY, "MACHINE-ID", "spec/uuid", colours, out);
}

void report_images(const struct report_world *w, bool colours, struct strbuf *out)
{
	list(w, REPORT_IMAGE, "IMAGE", "spec/image", colours, out);
}

/* ---- one */

/* A field of an object as the line "WHAT text", aligned. */
static void line(struct strbuf *out, const char *what, const char *text)
{
	report_line(out, "%-12s %s", what, text);
}

/* Relative, as kubectl shows it: the API server's clock may differ from ours. */
static void age_line(const struct report_world *w, struct json_object *o, struct strbuf *out)
{
	cleanup_strbuf struct strbuf age = STRBUF_INIT;

	report_age(&age, report_age_of(w, o));
	line(out, "Age:", strbuf_str(&age));
}

/* Align the reasons at column 20, counted in escaped text: a type of another program may be
 * longer. */
static void print_conditions(
	enum report_kind kind, struct json_object *o, bool colours, struct strbuf *out)
{
	struct json_object *all = json_get_arr(o, "status/conditions");

	strbuf_adds(out, "Conditions:\n");
	for (size_t i = 0; i < json_len(all); i++) {
		struct json_object *c = json_at(all, i);
		cleanup_strbuf struct strbuf type = STRBUF_INIT;

		report_safe(&type, json_get_str(c, "type"));
		strbuf_addf(out, "  %-20s ", strbuf_str(&type));
		report_text(
			out, colours, report_condition_colour(kind, c), json_get_str(c, "reason"));
		report_line(out, ": %s", report_str(c, "message"));
	}
	if (!all)
		strbuf_adds(out, "  none yet; check that the operator runs: tecctl doctor\n");
}

/* Keys that claim the Machine's id but are not bound to it are listed too: one may be waiting for
 * approval. */
void report_machine(
	const struct report_world *w, struct json_object *machine, bool colours, struct strbuf *out)
{
	struct json_object *key = report_machine_key(w, machine), *other;
	struct report_state s = report_state_of(REPORT_MACHINE, machine);
	cleanup_strbuf struct strbuf next = STRBUF_INIT;
	size_t at = 0;

	line(out, "Machine:", report_name(machine));
	if (json_get_str(machine, "spec/id"))
		line(out, "ID:", json_get_str(machine, "spec/id"));
	age_line(w, machine, out);
	strbuf_addf(out, "%-12s ", "State:");
	report_text(out, colours, report_state_colour(REPORT_MACHINE, s.word), s.word);
	strbuf_addc(out, '\n');
	line(out, "Key:", key ? report_name(key) : "none");
	while ((other = report_machine_other_key(w, machine, &at))) {
		struct report_state k = report_state_of(REPORT_KEY, other);
		cleanup_free char *text = xasprintf("%s, %s", report_name(other), k.word);

		line(out, "Other key:", text);
	}
	print_conditions(REPORT_MACHINE, machine, colours, out);
	if (s.how == REPORT_STATE_ACT &&
		report_advice(REPORT_MACHINE, s.word, report_name(machine), &next))
		line(out, "Next step:", strbuf_str(&next));
}

/* PCRs 4, 7 and 14 are those that the operator predicts: boot loader and kernel, Secure Boot, MOK
 * (UEFI PC Client Profile, shim). Each is followed by the events that extend it, in order. */
static void print_events(const struct pcr_events *e, struct strbuf *out)
{
	static const unsigned registers[] = {4, 7, 14};
	char hex[SHA256_HEX_LEN + 1];
	uint8_t value[SHA256_LEN];

	for (size_t r = 0; r < ARRAY_LEN(registers); r++) {
		if (!pcr_events_value(e, registers[r], value))
			continue;
		bytes_to_hex(value, SHA256_LEN, hex);
		strbuf_addf(out, "  PCR %-2u %s\n", registers[r], hex);
		for (size_t i = 0; i < e->n; i++) {
			if (e->v[i].pcr != registers[r])
				continue;
			bytes_to_hex(e->v[i].digest, SHA256_LEN, hex);
			strbuf_addf(out, "         %s  %s\n", hex, pcr_event_id_name(e->v[i].id));
		}
	}
}

/* Values of one image: the likeliest boot, its variants, and those of named platforms. */
static void print_entry(const struct model_pcrs_entry *e, struct strbuf *out)
{
	strbuf_adds(out, "Values, most likely first:\n");
	print_events(&e->events, out);
	for (size_t i = 0; i < e->variants.n; i++) {
		report_line(out, "Or, %s%s", e->variants.v[i].when,
			e->variants.v[i].secure_boot ? ":" : " (only with secureBoot: Any):");
		print_events(&e->variants.v[i].events, out);
	}
	for (size_t i = 0; i < e->platforms.n; i++) {
		const struct model_platform *p = &e->platforms.v[i];

		if (p->why)
			report_line(out, "On the platform %s, no values: %s", p->name, p->why);
		else
			report_line(out, "On the platform %s:", p->name);
		print_events(&p->events, out);
	}
}

/* Values come from the ConfigMap that the operator writes; an entry with `why` has none, and
 * tells the reason. */
void report_image(
	const struct report_world *w, struct json_object *image, bool colours, struct strbuf *out)
{
	cleanup_model_pcrs struct model_pcrs *pcrs = report_pcrs(w);
	const struct model_pcrs_entry *e = pcrs ? model_pcrs_find(pcrs, report_name(image)) : NULL;
	const char *sb = json_get_str(image, "spec/secureBoot");

	line(out, "Image:", report_name(image));
	if (json_get_str(image, "spec/image"))
		line(out, "Reference:", json_get_str(image, "spec/image"));
	line(out, "Secure Boot:", sb ? sb : "Required");
	age_line(w, image, out);
	print_conditions(REPORT_IMAGE, image, colours, out);
	if (w->list[REPORT_CONFIGMAP].problem)
		line(out, "Values:", w->list[REPORT_CONFIGMAP].problem);
	else if (!e)
		line(out, "Values:", "none yet");
	else if (e->why)
		line(out, "Values:", e->why);
	else
		print_entry(e, out);
}
