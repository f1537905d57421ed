/* SPDX-License-Identifier: MIT */
/* Which files are taken, whatever order a directory lists them in; and nothing but regular files
 * inside the root is ever read. */
#include "config.h"

#include "measure/rootfs_builder.h"

#include <signal.h>

static struct rootfs root;

static void setup(void)
{
	rootfs_init(&root);
	alarm(20); /* a FIFO that is opened would hang */
}

static void teardown(void)
{
	rootfs_fini(&root);
}

TestSuite(measure_find, .init = setup, .fini = teardown);

static const struct binary grub = {.fill = "grub",
	.section = ".sbat",
	.text = SBAT_FEDORA,
	.signer = "s",
	.issuer = "Vendor CA"};

static void put_grub(const char *path, const char *fill)
{
	struct binary b = grub;

	b.fill = fill;
	if (strstr(path, "aa64"))
		b.machine = 0xaa64;
	rootfs_put_binary(&root, path, &b, NULL);
}

static void put_kernel(const char *path, unsigned machine)
{
	struct binary b = {.fill = path, .signer = "s", .issuer = "Vendor CA", .machine = machine};

	rootfs_put_binary(&root, path, &b, NULL);
}

static struct measure_conf conf(void)
{
	return (struct measure_conf){.registers = MEASURE_PCR4,
		.rootfs_fd = root.fd,
		.efivars_fd = -1,
		.mokvars_fd = -1,
		.secure_boot = MEASURE_SB_ON};
}

/* The events' origins, as far as they are files. */
static void takes(const char *shim, const char *second, const char *kernel)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct measure_conf c = conf();
	struct err err = ERR_INIT;
	const char *events;

	cr_assert_eq(measure_predict(&c, &v, &err), 0, "%s", err.text);
	events = strstr(strbuf_str(&v.explain), "1. ");
	cr_assert(events);
	cr_expect(strstr(events, shim), "not %s:\n%s", shim, events);
	cr_expect(strstr(events, second), "not %s:\n%s", second, events);
	cr_expect(strstr(events, kernel), "not %s:\n%s", kernel, events);
	measure_variants_fini(&v);
}

static void refuses(const char *named, const char *why)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct measure_conf c = conf();
	struct err err = ERR_INIT;

	cr_assert_eq(measure_predict(&c, &v, &err), -1, "not refused: %s", why);
	cr_expect(strstr(err.text, named), "\"%s\" does not name %s", err.text, named);
	cr_expect(strstr(err.text, why), "\"%s\" does not say %s", err.text, why);
}

static void put_usual(void)
{
	put_shim(&root, SHIM_X64, "Vendor CA", false, "s");
	put_grub(GRUB_X64, "grub");
	put_kernel(KERNEL_1, 0);
}

Test(measure_find, the_newest_kernel_by_version_not_by_name)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct measure_conf c = conf();
	struct err err = ERR_INIT;
	cleanup_free char *left_over = rootfs_path(&root, "usr/lib/modules/7.0.0/modules.dep");

	put_usual();
	put_kernel(KERNEL_2, 0);
	put_kernel("usr/lib/modules/6.1.0-10~rc1/vmlinuz", 0);
	takes(SHIM_X64, GRUB_X64, KERNEL_2);
	c.all_kernels = true;
	cr_assert_eq(measure_predict(&c, &v, &err), 0, "%s", err.text);
	cr_assert_eq(v.n, 2 * 3); /* in both forms of PCR 4 */
	cr_expect(strstr(v.v[0].when, KERNEL_2), "%s", v.v[0].when);
	cr_expect(strstr(v.v[1].when, "6.1.0-10~rc1"), "%s", v.v[1].when);
	cr_expect(strstr(v.v[2].when, KERNEL_1), "%s", v.v[2].when);
	measure_variants_fini(&v);
}

