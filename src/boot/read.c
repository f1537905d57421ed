/* SPDX-License-Identifier: MIT */
/*
 * Reads all that a prediction needs, each file once: kernels, shim, second stage, firmware
 * variables, MOK lists. Refuses what would not boot: parts for different machines, and with Secure
 * Boot on what is not signed.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "boot_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pcr/platform.h"

#define ATTRIBUTES 4 /* bytes that come first in an efivarfs file */

/* ---- firmware variables */

/* Whole files. */
struct platform {
	struct strbuf text[PCR_PLATFORM_N_VARS];
	bool found[PCR_PLATFORM_N_VARS];
};

static void platform_fini(struct platform *p)
{
	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++)
		strbuf_fini(&p->text[i]);
}

static int platform_read(int fd, struct platform *p, struct err *err)
{
	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++) {
		p->found[i] = boot_read_small(fd, pcr_platform_files[i], &p->text[i], err) == 0;
		if (!p->found[i] && err->kind != ERR_NOT_FOUND)
			return err_wrap(err, "firmware variables");
		err_clear(err);
	}
	return 0;
}

static void platform_digest(const struct platform *p, uint8_t out[SHA256_LEN])
{
	struct pcr_platform_file files[PCR_PLATFORM_N_VARS] = {{NULL, 0}};

	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++)
		if (p->found[i])
			files[i] =
				(struct pcr_platform_file){strbuf_str(&p->text[i]), p->text[i].len};
	pcr_platform_digest(files, out);
}

/* One that is not there is empty. */
static int take_variable(
	const struct platform *p, enum pcr_platform_var i, struct strbuf *out, struct err *err)
{
	if (!p->found[i])
		return 0;
	if (p->text[i].len < ATTRIBUTES)
		return err_set(err, ERR_INVALID,
			"firmware variables: %s is shorter than its %d bytes of attributes",
			pcr_platform_files[i], ATTRIBUTES);
	strbuf_add(out, p->text[i].data + ATTRIBUTES, p->text[i].len - ATTRIBUTES);
	return 0;
}

static int read_efivars(struct boot_set *set, struct err *err)
{
	cleanup_strbuf struct strbuf state = STRBUF_INIT;
	__attribute__((cleanup(platform_fini))) struct platform p = {{STRBUF_INIT}, {false}};

	set->secure_boot = set->conf->secure_boot;
	if (set->conf->efivars_fd < 0)
		return 0;
	if (platform_read(set->conf->efivars_fd, &p, err) < 0)
		return -1;
	/* Of the very bytes that are predicted from: the directory may change meanwhile. */
	if (set->conf->variables_sha256)
		platform_digest(&p, set->conf->variables_sha256);
	if (take_variable(&p, PCR_PLATFORM_PK, &set->pk, err) < 0 ||
		take_variable(&p, PCR_PLATFORM_KEK, &set->kek, err) < 0 ||
		take_variable(&p, PCR_PLATFORM_DB, &set->db, err) < 0 ||
		take_variable(&p, PCR_PLATFORM_DBX, &set->dbx, err) < 0 ||
		take_variable(&p, PCR_PLATFORM_SECURE_BOOT, &state, err) < 0)
		return -1;
	if (set->secure_boot != BOOT_SB_FROM_EFIVARS)
		return 0;
	/* A capture without the state itself: without a platform key it is setup mode, and off. */
	if (state.len)
		set->secure_boot = state.data[0] == 1 ? BOOT_SB_ON : BOOT_SB_OFF;
	else
		set->secure_boot = set->pk.len ? BOOT_SB_ON : BOOT_SB_OFF;
	return 0;
}

/* ---- MOK lists */

static int read_mok_files(struct boot_set *set, struct err *err)
{
	const struct {
		const char *file;
		struct strbuf *to;
	} files[] = {{"MokListRT", &set->mok}, {"MokListXRT", &set->mok_x},
		{"MokListTrustedRT", &set->mok_t}};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (boot_read_small(set->conf->mokvars_fd, files[i].file, files[i].to, err) == 0)
			continue;
		if (err->kind == ERR_NOT_FOUND) {
			err_clear(err);
			return err_set(err, ERR_NOT_FOUND,
				"the MOK variables do not include %s; next step: copy all of /sys/firmware/efi/mok-variables of a running node, or leave --mok-variables out",
				files[i].file);
		}
		return err_wrap(err, "MOK variables");
	}
	return 0;
}

/* What shim mirrors while no key is enrolled. */
static int derive_mok(struct boot_set *set, struct err *err)
{
	if (!set->vendor.auth_len)
		return err_set(err, ERR_INVALID,
			"%s: shim has no vendor certificate, so its MOK lists are not known; next step: give --mok-variables",
			log_esc(set->shim.path));
	shim_mok_list(&set->vendor, &set->mok);
	shim_mok_list_x(&set->vendor, &set->mok_x);
	strbuf_addc(&set->mok_t, 1);
	return 0;
}

/* ---- files */

static int open_kernels(struct boot_set *set, struct err *err)
{
	size_t n = set->paths.n_kernels;

	if (!set->conf->all_kernels && n > 1)
		n = 1;
	set->kernel = xcalloc(n ? n : 1, sizeof(*set->kernel));
	for (; set->n_kernels < n; set->n_kernels++)
		if (boot_file_open(set->conf->rootfs_fd, set->paths.kernel[set->n_kernels],
			    &set->kernel[set->n_kernels], err) < 0)
			return -1;
	return 0;
}

