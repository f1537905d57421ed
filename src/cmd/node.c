/* SPDX-License-Identifier: MIT */
/*
 * tec-node: one command, one answer on standard output, messages for people on standard error.
 * Servers are awaited in the loop; commands that use the TPM themselves block on it, and a signal
 * that arrives meanwhile is handled when the TPM is done. Key material is in locked memory or is
 * wiped; it leaves the process on standard output only.
 *
 * ak, quote           use the TPM here and print the result
 * register            uses the TPM here, then sends the key in the loop
 * attest, ...         fetch in the loop; the TPM is used here, or by a child in serve
 * encrypt, decrypt    the clevis pin; the JWE's header names servers and path
 * serve               the endpoint for local workloads, until a signal; children use the TPM
 * doctor              prints findings as it goes
 * rebind-servers      one disk after the other
 * seal                blocks on the TPM, and may reboot the machine
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node_options.h"

#include "tec/attest/cdh.h"
#include "tec/attest/doctor.h"
#include "tec/attest/esys.h"
#include "tec/attest/fetch.h"
#include "tec/attest/luks2.h"
#include "tec/attest/rebind.h"
#include "tec/attest/seal.h"
#include "tec/base/backoff.h"
#include "tec/base/confine.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"

#define JWE_TEXT_MAX (2u << 20)
#define REBIND_LOCK  "/run/tec-node-rebind.lock"
#define B64_CHUNK    30000 /* a multiple of 3, so that chunks can be joined without padding */

#define FIRST_FD    3 /* SD_LISTEN_FDS_START of sd_listen_fds(3) */
#define SOCKETS_MAX 4
#define DESCRIPTORS 2048
#define LEAVE_MS    20000 /* for running requests; systemd waits 90 s by default */
#define LOOK_MS     50
#define REST_MS     2000 /* of silence before memory is given back */
#define AGAIN_MAX   5    /* times that a server can postpone a registration */

struct node {
	struct node_options o;
	struct loop *loop;
	struct httpc *client;
	struct attest_source source;
	struct op_scope ops;
	struct timer again; /* register: when the server asked for it */
	unsigned n_again;
	int console; /* gets a copy of the messages; -1: none */
	int signo;   /* the signal that ended the loop, or would have; 0: none */
	int parent;  /* pidfd of the process that started the pin; -1: none */
	struct loop_fd *reader_gone, *parent_gone; /* owned, or NULL */
	int status;                                /* exit status */
	char *input;                               /* owned, wiped: from standard input */
	size_t input_len;
	struct body plain;                  /* the plaintext of a JWE */
	struct secret *key;                 /* owned: to encrypt with */
	char *disk[ATTEST_LUKS2_DISKS_MAX]; /* owned: paths of the disks to rebind */
	size_t n_disks, disk_now, n_rebound;
};

/* Print a message. On the console there may be a prompt, so the copy starts on a new line. */
static void tell(void *arg, const char *text)
{
	const struct node *n = arg;

	fprintf(stderr, "tec-node: %s\n", text);
	if (n->console >= 0)
		dprintf(n->console, "\ntec-node: %s\n", text);
}

/* Print an error and return the exit status for the fault. */
static int complain(struct node *n, enum attest_fault fault, const struct err *err)
{
	tell(n, err->text);
	return (int)fault;
}

/* Write all of data to standard output; a pipe may take it in parts. */
static int write_out(const void *data, size_t len)
{
	if (file_write(STDOUT_FILENO, data, len) == 0)
		return 0;
	fprintf(stderr, "tec-node: cannot write the output: %s\n", strerror(errno));
	return ATTEST_USAGE;
}

/* ---- the TPM alone */

/* Print the public half of the key, which stays in the TPM and is kept in --ak-file for other
 * programs; or a quote for tests and support, which is not sent to a server. */
