/* SPDX-License-Identifier: MIT */
/* The commands that only read: load objects, render a document or a table (show/), print it. */
#include "config.h"

#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/show/lists.h"
#include "tec/show/status.h"
#include "tec/show/text.h"
#include "tec/show/why.h"

#define WATCH_MS 2000

/* ---- what each command prints */

/* Loads what a command needs and appends what it prints. */
typedef int (*page_fn)(struct tool *t, struct strbuf *out, struct err *err);

/* ConfigMaps tell the variants; without the right to read them they are shown as unknown. */
static int status_page(struct tool *t, struct strbuf *out, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_json struct json_object *status = NULL;

	if (tool_load(t, TOOL_SYSTEM | 1u << SHOW_CONFIGMAP, &w, err) < 0)
		return -1;
	status = show_status(&w);
	if (t->output == TOOL_TEXT)
		show_status_text(status, t->colours, out);
	else
		tool_document(t, status, out);
	return 0;
}

static const enum show_kind list_kinds[TOOL_N_COMMANDS] = {[TOOL_MACHINE_LIST] = SHOW_MACHINE,
	[TOOL_KEY_LIST] = SHOW_KEY,
	[TOOL_IMAGE_LIST] = SHOW_IMAGE};

/* An empty list is one sentence, as of kubectl. */
static void list_text(
	struct tool *t, enum show_kind kind, const struct show_world *w, struct strbuf *out)
{
	if (!w->list[kind].n)
		strbuf_addf(out, "No %s in namespace %s.\n",
			kind == SHOW_MACHINE ? "Machines"
			: kind == SHOW_KEY   ? "AttestationKeys"
					     : "ApprovedImages",
			t->ns);
	else if (kind == SHOW_MACHINE)
		show_machines(w, t->colours, out);
	else if (kind == SHOW_KEY)
		show_keys(w, t->colours, out);
	else
		show_images(w, t->colours, out);
}

/* -o json and yaml print the objects themselves, as an array. */
static int list_page(struct tool *t, struct strbuf *out, struct err *err)
{
	enum show_kind kind = list_kinds[conf_command(t->conf)];
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_json struct json_object *items = json_arr();
	unsigned kinds = 1u << kind;

	/* The table shows the key of each Machine. */
	if (kind == SHOW_MACHINE && t->output == TOOL_TEXT)
		kinds |= 1u << SHOW_KEY;
	if (tool_load(t, kinds, &w, err) < 0)
		return -1;
	if (w.list[kind].problem)
		return err_set(err, ERR_DENIED, "%s", w.list[kind].problem);
	if (t->output == TOOL_TEXT) {
		list_text(t, kind, &w, out);
		return 0;
	}
	for (size_t i = 0; i < w.list[kind].n; i++) {
		if (t->output == TOOL_NAME) {
			show_safe(out, show_name(w.list[kind].v[i]));
			strbuf_addc(out, '\n');
		} else {
			json_push(items, json_object_get(w.list[kind].v[i]));
		}
	}
	if (t->output != TOOL_NAME)
		tool_document(t, items, out);
	return 0;
}

/* Everything is read: the answer may be in any list. */
static int why_page(struct tool *t, struct strbuf *out, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_json struct json_object *why = NULL;
	struct json_object *machine;

	if (tool_load(t, TOOL_ALL, &w, err) < 0)
		return -1;
	machine = show_machine_find(&w, conf_operand(t->conf), err);
	if (!machine)
		return -1;
	why = show_why(&w, machine);
	if (t->output == TOOL_TEXT)
		show_why_text(why, t->colours, out);
	else
		tool_document(t, why, out);
	return 0;
}

/* A Machine is shown with its keys, so both lists are needed. */
static int machine_page(struct tool *t, struct strbuf *out, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	struct json_object *machine;

	if (tool_load(t, 1u << SHOW_MACHINE | 1u << SHOW_KEY, &w, err) < 0)
		return -1;
	machine = show_machine_find(&w, conf_operand(t->conf), err);
	if (!machine)
		return -1;
	if (t->output == TOOL_TEXT)
		show_machine(&w, machine, t->colours, out);
	else
		tool_document(t, machine, out);
	return 0;
}

static int image_page(struct tool *t, struct strbuf *out, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	struct json_object *image;

	if (tool_load(t, 1u << SHOW_IMAGE | 1u << SHOW_CONFIGMAP, &w, err) < 0)
		return -1;
	image = show_find(&w, SHOW_IMAGE, conf_operand(t->conf));
	if (!image)
		return err_set(err, ERR_NOT_FOUND,
			"no ApprovedImage in namespace %.63s has the name %.80s; next step: tecctl image list",
			t->ns, log_esc(conf_operand(t->conf)));
	if (t->output == TOOL_TEXT)
		show_image(&w, image, t->colours, out);
	else
		tool_document(t, image, out);
	return 0;
}

/* ---- once, or repeatedly */

/* One reading of the page; while the server is unreachable the last page stays, and a line reports
 * it. The first page must be readable. */
static int look_again(struct tool *t, page_fn page, struct show_watch *w, struct err *err)
{
	cleanup_strbuf struct strbuf now = STRBUF_INIT, out = STRBUF_INIT;

	if (page(t, &now, err) == 0) {
		show_watch_page(w, t->colours, &now, &out);
		fputs(strbuf_str(&out), stdout);
	} else if (t->interrupted || !w->started || err->kind != ERR_TRANSIENT) {
		return -1;
	} else {
		tool_say(stderr, "tecctl: %s; retrying", err->text);
		err_clear(err);
	}
	if (fflush(stdout) == EOF)
		return err_set(err, ERR_INVALID, "cannot write the output");
	return tool_sleep(t, WATCH_MS, err);
}

/* Print the page again whenever it changes. */
static int watch(struct tool *t, page_fn page, struct err *err)
{
	struct show_watch w = {.started = false};

	while (look_again(t, page, &w, err) == 0)
		;
	show_watch_fini(&w);
	return -1;
}

static int once(struct tool *t, page_fn page, struct err *err)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (page(t, &out, err) < 0)
		return -1;
	fputs(strbuf_str(&out), stdout);
	return 0;
}

int tool_status(struct tool *t, struct err *err)
{
	if (tool_refuse_name(t, err) < 0)
		return -1;
	return conf_bool(t->conf, "watch") ? watch(t, status_page, err) : once(t, status_page, err);
}

int tool_list(struct tool *t, struct err *err)
{
	return conf_bool(t->conf, "watch") ? watch(t, list_page, err) : once(t, list_page, err);
}

int tool_why(struct tool *t, struct err *err)
{
	return tool_refuse_name(t, err) < 0 ? -1 : once(t, why_page, err);
}

int tool_machine_show(struct tool *t, struct err *err)
{
	return tool_refuse_name(t, err) < 0 ? -1 : once(t, machine_page, err);
}

int tool_image_explain(struct tool *t, struct err *err)
{
	return tool_refuse_name(t, err) < 0 ? -1 : once(t, image_page, err);
}
