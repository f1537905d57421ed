/* SPDX-License-Identifier: MIT */
/* A session holds the nonce until one attestation was judged, and then its token. A refused
 * attestation ends its session, because a nonce is valid for one attempt. */
#include "config.h"

#include "tec/broker/attest.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/broker/reason.h"
#include "tec/broker/wire.h"
#include "tec/jose/jws.h"
#include "tec/jose/jwe.h"
#include "tec/net/sessions.h"

#define SEALED                                                                                     \
	"The node has finished its boot; its disk key is released only before the root file system is entered."
#define ATTEST_MAX    65536
#define NONCE_LEN     32
#define COOKIE_LEN    16
#define NONCE_B64_LEN 44
#define LEEWAY_S      60 /* for exp: the clocks of two brokers may differ */
#define JSON          "application/json"

struct broker_attest {
	struct broker_attest_conf conf;
	struct sessions *sessions;
};

/* A handshake in progress. Small, because unauthenticated clients can start many. */
struct handshake {
	char nonce[NONCE_B64_LEN + 1];
	struct secret *token; /* NULL: not attested */
};

static struct metric attestations = METRIC_COUNTER_INIT("tec_broker_attestations_total",
	"Attestations by result: affirming, warning, contraindicated, or the flaw of the evidence.",
	"result", NULL);
static struct metric resources = METRIC_COUNTER_INIT("tec_broker_resources_total",
	"Resource requests of nodes, by result (ok, or the error type).", "result", NULL);
static struct metric open_sessions =
	METRIC_GAUGE_INIT("tec_broker_sessions", "Handshakes in progress.", NULL, NULL);

static struct metric evicted_sessions = METRIC_COUNTER_INIT("tec_broker_evicted_sessions_total",
	"Handshakes evicted from the session table by newer ones.", NULL, NULL);

static void handshake_free(void *data)
{
	struct handshake *h = data;

	secret_free(h->token);
	free(h);
}

/* handshake_free() runs whenever a session ends, also when it is evicted. */
struct broker_attest *broker_attest_new(const struct broker_attest_conf *conf)
{
	struct broker_attest *b = xcalloc(1, sizeof(*b));

	/* A shallow copy: store, signer and policies stay borrowed. */
	b->conf = *conf;
	b->sessions = sessions_new(conf->sessions, conf->sessions_per_source, conf->session_ms,
		&evicted_sessions, handshake_free);
	if (conf->sample)
		log_warn(NULL, "sample evidence is accepted, which proves nothing: for tests only",
			NULL);
	return b;
}

void broker_attest_free(struct broker_attest *b)
{
	if (!b)
		return;
	sessions_free(b->sessions);
	free(b);
}

size_t broker_attest_sessions(const struct broker_attest *b)
{
	return sessions_count(b->sessions);
}

static void count_sessions(const struct broker_attest *b)
{
	metric_set(&open_sessions, NULL, NULL, (double)sessions_count(b->sessions));
}

/* Only keeps memory and the gauge accurate: expired sessions are never found anyway. */
void broker_attest_sweep(struct broker_attest *b, uint64_t now_ms)
{
	sessions_sweep(b->sessions, now_ms);
	count_sessions(b);
}

/* verb is a label of the request metric. */
static void answer_init(struct broker_answer *out, const char *verb)
{
	*out = (struct broker_answer){
		.status = 200, .verb = verb, .type = "", .content_type = JSON};
}

/* ---- auth */

/* Sample evidence passes only if configured: it proves nothing. */
static bool tee_allowed(const struct broker_attest *b, const char *tee)
{
	return str_eq(tee, rats_tee_name(RATS_TEE_TPM)) ||
	       (b->conf.sample && str_eq(tee, rats_tee_name(RATS_TEE_SAMPLE)));
}

/* Name, path and attributes are those of Trustee's cookie, which its clients expect. */
static void set_cookie(struct broker_answer *out, const char *cookie)
{
	strbuf_addf(&out->cookie, "kbs-session-id=%s; Path=/kbs/v0; HttpOnly", cookie);
}

/* The cookie is random and independent of the nonce, which the evidence reveals. */
static void begin(struct broker_attest *b, struct session *e, struct broker_answer *out)
{
	cleanup_strbuf struct strbuf nonce = STRBUF_INIT;
	struct handshake *h = xcalloc(1, sizeof(*h));
	uint8_t random[NONCE_LEN], name[COOKIE_LEN];
	char cookie[2 * COOKIE_LEN + 1];

	bytes_random(random, sizeof(random));
	bytes_random(name, sizeof(name));
	/* Hexadecimal, so that the cookie needs no quoting. */
	bytes_to_hex(name, sizeof(name), cookie);
	bytes_to_b64(&nonce, random, sizeof(random));
	memcpy(h->nonce, strbuf_str(&nonce), sizeof(h->nonce));
	/* From here on the session owns the handshake and can be found by its cookie. */
	session_set_data(e, h);
	session_named(b->sessions, e, cookie);
	set_cookie(out, cookie);
	strbuf_addf(&out->body, "{\"nonce\":\"%s\",\"extra-params\":\"\"}", h->nonce);
}

