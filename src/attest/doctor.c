/* SPDX-License-Identifier: MIT */
/*
 * Check everything that an attestation needs, in the order in which it would fail, so that the
 * first line that says FAIL is the one to fix. Nothing is created or changed.
 */
#include "config.h"

#include "tec/attest/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "tec/attest/esys.h"
#include "tec/attest/seal.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

/* An earlier time means that the clock was never set: tec-node did not exist yet. */
#define EPOCH_S  1767225600 /* 2026-01-01 */
#define TEXT_MAX 65536
#define WHITE    " \t\n"

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

static void say(struct doctor *d, enum attest_fault fault, const char *what, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* Print one line of the report, and remember the first failure for the exit status. */
static void say(struct doctor *d, enum attest_fault fault, const char *what, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	va_list ap;

	strbuf_addf(&line, "%-8s%-6s", what, fault == ATTEST_OK ? "ok" : "FAIL");
	va_start(ap, fmt);
	strbuf_vaddf(&line, fmt, ap);
	va_end(ap);
	if (fault != ATTEST_OK && d->worst == ATTEST_OK)
		d->worst = fault;
	d->r.say(d->arg, line.data);
}

/* ---- this machine */

/* The firmware measured the boot if PCR 4 is not zero, as it is after a legacy BIOS boot. PCR 15 can
 * be extended by others than tec-node seal: systemd does it with the key of a disk. */
static void say_registers(struct doctor *d, const uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN])
{
	static const uint8_t zero[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	bytes_to_hex(pcrs[4], SHA256_LEN, hex);
	if (memcmp(pcrs[4], zero, SHA256_LEN) == 0)
		say(d, ATTEST_TPM, "boot",
			"PCR 4 holds no measurements: boot in UEFI mode, with the TPM enabled in the firmware settings");
	else
		say(d, ATTEST_OK, "boot", "PCR 4 is %s", hex);
	bytes_to_hex(pcrs[ATTEST_SEAL_PCR], SHA256_LEN, hex);
	if (memcmp(pcrs[ATTEST_SEAL_PCR], zero, SHA256_LEN) != 0)
		say(d, ATTEST_OK, "seal", "%s; PCR 15 is %s", d->r.seal ? "on" : "off", hex);
	else if (d->r.seal)
		say(d, ATTEST_TPM, "seal",
			"on, but PCR 15 is zero: run update-initramfs -u or dracut --force, and reboot");
	else
		say(d, ATTEST_OK, "seal",
			"off; PCR 15 is zero: set seal = true in /etc/tec-node.conf if the cluster releases keys OncePerBoot");
}

/* Check the TPM, then the registers and the attestation key, if the TPM responds. */
static void look_at_tpm(struct doctor *d)
{
	struct err err = ERR_INIT, pcr_err = ERR_INIT;
	cleanup_esys struct attest_esys *e = attest_esys_open(d->r.source->tcti, &err);
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN];
	char text[200], hex[SHA256_HEX_LEN + 1];
	struct pki_spki ak;

	if (!e || attest_esys_about(e, text, sizeof(text), &err) < 0) {
		say(d, ATTEST_TPM, "TPM", "%s", err.text);
		return;
	}
	say(d, ATTEST_OK, "TPM", "%s", text);
	if (attest_esys_pcrs(e, pcrs, &pcr_err) < 0)
		say(d, ATTEST_TPM, "boot", "%s", pcr_err.text);
	else
		say_registers(d, (const uint8_t(*)[SHA256_LEN])pcrs);
	if (attest_esys_ak(e, d->r.source->ak_handle, &ak, &err) < 0) {
		say(d, ATTEST_TPM, "key", "%s", err.text);
		return;
	}
	bytes_to_hex(ak.sha256, SHA256_LEN, hex);
	say(d, ATTEST_OK, "key", "at 0x%08x, SHA-256 %s", d->r.source->ak_handle, hex);
}

/* Return a small file as text, "" if it cannot be read. The caller frees it. */
static char *text_of(const struct doctor *d, const char *path)
{
	cleanup_strbuf struct strbuf full = STRBUF_INIT;
	struct err err = ERR_INIT;
	char *text;
	size_t len;

	strbuf_addf(&full, "%s%s", d->r.root, path);
	text = file_read(full.data, TEXT_MAX, &len, NULL, &err);
	return text ? text : xstrdup("");
}

/* A kernel that has the driver of the disk built in resumes before the initial RAM disk runs; the
 * initial RAM disk itself does not resume if it seals. */
static void look_at_hibernation(struct doctor *d)
{
	cleanup_free char *disk = text_of(d, "/sys/power/disk"),
			  *line = text_of(d, "/proc/cmdline");
	bool resume = false;

	for (char *rest = line, *word; (word = strsep(&rest, WHITE));)
		resume = resume || str_starts(word, "resume=");
	if (!*disk || str_starts(disk, "[disabled]"))
		say(d, ATTEST_OK, "sleep", "hibernation is not possible");
	else
		say(d, resume ? ATTEST_USAGE : ATTEST_OK, "sleep",
			"hibernation is possible, but the initial RAM disk does not resume%s",
			resume ? "; the kernel may, before the seal: replace resume= with nohibernate on its command line"
			       : ": nohibernate on the kernel command line turns it off");
}

