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
 * serve               node_serve.c, until a signal
 * doctor              prints findings as it goes
 * rebind-servers      one disk after the other
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node_options.h"
#include "node_serve.h"

#include "tec/attest/doctor.h"
#include "tec/attest/esys.h"
#include "tec/attest/fetch.h"
#include "tec/attest/luks2.h"
#include "tec/attest/rebind.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/secret.h"
#include "tec/loop/signal.h"

#define JWE_TEXT_MAX (2u << 20)
#define REBIND_LOCK  "/run/tec-node-rebind.lock"
#define B64_CHUNK    30000 /* a multiple of 3, so that chunks can be joined without padding */

struct node {
	struct node_options o;
	struct loop *loop;
	struct httpc *client;
	struct attest_source source;
	struct op_scope ops;
	int console; /* gets a copy of the messages; -1: none */
	int signo;   /* the signal that ended the loop; 0: none */
	int status;  /* exit status */
	char *input; /* owned, wiped: from standard input */
	size_t input_len;
	struct body plain;                  /* the plaintext of a JWE */
	struct secret *key;                 /* owned: to encrypt with */
	char *disk[ATTEST_LUKS2_DISKS_MAX]; /* owned: paths of the disks to rebind */
	size_t n_disks, disk_now, n_rebound;
};

/* Print a message. On the console there may be a prompt, so the copy starts on a new line. */
static void tell(const struct node *n, const char *text)
{
	fprintf(stderr, "tec-node: %s\n", text);
	if (n->console >= 0)
		dprintf(n->console, "\ntec-node: %s\n", text);
}

/* Print an error and return the exit status for the fault. */
static int complain(const struct node *n, enum attest_fault fault, const struct err *err)
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

/* The key itself stays in the TPM; its public half is printed, and kept in --ak-file for other
 * programs. */
static int print_ak(struct node *n)
{
	struct err err = ERR_INIT;
	cleanup_esys struct attest_esys *e = attest_esys_open(n->o.tcti, &err);
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct pki_spki ak;

	if (!e || (n->o.make ? attest_esys_ak_make(e, n->o.ak_handle, &ak, &err)
			     : attest_esys_ak(e, n->o.ak_handle, &ak, &err)) < 0)
		return complain(n, ATTEST_TPM, &err);
	pki_spki_to_pem(&ak, &pem);
	if (n->o.make && n->o.ak_file &&
		file_replace(n->o.ak_file, pem.data, pem.len, 0644, &err) < 0)
		fprintf(stderr, "tec-node: cannot save the public key: %s\n", err.text);
	return write_out(pem.data, pem.len);
}

/* A quote for tests and support: it is not sent to a server. */
static int print_quote(struct node *n)
{
	struct err err = ERR_INIT;
	cleanup_esys struct attest_esys *e = attest_esys_open(n->o.tcti, &err);
	cleanup_strbuf struct strbuf json = STRBUF_INIT;

	if (!e || attest_esys_quote(e, n->o.ak_handle, n->o.extra, &json, &err) < 0)
		return complain(n, ATTEST_TPM, &err);
	strbuf_addc(&json, '\n');
	return write_out(json.data, json.len);
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

static void say(void *arg, const char *text)
{
	tell(arg, text);
}

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
	if (start(n, &err) == 0)
		loop_run(n->loop);
	else
		n->status = complain(n, err.kind == ERR_INVALID ? ATTEST_USAGE : ATTEST_TPM, &err);
	op_scope_cancel(&n->ops);
	httpc_free(n->client);
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

/* Each failure was printed as it happened; only the end is left to say. */
static void tell_given_up(const struct node *n)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_addf(&text, "giving up on %s", n->o.config.path ? n->o.config.path : "the token");
	tell(n, strbuf_str(&text));
}

