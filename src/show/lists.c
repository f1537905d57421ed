/* SPDX-License-Identifier: MIT */
/* Tables and details, written directly as text: -o json of these commands prints the objects. */
#include "config.h"

#include "tec/show/lists.h"

#include <inttypes.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/pcrs.h"
#include "tec/show/advice.h"
#include "tec/show/status.h"
#include "tec/show/text.h"

/* The KEY column tells the bound key, "-" if none: NoApprovedKey in STATE then has its reason. */
void show_machines(const struct show_world *w, bool colours, struct strbuf *out)
{
	static const char *const titles[] = {"NAME", "STATE", "KEY", "AGE", "ID", NULL};
	struct show_table *t = show_table_new(titles);

	for (size_t i = 0; i < w->list[SHOW_MACHINE].n; i++) {
		struct json_object *o = w->list[SHOW_MACHINE].v[i], *key = show_machine_key(w, o);
		struct show_state s = show_state_of(SHOW_MACHINE, o);

		show_table_row(t);
		show_table_cell(t, SHOW_PLAIN, show_name(o));
		show_table_cell(t, show_state_colour(SHOW_MACHINE, s.word), s.word);
		show_table_cell(t, SHOW_PLAIN, key ? show_name(key) : "-");
		show_table_age(t, show_age_of(w, o));
		show_table_cell(t, SHOW_PLAIN, json_get_str(o, "spec/id"));
	}
	show_table_print(t, "", colours, out);
}

/* A table of one kind with one more column, taken from the objects by a path. */
static void list(const struct show_world *w, enum show_kind kind, const char *last_title,
	const char *last_path, bool colours, struct strbuf *out)
{
	const char *const titles[] = {"NAME", "STATE", "AGE", last_title, NULL};
	struct show_table *t = show_table_new(titles);

	for (size_t i = 0; i < w->list[kind].n; i++) {
		struct json_object *o = w->list[kind].v[i];
		const char *state = show_state_of(kind, o).word;

		show_table_row(t);
		show_table_cell(t, SHOW_PLAIN, show_name(o));
		show_table_cell(t, show_state_colour(kind, state), state);
		show_table_age(t, show_age_of(w, o));
		show_table_cell(t, SHOW_PLAIN, json_get_str(o, last_path));
	}
	show_table_print(t, "", colours, out);
}

void show_keys(const struct show_world *w, bool colours, struct strbuf *out)
{
	list(w, SHOW_KEY, "MACHINE-ID", "spec/uuid", colours, out);
}

void show_images(const struct show_world *w, bool colours, struct strbuf *out)
{
	list(w, SHOW_IMAGE, "IMAGE", "spec/image", colours, out);
}

/* ---- one */

/* A field of an object as the line "WHAT text", aligned. */
static void line(struct strbuf *out, const char *what, const char *text)
{
	show_line(out, "%-12s %s", what, text);
}

/* Relative, as kubectl shows it: the API server's clock may differ from ours. */
static void age_line(const struct show_world *w, struct json_object *o, struct strbuf *out)
{
	cleanup_strbuf struct strbuf age = STRBUF_INIT;

	show_age(&age, show_age_of(w, o));
	line(out, "Age:", strbuf_str(&age));
}

/* Align the reasons at column 20, counted in escaped text: a type of another program may be
 * longer. */
static void print_conditions(
	enum show_kind kind, struct json_object *o, bool colours, struct strbuf *out)
{
	struct json_object *all = json_get_arr(o, "status/conditions");

	strbuf_adds(out, "Conditions:\n");
	for (size_t i = 0; i < json_len(all); i++) {
		struct json_object *c = json_at(all, i);
		cleanup_strbuf struct strbuf type = STRBUF_INIT;

		show_safe(&type, json_get_str(c, "type"));
		strbuf_addf(out, "  %-20s ", strbuf_str(&type));
		show_text(out, colours, show_condition_colour(kind, c), json_get_str(c, "reason"));
		show_line(out, ": %s", show_str(c, "message"));
	}
	if (!all)
		strbuf_adds(out, "  none yet; check that the operator runs: tecctl doctor\n");
}

/* Keys that claim the Machine's id but are not bound to it are listed too: one may be waiting for
 * approval. */
void show_machine(
	const struct show_world *w, struct json_object *machine, bool colours, struct strbuf *out)
{
	struct json_object *key = show_machine_key(w, machine), *other;
	struct show_state s = show_state_of(SHOW_MACHINE, machine);
	cleanup_strbuf struct strbuf next = STRBUF_INIT;
	size_t at = 0;

	line(out, "Machine:", show_name(machine));
	if (json_get_str(machine, "spec/id"))
		line(out, "ID:", json_get_str(machine, "spec/id"));
	age_line(w, machine, out);
	strbuf_addf(out, "%-12s ", "State:");
	show_text(out, colours, show_state_colour(SHOW_MACHINE, s.word), s.word);
	strbuf_addc(out, '\n');
	line(out, "Key:", key ? show_name(key) : "none");
	while ((other = show_machine_other_key(w, machine, &at))) {
		struct show_state k = show_state_of(SHOW_KEY, other);
		cleanup_free char *text = xasprintf("%s, %s", show_name(other), k.word);

		line(out, "Other key:", text);
	}
	print_conditions(SHOW_MACHINE, machine, colours, out);
	if (s.how == SHOW_STATE_ACT && show_advice(SHOW_MACHINE, s.word, show_name(machine), &next))
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
		show_line(out, "Or, %s%s", e->variants.v[i].when,
			e->variants.v[i].secure_boot ? ":" : " (only with secureBoot: Any):");
		print_events(&e->variants.v[i].events, out);
	}
	for (size_t i = 0; i < e->platforms.n; i++) {
		const struct model_platform *p = &e->platforms.v[i];

		if (p->why)
			show_line(out, "On the platform %s, no values: %s", p->name, p->why);
		else
			show_line(out, "On the platform %s:", p->name);
		print_events(&p->events, out);
	}
}

/* Values come from the ConfigMap that the operator writes; an entry with `why` has none, and
 * tells the reason. */
void show_image(
	const struct show_world *w, struct json_object *image, bool colours, struct strbuf *out)
{
	cleanup_model_pcrs struct model_pcrs *pcrs = show_pcrs(w);
	const struct model_pcrs_entry *e = pcrs ? model_pcrs_find(pcrs, show_name(image)) : NULL;
	const char *sb = json_get_str(image, "spec/secureBoot");

	line(out, "Image:", show_name(image));
	if (json_get_str(image, "spec/image"))
		line(out, "Reference:", json_get_str(image, "spec/image"));
	line(out, "Secure Boot:", sb ? sb : "Required");
	age_line(w, image, out);
	print_conditions(SHOW_IMAGE, image, colours, out);
	if (w->list[SHOW_CONFIGMAP].problem)
		line(out, "Values:", w->list[SHOW_CONFIGMAP].problem);
	else if (!e)
		line(out, "Values:", "none yet");
	else if (e->why)
		line(out, "Values:", e->why);
	else
		print_entry(e, out);
}
