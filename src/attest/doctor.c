/* SPDX-License-Identifier: MIT */
/*
 * Check everything that an attestation needs, in the order in which it would fail, so that the
 * first line that says FAIL is the one to fix. Nothing is created or changed.
 */
#include "config.h"

#include "tec/attest/doctor.h"

#include <stdio.h>
#include <string.h>

#include "tec/attest/esys.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

/* An earlier time means that the clock was never set: tec-node did not exist yet. */
#define EPOCH_S 1767225600 /* 2026-01-01 */

struct doctor {
	struct op op;        /* first */
	struct op_scope ops; /* the attestation */
	struct defer defer;
	struct attest_doctor_request r;
	struct attest_config config; /* the server being checked; borrows from r.config */
	size_t next;                 /* server to check next */
	enum attest_fault worst;     /* the first failure */
	attest_doctor_fn done;
	void *arg;
};

/* Print one line of the report, and remember the first failure for the exit status. */
static void say(struct doctor *d, enum attest_fault fault, const char *what, const char *text)
{
	cleanup_free char *line =
		xasprintf("%-8s%-6s%s", what, fault == ATTEST_OK ? "ok" : "FAIL", text);

	if (fault != ATTEST_OK && d->worst == ATTEST_OK)
		d->worst = fault;
	d->r.say(d->arg, line);
}

/* ---- this machine */

static bool is_zero(const uint8_t pcr[SHA256_LEN])
{
	for (size_t i = 0; i < SHA256_LEN; i++)
		if (pcr[i])
			return false;
	return true;
}

/* Check that the firmware measured the boot: PCR 4 is zero after a legacy BIOS boot. */
static void look_at_pcrs(struct doctor *d, struct attest_esys *e)
{
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN];
	struct err err = ERR_INIT;
	char hex[SHA256_HEX_LEN + 1], text[160];

	if (attest_esys_pcrs(e, pcrs, &err) < 0) {
		say(d, ATTEST_TPM, "boot", err.text);
	} else if (is_zero(pcrs[4])) {
		say(d, ATTEST_TPM, "boot",
			"PCR 4 holds no measurements: boot in UEFI mode, with the TPM enabled in the firmware settings");
	} else {
		bytes_to_hex(pcrs[4], SHA256_LEN, hex);
		snprintf(text, sizeof(text), "PCR 4 is %s", hex);
		say(d, ATTEST_OK, "boot", text);
	}
}

/* Check the TPM, then the boot measurements and the attestation key, if the TPM responds. */
static void look_at_tpm(struct doctor *d)
{
	struct err err = ERR_INIT;
	cleanup_esys struct attest_esys *e = attest_esys_open(d->r.source->tcti, &err);
	struct pki_spki ak;
	char text[200], hex[SHA256_HEX_LEN + 1];

	if (!e || attest_esys_about(e, text, sizeof(text), &err) < 0) {
		say(d, ATTEST_TPM, "TPM", err.text);
		return;
	}
	say(d, ATTEST_OK, "TPM", text);
	look_at_pcrs(d, e);
	if (attest_esys_ak(e, d->r.source->ak_handle, &ak, &err) < 0) {
		say(d, ATTEST_TPM, "key", err.text);
		return;
	}
	bytes_to_hex(ak.sha256, SHA256_LEN, hex);
	snprintf(text, sizeof(text), "at 0x%08x, SHA-256 %s", d->r.source->ak_handle, hex);
	say(d, ATTEST_OK, "key", text);
}

/* Check for a clock that was never set. It counts as a network failure, because it breaks TLS. */
static void look_at_clock(struct doctor *d)
{
	char now[CLOCK_RFC3339_LEN];
	cleanup_free char *text = NULL;
	bool set = clock_wall_s() >= EPOCH_S;

	clock_format(clock_wall_s(), now);
	text = xasprintf("%s%s", now,
		set ? ""
		    : ", which is far in the past: certificates will not validate; set the clock");
	say(d, set ? ATTEST_OK : ATTEST_NETWORK, "clock", text);
}

/* ---- servers */

static void doctor_free(struct doctor *d)
{
	op_scope_cancel(&d->ops);
	defer_cancel(&d->defer);
	free(d);
}

static void on_abort(struct op *op)
{
	doctor_free(container_of(op, struct doctor, op));
}