/* The session is opened last, so that a malformed request costs no place in the table. */
void broker_attest_auth(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out)
{
	cleanup_rats_auth struct rats_auth a;
	struct err err = ERR_INIT;
	struct session *e;
	enum rats_flaw flaw;
	uint32_t retry_s;

	answer_init(out, "auth");
	if (rats_auth_read(n->body, n->len, &a, &flaw, &err) < 0) {
		log_warn(NULL, "handshake refused", "peer=%s reason=%s err=%s", n->peer,
			rats_flaw_name(flaw), log_esc(err.text));
		broker_admin_refuse(
			out, 401, "AttestationError", RATS_AUTH_FAILED "%s", rats_flaw_text(flaw));
	} else if (!tee_allowed(b, a.tee)) {
		broker_admin_refuse(out, 401, "AttestationError", RATS_AUTH_FAILED "%s",
			rats_flaw_text(RATS_FLAW_TEE));
	} else if (!(e = sessions_open(b->sessions, n->source, n->now_ms, &retry_s))) {
		/* Retry-After tells the node when the oldest handshake of its address gives way. */
		broker_admin_refuse(out, 429, "AttestationError",
			RATS_AUTH_FAILED "Too many handshakes in progress.");
		out->retry_after_s = retry_s;
	} else {
		begin(b, e, out);
	}
	count_sessions(b);
}

/* ---- attest */

/* Report to the owner, which logs it and writes the Machine's Event. */
static void tell(const struct broker_attest *b, const struct broker_judged *j)
{
	if (b->conf.on_judged)
		b->conf.on_judged(b->conf.arg, j);
}

/* Report evidence that is not well-formed, bound and signed. Nothing in it is proved, not even
 * the key. */
static void tell_flaw(const struct broker_attest *b, const struct broker_node *n,
	const struct rats_attest *a, enum rats_flaw flaw, const char *why)
{
	const struct broker_judged j = {.peer = n->peer,
		.flaw = flaw,
		.why = why,
		.pcr = flaw == RATS_FLAW_INIT_DATA ? 8 : -1,
		.evidence = a->evidence.ak.der_len ? &a->evidence : NULL};

	/* RATS_FLAW_NONE here means that the evidence is valid but no token could be made. */
	metric_add(
		&attestations, flaw == RATS_FLAW_NONE ? "policy" : rats_flaw_name(flaw), NULL, 1);
	tell(b, &j);
}

/* Report the verdict on valid evidence, with the reason if it does not affirm. */
static void tell_verdict(const struct broker_attest *b, const struct broker_node *n,
	const struct broker_policy *p, const struct rats_evidence *e, const struct rats_verdict *v)
{
	cleanup_broker_reason struct broker_reason reason;
	struct broker_judged j = {.peer = n->peer,
		.flaw = RATS_FLAW_NONE,
		.evidence = e->tee == RATS_TEE_TPM ? e : NULL,
		.key_proved = e->tee == RATS_TEE_TPM,
		.machine = v->machine};

	metric_add(&attestations, rats_policy_status(v), NULL, 1);
	broker_reason_make(b->conf.store, p, e, v, &reason);
	j.why = reason.text.len ? strbuf_str(&reason.text) : NULL;
	j.pcr = reason.pcr;
	tell(b, &j);
}

/* The policy stored under key; NULL: none, or one that cannot be evaluated here. */
static const struct broker_policy *policy_of(
	const struct broker_attest *b, enum broker_store_ns ns, const char *key)
{
	struct broker_store_value v;
	struct err err = ERR_INIT;

	if (broker_store_get(b->conf.store, ns, key, &v, &err) < 0)
		return NULL;
	return broker_policy_find(
		b->conf.policies, b->conf.n_policies, ns == BROKER_STORE_KBS, v.data, v.len);
}

/* Make a token for valid evidence. A verdict that does not affirm is a token too: its claims say
 * so, and the resource policy denies. */
