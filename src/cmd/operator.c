/* SPDX-License-Identifier: MIT */
/*
 * tec-operator: the whole machine on one page. main() makes the parts in the order of the launch
 * list, runs the loop, and takes them down in reverse.
 *
 * Path of one event:   bytes in net/httpc -> one line in k8s/watch -> k8s/cache -> ctl/runner maps
 * the object to keys -> loop/queue -> ctl_machine_step -> view -> decide -> one op -> done ->
 * queue. Path of one request: net/httpd -> route table in srv/regak -> pki/spki -> k8s_call_create
 * op -> reply. Who may write:       listeners at any time (parts.api); controllers only while
 * leader and all caches are filled (parts.gate).
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lookup.h"
#include "options.h"
#include "parts.h"
#include "seed.h"

#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/loop/signal.h"

static void on_terminate(int signo, void *arg)
{
	parts_shutdown(arg, strsignal(signo));
}

static void on_hangup(int signo, void *arg)
{
	parts_reload(arg);
}

static int run(struct options *o)
{
	struct parts p;
	struct err err = ERR_INIT;
	struct loop_signal *term, *intr, *hup;
	int status = 0;

	parts_init(&p, o, loop_new());
	loop_ignore_sigpipe();
	term = loop_signal_new(p.loop, SIGTERM, on_terminate, &p);
	intr = loop_signal_new(p.loop, SIGINT, on_terminate, &p);
	hup = loop_signal_new(p.loop, SIGHUP, on_hangup, &p);

	if (parts_connect(&p, &err) < 0 ||     /* kubeconfig, credentials, transports */
		parts_watch(&p, &err) < 0 ||   /* caches and the watches that fill them */
		parts_control(&p, &err) < 0 || /* controllers, the lease that lets them act */
		parts_serve(&p, &err) < 0) {   /* listeners, health and metrics */
		fprintf(stderr, "tec-operator: %s\n", err.text);
		status = 1;
	} else if (!conf_bool(o->conf, "check-config")) {
		parts_start(&p);
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

int main(int argc, char *argv[])
{
	struct options o;
	struct err err = ERR_INIT;
	int status = 0;

	secret_process_init();
	switch (options_read(&o, argc, argv)) {
	case OPTIONS_BAD:
		status = 2;
		break;
	case OPTIONS_EXIT:
		break;
	case OPTIONS_RUN:
		log_setup(o.log_level, o.log_format);
		if (o.lookup_label) {
			status = lookup_run();
		} else if (!o.seed_src) {
			status = run(&o);
		} else if (seed_policies(o.seed_src, o.seed_dst, &err) < 0) {
			fprintf(stderr, "tec-operator: %s\n", err.text);
			status = 1;
		}
		break;
	}
	options_fini(&o);
	metric_reset_all();
	return status;
}
