/* SPDX-License-Identifier: MIT */
/*
 * What a node may send instead of what it should, one change of a genuine attestation at a time: the
 * broker gives no token for it, tells of it once, and serves the next one. A change of the quote is
 * signed by the approved key as a TPM would, where a TPM would sign it.
 */
#include "config.h"

#include <criterion/criterion.h>

#include "broker/attest_world.h"

static struct world w;

static void up(void)
{
	world_start(&w);
	approve(&w);
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(broker_hostile, .init = up, .fini = down, .timeout = 300);

static int send_body(const char *body, size_t len)
{
	cleanup_broker_answer struct broker_answer a;

	w.node.body = body;
	w.node.len = len;
	broker_attest_attest(w.b, &w.node, &a);
	w.node.body = NULL;
	/* A node is told the kind only, in the same words as by the guard. */
	if (a.status == 401 && w.n_judged == 1) {
		cleanup_free char *detail =
			xasprintf("Attest failed: %s\"}", rats_flaw_text(w.flaw));

		cr_expect(strstr(strbuf_str(&a.body), detail), "%s", strbuf_str(&a.body));
	}
	return a.status;
}

/* In a session that was begun for it. */
static void refuse_text(const char *body, size_t len, const char *what)
{
	w.n_judged = 0;
	cr_expect_eq(send_body(body, len), 401, "%s: %.300s", what, body);
	cr_expect_eq(w.n_judged, 1, "%s", what);
	cr_expect_str_eq(resource(&w, OWN_PATH), "TokenNotFound", "%s", what);
}

static void refuse_object(struct json_object *o, const char *what)
{
	cleanup_free char *body = json_text(o);

	refuse_text(body, strlen(body), what);
}

static void serves_the_next(void)
{
	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	cr_expect_str_eq(resource(&w, OWN_PATH), "ok");
}

/* ---- members */

static const char *const members[] = {"runtime-data", "runtime-data/nonce",
	"runtime-data/tee-pubkey", "runtime-data/tee-pubkey/kty", "runtime-data/tee-pubkey/alg",
	"runtime-data/tee-pubkey/crv", "runtime-data/tee-pubkey/x", "runtime-data/tee-pubkey/y",
	"tee-evidence", "tee-evidence/primary_evidence", "tee-evidence/additional_evidence",
	"tee-evidence/primary_evidence/ak_public", "tee-evidence/primary_evidence/tpm_quote",
	"tee-evidence/primary_evidence/tpm_quote/signature",
	"tee-evidence/primary_evidence/tpm_quote/message",
	"tee-evidence/primary_evidence/tpm_quote/pcrs"};

/* The object that has the member; *name: its last part. */
static struct json_object *holder(struct json_object *o, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *parent = xstrndup(path, slash ? (size_t)(slash - path) : 0);

	*name = slash ? slash + 1 : path;
	return slash ? json_get(o, parent) : o;
}

static struct json_object *another_type(unsigned kind, struct json_object *was)
{
	switch (kind) {
	case 0:
		return NULL; /* null */
	case 1:
		return json_object_new_int(7);
	case 2:
		return json_object_new_double(1.5);
	case 3:
		return json_object_new_boolean(true);
	case 4:
		return json_push(json_arr(), json_object_get(was));
	case 5:
		return json_object_is_type(was, json_type_object) ? json_object_new_string("{}")
								  : json_obj();
	default:
		return json_object_is_type(was, json_type_string) ? json_arr()
								  : json_object_new_string("");
	}
}

Test(broker_hostile, each_member_missing_or_of_another_type)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		for (unsigned kind = 0; kind < 8; kind++) {
			cleanup_json struct json_object *o = NULL;
			struct json_object *in;
			const char *name;

			cr_assert_eq(auth(&w), 200);
			o = fixture_attest_for(w.nonce);
			in = holder(o, members[i], &name);
			if (kind == 7)
				json_object_object_del(in, name);
			else
				json_object_object_add(
					in, name, another_type(kind, json_get(in, name)));
			refuse_object(o, members[i]);
		}
	}
	serves_the_next();
}