static struct secret *make_token(struct broker_attest *b, const struct broker_node *n,
	const struct rats_attest *a, struct err *err)
{
	const struct broker_policy *p =
		policy_of(b, BROKER_STORE_ATTESTATION_POLICY, "default_cpu.rego");
	cleanup_rats_verdict struct rats_verdict v = {0};
	cleanup_free char *claims = NULL;

	/* Fail closed: an unknown policy never gives a token, not even one that denies. */
	if (!p) {
		err_set(err, ERR_DENIED,
			"The stored attestation policy cannot be evaluated by this broker.");
		return NULL;
	}
	/* The same policies as Rego in Trustee, evaluated on the stored reference values. */
	rats_policy_attest(
		p->policy, p->require_pcr7, &a->evidence, broker_reason_value, b->conf.store, &v);
	tell_verdict(b, n, p, &a->evidence, &v);
	/* The verdict is in the claims, whatever it is. */
	claims = rats_ear_make(a, &v, n->now_s, b->conf.token_s);
	return jws_sign_es256(b->conf.signer, claims, strlen(claims), err);
}

/* Check the evidence and the key to encrypt to. A key that fails only when a resource is sent
 * would leave the node without a reason. */
static int judge(const struct broker_attest *b, const struct rats_attest *a, const char *nonce,
	enum rats_flaw *flaw, struct err *err)
{
	struct jwe_key *key;

	*flaw = RATS_FLAW_TEE;
	if (!tee_allowed(b, rats_tee_name(a->evidence.tee)))
		return err_set(err, ERR_DENIED, "This kind of evidence is not accepted.");
	*flaw = RATS_FLAW_ADDITIONAL;
	if (*a->additional)
		return err_set(err, ERR_DENIED, "Additional evidence is not accepted.");
	if (rats_attest_verify(a, nonce, flaw, err) < 0)
		return -1;
	*flaw = RATS_FLAW_SYNTAX;
	/* Only tried here; the resource is encrypted when it is requested. */
	key = jwe_key_new(&a->key, err);
	if (!key)
		return -1;
	jwe_key_free(key);
	*flaw = RATS_FLAW_NONE;
	return 0;
}

/* The same token for a repeated request: a node may not have received the first answer. */
static void give_token(const struct handshake *h, const char *cookie, struct broker_answer *out)
{
	set_cookie(out, cookie);
	strbuf_addf(&out->body, "{\"token\":\"%s\"}", (const char *)secret_peek(h->token));
}

/* Refused attestations end the session, so nobody can try many quotes against one nonce. */
void broker_attest_attest(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out)
{
	cleanup_free char *cookie = sessions_cookie(n->cookie);
	struct session *e = cookie ? sessions_find(b->sessions, cookie, n->now_ms) : NULL;
	struct handshake *h = e ? session_data(e) : NULL;
	cleanup_rats_attest struct rats_attest a = {.o = NULL};
	enum rats_flaw flaw = RATS_FLAW_NONE;
	struct err err = ERR_INIT;

	/* h is NULL for an unknown or expired cookie, and if the session was evicted. */
	answer_init(out, "attest");
	if (!h) {
		broker_admin_refuse(out, 401, "AttestationError",
			RATS_ATTEST_FAILED "The session does not exist or has expired.");
		return;
	}
	if (h->token) { /* as Trustee: a session attests once */
		give_token(h, cookie, out);
		return;
	}
	/* Read, judge, then evaluate the policy; the first failure is the reason reported. */
	if (rats_attest_read(n->body, n->len, ATTEST_MAX, &a, &flaw, &err) == 0 &&
		judge(b, &a, h->nonce, &flaw, &err) == 0)
		h->token = make_token(b, n, &a, &err);
	if (h->token) {
		session_attested(b->sessions, e);
		give_token(h, cookie, out);
		return;
	}
	tell_flaw(b, n, &a, flaw, err.text);
	broker_admin_refuse(
		out, 401, "AttestationError", RATS_ATTEST_FAILED "%s", rats_flaw_text(flaw));
	/* The nonce is spent: the node has to start again. */
	sessions_end(b->sessions, e);
	count_sessions(b);
}

/* ---- resource */

/* The request's token: that of its session, otherwise its Authorization header. Borrowed; NULL:
 * none. */
static const char *token_of(struct broker_attest *b, const struct broker_node *n)
{
	cleanup_free char *cookie = sessions_cookie(n->cookie);
	struct session *e = cookie ? sessions_find(b->sessions, cookie, n->now_ms) : NULL;
	struct handshake *h = e ? session_data(e) : NULL;

	/* The session wins over a bearer token; read_token() verifies either. */
	if (h && h->token)
		return (const char *)secret_peek(h->token);
	if (n->authorization && str_starts(n->authorization, "Bearer "))
		return n->authorization + strlen("Bearer ");
	return NULL;
}

