/* SPDX-License-Identifier: MIT */
/* The Job's message: what is predicted arrives at its reader, platform by platform. */
#include "config.h"

#include "boot/boot_fixture.h"
#include "tec/boot/job.h"
#include "tec/model/pcrmsg.h"
#include "tec/pcr/platform.h"

#define NONCE  "0123456789abcdef0123456789abcdef"
#define DIGEST "00000000000000000000000000000000000000000000000000000000000000aa"

TestSuite(boot_job, .init = setup, .fini = teardown);

/* reason: why there is no value; NULL: there is one. */
static void add(struct model_platforms *p, int efivars_fd, const char *name, const char *reason)
{
	struct strbuf explain = STRBUF_INIT;
	struct err err = ERR_INIT;
	int rc = boot_job_platform(root.fd, efivars_fd, name, p, &explain, &err);

	cr_expect_eq(rc, reason ? -1 : 0, "%s: %s", name, err.text);
	if (reason)
		cr_expect(strstr(err.text, reason), "%s: %s", name, err.text);
	else
		cr_expect(str_starts(strbuf_str(&explain), "platform ") &&
			  strstr(strbuf_str(&explain), "PCR  7"));
	strbuf_fini(&explain);
}

Test(boot_job, a_platform_has_a_value_or_a_reason_or_is_not_known)
{
	struct model_platforms p = {.n = 0};

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	add(&p, vars.fd, "good", NULL);
	put_platform(&vars, firmware_db, 1);
	add(&p, vars.fd, "unsigned", "its signer is not in db");
	add(&p, moks.fd, "empty", "Secure Boot is off");
	cr_assert_eq(mkdirat(moks.fd, pcr_platform_files[PCR_PLATFORM_PK], 0755), 0);
	add(&p, moks.fd, "unreadable", "a directory, not a regular file");
	cr_assert_eq(p.n, 3);
	cr_expect(!p.v[0].why && p.v[0].events.n > 0 && p.v[0].events.v[0].pcr == 7);
	cr_expect(strstr(p.v[1].why, "its signer") && p.v[1].events.n == 0);
	cr_expect(strstr(p.v[2].why, "Secure Boot is off") && p.v[2].events.n == 0);
	cr_expect(memcmp(p.v[0].variables, p.v[1].variables, SHA256_LEN) != 0);
	model_platforms_fini(&p);
}

Test(boot_job, the_message_has_the_first_variant_the_others_and_the_platforms)
{
	struct boot_conf c = conf();
	struct model_platforms p = {.n = 0};
	struct strbuf text = STRBUF_INIT;
	struct boot_variants v;
	struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	struct err err = ERR_INIT;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	add(&p, vars.fd, "good", NULL);
	c.registers = BOOT_PCR4 | BOOT_PCR14;
	v = predict(&c);
	cr_assert_gt(v.n, 1);
	cr_assert_eq(boot_job_message(&v, &p, NONCE, DIGEST, &text, &err), 0, "%s", err.text);
	cr_assert_eq(model_pcrmsg_read(strbuf_str(&text), text.len, NONCE, DIGEST, &m, &err), 0,
		"%s", err.text);
	cr_assert_eq(m.events.n, v.v[0].events.n);
	for (size_t i = 0; i < m.events.n; i++)
		cr_expect_arr_eq(m.events.v[i].digest, v.v[0].events.v[i].digest, SHA256_LEN);
	cr_assert_eq(m.variants.n, v.n - 1);
	cr_expect_str_eq(m.variants.v[0].when, v.v[1].when);
	cr_assert_eq(m.platforms.n, 1);
	cr_expect_str_eq(m.platforms.v[0].name, "good");
	model_pcrmsg_fini(&m);
	model_platforms_fini(&p);
	boot_variants_fini(&v);
	strbuf_fini(&text);
}