static int print_from_tpm(struct node *n)
{
	struct err err = ERR_INIT;
	cleanup_esys struct attest_esys *e = attest_esys_open(n->o.tcti, &err);
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct pki_spki ak;
	int rc = -1;

	if (e && n->o.command == NODE_QUOTE)
		rc = attest_esys_quote(e, n->o.ak_handle, n->o.extra, &out, &err);
	else if (e)
		rc = n->o.make ? attest_esys_ak_make(e, n->o.ak_handle, &ak, &err)
			       : attest_esys_ak(e, n->o.ak_handle, &ak, &err);
	if (rc < 0)
		return complain(n, ATTEST_TPM, &err);
	if (n->o.command == NODE_QUOTE)
		strbuf_addc(&out, '\n');
	else
		pki_spki_to_pem(&ak, &out);
	if (n->o.make && n->o.ak_file &&
		file_replace(n->o.ak_file, out.data, out.len, 0644, &err) < 0)
		fprintf(stderr, "tec-node: cannot save the public key: %s\n", err.text);
	return write_out(out.data, out.len);
}

/* ---- the loop */

/* Only remember it: run_loop() cancels what is in flight. */
static void on_signal(int signo, void *arg)
{
	struct node *n = arg;

	n->signo = signo;
	loop_stop(n->loop);
}

/* End the loop; the status becomes that of the process. */
static void end(struct node *n, int status)
{
	n->status = status;
	loop_stop(n->loop);
}

static void register_again(void *arg);

/* Run the loop until what start() began has ended it. start() returns -1 with *err set. The
 * exit status is 128 + N after signal N, as shells report it. */
static int run_loop(struct node *n, int (*start)(struct node *n, struct err *err))
{
	struct loop_signal *term, *intr;
	struct err err = ERR_INIT;

	n->loop = loop_new();
	loop_ignore_sigpipe();
	term = loop_signal_new(n->loop, SIGTERM, on_signal, n);
	intr = loop_signal_new(n->loop, SIGINT, on_signal, n);
	n->client = httpc_new(n->loop);
	n->source = n->o.sample ? attest_source_sample(n->loop)
				: attest_source_tpm(n->loop, n->o.tcti, n->o.ak_handle);
	timer_init(&n->again, n->loop, register_again, n);
	if (start(n, &err) == 0)
		loop_run(n->loop);
	else
		n->status = complain(n, err.kind == ERR_INVALID ? ATTEST_USAGE : ATTEST_TPM, &err);
	op_scope_cancel(&n->ops);
	timer_fini(&n->again);
	httpc_free(n->client);
	loop_fd_free(n->reader_gone);
	loop_fd_free(n->parent_gone);
	loop_signal_free(term);
	loop_signal_free(intr);
	loop_free(n->loop);
	return n->signo ? 128 + n->signo : n->status;
}

/* ---- registration */

static void on_registered(
	void *arg, enum attest_fault fault, const struct err *err, const char *note)
{
	struct node *n = arg;

	if (note)
		fprintf(stderr, "tec-node: %s\n", note);
	if (fault == ATTEST_SERVER && err->http == 429 && err->retry_after_ms &&
		n->n_again++ < AGAIN_MAX) {
		uint32_t wait = backoff_asked(err->retry_after_ms);

		fprintf(stderr, "tec-node: %s; retrying in %u s\n", err->text, (wait + 999) / 1000);
		timer_set(&n->again, wait);
		return;
	}
	end(n, fault == ATTEST_OK ? 0 : complain(n, fault, err));
}

/* Create the attestation key if necessary, then send it to the server. */
static int start_register(struct node *n, struct err *err)
{
	const struct attest_config *c = &n->o.config;
	cleanup_esys struct attest_esys *e = NULL;
	struct httpc_tls *tls = NULL;
	struct pki_spki ak;

	if (attest_server_tls(&c->registration, &tls, err) < 0)
		return -1;
	e = attest_esys_open(n->o.tcti, err);
	if (!e || attest_esys_ak_make(e, n->o.ak_handle, &ak, err) < 0) {
		httpc_tls_unref(tls);
		err->kind = ERR_TRANSIENT; /* any error here is the TPM's, not one of usage */
		return -1;
	}
	attest_register_start(
		n->client, &n->ops, c->registration.url, tls, c->uuid, &ak, on_registered, n);
	httpc_tls_unref(tls);
	return 0;
}

/* The TPM was usable before: an error is the TPM's. */
static void register_again(void *arg)
{
	struct node *n = arg;
	struct err err = ERR_INIT;

	if (start_register(n, &err) < 0)
		end(n, complain(n, ATTEST_TPM, &err));
}