Test(measure_find, versions_are_compared_as_packages_are)
{
	/* Each newer than the one before. */
	static const char *const order[] = {"5.9", "5.10.0-rc1", "5.10.0-1", "5.10.0-1.fc40",
		"6.1.0-9-amd64", "6.1.0-010-amd64", "6.17~rc5", "6.17", "6.17.0-0.rc5.fc44",
		"6.17.0-300.fc44", "18446744073709551616", "18446744073709551617"};

	for (size_t i = 0; i + 1 < ARRAY_LEN(order); i++) {
		cleanup_free char *a = xasprintf("usr/lib/modules/%s/vmlinuz", order[i]);
		cleanup_free char *b = xasprintf("usr/lib/modules/%s/vmlinuz", order[i + 1]);
		cleanup_free char *fa = rootfs_path(&root, a), *fb = rootfs_path(&root, b);

		put_shim(&root, SHIM_X64, "Vendor CA", false, "s");
		put_grub(GRUB_X64, "grub");
		put_kernel(a, 0);
		put_kernel(b, 0);
		takes(SHIM_X64, GRUB_X64, b);
		cr_assert_eq(unlink(fa), 0);
		cr_assert_eq(unlink(fb), 0);
	}
}

Test(measure_find, the_new_layout_wins_and_its_newest_version_counts)
{
	put_usual();
	put_shim(&root, NEW_EFI "shim/15.8-3/EFI/fedora/shimx64.efi", "Vendor CA", false, "s");
	put_shim(&root, NEW_EFI "shim/16.1-2/EFI/fedora/shimx64.efi", "Vendor CA", false, "s");
	put_grub(NEW_EFI "grub2/2.12-9/EFI/fedora/grubx64.efi", "a");
	put_grub(NEW_EFI "grub2/2.12-10/EFI/fedora/grubx64.efi", "b");
	takes("efi/shim/16.1-2/EFI", "grub2/2.12-10/EFI", KERNEL_1);
}

Test(measure_find, shim_and_loader_come_from_one_vendor)
{
	put_usual();
	put_shim(&root, OLD_EFI "centos/shimx64.efi", "Vendor CA", false, "s");
	takes(SHIM_X64, GRUB_X64, KERNEL_1); /* centos has no loader */
	put_grub(OLD_EFI "centos/grubx64.efi", "x");
	takes("EFI/centos/shimx64.efi", "EFI/centos/grubx64.efi", KERNEL_1);
	put_grub(OLD_EFI "alma/grubx64.efi", "x");
	takes("EFI/centos/shimx64.efi", "EFI/centos/grubx64.efi", KERNEL_1);
}

Test(measure_find, two_vendors_without_a_pair_are_refused)
{
	put_shim(&root, OLD_EFI "a/shimx64.efi", "Vendor CA", false, "s");
	put_grub(OLD_EFI "b/grubx64.efi", "x");
	put_kernel(KERNEL_1, 0);
	refuses("usr/lib/bootupd/updates", "both shim and second stage");
}

Test(measure_find, the_kernels_machine_decides)
{
	put_usual();
	put_shim(&root, OLD_EFI "fedora/shimaa64.efi", "Vendor CA", false, "s");
	put_grub(OLD_EFI "fedora/grubaa64.efi", "arm");
	takes("shimx64.efi", "grubx64.efi", KERNEL_1);
	put_kernel(KERNEL_1, 0xaa64);
	takes("shimaa64.efi", "grubaa64.efi", KERNEL_1);
}

Test(measure_find, what_is_missing_is_named)
{
	struct strbuf text = STRBUF_INIT;

	refuses("usr/lib/bootupd/updates", "next step");
	put_shim(&root, SHIM_X64, "Vendor CA", false, "s");
	put_grub(GRUB_X64, "grub");
	refuses("usr/lib/modules/VERSION/vmlinuz", "no kernel");
	strbuf_adds(&text, "#!/bin/sh\n");
	rootfs_put(&root, KERNEL_1, &text);
	refuses(KERNEL_1, "");
	rootfs_put(&root, KERNEL_1, &(struct strbuf)STRBUF_INIT);
	refuses(KERNEL_1, "empty");
	strbuf_fini(&text);
}