Test(broker_hostile, each_text_shorter_longer_or_with_another_character)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		for (unsigned kind = 0; kind < 6; kind++) {
			cleanup_json struct json_object *o = NULL;
			cleanup_free char *text = NULL;
			struct json_object *in;
			const char *name, *was;
			size_t len;

			w.node.now_ms += 300000; /* what was left of the last one */
			cr_assert_eq(auth(&w), 200);
			o = fixture_attest_for(w.nonce);
			in = holder(o, members[i], &name);
			was = json_get_str(in, name);
			len = was ? strlen(was) : 0;
			if (!was || (!len && kind != 1 && kind != 4))
				continue;
			text = kind == 0   ? xstrndup(was, len - 1)
			       : kind == 1 ? xasprintf("%sA", was)
			       : kind == 2 ? xasprintf("%s", was + 1)
			       : kind == 3 ? xasprintf("%s=", was)
			       : kind == 4 ? xasprintf("%s\n", was)
					   : xasprintf("%c%s", was[0] == 'B' ? 'C' : 'B', was + 1);
			json_add_str(in, name, text);
			refuse_object(o, members[i]);
		}
	}
	serves_the_next();
}

/* Two readers may each take another one. */
Test(broker_hostile, each_member_twice)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		for (unsigned kind = 0; kind < 2; kind++) {
			cleanup_json struct json_object *o = NULL;
			cleanup_free char *text = NULL, *twice = NULL, *quoted = NULL;
			struct json_object *in;
			const char *name, *at;

			cr_assert_eq(auth(&w), 200);
			o = fixture_attest_for(w.nonce);
			in = holder(o, members[i], &name);
			cr_assert(in);
			text = json_text(o);
			quoted = xasprintf("\"%s\":", name);
			at = strstr(text, quoted);
			cr_assert(at, "%s", quoted);
			/* The second one spelled with an escape. */
			twice = kind == 0 ? xasprintf("%.*s\"%s\":\"x\",%s", (int)(at - text), text,
						    name, at)
					  : xasprintf("%.*s\"\\u%04x%s\":\"x\",%s",
						    (int)(at - text), text, name[0], name + 1, at);
			refuse_text(twice, strlen(twice), name);
		}
	}
	serves_the_next();
}

Test(broker_hostile, bodies_that_are_not_one_object)
{
	static const char *const t[] = {"", "null", "[]", "7", "\"x\"", "{", "{}", "{}{}",
		"\xef\xbb\xbf{}", "{\"runtime-data\":{},\"tee-evidence\":{}}",
		"{\"a\":\"\\ud800\"}", "{\"a\":\"\\u0000\"}", "{\"a\":\"\xc0\xaf\"}", "// x\n{}",
		"{\"a\":NaN}", "{\"a\":1,}"};
	cleanup_strbuf struct strbuf deep = STRBUF_INIT, large = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cr_assert_eq(auth(&w), 200);
		refuse_text(t[i], strlen(t[i]), "a body");
	}
	for (unsigned i = 0; i < 1000; i++)
		strbuf_adds(&deep, "{\"a\":");
	cr_assert_eq(auth(&w), 200);
	refuse_text(deep.data, deep.len, "nested");
	strbuf_adds(&large, "{\"a\":\"");
	for (unsigned i = 0; i < 70000; i++)
		strbuf_addc(&large, 'x');
	strbuf_adds(&large, "\"}");
	cr_assert_eq(auth(&w), 200);
	refuse_text(large.data, large.len, "large");
	serves_the_next();
}

/* ---- bits */