/* The fetch has ended; what to print depends on the command. */
static void on_fetched(void *arg, struct attest_fetch_answer *a)
{
	struct node *n = arg;

	if (a->fault != ATTEST_OK) {
		if (a->said)
			tell_given_up(n);
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

/* Accept a resource that is a key; anything else is a fault of that server, and the next one is
 * tried. */
static int accept_key(void *arg, struct body *resource, struct err *err)
{
	struct node *n = arg;

	n->key = attest_pin_key(resource->data, resource->len, err);
	return n->key ? 0 : -1;
}

/* Accept a key only if it opens the JWE: a server may have another key under the same path. */
static int accept_opening(void *arg, struct body *resource, struct err *err)
{
	struct node *n = arg;
	cleanup_secret struct secret *key = attest_pin_key(resource->data, resource->len, err);

	if (!key)
		return -1;
	if (jwe_dir_open(key, n->input, n->input_len, &n->plain, err) < 0)
		return err_wrap(err, "the server's key does not decrypt the input");
	return 0;
}

/* What a resource is accepted for depends on the command; the fetch tries the next server if it
 * is not. */
static int start_fetch(struct node *n, struct err *err)
{
	struct attest_fetch_request r = {.config = &n->o.config,
		.token_only = n->o.command == NODE_ATTEST,
		.budget_ms = n->o.timeout_ms,
		.say = say,
		.ak_file = n->o.ak_file};

	if (n->o.command == NODE_ENCRYPT)
		r.accept = accept_key;
	else if (n->o.command == NODE_DECRYPT)
		r.accept = accept_opening;
	return attest_fetch_start(n->client, &n->source, &n->ops, &r, on_fetched, n, err) ? 0 : -1;
}

static int read_input(struct node *n, size_t max, struct err *err)
{
	n->input = file_read_fd(STDIN_FILENO, "standard input", max, &n->input_len, err);
	return n->input ? 0 : -1;
}

/* Read the JWE from standard input, and the servers from its protected header. clevis may
 * append a newline. */
static int read_jwe(struct node *n, struct err *err)
{
	cleanup_json struct json_object *header = NULL;

	if (read_input(n, JWE_TEXT_MAX, err) < 0)
		return -1;
	while (n->input_len > 0 && strchr(" \t\r\n", n->input[n->input_len - 1]))
		n->input_len--;
	header = jwe_dir_header(n->input, n->input_len, err);
	if (!header || attest_config_read_header(header, &n->o.config, err) < 0)
		return err_wrap(err, "standard input");
	return 0;
}

/* Open --console unless standard error is a terminal already. A failure is ignored: a disk must
 * open without messages, too. */
static void open_console(struct node *n)
{
	if (n->o.console && !isatty(STDERR_FILENO))
		n->console = open(n->o.console, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* Read standard input before the loop: clevis writes all of it and closes it. */
static int run_fetch(struct node *n)
{
	struct err err = ERR_INIT;

	open_console(n);
	if ((n->o.command == NODE_ENCRYPT && read_input(n, ATTEST_PLAIN_MAX, &err) < 0) ||
		(n->o.command == NODE_DECRYPT && read_jwe(n, &err) < 0))
		return complain(n, ATTEST_USAGE, &err);
	return run_loop(n, start_fetch);
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
		.say = say};

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

/* ---- main */

/* Each command returns an exit status of enum attest_fault, or 0. */
static int run(struct node *n)
{
	switch (n->o.command) {
	case NODE_AK:
		return print_ak(n);
	case NODE_QUOTE:
		return print_quote(n);
	case NODE_REGISTER:
		return run_loop(n, start_register);
	case NODE_DOCTOR:
		return run_loop(n, start_doctor);
	case NODE_SERVE:
		return node_serve(&n->o);
	case NODE_REBIND:
		return run_rebind(n);
	default:
		return run_fetch(n);
	}
}

/* Silence tpm2-tss, which writes to standard error; our own errors report the same in words. A
 * value that the user has set stays. */
static void quieten_tss(void)
{
	setenv("TSS2_LOG", "all+NONE", 0);
}

/* secret_process_init() comes first; keys and input are wiped on every way out. */
int main(int argc, char *argv[])
{
	struct node n = {.plain = BODY_INIT, .console = -1};
	int status = 0;

	secret_process_init();
	/* Only for root: under RLIMIT_MEMLOCK, later allocations could fail. */
	if (geteuid() == 0)
		(void)!mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	quieten_tss();
	log_setup(LOG_WARN, LOG_TEXT);
	switch (node_options_read(&n.o, argc, argv)) {
	case CONF_BAD:
		status = ATTEST_USAGE;
		break;
	case CONF_EXIT:
		break;
	case CONF_RUN:
		status = run(&n);
		break;
	}
	if (n.console >= 0)
		close(n.console);
	file_wipe(n.input, n.input_len);
	body_fini(&n.plain);
	secret_free(n.key);
	for (size_t i = 0; i < n.n_disks; i++)
		free(n.disk[i]);
	node_options_fini(&n.o);
	return status;
}