static void next_server(struct doctor *d);

/* Return what to do about a failure, to be appended to the error. */
static const char *advice(enum attest_fault fault)
{
	switch (fault) {
	case ATTEST_REFUSED:
		return "; to see what differs, run tecctl why MACHINE or read the operator's log";
	case ATTEST_NETWORK:
		return "; check the address, and that this machine can reach it";
	case ATTEST_SERVER:
		return "; check that this is a Trustee server and that it is healthy";
	default:
		return "";
	}
}

/* Read the server's verdict on this machine from the token (EAR); "?" if it is unreadable. */
static void read_status(const struct attest_token *t, char out[32])
{
	const char *from = strchr((const char *)secret_peek(t->text), '.');
	const char *to = from ? strchr(from + 1, '.') : NULL;
	const struct json_limits limits = {.bytes = 65536, .depth = 16, .tokens = 4096};
	cleanup_free uint8_t *claims = NULL;
	cleanup_json struct json_object *o = NULL;
	struct err ignored = ERR_INIT;
	const char *status = NULL;
	size_t n = 0;

	if (to && bytes_from_b64url(from + 1, (size_t)(to - from - 1), &claims, &n) == 0)
		o = json_parse((const char *)claims, n, &limits, &ignored);
	if (json_object_is_type(o, json_type_object))
		status = json_get_str(o, "submods/cpu0/ear.status");
	snprintf(out, 32, "%s", status ? log_esc(status) : "?");
}

/* Report the verdict. A server may issue a token for a machine that it does not trust, so a token
 * alone proves nothing. */
static void say_token(struct doctor *d, const struct attest_token *t)
{
	char status[32];
	cleanup_free char *text = NULL;
	const char *meaning = "";

	read_status(t, status);
	if (strstr(status, "warning"))
		meaning =
			": the boot measurements of this machine are not approved; run tecctl why MACHINE to see what differs";
	else if (strstr(status, "contraindicated"))
		meaning =
			": the attestation key of this machine is not registered or not approved; register it, then run tecctl approve";
	text = xasprintf("%s reports %s%s", d->config.server[0].url, status, meaning);
	say(d, *meaning ? ATTEST_REFUSED : ATTEST_OK, "server", text);
}

/* Report one server, then go on: a person wants to see all servers. */
static void on_attested(void *arg, struct attest_fetch_answer *a)
{
	struct doctor *d = arg;
	cleanup_free char *text = NULL;

	if (a->fault == ATTEST_OK && a->token && !d->r.config->path) {
		say_token(d, a->token);
	} else {
		text = a->fault == ATTEST_OK ? xasprintf("%s served %s", d->config.server[0].url,
						       d->r.config->path)
					     : xasprintf("%s: %s%s", d->config.server[0].url,
						       a->err.text, advice(a->fault));
		say(d, a->fault, "server", text);
	}
	d->next++;
	next_server(d);
}

/* Check one server with a single attempt, so that no retry hides a failure. */
static void next_server(struct doctor *d)
{
	struct attest_fetch_request r = {.config = &d->config, .token_only = !d->r.config->path};
	struct err err = ERR_INIT;

	if (d->next == d->r.config->n_servers) {
		op_finish(&d->op);
		d->done(d->arg, d->worst);
		doctor_free(d);
		return;
	}
	d->config =
		(struct attest_config){.n_servers = 1, .path = d->r.config->path, .limited = true};
	d->config.server[0] = d->r.config->server[d->next];
	if (attest_fetch_start(d->r.client, d->r.source, &d->ops, &r, on_attested, d, &err))
		return;
	say(d, ATTEST_USAGE, "server", err.text);
	d->next++;
	next_server(d);
}

static void on_turn(void *arg)
{
	next_server(arg);
}

/* The server checks start from the loop, so `done` never runs before this returns. */
struct op *attest_doctor_start(struct op_scope *scope, const struct attest_doctor_request *r,
	attest_doctor_fn done, void *arg)
{
	struct doctor *d = xcalloc(1, sizeof(*d));

	d->r = *r;
	d->done = done;
	d->arg = arg;
	op_begin(&d->op, scope, on_abort);
	if (r->source->tcti)
		look_at_tpm(d);
	look_at_clock(d);
	defer_call(&d->defer, r->source->loop, on_turn, d);
	return &d->op;
}