/* ---- what is not a regular file of the image */

static void replace(const char *path, const char *link_to)
{
	cleanup_free char *full = rootfs_path(&root, path);

	unlink(full);
	if (link_to)
		cr_assert_eq(symlink(link_to, full), 0);
	else
		cr_assert_eq(mkfifo(full, 0644), 0);
}

Test(measure_find, links_inside_the_root_are_followed_as_if_it_were_the_root)
{
	put_usual();
	put_kernel("boot/vmlinuz", 0);
	replace(KERNEL_1, "/boot/vmlinuz");
	takes(SHIM_X64, GRUB_X64, KERNEL_1);
	replace(KERNEL_1, "../../../../../../../../boot/vmlinuz");
	takes(SHIM_X64, GRUB_X64, KERNEL_1);
}

Test(measure_find, a_link_that_leaves_the_root_leads_nowhere)
{
	char outside[] = "/tmp/tec-outside-XXXXXX";
	struct strbuf pe = STRBUF_INIT;
	int fd = mkstemp(outside);

	/* A file that would be taken, were it reached. */
	build_binary(
		&(struct binary){.fill = "k", .signer = "s", .issuer = "Vendor CA"}, &pe, NULL);
	cr_assert_eq(write(fd, pe.data, pe.len), (ssize_t)pe.len);
	close(fd);
	put_usual();
	replace(KERNEL_1, outside);
	refuses(KERNEL_1, "link to a file that does not exist inside");
	replace(GRUB_X64, "/proc/self/exe");
	put_kernel(KERNEL_2, 0);
	refuses(GRUB_X64, "link to a file that does not exist inside");
	unlink(outside);
	strbuf_fini(&pe);
}

Test(measure_find, loops_fifos_and_directories_are_refused_by_name)
{
	cleanup_free char *dir = NULL;

	put_usual();
	replace(KERNEL_1, "vmlinuz");
	refuses(KERNEL_1, "loop");
	replace(KERNEL_1, NULL);
	refuses(KERNEL_1, "a FIFO");
	put_kernel("usr/lib/modules/6.1.0-10/vmlinuz", 0);
	replace(SHIM_X64, NULL);
	refuses(SHIM_X64, "a FIFO");
	dir = rootfs_path(&root, SHIM_X64);
	unlink(dir);
	mkdir(dir, 0755);
	refuses(SHIM_X64, "a directory");
}

Test(measure_find, folders_that_are_none_are_refused)
{
	static const char *const folders[] = {
		"usr/lib/modules", "usr/lib/efi", "usr/lib/bootupd/updates"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		cleanup_free char *from = NULL, *to = NULL, *full = rootfs_path(&root, folders[i]);

		put_usual();
		from = xasprintf("%s/%s", root.dir, folders[i]);
		to = xasprintf("%s/was-%zu", root.dir, i);
		(void)rename(from, to);
		cr_assert_eq(mkfifo(full, 0644), 0);
		refuses(folders[i], "Not a directory");
		cr_assert_eq(unlink(full), 0);
	}
}

Test(measure_find, a_device_is_refused_and_not_opened)
{
	cleanup_free char *full = rootfs_path(&root, KERNEL_1);

	put_usual();
	unlink(full);
	if (mknod(full, S_IFCHR | 0600, 0x105) < 0) /* /dev/zero */
		cr_skip_test("no right to make devices");
	refuses(KERNEL_1, "a device");
}

Test(measure_find, depth_and_number_of_files_are_bounded)
{
	struct strbuf path = STRBUF_INIT;

	put_usual();
	strbuf_adds(&path, "usr/lib/bootupd/updates");
	for (int i = 0; i < 12; i++)
		strbuf_adds(&path, "/d");
	strbuf_adds(&path, "/x");
	free(rootfs_path(&root, path.data));
	refuses("usr/lib/bootupd/updates/d", "nested too deeply");
	strbuf_fini(&path);
}