/* ---- tokens and resources */

/* Encode in chunks, each in locked memory: a resource may be larger than that memory should
 * grow. */
static int write_b64(const struct body *b)
{
	size_t done = 0;
	int rc = 0;

	while (done < b->len && rc == 0) {
		size_t len = b->len - done < B64_CHUNK ? b->len - done : B64_CHUNK;
		cleanup_secret struct secret *raw = secret_new_copy(b->data + done, len);
		cleanup_secret struct secret *text = secret_to_b64(raw);

		rc = write_out(secret_peek(text), bytes_b64_len(len));
		done += len;
	}
	return rc == 0 ? write_out("\n", 1) : rc;
}

/* Encrypt standard input with the server's key. The header names the servers, so that decrypt
 * needs no configuration. */
static int write_sealed(struct node *n)
{
	cleanup_free char *header = attest_config_write_header(&n->o.config);
	cleanup_strbuf struct strbuf jwe = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (jwe_dir_seal(n->key, header, n->input, n->input_len, &jwe, &err) < 0)
		return complain(n, ATTEST_USAGE, &err);
	return write_out(jwe.data, jwe.len);
}

/* The fetch has ended; what to print depends on the command. */
static void on_fetched(void *arg, struct attest_fetch_answer *a)
{
	struct node *n = arg;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (a->fault != ATTEST_OK && a->said) {
		/* Each failure was printed as it happened; only the end is left to say. */
		strbuf_addf(&text, "giving up on %s",
			n->o.config.path ? n->o.config.path : "the token");
		tell(n, strbuf_str(&text));
	}
	if (a->fault != ATTEST_OK) {
		end(n, a->said ? (int)a->fault : complain(n, a->fault, &a->err));
		return;
	}
	switch (n->o.command) {
	case NODE_ATTEST:
		n->status = write_out(secret_peek(a->token->text), secret_len(a->token->text) - 1);
		if (n->status == 0)
			n->status = write_out("\n", 1);
		break;
	case NODE_GET_RESOURCE:
		n->status = write_b64(&a->resource);
		break;
	case NODE_ENCRYPT:
		n->status = write_sealed(n);
		break;
	default:
		n->status = write_out(n->plain.data, n->plain.len);
	}
	end(n, n->status);
}

/* Accept a resource that is a key and, for decrypt, opens the JWE: a server may have another key
 * under the same path. Anything else is a fault of that server, and the next one is tried. */
static int accept_key(void *arg, struct body *resource, struct err *err)
{
	struct node *n = arg;
	cleanup_secret struct secret *key = attest_pin_key(resource->data, resource->len, err);

	if (!key)
		return -1;
	if (n->o.command == NODE_ENCRYPT)
		n->key = steal_ptr(&key);
	else if (jwe_dir_open(key, n->input, n->input_len, &n->plain, err) < 0)
		return err_wrap(err, "the server's key does not decrypt the input");
	return 0;
}

/* Read standard input for the pin: clevis writes all of it, possibly with a newline after a JWE,
 * and closes it. The protected header of a JWE names the servers. */
static int read_input(struct node *n, struct err *err)
{
	bool jwe = n->o.command == NODE_DECRYPT;
	cleanup_json struct json_object *header = NULL;

	n->input = file_read_fd(STDIN_FILENO, "standard input",
		jwe ? JWE_TEXT_MAX : ATTEST_PLAIN_MAX, &n->input_len, err);
	if (!n->input)
		return -1;
	if (!jwe)
		return 0;
	while (n->input_len > 0 && strchr(" \t\r\n", n->input[n->input_len - 1]))
		n->input_len--;
	header = jwe_dir_header(n->input, n->input_len, err);
	if (!header || attest_config_read_header(header, &n->o.config, err) < 0)
		return err_wrap(err, "standard input");
	return 0;
}

/* Nobody reads the output any more: end as a write to it would. */
static void on_reader_gone(int fd, bool readable, bool writable, void *arg)
{
	on_signal(SIGPIPE, arg);
}

static void on_parent_gone(int fd, bool readable, bool writable, void *arg)
{
	on_signal(SIGHUP, arg);
}

