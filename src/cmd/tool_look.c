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
#include "tec/report/lists.h"
#include "tec/report/status.h"
#include "tec/report/text.h"
#include "tec/report/why.h"

#define WATCH_MS 2000

/* What each command reads: all kinds that its answer may be in. */
static const struct {
	unsigned kinds;
	bool list;             /* it prints a list of the next kind */
	enum report_kind kind; /* of the list, or of the object that the operand names */
} wants[TOOL_N_COMMANDS] = {
	/* ConfigMaps tell the variants; without the right to read them they are shown as unknown. */
	[TOOL_STATUS] = {TOOL_SYSTEM | 1u << REPORT_CONFIGMAP, false, REPORT_CLUSTER},
	[TOOL_WHY] = {TOOL_ALL, false, REPORT_MACHINE},
	[TOOL_MACHINE_SHOW] = {1u << REPORT_MACHINE | 1u << REPORT_KEY, false, REPORT_MACHINE},
	[TOOL_IMAGE_EXPLAIN] = {1u << REPORT_IMAGE | 1u << REPORT_CONFIGMAP, false, REPORT_IMAGE},
	[TOOL_MACHINE_LIST] = {1u << REPORT_MACHINE, true, REPORT_MACHINE},
	[TOOL_KEY_LIST] = {1u << REPORT_KEY, true, REPORT_KEY},
	[TOOL_IMAGE_LIST] = {1u << REPORT_IMAGE, true, REPORT_IMAGE},
};

/* An empty list is one sentence, as of kubectl. -o json and yaml print the objects themselves, as
 * an array. */
static void list(
	struct tool *t, enum report_kind kind, const struct report_world *w, struct strbuf *out)
{
	cleanup_json struct json_object *items = json_arr();
	const struct report_list *l = &w->list[kind];

	if (t->output == TOOL_TEXT && !l->n)
		strbuf_addf(out, "No %s in namespace %s.\n",
			kind == REPORT_MACHINE ? "Machines"
			: kind == REPORT_KEY   ? "AttestationKeys"
					       : "ApprovedImages",
			t->ns);
	else if (t->output == TOOL_TEXT && kind == REPORT_MACHINE)
		report_machines(w, t->colours, out);
	else if (t->output == TOOL_TEXT && kind == REPORT_KEY)
		report_keys(w, t->colours, out);
	else if (t->output == TOOL_TEXT)
		report_images(w, t->colours, out);
	for (size_t i = 0; i < l->n && t->output != TOOL_TEXT; i++) {
		if (t->output == TOOL_NAME)
			report_line(out, "%s", report_name(l->v[i]));
		else
			json_push(items, json_object_get(l->v[i]));
	}
	if (t->output == TOOL_JSON || t->output == TOOL_YAML)
		tool_document(t, items, out);
}

/* Load what the command needs and append what it prints. */
static int page(struct tool *t, struct strbuf *out, struct err *err)
{
	size_t command = conf_command(t->conf);
	enum report_kind kind = wants[command].kind;
	const char *name = conf_operand(t->conf);
	unsigned kinds = wants[command].kinds;
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_json struct json_object *made = NULL;
	struct json_object *o = NULL;

	/* The table shows the key of each Machine. */
	if (command == TOOL_MACHINE_LIST && t->output == TOOL_TEXT)
		kinds |= 1u << REPORT_KEY;
	if (tool_load(t, kinds, &w, err) < 0)
		return -1;
	if (wants[command].list) {
		if (tool_all_read(&w, 1u << kind, err) < 0)
			return -1;
		list(t, kind, &w, out);
		return 0;
	}
	if (kind == REPORT_MACHINE && !(o = report_machine_find(&w, name, err)))
		return -1;
	if (kind == REPORT_IMAGE && !(o = report_find(&w, kind, name)))
		return err_set(err, ERR_NOT_FOUND,
			"no ApprovedImage in namespace %.63s has the name %.80s; next step: tecctl image list",
			t->ns, log_esc(name));
	if (command == TOOL_STATUS)
		o = made = report_status(&w);
	else if (command == TOOL_WHY)
		o = made = report_why(&w, o);
	if (t->output != TOOL_TEXT)
		tool_document(t, o, out);
	else if (command == TOOL_STATUS)
		report_status_text(o, t->colours, out);
	else if (command == TOOL_WHY)
		report_why_text(o, t->colours, out);
	else if (command == TOOL_MACHINE_SHOW)
		report_machine(&w, o, t->colours, out);
	else
		report_image(&w, o, t->colours, out);
	return 0;
}

/* Read the page once, or again and again, printing it whenever it changes. While the server is
 * unreachable the last page stays, and a line reports it; the first page must be readable. */
int tool_look(struct tool *t, struct err *err)
{
	bool watches = conf_bool(t->conf, "watch");
	struct report_watch w = {.started = false};
	int rc = wants[conf_command(t->conf)].list ? 0 : tool_refuse_name(t, err);

	while (rc == 0) {
		cleanup_strbuf struct strbuf now = STRBUF_INIT, out = STRBUF_INIT;

		rc = page(t, &now, err);
		if (rc == 0 && !watches) {
			fputs(strbuf_str(&now), stdout);
			break;
		}
		if (rc == 0) {
			report_watch_page(&w, t->colours, &now, &out);
			fputs(strbuf_str(&out), stdout);
		} else if (w.started && !t->interrupted && err->kind == ERR_TRANSIENT) {
			tool_say(stderr, "tecctl: %s; retrying", err->text);
			err_clear(err);
		} else {
			break;
		}
		if (fflush(stdout) == EOF)
			rc = err_set(err, ERR_INVALID, "cannot write the output");
		else
			rc = tool_sleep(t, WATCH_MS, err);
	}
	report_watch_fini(&w);
	return rc;
}
