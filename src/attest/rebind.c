/* SPDX-License-Identifier: MIT */
/*
 * look => (add: open the old token => test => import) | (prove: open the new token => test) |
 * remove => look, until nothing is left to do. Each look reads the header again; only the proved
 * JWE and the list of tokens that got a replacement are kept from one look to the next.
 */
#include "config.h"

#include "tec/attest/rebind.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/attest/luks2.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/child.h"

#define CHILD_MS 120000 /* Argon2 on a small machine takes seconds */

struct rebind {
	struct op op;        /* first */
	struct op_scope ops; /* one call at a time */
	struct httpc *client;
	const struct attest_source *source;
	struct attest_rebind_request r;
	struct attest_bindings seen;
	struct attest_rebind_step step; /* borrows from seen */
	struct attest_config ask;       /* for the fetch; borrows from seen and r.servers */
	struct secret *key;             /* owned: decrypts the JWE; from the server */
	struct body passphrase;         /* decrypted from the JWE */
	char *proved;                   /* owned: a JWE, or NULL */
	uint64_t added;                 /* bit n: token n got a replacement */
	attest_rebind_fn done;
	void *arg;
};

static void look(struct rebind *b);

/* ---- the end */

/* Wipe the key and the passphrase as soon as a step no longer needs them. */
static void forget(struct rebind *b)
{
	body_fini(&b->passphrase);
	secret_free(b->key);
	b->key = NULL;
}

static void rebind_free(struct op *op)
{
	struct rebind *b = container_of(op, struct rebind, op);

	op_scope_cancel(&b->ops);
	forget(b);
	attest_bindings_fini(&b->seen);
	free(b->proved);
	free(b);
}

static void finish(struct rebind *b, enum attest_fault fault, const struct err *err)
{
	op_finish(&b->op);
	b->done(b->arg, fault, err);
	rebind_free(&b->op);
}

static void say(struct rebind *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct rebind *b, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	va_list ap;

	strbuf_addf(&text, "%s: ", log_esc(b->r.device));
	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	b->r.say(b->arg, strbuf_str(&text));
}

/* ---- cryptsetup */

/* Run "cryptsetup WORDS... -- DEVICE" with up to six words. A passphrase goes to standard input
 * only. */
static void run(struct rebind *b, const char *const words[], const void *input, size_t len,
	size_t max_out, child_done_fn done)
{
	const char *argv[10] = {"cryptsetup"};
	struct child_spec spec = {.argv = argv,
		.input = input,
		.input_len = len,
		.max_out = max_out,
		.deadline_ms = CHILD_MS};
	size_t n = 1;

	while (*words) {
		assert(n < ARRAY_LEN(argv) - 3);
		argv[n++] = *words++;
	}
	argv[n++] = "--";
	argv[n] = b->r.device;
	(void)child_start(b->source->loop, &b->ops, &spec, done, b);
}

/* If a child failed, end the whole operation and return true; b is freed then. */
static bool failed(struct rebind *b, const struct err *err, const char *what)
{
	struct err e = *err;

	if (!err_is_set(err))
		return false;
	if (e.kind == ERR_NOT_FOUND)
		e.kind =
			ERR_TRANSIENT; /* cryptsetup is missing; NOT_FOUND means a disk without a token */
	err_wrap(&e, "%.80s: %s", log_esc(b->r.device), what);
	finish(b, ATTEST_DISK, &e);
	return true;
}

/* ---- changes */

/* Look again instead of assuming that the new token is as written. */
static void on_imported(void *arg, const struct err *err, const char *out, size_t len)
{
	struct rebind *b = arg;

	forget(b);
	if (failed(b, err,
		    "cannot add the new token, perhaps because the header is full; no token was removed"))
		return;
	say(b, "added a token with the new servers to key slot %u", b->step.old->keyslot);
	look(b);
}

/* Encrypt the passphrase again with the same key, under a header with the new servers. */
static void import(struct rebind *b)
{
	static const char *const words[] = {"token", "import", NULL};
	const struct attest_config c = attest_rebind_config(b->step.old, b->r.servers);
	cleanup_free char *header = attest_config_write_header(&c), *token = NULL;
	cleanup_strbuf struct strbuf jwe = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (jwe_dir_seal(b->key, header, b->passphrase.data, b->passphrase.len, &jwe, &err) < 0) {
		finish(b, ATTEST_DISK, &err);
		return;
	}
	token = attest_binding_write(strbuf_str(&jwe), b->step.old->keyslot);
	b->added |= 1ull << b->step.old->token;
	run(b, words, token, strlen(token), 4096, on_imported);
}

static void on_removed(void *arg, const struct err *err, const char *out, size_t len)
{
	struct rebind *b = arg;

	if (failed(b, err, "cannot remove the old token; both tokens open the disk"))
		return;
	say(b, "removed token %u with the old servers", b->step.old->token);
	look(b);
}

/* ---- opening */

/* Return the token that a server's key must decrypt: the new one if it exists. */
static const struct attest_binding *opened(const struct rebind *b)
{
	return b->step.act == ATTEST_REBIND_ADD ? b->step.old : b->step.new;
}

/*
 * Continue after cryptsetup confirmed that the passphrase opens the key slot. A dry run ends here.
 */