/* A pipe without a reader is ready for reading at its writing end. clevis kills only the shell that
 * started the pin, so the pin watches that shell, too. */
static void watch_receivers(struct node *n)
{
	struct stat st;

	if (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode) &&
		(fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
		n->reader_gone =
			loop_fd_new(n->loop, STDOUT_FILENO, true, false, on_reader_gone, n);
	if (n->parent >= 0)
		n->parent_gone = loop_fd_new(n->loop, n->parent, true, false, on_parent_gone, n);
}

static int start_fetch(struct node *n, struct err *err)
{
	bool pin = n->o.command == NODE_ENCRYPT || n->o.command == NODE_DECRYPT;
	struct attest_fetch_request r = {.config = &n->o.config,
		.token_only = n->o.command == NODE_ATTEST,
		.budget_ms = n->o.timeout_ms,
		.say = tell,
		.ak_file = n->o.ak_file,
		.accept = pin ? accept_key : NULL};

	watch_receivers(n);
	return attest_fetch_start(n->client, &n->source, &n->ops, &r, on_fetched, n, err) ? 0 : -1;
}

/* ---- doctor */

static void print_line(void *arg, const char *line)
{
	puts(line);
}

static void on_examined(void *arg, enum attest_fault fault)
{
	end(arg, (int)fault);
}

/* The doctor prints each finding as it has it. */
static int start_doctor(struct node *n, struct err *err)
{
	const struct attest_doctor_request r = {.client = n->client,
		.source = &n->source,
		.config = &n->o.config,
		.seal = n->o.seal,
		.root = "",
		.say = print_line};

	attest_doctor_start(&n->ops, &r, on_examined, n);
	return 0;
}

/* ---- disks */

static void next_disk(struct node *n);

/* One disk is done. A disk without a token of this pin is skipped, unless --device names it. */
static void on_rebound(void *arg, enum attest_fault fault, const struct err *err)
{
	struct node *n = arg;
	bool none = fault == ATTEST_DISK && err->kind == ERR_NOT_FOUND && !n->o.device;

	if (fault != ATTEST_OK && !none) {
		end(n, complain(n, fault, err));
		return;
	}
	if (!none)
		n->n_rebound++;
	if (!none && !n->o.dry_run)
		printf("%s: bound to the servers in the list\n", log_esc(n->disk[n->disk_now]));
	n->disk_now++;
	next_disk(n);
}

/* Disks are rebound one after the other: each takes an attestation, and the TPM serves one at a
 * time. */
static void next_disk(struct node *n)
{
	const struct attest_rebind_request r = {.servers = &n->o.config,
		.device = n->disk[n->disk_now],
		.dry_run = n->o.dry_run,
		.budget_ms = n->o.timeout_ms,
		.say = tell};

	if (n->disk_now < n->n_disks) {
		attest_rebind_start(n->client, &n->source, &n->ops, &r, on_rebound, n);
		return;
	}
	if (n->n_rebound == 0)
		tell(n, "no open LUKS2 disk has a token of the clevis pin trustee; next step: give the disk with --device");
	end(n, n->n_rebound == 0 ? ATTEST_DISK : ATTEST_OK);
}

/* --device, or every LUKS2 disk that is open now. */
static int start_rebind(struct node *n, struct err *err)
{
	if (n->n_disks == 0)
		return err_set(err, ERR_INVALID,
			"no LUKS2 disk is open; next step: give the disk with --device");
	next_disk(n);
	return 0;
}

/* Rebind under a lock, as two processes at once would add a token each. If the lock file cannot
 * be created, continue without it. */
static int run_rebind(struct node *n)
{
	/* The kernel releases flock(2) when the process ends, however it ends. */
	int lock = open(REBIND_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), rc;

	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0) {
		tell(n, "another tec-node rebind-servers is running");
		close(lock);
		return ATTEST_DISK;
	}
	if (n->o.device)
		n->disk[n->n_disks++] = xstrdup(n->o.device);
	else
		n->n_disks = attest_luks2_opened("/sys/block", n->disk);
	rc = run_loop(n, start_rebind);
	if (lock >= 0)
		close(lock);
	return rc;
}

/* ---- serve */

