/* SPDX-License-Identifier: MIT */
/*
 * tecctl: lets people see and change the system through the Kubernetes API that holds it. It
 * reports what the API says: no controller is linked, and none of their rules is repeated here.
 *
 * Files: tool_look reads, tool_change and tool_image change, tool_doctor and tool_bootstrap check,
 * tool_handover works on two clusters, tool_certs on none. Below them stand tool_check, tool_account
 * and tool_compute, and below all of these tool_session, the connection and the terminal. A
 * command's row is in tool_options.c, its function in the table below.
 */
#include "config.h"

#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"

static int (*const commands[TOOL_N_COMMANDS])(struct tool *t, struct err *err) = {
	[TOOL_STATUS] = tool_look,
	[TOOL_WHY] = tool_look,
	[TOOL_MACHINE_LIST] = tool_look,
	[TOOL_MACHINE_SHOW] = tool_look,
	[TOOL_MACHINE_DELETE] = tool_machine_delete,
	[TOOL_APPROVE] = tool_approve,
	[TOOL_DENY] = tool_deny,
	[TOOL_REBIND] = tool_rebind,
	[TOOL_KEY_LIST] = tool_look,
	[TOOL_SERVER_LOST] = tool_server_lost,
	[TOOL_IMAGE_LIST] = tool_look,
	[TOOL_IMAGE_APPROVE] = tool_image_approve,
	[TOOL_IMAGE_EXPLAIN] = tool_look,
	[TOOL_IMAGE_VERIFY] = tool_image_verify,
	[TOOL_IGNITION] = tool_ignition,
	[TOOL_BACKUP] = tool_backup,
	[TOOL_DOCTOR] = tool_doctor,
	[TOOL_BOOTSTRAP_CHECK] = tool_bootstrap_check,
	[TOOL_BOOTSTRAP_CA] = tool_bootstrap_ca,
	[TOOL_BOOTSTRAP_CERT] = tool_bootstrap_cert,
	[TOOL_BOOTSTRAP_SERVERS] = tool_bootstrap_servers,
	[TOOL_FOLLOW] = tool_follow,
	[TOOL_PROMOTE] = tool_promote,
	[TOOL_RETIRE] = tool_retire,
};

/* Needs no server, so that it works in a shell's startup file. */
static int completion(const struct conf *c, struct err *err)
{
	static const char *const shells[] = {"bash", "zsh", "fish"};

	for (unsigned i = 0; i < ARRAY_LEN(shells); i++) {
		if (!str_eq(conf_operand(c), shells[i]))
			continue;
		conf_print_completion(&tool_program, (enum conf_shell)i, stdout);
		return 0;
	}
	return err_set(err, ERR_INVALID, "command completion: %s is not one of bash, zsh, fish",
		log_esc(conf_operand(c)));
}

/* Colours only on a terminal, and not against NO_COLOR (https://no-color.org). */
static int read_options(struct tool *t, struct err *err)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	uint64_t s;

	t->output = (enum tool_output)conf_choice(t->conf, "output");
	t->yes = conf_bool(t->conf, "yes");
	t->colours = isatty(STDOUT_FILENO) && !(no_color && *no_color) && !str_eq(term, "dumb");
	if (conf_number(t->conf, "request-timeout", 1, 3600, &s, err) < 0)
		return -1;
	t->timeout_ms = (uint32_t)s * 1000;
	if (conf_number(t->conf, "wait", 0, 86400, &s, err) < 0)
		return -1;
	t->wait_ms = s * 1000;
	return 0;
}

/* Print the error and the next step, unless the command has named one, and return the exit
 * status. */
static int exit_of(const struct tool *t, const struct err *err)
{
	const char *from = t->from ? t->from : "nowhere";
	bool named = strstr(err->text, "next step: ") != NULL;

	if (t->interrupted)
		return TOOL_INTERRUPTED;
	tool_say(stderr, "tecctl: %s", err->text);
	if (err->kind == ERR_TRANSIENT && !named)
		tool_say(stderr, "tecctl: next step: tecctl doctor; the address %s comes from %s",
			t->server ? t->server : "the server", from);
	else if (err->kind == ERR_DENIED && !named)
		tool_say(stderr,
			"tecctl: next step: tecctl doctor lists the rights of these credentials, which come from %s",
			from);
	else if (err->kind == ERR_CONFLICT && !named)
		fputs("tecctl: next step: the object has changed meanwhile; check it, then repeat\n",
			stderr);
	return err->kind == ERR_TRANSIENT ? TOOL_UNREACHABLE
	       : err->kind == ERR_DENIED  ? TOOL_DENIED
					  : TOOL_FAILED;
}

/* Every command returns 0, an exit status, or -1 with err set, which exit_of() turns into one. */
static int run(struct tool *t)
{
	size_t command = conf_command(t->conf);
	/* These connect to other places, or never. */
	bool unconnected = command == TOOL_BOOTSTRAP_CA || command == TOOL_BOOTSTRAP_CERT ||
			   command == TOOL_FOLLOW || command == TOOL_PROMOTE ||
			   command == TOOL_RETIRE;
	struct err err = ERR_INIT;
	int rc;

	log_setup(LOG_WARN, LOG_TEXT);
	if (read_options(t, &err) < 0 ||
		(command == TOOL_COMPLETION && completion(t->conf, &err) < 0))
		return conf_refuse(t->conf, &err), TOOL_USAGE;
	if (command == TOOL_COMPLETION)
		return 0;
	rc = unconnected ? 0 : tool_connect(t, NULL, &err);
	if (rc == 0)
		rc = commands[command](t, &err);
	if (rc >= 0 && fflush(stdout) == EOF)
		rc = err_set(&err, ERR_INVALID, "cannot write the output");
	rc = rc < 0 ? exit_of(t, &err) : rc;
	tool_close(t);
	return rc;
}

/* SIGPIPE is ignored: a closed pager must end in an error of write(2), after which all is
 * released. */
int main(int argc, char *argv[])
{
	struct tool t = {.conf = conf_new(&tool_program)};
	enum conf_result result;
	int status = 0;

	secret_process_init();
	loop_ignore_sigpipe();
	result = conf_start(t.conf, argc, argv);
	if (result == CONF_RUN)
		status = run(&t);
	conf_free(t.conf);
	metric_reset_all();
	return result == CONF_BAD ? TOOL_USAGE : status;
}
