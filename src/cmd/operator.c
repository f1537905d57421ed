/* SPDX-License-Identifier: MIT */
/*
 * tec-operator: the whole program on one page. main() creates the parts in the order of the
 * launch list, runs the loop, and releases them in reverse.
 *
 * Path of one event: bytes in net/httpc -> one line in k8s/watch -> k8s/cache -> ctl/runner maps
 * the object to keys -> loop/queue -> ctl/kind: look (machine/view) -> decide -> one op -> done
 * -> queue.
 *
 * Path of one request: net/httpd -> route table in srv/regak -> pki/spki -> k8s_call_create op ->
 * reply.
 *
 * Who may write: listeners at any time (parts.api); controllers only while this process is the
 * leader and all caches are filled (parts.gate).
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "options.h"
#include "parts.h"

#include "tec/base/confine.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/kbs/seed.h"
#include "tec/loop/signal.h"
#include "tec/oci/compute.h"
#include "tec/oci/serve.h"

static void on_terminate(int signo, void *arg)
{
	parts_shutdown(arg, strsignal(signo));
}

/* SIGHUP rereads the configuration file. */
static void on_hangup(int signo, void *arg)
{
	if (options_hangup(((struct parts *)arg)->options))
		log_info(NULL, "configuration reloaded", NULL);
}

/* Run the operator until a signal. With --check-config everything is set up, so that files and
 * addresses are checked, but nothing starts. */
static int run(struct options *o, struct err *err)
{
	struct parts p;
	struct loop_signal *term, *intr, *hup;
	int status = 0;

	parts_init(&p, o, loop_new());
	loop_ignore_sigpipe();
	term = loop_signal_new(p.loop, SIGTERM, on_terminate, &p);
	intr = loop_signal_new(p.loop, SIGINT, on_terminate, &p);
	hup = loop_signal_new(p.loop, SIGHUP, on_hangup, &p);

	if (parts_connect(&p, err) < 0 ||     /* kubeconfig, credentials, transports */
		parts_watch(&p, err) < 0 ||   /* caches and the watches that fill them */
		parts_control(&p, err) < 0 || /* controllers, the lease that lets them act */
		parts_serve(&p, err) < 0) {   /* listeners, health and metrics */
		status = -1;
	} else if (!conf_bool(o->conf, "check-config")) {
		parts_start(&p);
		confine_drop_code();
		loop_run(p.loop);
	} else {
		printf("tec-operator: the configuration is usable (namespace %s)\n", p.ns);
	}

	loop_signal_free(term);
	loop_signal_free(intr);
	loop_signal_free(hup);
	parts_fini(&p);
	return status;
}

/* One program, several roles: --lookup-label and --compute-image are its own children, --seed and
 * --seed-resources run in init containers of Trustee's Pod, --restore prepares a directory,
 * --role=guard needs no Kubernetes. */
int main(int argc, char *argv[])
{
	struct options o;
	struct err err = ERR_INIT;
	enum conf_result result;
	int status = 0;

	secret_process_init();
	result = options_read(&o, argc, argv);
	if (result == CONF_RUN) {
		log_setup(o.log_level, o.log_format);
		if (o.lookup_label) {
			status = oci_serve(STDIN_FILENO, STDOUT_FILENO, &err);
		} else if (o.compute_image) {
			status = oci_compute_serve(STDIN_FILENO, STDOUT_FILENO, &err);
		} else if (o.seed_src) {
			cleanup_strbuf struct strbuf said = STRBUF_INIT;

			status = kbs_seed(o.seed_src, o.seed_dst, &said, &err);
			fputs(strbuf_str(&said), stdout);
		} else if (o.resources_src) {
			cleanup_strbuf struct strbuf said = STRBUF_INIT;

			status = kbs_seed_resources(o.resources_src, o.resources_dst, &said, &err);
			fputs(strbuf_str(&said), stdout);
		} else if (o.restore) {
			status = standalone_restore(&o, &err);
		} else {
			status = o.role == ROLE_GUARD ? guard_run(&o, &err) : run(&o, &err);
		}
	}
	if (status < 0) {
		fprintf(stderr, "tec-operator: %s\n", err.text);
		status = 1;
	}
	options_fini(&o);
	metric_reset_all();
	return result == CONF_BAD ? 2 : status;
}