/* A token proves itself, so a session that was evicted or belongs to another process does not
 * matter. */
static int read_token(struct broker_attest *b, const struct broker_node *n, const char *token,
	struct rats_ear *ear, struct err *err)
{
	cleanup_free char *payload = NULL;
	size_t len;

	if (jws_verify_es256(b->conf.signer, token, strlen(token), &payload, &len, err) < 0 ||
		rats_ear_read(payload, len, ear, err) < 0)
		return -1;
	if (n->now_s > ear->exp_s + LEEWAY_S)
		return err_set(err, ERR_DENIED, "The token has expired.");
	return 0;
}

/* Encrypt the resource to the attested key: the connection need not be trusted. */
static void give_resource(struct broker_attest *b, const struct rats_ear *ear, const char *path,
	struct broker_answer *out)
{
	struct broker_store_value v;
	struct err err = ERR_INIT;
	struct jwe_key *key;

	if (broker_store_get(b->conf.store, BROKER_STORE_REPOSITORY, path, &v, &err) < 0) {
		broker_admin_refuse(out, 404, "ResourceNotFound", "The resource does not exist.");
		return;
	}
	/* The key in the token, not one of this request: it was attested. */
	key = jwe_key_new(&ear->key, &err);
	if (!key || jwe_encrypt(key, v.data, v.len, &out->body, &err) < 0)
		broker_admin_refuse(out, 401, "JweError", "%s", err.text);
	jwe_key_free(key);
}

/* Whether it gets the resource only before it has finished its boot. p NULL: nobody gets one. */
static bool is_sealed(const struct broker_policy *p, const struct rats_holder *h, const char *path)
{
	return p && !rats_policy_grants(p->policy, p->once_per_boot, h, path) &&
	       rats_policy_grants(p->policy, false, h, path);
}

/* Report only an affirmed node that gets no resource: the reason why another one did not affirm
 * was reported when it attested. */
static void tell_resource(const struct broker_attest *b, const struct broker_node *n,
	const struct broker_policy *p, const struct rats_holder *h, const char *path,
	const struct broker_answer *a)
{
	cleanup_free char *why = NULL;
	struct broker_judged j = {.peer = n->peer,
		.pcr = -1,
		.path = path,
		.key_proved = true,
		.machine = h->machine};

	/* Other tokens were explained when they were issued. */
	if (!str_eq(h->status, "affirming"))
		return;
	if (a->status == 404)
		why = xasprintf("It requested %s, which does not exist.", path);
	else if (!str_eq(a->type, "PolicyDeny"))
		return;
	else if (is_sealed(p, h, path))
		why = xstrdup(SEALED);
	else if (h->machine)
		why = xasprintf(
			"It requested %s; only default/%s/root is allowed.", path, h->machine);
	else
		why = xasprintf(
			"It requested %s, but its token names no Machine: it was issued under another policy. The node must attest again.",
			path);
	j.why = why;
	tell(b, &j);
}

/* A token without a Machine is valid but denied by the per-Machine policy. */
void broker_attest_resource(struct broker_attest *b, const struct broker_node *n, const char *path,
	struct broker_answer *out)
{
	const struct broker_policy *p = policy_of(b, BROKER_STORE_KBS, "resource-policy.rego");
	const char *token = token_of(b, n);
	cleanup_rats_ear struct rats_ear ear = {.o = NULL};
	struct err err = ERR_INIT;

	/* The path is checked first, as by the guard, which cannot judge tokens. The rule is public:
	 * nobody learns what exists. */
	answer_init(out, "resource-get");
	if (broker_wire_resource_check(path, &err) < 0)
		broker_admin_refuse(out, 404, "InvalidRequestPath", "%s", err.text);
	else if (!token)
		broker_admin_refuse(out, 401, "TokenNotFound", "Attestation Token not found");
	else if (read_token(b, n, token, &ear, &err) < 0)
		broker_admin_refuse(out, 401, "TokenVerifierError", "%s", err.text);
	else if (is_sealed(p, &ear.holder, path))
		broker_admin_refuse(out, 401, "PolicyDeny", SEALED);
	else if (!p || !rats_policy_grants(p->policy, p->once_per_boot, &ear.holder, path))
		broker_admin_refuse(out, 401, "PolicyDeny", "Access denied by policy");
	else
		give_resource(b, &ear, path, out);
	/* Error types are a small fixed set, so they can be label values. */
	metric_add(&resources, out->status == 200 ? "ok" : out->type, NULL, 1);
	if (out->status != 200 && ear.holder.status)
		tell_resource(b, n, p, &ear.holder, path, out);
}
