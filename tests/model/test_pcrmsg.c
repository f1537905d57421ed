/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "pcr/pcr_events.h"
#include "tec/base/json.h"
#include "tec/model/pcrmsg.h"

#define NONCE  "00112233445566778899aabbccddeeff"
#define DIGEST MOK_LIST
#define HEAD   "tec-pcrs/3 " NONCE " " DIGEST " "

static struct model_pcrmsg a, b;
static struct strbuf text = STRBUF_INIT;

static void up(void)
{
	add_pcr4(&a.events, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(&a.events);
}

static void down(void)
{
	model_pcrmsg_fini(&a);
	model_pcrmsg_fini(&b);
	strbuf_fini(&text);
}

TestSuite(model_pcrmsg, .init = up, .fini = down);

static void add_variants(size_t n)
{
	a.variants.v = xcalloc(MODEL_VARIANTS_MAX, sizeof(*a.variants.v));
	for (size_t i = 0; i < n; i++) {
		struct model_variant *v = &a.variants.v[a.variants.n++];

		v->when = xasprintf(
			"Secure Boot o%s; a loader of unknown make measures the kernel %zu times",
			i & 1 ? "n" : "ff", i);
		v->secure_boot = i & 1;
		add_pcr4(&v->events, SHIM_A, GRUB_A, KERNEL_A);
		for (size_t k = 0; k < i % 3; k++)
			add(&v->events, PCR4_VMLINUZ, KERNEL_A);
		add_pcr14(&v->events);
	}
}

/* Platforms that have nothing in common but what the image signed. */
static void add_platforms(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct model_platform *p = &a.platforms.v[a.platforms.n++];

		p->name = xasprintf("platform-of-vendor-%zu", i);
		add_pcr7(&p->events, SBAT_42);
		bytes_sha256(p->name, strlen(p->name), p->variables);
		for (size_t k = 1; k < 5; k++)
			bytes_sha256(&p->variables[k], 20, p->events.v[k].digest);
	}
}

static void check_same(void)
{
	struct err err = ERR_INIT;

	cr_assert_eq(model_pcrmsg_write(NONCE, DIGEST, &a, &text, &err), 0, "%s", err.text);
	cr_assert_leq(text.len, MODEL_PCRMSG_MAX);
	cr_assert_eq(
		model_pcrmsg_read(text.data, text.len, NONCE, DIGEST, &b, &err), 0, "%s", err.text);
	cr_assert_eq(a.events.n, b.events.n);
	for (size_t i = 0; i < a.events.n; i++)
		cr_assert(pcr_event_same(&a.events.v[i], &b.events.v[i]));
	cleanup_json struct json_object *v = model_variants_json(&a.variants);
	cleanup_json struct json_object *v2 = model_variants_json(&b.variants);
	cr_assert(json_object_equal(v, v2));
	cleanup_json struct json_object *p = model_platforms_json(&a.platforms);
	cleanup_json struct json_object *p2 = model_platforms_json(&b.platforms);
	cr_assert(json_object_equal(p, p2));
}

Test(model_pcrmsg, what_is_written_is_read)
{
	check_same();
	cr_assert(strncmp(text.data, HEAD, strlen(HEAD)) == 0);
	cr_assert_leq(text.len, 700);
}

Test(model_pcrmsg, variants_and_a_platform_without_a_value_are_kept)
{
	add_variants(3);
	add_platforms(2);
	pcr_events_fini(&a.platforms.v[1].events);
	a.platforms.v[1].why = xstrdup("Secure Boot is off on this platform");
	check_same();
}