static void flip_all(const char *path)
{
	cleanup_json struct json_object *o = NULL;
	cleanup_free uint8_t *bytes = NULL;
	cleanup_free char *was = NULL;
	struct json_object *in;
	const char *name;
	bool url = strstr(path, "tee-pubkey") != NULL;
	size_t len;

	o = fixture_attest_for(FIXTURE_NONCE);
	in = holder(o, path, &name);
	was = xstrdup(json_get_str(in, name));
	cr_assert_eq((url ? bytes_from_b64url : bytes_from_b64)(was, strlen(was), &bytes, &len), 0);
	for (size_t i = 0; i < len; i++) {
		cleanup_json struct json_object *fresh = NULL;
		cleanup_strbuf struct strbuf text = STRBUF_INIT;
		cleanup_free uint8_t *now = NULL;
		const char *genuine;
		size_t n;

		cr_assert_eq(auth(&w), 200);
		fresh = fixture_attest_for(w.nonce);
		in = holder(fresh, path, &name);
		genuine = json_get_str(in, name);
		cr_assert_eq((url ? bytes_from_b64url : bytes_from_b64)(
				     genuine, strlen(genuine), &now, &n),
			0);
		cr_assert_eq(n, len);
		now[i] ^= (uint8_t)(1u << i % 8);
		(url ? bytes_to_b64url : bytes_to_b64)(&text, now, n);
		json_add_str(in, name, strbuf_str(&text));
		refuse_object(fresh, path);
	}
}

Test(broker_hostile, one_flipped_bit_of_the_signature)
{
	flip_all("tee-evidence/primary_evidence/tpm_quote/signature");
}

Test(broker_hostile, one_flipped_bit_of_the_attest)
{
	flip_all("tee-evidence/primary_evidence/tpm_quote/message");
}

Test(broker_hostile, one_flipped_bit_of_the_keys)
{
	flip_all("tee-evidence/primary_evidence/ak_public");
	flip_all("runtime-data/tee-pubkey/x");
	flip_all("runtime-data/tee-pubkey/y");
}

Test(broker_hostile, one_flipped_bit_of_each_value)
{
	for (unsigned i = 0; i < TPM_PCR_COUNT; i++) {
		cleanup_json struct json_object *o = NULL;
		struct json_object *pcrs;
		cleanup_free char *text = NULL;

		cr_assert_eq(auth(&w), 200);
		o = fixture_attest_for(w.nonce);
		pcrs = json_get(o, "tee-evidence/primary_evidence/tpm_quote/pcrs");
		text = xstrdup(json_object_get_string(json_object_array_get_idx(pcrs, i)));
		text[i] = text[i] == '0' ? '1' : '0';
		json_object_array_put_idx(pcrs, i, json_object_new_string(text));
		refuse_object(o, "pcrs");
	}
	serves_the_next();
}

/* ---- what the approved key signs besides */

/* A quote of the session's binding, changed and signed again. */
static void refuse_signed(void (*change)(struct fixture_quote *q, unsigned n), unsigned n,
	enum rats_flaw flaw, const char *what)
{
	static const struct pki_jwk jwk = {.kty = "EC",
		.crv = "P-256",
		.alg = "ECDH-ES+A256KW",
		.x = FIXTURE_X,
		.y = FIXTURE_Y};
	cleanup_json struct json_object *o = NULL;
	uint8_t binding[RATS_BINDING_LEN];
	struct fixture_quote q;

	cr_assert_eq(auth(&w), 200);
	o = fixture_attest_for(w.nonce);
	rats_binding(&jwk, w.nonce, "", binding);
	fixture_quote(binding, &q);
	change(&q, n);
	json_add(json_get(o, "tee-evidence"), "primary_evidence", fixture_evidence(&q));
	refuse_object(o, what);
	cr_expect_eq(w.flaw, flaw, "%s %u: %s", what, n, w.why);
}