/* With tpm2-measure-pcr, systemd 254 and later extend PCR 15 when they open a disk. */
static void look_at_crypttab(struct doctor *d)
{
	cleanup_free char *text = text_of(d, "/etc/crypttab");
	cleanup_free char *measured = NULL;
	unsigned disks = 0;

	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		const char *name = strtok_r(line, WHITE, &line);

		if (!name || *name == '#')
			continue;
		disks++;
		if (!measured && strstr(line, "tpm2-measure-pcr=") &&
			!strstr(line, "tpm2-measure-pcr=no"))
			measured = xstrdup(name);
	}
	if (measured && disks > 1)
		say(d, ATTEST_USAGE, "disks",
			"%s has tpm2-measure-pcr in /etc/crypttab, so disks opened after it get no key: remove this option",
			log_esc(measured));
}

/* Check for a clock that was never set. It counts as a network failure, because it breaks TLS. */
static void look_at_clock(struct doctor *d)
{
	char now[CLOCK_RFC3339_LEN];
	bool set = clock_wall_s() >= EPOCH_S;

	clock_format(clock_wall_s(), now);
	say(d, set ? ATTEST_OK : ATTEST_NETWORK, "clock", "%s%s", now,
		set ? ""
		    : ", which is far in the past: certificates will not validate; set the clock");
}

/* ---- servers */

static void doctor_free(struct op *op)
{
	struct doctor *d = container_of(op, struct doctor, op);

	op_scope_cancel(&d->ops);
	defer_cancel(&d->defer);
	free(d);
}

static void next_server(void *arg);

/* Return what to do about a failure, to be appended to the error. */
static const char *advice(enum attest_fault fault, const struct err *err)
{
	switch (fault) {
	case ATTEST_REFUSED:
		return "; to see what differs, run tecctl why MACHINE or read the operator's log";
	case ATTEST_NETWORK:
		return "; check the address, and that this machine can reach it";
	case ATTEST_SERVER:
		if (err->kind == ERR_NOT_FOUND)
			return "; check the path, and with tecctl why MACHINE that its key was sent";
		return "; check that this is a Trustee server and that it is healthy";
	default:
		return "";
	}
}

/* Report the verdict on this machine in the token (EAR). A server may issue a token for a machine
 * that it does not trust, so a token alone proves nothing. */
static void say_token(struct doctor *d, const struct attest_token *t)
{
	cleanup_json struct json_object *claims =
		attest_flow_claims((const char *)secret_peek(t->text));
	const char *status = json_get_str(claims, "submods/cpu0/ear.status"), *meaning = "";

	status = status ? log_esc(status) : "?";
	if (strstr(status, "warning"))
		meaning =
			": the boot measurements of this machine are not approved; run tecctl why MACHINE to see what differs";
	else if (strstr(status, "contraindicated"))
		meaning =
			": the attestation key of this machine is not registered or not approved; register it, then run tecctl approve";
	say(d, *meaning ? ATTEST_REFUSED : ATTEST_OK, "server", "%s reports %.31s%s",
		d->config.server[0].url, status, meaning);
}

/* Report one server, then go on: a person wants to see all servers. */
static void on_attested(void *arg, struct attest_fetch_answer *a)
{
	struct doctor *d = arg;
	const char *url = d->config.server[0].url;

	if (a->fault != ATTEST_OK)
		say(d, a->fault, "server", "%s: %s%s", url, a->err.text, advice(a->fault, &a->err));
	else if (a->token && !d->r.config->path)
		say_token(d, a->token);
	else
		say(d, ATTEST_OK, "server", "%s served %s", url, d->r.config->path);
	d->next++;
	next_server(d);
}

/* Check one server with a single attempt, so that no retry hides a failure. */
static void next_server(void *arg)
{
	struct doctor *d = arg;
	struct attest_fetch_request r = {.config = &d->config, .token_only = !d->r.config->path};
	struct err err = ERR_INIT;

	if (d->next == d->r.config->n_servers) {
		op_finish(&d->op);
		d->done(d->arg, d->worst);
		doctor_free(&d->op);
		return;
	}
	d->config =
		(struct attest_config){.n_servers = 1, .path = d->r.config->path, .limited = true};
	d->config.server[0] = d->r.config->server[d->next];
	if (attest_fetch_start(d->r.client, d->r.source, &d->ops, &r, on_attested, d, &err))
		return;
	say(d, ATTEST_USAGE, "server", "%s", err.text);
	d->next++;
	next_server(d);
}

/* The server checks start from the loop, so `done` never runs before this returns. */
struct op *attest_doctor_start(struct op_scope *scope, const struct attest_doctor_request *r,
	attest_doctor_fn done, void *arg)
{
	struct doctor *d = xcalloc(1, sizeof(*d));

	d->r = *r;
	d->done = done;
	d->arg = arg;
	op_begin(&d->op, scope, doctor_free);
	if (r->source->tcti)
		look_at_tpm(d);
	if (r->seal) {
		look_at_hibernation(d);
		look_at_crypttab(d);
	}
	look_at_clock(d);
	defer_call(&d->defer, r->source->loop, next_server, d);
	return &d->op;
}