/* With MOK variables there is PCR 14, with shim's validation off PCR 4. */
Test(model_pcrmsg, registers_of_a_platform_are_kept)
{
	struct model_platform *p;

	add_platforms(4);
	p = a.platforms.v;
	add_pcr14(&p[1].events);
	pcr_events_fini(&p[2].events);
	add_pcr14(&p[2].events);
	pcr_events_fini(&p[3].events);
	add_pcr4(&p[3].events, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(&p[3].events);
	check_same();
	cr_assert(model_platform_has(&b.platforms.v[1], 7));
	cr_assert(model_platform_has(&b.platforms.v[1], 14));
	cr_assert_not(model_platform_has(&b.platforms.v[2], 7));
	cr_assert(model_platform_has(&b.platforms.v[3], 4));
}

Test(model_pcrmsg, eight_platforms_and_four_variants_fit)
{
	add_variants(4);
	add_platforms(MODEL_PLATFORMS_MAX);
	check_same();
}

Test(model_pcrmsg, what_does_not_fit_is_refused)
{
	struct err err = ERR_INIT;

	add_variants(MODEL_VARIANTS_MAX);
	add_platforms(MODEL_PLATFORMS_MAX);
	cr_assert_lt(model_pcrmsg_write(NONCE, DIGEST, &a, &text, &err), 0);
	cr_assert(strstr(err.text, "at most 4096 are allowed"), "%s", err.text);
	cr_assert_eq(text.len, 0);
}

Test(model_pcrmsg, more_hashes_than_the_table_takes_are_refused)
{
	struct err err = ERR_INIT;

	for (unsigned i = 0; i < 248; i++) {
		uint8_t digest[SHA256_LEN] = {1, (uint8_t)i};

		cr_assert(pcr_events_push(&a.events, PCR14_MOK_LIST, PCR_EV_IPL, 14, digest));
	}
	cr_assert_lt(model_pcrmsg_write(NONCE, DIGEST, &a, &text, &err), 0);
	cr_assert_eq(err.kind, ERR_INVALID);
}

Test(model_pcrmsg, a_reason_is_cut_and_has_no_line_breaks)
{
	struct err err = ERR_INIT;

	add_platforms(1);
	pcr_events_fini(&a.platforms.v[0].events);
	a.platforms.v[0].why = xasprintf("a\n%0300d", 7);
	cr_assert_eq(model_pcrmsg_write(NONCE, DIGEST, &a, &text, &err), 0);
	cr_assert_eq(
		model_pcrmsg_read(text.data, text.len, NONCE, DIGEST, &b, &err), 0, "%s", err.text);
	cr_assert_eq(strlen(b.platforms.v[0].why), 120);
	cr_assert(strncmp(b.platforms.v[0].why, "a 000", 5) == 0);
}

static void refused(const char *s, size_t len, const char *words)
{
	struct err err = ERR_INIT;

	cr_assert_lt(model_pcrmsg_read(s, len, NONCE, DIGEST, &b, &err), 0, "%s", words);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert(strstr(err.text, words), "%s: %s", words, err.text);
	cr_assert_eq(b.events.n, 0);
}

Test(model_pcrmsg, only_this_job_and_this_image_are_taken)
{
	struct err err = ERR_INIT;
	cleanup_free char *long_one = xcalloc(1, MODEL_PCRMSG_MAX + 2);

	cr_assert_eq(model_pcrmsg_write(NONCE, DIGEST, &a, &text, &err), 0);
	cr_assert_lt(model_pcrmsg_read(text.data, text.len, "10112233445566778899aabbccddeeff",
			     DIGEST, &b, &err),
		0);
	cr_assert(strstr(err.text, "nonce"));
	err_clear(&err);
	cr_assert_lt(model_pcrmsg_read(text.data, text.len, NONCE, MOK_LIST_X, &b, &err), 0);
	cr_assert(strstr(err.text, "another image"));
	refused("", 0, "not a message");
	refused("no shim in this image", 21, "not a message");
	refused("tec-pcrs/2 x", 12, "not a message");
	refused("tec-pcrs/3 ", 11, "nonce");
	refused("tec-pcrs/3 " NONCE, 43, "nonce");
	refused("tec-pcrs/3 " NONCE " ", 44, "another image");
	refused(HEAD, strlen(HEAD) - 1, "another image");
	refused(HEAD, strlen(HEAD), "not base64");
	refused(HEAD "AAA", strlen(HEAD) + 3, "not base64");
	refused(HEAD "AA==\n", strlen(HEAD) + 5, "not base64");
	memset(long_one, 'A', MODEL_PCRMSG_MAX + 1);
	memcpy(long_one, HEAD, strlen(HEAD));
	refused(long_one, MODEL_PCRMSG_MAX + 1, "not a message");
}

/* ---- packed values */

#define H       SHA256_LEN
#define E4(at)  PCR4_SHIM, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, at
#define E14(at) PCR14_MOK_LIST, PCR_EV_IPL, at
#define E7(at)  PCR7_DB, PCR_EV_EFI_VARIABLE_DRIVER_CONFIG, at

#define Z8 0, 0, 0, 0, 0, 0, 0, 0
/* A platform "a" with so many events, after an image's own. */
#define PLATFORM(...) 2, E4(0), E14(0), 0, 1, 1, 'a', Z8, Z8, Z8, Z8, 0, __VA_ARGS__

struct packed {
	char bytes[64];
	size_t n;
	char hashes; /* so many, all different, come before the bytes */
	bool same;   /* or not different */
	const char *words;
};

#define P(count, text_, ...)                                                                       \
	{                                                                                          \
		{__VA_ARGS__}, sizeof((char[]){__VA_ARGS__}), count, false, text_                  \
	}

static void pack(const struct packed *p)
{
	cleanup_strbuf struct strbuf in = STRBUF_INIT;

	strbuf_addc(&in, p->hashes);
	for (char i = 0; i < p->hashes; i++) {
		char digest[H] = {p->same ? 1 : (char)(i + 1)};

		strbuf_add(&in, digest, H);
	}
	strbuf_add(&in, p->bytes, p->n);
	strbuf_reset(&text);
	strbuf_adds(&text, HEAD);
	bytes_to_b64(&text, in.data, in.len);
}

Test(model_pcrmsg, malformed_values_are_refused)
{
	static const struct packed table[] = {
		P(0, "a register is missing", 0, 0, 0),
		P(1, "a register is missing", 1, E4(0), 0, 0),
		P(1, "a register is missing", 1, E14(0), 0, 0),
		P(1, "truncated", 2, E4(0)),
		P(1, "truncated", 2, E4(0), E14(0)),
		P(1, "truncated", 2, E4(0), E14(0), 0),
		P(1, "trailing data", 2, E4(0), E14(0), 0, 0, 0),
		P(2, "a hash is not used", 2, E4(0), E14(0), 0, 0),
		P(2, "not in order", 2, E4(1), E14(0), 0, 0),
		P(1, "missing hash", 2, E4(0), E14(1), 0, 0),
		P(1, "missing hash", 2, E4(0), E14((char)255), 0, 0),
		P(1, "another register", 3, E4(0), E7(0), E14(0), 0, 0),
		P(1, "another register", 2, (char)255, 0, 0, E14(0), 0, 0),
		P(1, "another register", 2, 0, 0, 0, E14(0), 0, 0),
		P(1, "unknown type", 2, PCR4_SHIM, PCR_N_EVENT_TYPES, 0, E14(0), 0, 0),
		P(1, "too many variants", 2, E4(0), E14(0), 16, 0),
		P(1, "Secure Boot is neither", 2, E4(0), E14(0), 1, 2, 0, 2, E4(0), E14(0), 0),
		P(1, "control characters", 2, E4(0), E14(0), 1, 1, 1, '\n', 2, E4(0), E14(0), 0),
		P(1, "control characters", 2, E4(0), E14(0), 1, 1, 1, 0, 2, E4(0), E14(0), 0),
		P(1, "not UTF-8", 2, E4(0), E14(0), 1, 1, 1, (char)0xc3, 2, E4(0), E14(0), 0),
		P(1, "truncated", 2, E4(0), E14(0), 1, 1, 100, 'a', 2, E4(0), E14(0), 0),
		P(1, "a register is missing", 2, E4(0), E14(0), 1, 1, 1, 'a', 1, E4(0), 0),
		P(1, "another register", 2, E4(0), E14(0), 1, 1, 1, 'a', 1, E7(0), 0),
		P(1, "too many platforms", 2, E4(0), E14(0), 0, 9),
		P(1, "a register is missing", PLATFORM(1, E4(0))),
		P(1, "a register is missing", PLATFORM(2, E4(0), E7(0))),
		P(1, "a register is missing", PLATFORM(0)),
		P(1, "another register", PLATFORM(1, 0, 0, 0)),
		P(1, "not valid or occurs twice", 2, E4(0), E14(0), 0, 1, 0),
		P(1, "not valid or occurs twice", 2, E4(0), E14(0), 0, 1, 1, 'A'),
		P(1, "truncated", 2, E4(0), E14(0), 0, 1, 1, 'a', 0, 0),
	};
	struct packed same = P(2, "a hash is duplicated", 2, E4(0), E14(1), 0, 0);

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		pack(&table[i]);
		refused(text.data, text.len, table[i].words);
	}
	same.same = true;
	pack(&same);
	refused(text.data, text.len, same.words);
}

Test(model_pcrmsg, every_cut_is_refused)
{
	struct err err = ERR_INIT;

	add_variants(2);
	add_platforms(2);
	cr_assert_eq(model_pcrmsg_write(NONCE, DIGEST, &a, &text, &err), 0);
	for (size_t len = 0; len < text.len; len++) {
		err_clear(&err);
		cr_assert_lt(
			model_pcrmsg_read(text.data, len, NONCE, DIGEST, &b, &err), 0, "%zu", len);
	}
}

Test(model_pcrmsg, a_nonce_has_one_form)
{
	cr_assert(model_pcrmsg_nonce_valid(NONCE));
	cr_assert(!model_pcrmsg_nonce_valid(NULL));
	cr_assert(!model_pcrmsg_nonce_valid(""));
	cr_assert(!model_pcrmsg_nonce_valid(NONCE "0"));
	cr_assert(!model_pcrmsg_nonce_valid("00112233445566778899AABBCCDDEEFF"));
}