/*
 * After a signal no new request is accepted; running ones may finish, so that a child that uses the
 * TPM is not killed, but for less time than a service manager waits.
 */
struct serve {
	struct loop *loop;
	struct attest_cdh *cdh;
	struct timer look, leave, rest;
	const char *socket; /* borrowed; NULL: no socket file of ours to remove */
};

/* Give memory back between requests: they are rare, and the service runs on every node. */
static void on_rest(void *arg)
{
	malloc_trim(0);
	confine_drop_code();
}

/* Restart the timer with each request: memory is given back only after a pause. */
static void on_idle(void *arg)
{
	timer_set(arg, REST_MS);
}

/* Requests did not finish in time. */
static void on_leave(void *arg)
{
	loop_stop(arg);
}

/* Stop as soon as no request and no child is left. */
static void on_look(void *arg)
{
	struct serve *s = arg;

	if (attest_cdh_busy(s->cdh) || httpd_in_flight(attest_cdh_httpd(s->cdh)) > 0)
		timer_set(&s->look, LOOK_MS);
	else
		loop_stop(s->loop);
}

/* Stop accepting, then wait for running requests. */
static void on_serve_signal(int signo, void *arg)
{
	struct serve *s = arg;

	if (timer_is_set(&s->leave)) /* the second signal: stop now */
		loop_stop(s->loop);
	httpd_drain(attest_cdh_httpd(s->cdh));
	timer_set(&s->look, 0);
	timer_set_earlier(&s->leave, LEAVE_MS);
}

/* The number of sockets that a service manager passes (sd_listen_fds(3)); LISTEN_PID must be
 * this process. -1: not a number, or too many. */
static int passed_sockets(struct err *err)
{
	const char *pid = secure_getenv("LISTEN_PID"), *n = secure_getenv("LISTEN_FDS");
	uint64_t value;

	if (!pid || !n || str_to_u64(pid, INT32_MAX, &value) < 0 || (pid_t)value != getpid())
		return 0;
	if (str_to_u64(n, SOCKETS_MAX, &value) < 0)
		return err_set(err, ERR_INVALID, "LISTEN_FDS is not a number up to %d: %s",
			SOCKETS_MAX, log_esc(n));
	return (int)value;
}

/* Passed sockets replace --listen and --socket. The socket file is ours from here on, and is
 * removed at the end. */
static int listen_at(struct serve *s, const struct node_options *o, struct err *err)
{
	struct httpd *httpd = attest_cdh_httpd(s->cdh);
	int n = passed_sockets(err), fd;

	for (int i = 0; i < n; i++)
		if (httpd_listen_fd(httpd, FIRST_FD + i, err) < 0)
			return -1;
	if (n != 0)
		return n > 0 ? 0 : -1;
	if (!*o->listen && !o->socket)
		return err_set(err, ERR_INVALID, "option --listen is empty: --socket is required");
	if (*o->listen && httpd_listen(httpd, o->listen, err) < 0)
		return -1;
	if (!o->socket)
		return 0;
	fd = addr_listen_local(o->socket, o->socket_mode, o->socket_group, err);
	if (fd < 0)
		return -1;
	s->socket = o->socket;
	if (httpd_listen_fd(httpd, fd, err) == 0)
		return 0;
	close(fd);
	return -1;
}

/* Each use of the TPM is a child of this program, so that a TPM that hangs blocks no other
 * request. */
static int serve(const struct node_options *o)
{
	struct serve s = {.loop = loop_new()};
	struct httpc *client = httpc_new(s.loop);
	struct attest_source source =
		o->sample ? attest_source_sample(s.loop)
			  : attest_source_child(s.loop, "/proc/self/exe", o->tcti, o->ak_handle);
	struct loop_signal *term = loop_signal_new(s.loop, SIGTERM, on_serve_signal, &s);
	struct loop_signal *intr = loop_signal_new(s.loop, SIGINT, on_serve_signal, &s);
	struct err err = ERR_INIT;
	int status = 0;

	log_setup(LOG_INFO, LOG_TEXT);
	loop_ignore_sigpipe();
	confine_raise_descriptors(DESCRIPTORS);
	timer_init(&s.look, s.loop, on_look, &s);
	timer_init(&s.leave, s.loop, on_leave, s.loop);
	timer_init(&s.rest, s.loop, on_rest, &s);
	s.cdh = attest_cdh_new(client, &source, &o->config, &o->cdh);
	attest_cdh_on_idle(s.cdh, on_idle, &s.rest);
	if (listen_at(&s, o, &err) == 0) {
		on_rest(&s);
		loop_run(s.loop);
	} else {
		fprintf(stderr, "tec-node: %s\n", err.text);
		status = ATTEST_USAGE;
	}
	attest_cdh_free(s.cdh);
	if (s.socket)
		unlink(s.socket);
	timer_fini(&s.look);
	timer_fini(&s.leave);
	timer_fini(&s.rest);
	loop_signal_free(term);
	loop_signal_free(intr);
	httpc_free(client);
	loop_free(s.loop);
	metric_reset_all();
	return status;
}