static void on_tested(void *arg, const struct err *err, const char *out, size_t len)
{
	struct rebind *b = arg;
	struct err none = ERR_INIT;

	if (failed(b, err,
		    "the passphrase in the token does not open its key slot; no token was removed"))
		return;
	if (b->r.dry_run) {
		say(b, "token %u opens key slot %u with the new servers; nothing was changed",
			opened(b)->token, opened(b)->keyslot);
		finish(b, ATTEST_OK, &none);
		return;
	}
	if (b->step.act == ATTEST_REBIND_ADD) {
		import(b);
		return;
	}
	say(b, "token %u opens key slot %u", opened(b)->token, opened(b)->keyslot);
	free(b->proved);
	b->proved = xstrdup(opened(b)->jwe);
	forget(b);
	look(b);
}

/* Test the passphrase on the key slot. --test-passphrase does not open the disk. */
static void on_fetched(void *arg, struct attest_fetch_answer *a)
{
	struct rebind *b = arg;
	char number[16];
	const char *const words[] = {
		"open", "--test-passphrase", "--key-slot", number, "--key-file=-", NULL};
	struct err err = ERR_INIT;

	if (a->fault != ATTEST_OK) {
		err_set(&err, ERR_TRANSIENT,
			"%.80s: no listed server provided the key for token %u; no token was removed",
			log_esc(b->r.device), opened(b)->token);
		finish(b, a->fault, &err);
		return;
	}
	say(b, "%s provided the key for token %u", b->ask.server[a->server].url, opened(b)->token);
	snprintf(number, sizeof(number), "%u", opened(b)->keyslot);
	run(b, words, b->passphrase.data, b->passphrase.len, 4096, on_tested);
}

/* Accept a server's key only if it decrypts the token: another cluster may serve the same path. */
static int accept_opening(void *arg, struct body *resource, struct err *err)
{
	struct rebind *b = arg;
	const char *jwe = opened(b)->jwe;

	forget(b);
	b->key = attest_pin_key(resource->data, resource->len, err);
	if (!b->key)
		return -1;
	if (jwe_dir_open(b->key, jwe, strlen(jwe), &b->passphrase, err) < 0)
		return err_wrap(err, "the server's key does not decrypt the token of the disk");
	return 0;
}

static void on_said(void *arg, const char *text)
{
	struct rebind *b = arg;

	b->r.say(b->arg, text);
}

/*
 * Fetch the key from the new servers, with the retries of the request and not those of the token.
 */
static void open_token(struct rebind *b)
{
	struct attest_fetch_request r = {.config = &b->ask,
		.budget_ms = b->r.budget_ms,
		.accept = accept_opening,
		.say = on_said};
	struct err err = ERR_INIT;

	b->ask = attest_rebind_config(opened(b), b->r.servers);
	b->ask.limited = b->r.servers->limited;
	b->ask.retries = b->r.servers->retries;
	if (!attest_fetch_start(b->client, b->source, &b->ops, &r, on_fetched, b, &err))
		finish(b, ATTEST_USAGE, &err);
}

/* ---- looking */

/* Start the next step. The check of `added` stops an endless loop if tokens vanish. */
static void act(struct rebind *b)
{
	char number[16];
	const char *const remove[] = {"token", "remove", "--token-id", number, NULL};
	struct err err = ERR_INIT;

	b->step = attest_rebind_decide(&b->seen, b->r.servers, b->proved);
	switch (b->step.act) {
	case ATTEST_REBIND_NOTHING:
		if (b->r.dry_run)
			say(b, "already has these servers; nothing to change");
		finish(b, ATTEST_OK, &err);
		break;
	case ATTEST_REBIND_ADD:
		if (b->added & 1ull << b->step.old->token) {
			err_set(&err, ERR_CONFLICT,
				"%.80s: the added token has disappeared; another program may be changing the disk",
				log_esc(b->r.device));
			finish(b, ATTEST_DISK, &err);
			break;
		}
		/* fall through */
	case ATTEST_REBIND_PROVE:
		open_token(b);
		break;
	case ATTEST_REBIND_REMOVE: /* the new token was proved in this run */
		snprintf(number, sizeof(number), "%u", b->step.old->token);
		run(b, remove, NULL, 0, 4096, on_removed);
		break;
	}
}

/* Decide by the header as it is now. */
static void on_dumped(void *arg, const struct err *err, const char *out, size_t len)
{
	struct rebind *b = arg;
	struct err bad = ERR_INIT;

	if (failed(b, err, "cannot be read as LUKS2"))
		return;
	attest_bindings_fini(&b->seen);
	if (attest_bindings_read(out, len, &b->seen, &bad) < 0) {
		failed(b, &bad, "cannot be changed");
		return;
	}
	if (b->seen.n == 0) {
		err_set(&bad, ERR_NOT_FOUND, "%.80s: no token of the clevis pin trustee",
			log_esc(b->r.device));
		finish(b, ATTEST_DISK, &bad);
		return;
	}
	act(b);
}

static void look(struct rebind *b)
{
	static const char *const words[] = {"luksDump", "--dump-json-metadata", NULL};

	run(b, words, NULL, 0, ATTEST_LUKS2_DUMP_MAX, on_dumped);
}

struct op *attest_rebind_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_rebind_request *r, attest_rebind_fn done,
	void *arg)
{
	struct rebind *b = xcalloc(1, sizeof(*b));

	b->client = client;
	b->source = source;
	b->r = *r;
	b->done = done;
	b->arg = arg;
	op_begin(&b->op, scope, rebind_free);
	look(b);
	return &b->op;
}