static void drop_kernels(struct boot_set *set)
{
	for (size_t i = 0; i < set->n_kernels; i++)
		boot_file_fini(&set->kernel[i]);
	set->n_kernels = 0;
}

static int open_loaders(struct boot_set *set, struct err *err)
{
	int root = set->conf->rootfs_fd;

	if (boot_file_open(root, set->paths.shim, &set->shim, err) < 0 ||
		boot_file_open(root, set->paths.second, &set->second, err) < 0)
		return -1;
	if (set->shim.pe.machine != set->second.pe.machine)
		return err_set(err, ERR_INVALID, "%s is for another machine than %s",
			log_esc(set->second.path), log_esc(set->shim.path));
	set->loader = boot_loader_of(&set->second.pe, set->conf->uki);
	boot_file_rest(&set->second);
	return 0;
}

/* The kernel decides which machine's loaders count; without one whatever is there does. */
static int open_all(struct boot_set *set, struct err *err)
{
	struct err kernel_err = ERR_INIT;
	int root = set->conf->rootfs_fd;
	enum pe_machine machine = PE_MACHINE_OTHER;

	if (boot_find_kernels(root, &set->paths, err) < 0)
		return -1;
	/* Whether a kernel that cannot be used matters is known when the second stage is. */
	if (open_kernels(set, &kernel_err) < 0)
		drop_kernels(set);
	else if (set->n_kernels)
		machine = set->kernel[0].pe.machine;
	if (boot_find_loaders(root, machine, &set->paths, err) < 0 || open_loaders(set, err) < 0)
		return -1;
	if (set->loader->uki) {
		drop_kernels(set);
		return 0;
	}
	if (err_is_set(&kernel_err)) {
		*err = kernel_err;
		return -1;
	}
	if (!set->n_kernels)
		return err_set(err, ERR_NOT_FOUND,
			"no kernel (usr/lib/modules/VERSION/vmlinuz), and %s is not a UKI; next step: give the root of a bootable image",
			log_esc(set->second.path));
	for (size_t i = 0; i < set->n_kernels; i++)
		if (set->kernel[i].pe.machine != set->shim.pe.machine)
			return err_set(err, ERR_INVALID, "%s is for another machine than %s",
				log_esc(set->kernel[i].path), log_esc(set->shim.path));
	return 0;
}

static int must_be_signed(const struct boot_file *f, const char *who, struct err *err)
{
	if (f->n_signatures)
		return 0;
	return err_set(err, ERR_INVALID,
		"%s is not signed: with Secure Boot on %s will not start it; next step: sign it, or give --secureboot-disabled if the nodes run without",
		log_esc(f->path), who);
}

static int hash_all(struct boot_set *set, struct err *err)
{
	bool on = set->secure_boot != BOOT_SB_OFF;

	if (boot_file_hash(&set->shim, err) < 0 || boot_file_hash(&set->second, err) < 0)
		return -1;
	if (on && (must_be_signed(&set->shim, "the firmware", err) < 0 ||
			  must_be_signed(&set->second, "shim", err) < 0))
		return -1;
	for (size_t i = 0; i < set->n_kernels; i++)
		if (boot_file_hash(&set->kernel[i], err) < 0 ||
			(on && must_be_signed(&set->kernel[i], "shim", err) < 0))
			return -1;
	return 0;
}

static int read_vendor(struct boot_set *set, struct err *err)
{
	size_t len;
	const uint8_t *section = pe_section_find(&set->shim.pe, ".vendor_cert", &len);

	if (!section)
		return err_set(err, ERR_INVALID,
			"%s does not have a .vendor_cert section: it is not shim",
			log_esc(set->shim.path));
	if (shim_vendor_read(section, len, &set->vendor, err) < 0)
		return err_wrap(err, "%s", log_esc(set->shim.path));
	return 0;
}

int boot_read(const struct boot_conf *conf, struct boot_set *set, struct err *err)
{
	bool files = conf->rootfs_fd >= 0;

	set->conf = conf;
	set->measures_7 = (conf->registers & BOOT_PCR7) && conf->efivars_fd >= 0;
	if (!files && ((conf->registers & ~BOOT_PCR14) || conf->mokvars_fd < 0))
		return err_set(err, ERR_INVALID, "this needs the image's files");
	if (read_efivars(set, err) < 0)
		return -1;
	if (files && (open_all(set, err) < 0 || hash_all(set, err) < 0))
		return -1;
	if (!(conf->registers & BOOT_PCR14) && !set->measures_7)
		return 0;
	if (files && read_vendor(set, err) < 0)
		return -1;
	return conf->mokvars_fd >= 0 ? read_mok_files(set, err) : derive_mok(set, err);
}

void boot_set_fini(struct boot_set *set)
{
	struct strbuf *texts[] = {
		&set->pk, &set->kek, &set->db, &set->dbx, &set->mok, &set->mok_x, &set->mok_t};

	drop_kernels(set);
	free(set->kernel);
	boot_file_fini(&set->shim);
	boot_file_fini(&set->second);
	boot_paths_fini(&set->paths);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		strbuf_fini(texts[i]);
}