/* ---- seal */

/* With --or-reboot, what started this program need not look at its exit status: an initial RAM disk
 * goes on after any of its scripts. */
static int seal(struct node *n)
{
	struct err err = ERR_INIT;
	uint32_t patience_ms = n->o.timeout_ms ? n->o.timeout_ms : ATTEST_SEAL_MS;
	bool already;

	attest_seal_end_pins();
	if (attest_seal(n->o.tcti, n->o.config.uuid, patience_ms, &already, &err) == 0) {
		puts(already ? "sealed before: PCR 15 is not zero" : "sealed: PCR 15 is extended");
		return ATTEST_OK;
	}
	complain(n, ATTEST_TPM, &err);
	if (!n->o.or_reboot)
		return ATTEST_TPM;
	tell(n, "the root file system must not be entered without the seal: rebooting");
	attest_seal_reboot();
}

/* ---- main */

/* Unless standard error is a terminal already. A failure is ignored: a disk must open without
 * messages, too. */
static void open_console(struct node *n)
{
	if (n->o.console && !isatty(STDERR_FILENO))
		n->console = open(n->o.console, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* Each command returns an exit status of enum attest_fault, or 0. */
static int run(struct node *n)
{
	bool pin = n->o.command == NODE_ENCRYPT || n->o.command == NODE_DECRYPT;
	struct err err = ERR_INIT;

	switch (n->o.command) {
	case NODE_AK:
	case NODE_QUOTE:
		return print_from_tpm(n);
	case NODE_REGISTER:
		return run_loop(n, start_register);
	case NODE_DOCTOR:
		return run_loop(n, start_doctor);
	case NODE_SERVE:
		return serve(&n->o);
	case NODE_REBIND:
		return run_rebind(n);
	case NODE_SEAL:
		open_console(n);
		return seal(n);
	default:
		open_console(n);
		/* Before the input is read, which may take until the parent has ended. Without
		 * pidfd_open(2), as in Linux 5.2, only the output is watched. */
		if (pin)
			n->parent = pidfd_open(getppid(), 0);
		if (pin && read_input(n, &err) < 0)
			return complain(n, ATTEST_USAGE, &err);
		return run_loop(n, start_fetch);
	}
}

/* secret_process_init() comes first; keys and input are wiped on every way out. */
int main(int argc, char *argv[])
{
	struct node n = {.plain = BODY_INIT, .console = -1, .parent = -1};
	enum conf_result result;
	int status = 0;

	secret_process_init();
	/* Only for root: under RLIMIT_MEMLOCK, later allocations could fail. */
	if (geteuid() == 0)
		(void)!mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	/* tpm2-tss writes to standard error; our own errors report the same in words. A value that
	 * the user has set stays. */
	setenv("TSS2_LOG", "all+NONE", 0);
	log_setup(LOG_WARN, LOG_TEXT);
	result = node_options_read(&n.o, argc, argv);
	if (result == CONF_RUN)
		status = run(&n);
	if (n.console >= 0)
		close(n.console);
	if (n.parent >= 0)
		close(n.parent);
	file_wipe(n.input, n.input_len);
	body_fini(&n.plain);
	secret_free(n.key);
	for (size_t i = 0; i < n.n_disks; i++)
		free(n.disk[i]);
	node_options_fini(&n.o);
	return result == CONF_BAD ? ATTEST_USAGE : status;
}