/* n selections that have all 24 registers together, as a forger would order them. */
static void select_in_parts(struct fixture_quote *q, unsigned n)
{
	uint8_t s[4 + 16 * 6] = {0, 0, 0, (uint8_t)n};

	for (unsigned i = 0, pcr = 0; i < n; i++) {
		uint8_t *one = s + 4 + (size_t)6 * i;
		unsigned until = (i + 1) * 24 / n;

		one[1] = 0x0b;
		one[2] = 3;
		for (; pcr < until; pcr++)
			one[3 + pcr / 8] |= (uint8_t)(1u << pcr % 8);
	}
	fixture_quote_select(q, s, 4 + (size_t)6 * n);
}

static void select_bank(struct fixture_quote *q, unsigned bank)
{
	const uint8_t s[] = {0, 0, 0, 1, (uint8_t)(bank >> 8), (uint8_t)bank, 3, 0xff, 0xff, 0xff};

	fixture_quote_select(q, s, sizeof(s));
}

static void select_all_but(struct fixture_quote *q, unsigned pcr)
{
	uint8_t s[] = {0, 0, 0, 1, 0, 0x0b, 3, 0xff, 0xff, 0xff};

	s[7 + pcr / 8] &= (uint8_t) ~(1u << pcr % 8);
	fixture_quote_select(q, s, sizeof(s));
}

Test(broker_hostile, two_to_sixteen_selections_and_other_registers)
{
	for (unsigned n = 2; n <= 16; n++)
		refuse_signed(select_in_parts, n, RATS_FLAW_QUOTE, "selections");
	for (unsigned pcr = 0; pcr < 24; pcr++)
		refuse_signed(select_all_but, pcr, RATS_FLAW_QUOTE, "all but one");
	serves_the_next();
}

Test(broker_hostile, other_banks)
{
	static const unsigned banks[] = {0x0000, 0x0004, 0x000c, 0x000d, 0x0010, 0x0012, 0x0027,
		0x0028, 0x0029, 0x0b00, 0xffff};

	for (size_t i = 0; i < ARRAY_LEN(banks); i++)
		refuse_signed(select_bank, banks[i], RATS_FLAW_QUOTE, "bank");
	serves_the_next();
}

static void set_type(struct fixture_quote *q, unsigned type)
{
	q->attest[4] = (uint8_t)(type >> 8);
	q->attest[5] = (uint8_t)type;
	fixture_sign(q);
}

static void set_magic(struct fixture_quote *q, unsigned magic)
{
	for (unsigned i = 0; i < 4; i++)
		q->attest[i] = (uint8_t)(magic >> (24 - 8 * i));
	fixture_sign(q);
}

static void add_bytes(struct fixture_quote *q, unsigned n)
{
	q->attest_len += n;
	fixture_sign(q);
}

static void cut_bytes(struct fixture_quote *q, unsigned n)
{
	q->attest_len -= n;
	fixture_sign(q);
}

/* With the head of a quote's, and with what they really are behind it: nothing of it is a quote. */
Test(broker_hostile, attestations_of_other_types)
{
	static const unsigned types[] = {0x8014 /* NV */, 0x8015, 0x8016, 0x8017 /* certify */,
		0x8019 /* time */, 0x801a, 0x801c /* NV digest */, 0x0000, 0xffff};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		refuse_signed(set_type, types[i], RATS_FLAW_QUOTE, "type");
	refuse_signed(set_magic, 0, RATS_FLAW_QUOTE, "magic");
	refuse_signed(set_magic, 0x474354ff, RATS_FLAW_QUOTE, "magic");
	for (unsigned n = 1; n < 9; n++) {
		refuse_signed(add_bytes, n, RATS_FLAW_QUOTE, "trailing bytes");
		refuse_signed(cut_bytes, n, RATS_FLAW_QUOTE, "bytes cut off");
	}
	serves_the_next();
}

static void other_extra(struct fixture_quote *q, unsigned n)
{
	q->attest[10 + n] ^= 1;
	fixture_sign(q);
}

