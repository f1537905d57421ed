/* SPDX-License-Identifier: MIT */
/*
 * What the tests of measure/predict share: a root, firmware variables and MOK lists for each test, and
 * questions to a prediction. Suites name setup and teardown.
 */
#ifndef TEC_TESTS_BOOT_FIXTURE_H
#define TEC_TESTS_BOOT_FIXTURE_H

#include "measure/rootfs_builder.h"

static struct rootfs root, vars, moks;

__attribute__((unused)) static void setup(void)
{
	rootfs_init(&root);
	rootfs_init(&vars);
	rootfs_init(&moks);
}

__attribute__((unused)) static void teardown(void)
{
	rootfs_fini(&root);
	rootfs_fini(&vars);
	rootfs_fini(&moks);
}

__attribute__((unused)) static const struct binary kernel = {
	.fill = "kernel", .signer = "Vendor signer", .issuer = "Vendor CA"};
__attribute__((unused)) static const struct binary fedora = {.fill = "grub",
	.section = ".sbat",
	.text = SBAT_FEDORA,
	.signer = "Vendor signer",
	.issuer = "Vendor CA"};

__attribute__((unused)) static void put_image(
	const struct binary *second, const struct binary *linux_)
{
	put_shim(&root, SHIM_X64, "Vendor CA", false, "UEFI signer");
	rootfs_put_binary(&root, GRUB_X64, second, NULL);
	if (linux_)
		rootfs_put_binary(&root, KERNEL_1, linux_, NULL);
}

__attribute__((unused)) static struct measure_conf conf(void)
{
	return (struct measure_conf){
		.registers = MEASURE_ALL, .rootfs_fd = root.fd, .efivars_fd = -1, .mokvars_fd = -1};
}

__attribute__((unused)) static struct measure_variants predict(const struct measure_conf *c)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(measure_predict(c, &v, &err), 0, "%s", err.text);
	cr_assert_gt(v.n, 0);
	return v;
}

__attribute__((unused)) static void refuses(
	const struct measure_conf *c, const char *named, const char *why)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(measure_predict(c, &v, &err), -1, "not refused: %s", why);
	cr_expect(strstr(err.text, named), "\"%s\" does not name %s", err.text, named);
	cr_expect(strstr(err.text, why), "\"%s\" does not say %s", err.text, why);
	cr_expect_eq(v.n, 0);
	measure_variants_fini(&v);
}

__attribute__((unused)) static size_t count_id(const struct pcr_events *e, enum pcr_event_id id)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++)
		n += e->v[i].id == id;
	return n;
}

/* ids of one register, as "4:5:" and so on. */
__attribute__((unused)) static void expect_ids(const struct pcr_events *e, unsigned pcr,
	const enum pcr_event_id *ids, size_t n, const char *what)
{
	size_t at = 0;

	for (size_t i = 0; i < e->n; i++) {
		if (e->v[i].pcr != pcr)
			continue;
		cr_expect(at < n && e->v[i].id == ids[at], "%s: PCR %u event %zu is %s", what, pcr,
			at, pcr_event_id_name(e->v[i].id));
		at++;
	}
	cr_expect_eq(at, n, "%s: PCR %u has %zu events, not %zu", what, pcr, at, n);
}
#define EXPECT_IDS(e, pcr, what, ...)                                                              \
	expect_ids((e), (pcr), (const enum pcr_event_id[]){__VA_ARGS__},                           \
		sizeof((const enum pcr_event_id[]){__VA_ARGS__}) / sizeof(enum pcr_event_id),      \
		(what))

__attribute__((unused)) static void expect_hex(
	const struct pcr_events *e, enum pcr_event_id id, const char *hex)
{
	char text[SHA256_HEX_LEN + 1] = "none";

	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].id == id)
			bytes_to_hex(e->v[i].digest, SHA256_LEN, text);
	cr_expect_str_eq(text, hex, "%s", pcr_event_id_name(id));
}

__attribute__((unused)) static const char *const firmware_db[] = {"Other CA", "Firmware CA"};

#endif