Test(broker_hostile, quotes_for_another_session)
{
	for (unsigned n = 0; n < 32; n++)
		refuse_signed(other_extra, n, RATS_FLAW_BINDING, "extraData");
	serves_the_next();
}

/* ---- sessions */

Test(broker_hostile, swapped_between_sessions_and_replayed)
{
	cleanup_json struct json_object *first = NULL, *second = NULL;
	cleanup_free char *a = NULL, *b = NULL;
	char cookie[80];

	cr_assert_eq(auth(&w), 200);
	first = fixture_attest_for(w.nonce);
	memcpy(cookie, w.cookie, sizeof(cookie));
	cr_assert_eq(auth(&w), 200);
	second = fixture_attest_for(w.nonce);
	a = json_text(first);
	b = json_text(second);
	/* Each with the other's cookie; both have ended then. */
	cr_expect_eq(send_body(a, strlen(a)), 401);
	w.node.cookie = cookie;
	cr_expect_eq(send_body(b, strlen(b)), 401);
	cr_expect_eq(send_body(a, strlen(a)), 401);
	/* One that was taken, again in a new session. */
	serves_the_next();
	cr_assert_eq(auth(&w), 200);
	cr_expect_eq(send_body(a, strlen(a)), 401);
	cr_assert_eq(auth(&w), 200);
	cr_expect_eq(send_body(b, strlen(b)), 401);
	serves_the_next();
}

/* The rest of one with the quote of another: the nonce of this session, the quote of that. */
Test(broker_hostile, parts_of_two_sessions)
{
	static const char *const parts[] = {"runtime-data", "tee-evidence"};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		cleanup_json struct json_object *other = fixture_attest_for(FIXTURE_NONCE),
						*o = NULL;

		cr_assert_eq(auth(&w), 200);
		o = fixture_attest_for(w.nonce);
		json_add(o, parts[i], json_object_get(json_get(other, parts[i])));
		refuse_object(o, parts[i]);
	}
	serves_the_next();
}

Test(broker_hostile, a_full_table_serves_the_next_all_the_same)
{
	cr_assert_eq(auth(&w), 200);
	for (unsigned i = 1; i < 100; i++) {
		memcpy(w.node.source, &i, sizeof(i));
		cr_assert_eq(auth(&w), 200, "%u", i);
	}
	for (unsigned i = 100; i < 110; i++) {
		memcpy(w.node.source, &i, sizeof(i));
		cr_expect_eq(auth(&w), 200);
	}
	cr_expect_eq(broker_attest_sessions(w.b), 100);
	w.node.source[0]++;
	serves_the_next();
	w.node.now_ms += 300000;
	serves_the_next();
	cr_expect_eq(broker_attest_sessions(w.b), 1);
}

/* ---- the clock */

Test(broker_hostile, a_token_ends_with_the_wall_clock_and_a_session_does_not)
{
	static const struct {
		int64_t jump_s;
		const char *says;
	} t[] = {{0, "ok"}, {300, "ok"}, {360, "ok" /* leeway */}, {361, "TokenVerifierError"},
		{86400 * 365, "TokenVerifierError"}, {-3600, "ok"}, {-999999, "ok"}};
	int64_t now = w.node.now_s;

	cr_assert_eq(auth(&w), 200);
	cr_assert_eq(attest(&w, NULL, NULL), 200);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		w.node.now_s = now + t[i].jump_s;
		cr_expect_str_eq(resource(&w, OWN_PATH), t[i].says, "%lld", (long long)t[i].jump_s);
	}
	/* A session is counted by the clock that does not jump. */
	w.node.now_s = now + 86400;
	cr_assert_eq(auth(&w), 200);
	w.node.now_s = now - 86400;
	cr_expect_eq(attest(&w, NULL, NULL), 200);
	w.node.now_ms += 300000;
	cr_expect_str_eq(resource(&w, OWN_PATH), "TokenNotFound");
}
