/* SPDX-License-Identifier: MIT */
/*
 * Read everything that a prediction needs, each file once: kernels, shim, second stage, firmware
 * variables, MOK lists. Refuses what would not boot: files for different architectures and, with
 * Secure Boot on, unsigned files.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "measure_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

/* ---- firmware variables */

/* Take the contents of a variable without its attributes. A missing variable counts as empty. */
static void take_variable(const struct measure_vars *v, enum pcr_platform_var i, struct strbuf *out)
{
	if (v->found[i])
		strbuf_add(out, v->text[i].data + MEASURE_VARS_ATTRIBUTES,
			v->text[i].len - MEASURE_VARS_ATTRIBUTES);
}

/* Take the contents, and from them whether Secure Boot is on, unless the caller decided that. */
static int take_variables(struct measure_set *set, const struct measure_vars *v, struct err *err)
{
	cleanup_strbuf struct strbuf state = STRBUF_INIT;

	for (int i = 0; i < PCR_PLATFORM_N_FILES; i++)
		if ((i < PCR_PLATFORM_N_VARS || i == PCR_PLATFORM_DBT || i == PCR_PLATFORM_DBR) &&
			v->found[i] && v->text[i].len < MEASURE_VARS_ATTRIBUTES)
			return err_set(err, ERR_INVALID,
				"firmware variables: %s is shorter than its %d bytes of attributes",
				pcr_platform_files[i], MEASURE_VARS_ATTRIBUTES);
	take_variable(v, PCR_PLATFORM_PK, &set->pk);
	take_variable(v, PCR_PLATFORM_KEK, &set->kek);
	take_variable(v, PCR_PLATFORM_DB, &set->db);
	take_variable(v, PCR_PLATFORM_DBX, &set->dbx);
	take_variable(v, PCR_PLATFORM_DBT, &set->dbt);
	take_variable(v, PCR_PLATFORM_DBR, &set->dbr);
	take_variable(v, PCR_PLATFORM_SECURE_BOOT, &state);
	if (state.len > 1)
		return err_set(err, ERR_INVALID,
			"firmware variables: %s has %zu bytes after its attributes instead of one; next step: copy it from /sys/firmware/efi/efivars",
			pcr_platform_files[PCR_PLATFORM_SECURE_BOOT], state.len);
	set->empty_state = v->found[PCR_PLATFORM_SECURE_BOOT] && !state.len;
	if (set->secure_boot != MEASURE_SB_FROM_EFIVARS)
		return 0;
	/* Whatever keys there are: nothing says that they are used. */
	set->secure_boot = state.len && state.data[0] == 1 ? MEASURE_SB_ON : MEASURE_SB_OFF;
	if (!state.len)
		strbuf_addf(&set->paths.notes,
			"%s is missing or empty: Secure Boot counts as off\n",
			pcr_platform_files[PCR_PLATFORM_SECURE_BOOT]);
	return 0;
}

/* Take variables from the caller or from a directory, and what else the firmware measures. With
 * Secure Boot off the directory may be empty: firmware in setup mode has no keys. */
static int read_efivars(struct measure_set *set, struct err *err)
{
	cleanup_boot_vars struct measure_vars v = {.found = {false}};
	const struct measure_vars *vars = set->conf->vars;

	set->secure_boot = set->conf->secure_boot;
	if (!vars && set->conf->efivars_fd >= 0) {
		vars = &v;
		if (measure_vars_read(
			    set->conf->efivars_fd, set->secure_boot == MEASURE_SB_OFF, &v, err) < 0)
			return -1;
	}
	if ((vars && take_variables(set, vars, err) < 0) ||
		measure_firmware_read(vars, &set->firmware, err) < 0)
		return -1;
	return measure_firmware_check(&set->firmware, vars, err);
}

/* ---- variables of shim */

/*
 * What shim mirrors from its own variables and measures into PCR 14: as a node shows them in
 * /sys/firmware/efi/mok-variables, or as shim creates them while nothing is enrolled. Other files
 * in the node's directory do not matter here.
 */

static bool is_one(const struct measure_vars *v, enum pcr_platform_var i)
{
	return v->found[i] && v->text[i].len && v->text[i].data[0] == 1;
}

bool measure_mok_validation_off(const struct measure_vars *v)
{
	return is_one(v, PCR_PLATFORM_MOK_SB_STATE);
}

/* Take the variables that shim measures. A combination whose effect is unknown is refused. */
static int take_mok(struct measure_set *set, const struct measure_vars *v, struct err *err)
{
	/* In the order of enum pcr_platform_var. */
	struct strbuf *const to[] = {&set->mok, &set->mok_x, &set->mok_t, &set->mok_sb};

	for (int i = 0; i < (int)ARRAY_LEN(to); i++) {
		int file = PCR_PLATFORM_MOK_LIST + i;
		bool is_list = file <= PCR_PLATFORM_MOK_LIST_X;

		/* shim always creates the deny list and the key list, so a directory without them is
		 * incomplete. */
		if (is_list && !v->found[file])
			return err_set(err, ERR_NOT_FOUND,
				"the MOK variables do not include %s; next step: copy all of /sys/firmware/efi/mok-variables from a running node, or omit --mok-variables",
				pcr_platform_files[file]);
		if (!is_list && v->found[file] && v->text[file].len != 1)
			return err_set(err, ERR_INVALID,
				"MOK variables: %s has %zu bytes instead of one; next step: copy it unchanged from /sys/firmware/efi/mok-variables",
				pcr_platform_files[file], v->text[file].len);
		strbuf_add(to[i], strbuf_str(&v->text[file]), v->text[file].len);
	}
	if (is_one(v, PCR_PLATFORM_MOK_IGNORE_DB))
		return err_set(err, ERR_INVALID,
			"MOK variables: db is disabled on this node (MokDBState), and its measurements are unknown; next step: run mokutil --use-db on the node");
	set->validation_off = measure_mok_validation_off(v);
	if (set->validation_off && !set->conf->validation_off_ok)
		return err_set(err, ERR_INVALID,
			"MOK variables: shim's validation is off (MokSBState), so PCR 4 does not show which kernel runs; next step: run mokutil --enable-validation on the node, or use --allow-validation-disabled");
	/* After mokutil --untrust-mok, shim neither mirrors nor measures this one. */
	set->has_mok_t = v->found[PCR_PLATFORM_MOK_TRUSTED];
	set->has_mok_sb = v->found[PCR_PLATFORM_MOK_SB_STATE];
	return 0;
}

/* Derive what shim creates from its vendor certificate. MokListTrusted is 1 by default. */
static int derive_mok(struct measure_set *set, struct err *err)
{
	if (!set->vendor.auth_len)
		return err_set(err, ERR_INVALID,
			"%s: shim has no vendor certificate, so its MOK lists are unknown; next step: use --mok-variables",
			log_esc(set->shim.path));
	shim_mok_list(&set->vendor, &set->mok);
	shim_mok_list_x(&set->vendor, &set->mok_x);
	strbuf_addc(&set->mok_t, 1);
	set->has_mok_t = true;
	return 0;
}

/* ---- files */

/* Open the newest kernel, or all. n_kernels counts the open ones, so that a failure leaks none. */
static int open_kernels(struct measure_set *set, struct err *err)
{
	size_t n = set->paths.kernels.n;

	if (!set->conf->all_kernels && n > 1)
		n = 1;
	set->kernel = xcalloc(n ? n : 1, sizeof(*set->kernel));
	for (; set->n_kernels < n; set->n_kernels++)
		if (measure_file_open(set->conf->rootfs_fd, set->paths.kernels.v[set->n_kernels],
			    &set->kernel[set->n_kernels], err) < 0)
			return -1;
	return 0;
}

static void drop_kernels(struct measure_set *set)
{
	for (size_t i = 0; i < set->n_kernels; i++)
		measure_file_fini(&set->kernel[i]);
	set->n_kernels = 0;
}

/* Open shim and the second stage, and identify the latter. */
static int open_loaders(struct measure_set *set, struct err *err)
{
	int root = set->conf->rootfs_fd;

	if (measure_file_open(root, set->paths.shim, &set->shim, err) < 0 ||
		measure_file_open(root, set->paths.second, &set->second, err) < 0)
		return -1;
	if (set->shim.pe.machine != set->second.pe.machine)
		return err_set(err, ERR_INVALID, "%s is for another architecture than %s",
			log_esc(set->second.path), log_esc(set->shim.path));
	set->loader = measure_loader_of(&set->second.pe, set->conf->uki);
	measure_file_rest(&set->second);
	return 0;
}

/* Open a UKI that the firmware or systemd-boot starts. none: what to say if there is no UKI. */
static int open_without_shim(struct measure_set *set, const struct err *none, struct err *err)
{
	int root = set->conf->rootfs_fd;

	if (measure_find_uki(root, &set->paths, err) < 0)
		return -1;
	if (!set->paths.second) {
		*err = *none;
		return -1;
	}
	set->no_shim = true;
	if (measure_file_open(root, set->paths.second, &set->second, err) < 0)
		return -1;
	set->loader = measure_loader_of(&set->second.pe, set->conf->uki);
	if (!set->loader->uki)
		return err_set(err, ERR_INVALID,
			"there is no shim, and %s is not a UKI; next step: specify the root of a bootable image",
			log_esc(set->second.path));
	measure_file_rest(&set->second);
	if (measure_find_sd_boot(root, set->second.pe.machine, &set->paths, err) < 0)
		return -1;
	return set->paths.sd_boot ? measure_file_open(root, set->paths.sd_boot, &set->sd_boot, err)
				  : 0;
}

/* Open all files. The kernel determines the architecture of the loaders; without a kernel any
 * loader is accepted. */
static int open_all(struct measure_set *set, struct err *err)
{
	struct err kernel_err = ERR_INIT, none = ERR_INIT;
	int root = set->conf->rootfs_fd;
	enum pe_machine machine = PE_MACHINE_OTHER;

	if (measure_find_kernels(root, &set->paths, err) < 0)
		return -1;
	/* An unusable kernel does not matter if the second stage turns out to be a UKI. */
	if (open_kernels(set, &kernel_err) < 0)
		drop_kernels(set);
	else if (set->n_kernels)
		machine = set->kernel[0].pe.machine;
	if (measure_find_loaders(root, machine, &set->paths, &none) < 0) {
		if (none.kind == ERR_NOT_FOUND && !set->paths.has_loaders) {
			drop_kernels(set);
			return open_without_shim(set, &none, err);
		}
		*err = none;
		return -1;
	}
	if (open_loaders(set, err) < 0)
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
			"no kernel (usr/lib/modules/VERSION/vmlinuz), and %s is not a UKI; next step: specify the root of a bootable image",
			log_esc(set->second.path));
	for (size_t i = 0; i < set->n_kernels; i++)
		if (set->kernel[i].pe.machine != set->shim.pe.machine)
			return err_set(err, ERR_INVALID, "%s is for another architecture than %s",
				log_esc(set->kernel[i].path), log_esc(set->shim.path));
	return 0;
}

/* Open fwupd's programs if they are accepted. */
static int open_updates(struct measure_set *set, struct err *err)
{
	/* fwupd starts its program through shim if there is one; without, that was not observed. */
	if (set->conf->path < PCR_BOOT_FIRMWARE_UPDATES || set->no_shim)
		return 0;
	if (measure_find_updates(set->conf->rootfs_fd, &set->paths, err) < 0)
		return -1;
	set->update = xcalloc(set->paths.updates.n + 1, sizeof(*set->update));
	for (size_t i = 0; i < set->paths.updates.n; i++) {
		struct measure_file *f = &set->update[set->n_updates];
		struct err why = ERR_INIT;

		/* An unusable program gives no variant and does not fail the prediction. */
		if (measure_file_open(set->conf->rootfs_fd, set->paths.updates.v[i], f, &why) ==
				0 &&
			measure_file_hash(f, &why) == 0 &&
			measure_sbat_check(set, f, true, &why) == 0) {
			set->n_updates++;
			continue;
		}
		measure_file_fini(f);
		strbuf_addf(&set->paths.notes, "not used: %s\n", why.text);
	}
	return 0;
}

/* Refuse an unsigned file if the platform is unknown: its hash could be on no known list. */
static int must_be_signed(const struct measure_set *set, const struct measure_file *f,
	const char *who, struct err *err)
{
	if (f->n_signatures || set->secure_boot == MEASURE_SB_OFF || set->measures_7 ||
		set->conf->vouched || measure_mok_given(set->conf))
		return 0;
	return err_set(err, ERR_INVALID,
		"%s is not signed, so %s will not start it with Secure Boot on; next step: sign it, or use --mok-variables of a node where its hash is enrolled, or --secureboot-disabled",
		log_esc(f->path), who);
}

/* Hash the files once, and the kernel embedded in a UKI if the stub has the firmware load it. This is
 * the slow part of a prediction. */
static int hash_all(struct measure_set *set, struct err *err)
{
	struct measure_file *first = set->no_shim ? &set->sd_boot : &set->shim;

	if ((first->path && (measure_file_hash(first, err) < 0 ||
				    must_be_signed(set, first, "the firmware", err) < 0)) ||
		measure_file_hash(&set->second, err) < 0 ||
		must_be_signed(set, &set->second, set->no_shim ? "the firmware" : "shim", err) <
			0 ||
		measure_sbat_check(set, &set->second, true, err) < 0)
		return -1;
	for (size_t i = 0; i < set->n_kernels; i++)
		if (measure_file_hash(&set->kernel[i], err) < 0 ||
			must_be_signed(set, &set->kernel[i], "shim", err) < 0 ||
			measure_sbat_check(set, &set->kernel[i], false, err) < 0)
			return -1;
	if (!set->loader->uki || !measure_loader_may_load(set->loader) ||
		measure_uki_inner(&set->second, set->inner, err) == 0)
		return 0;
	/* A stub of unknown version cannot have the firmware load a kernel that is not a PE
	 * program. */
	if (measure_stub_version(&set->second.pe))
		return -1;
	err_clear(err);
	set->loader = measure_loader_uki();
	return 0;
}

/* The order matters: variables decide whether unsigned files are acceptable, files decide what is
 * hashed, and authorities need both. */
int measure_read(const struct measure_conf *conf, struct measure_set *set, struct err *err)
{
	cleanup_boot_vars struct measure_vars mok = {.found = {false}};
	bool files = conf->rootfs_fd >= 0;
	const uint8_t *vendor;
	size_t len;

	set->conf = conf;
	set->measures_7 = (conf->registers & MEASURE_PCR7) && (conf->efivars_fd >= 0 || conf->vars);
	if (!files && ((conf->registers & ~MEASURE_PCR14) || !measure_mok_given(conf)))
		return err_set(err, ERR_INVALID, "the files of the image are required");
	if (read_efivars(set, err) < 0)
		return -1;
	if (!conf->mok && conf->mokvars_fd >= 0 &&
		measure_vars_read_mok(conf->mokvars_fd, &mok, err) < 0)
		return -1;
	if (measure_mok_given(conf) && take_mok(set, conf->mok ? conf->mok : &mok, err) < 0)
		return -1;
	if (files &&
		(open_all(set, err) < 0 || open_updates(set, err) < 0 || hash_all(set, err) < 0))
		return -1;
	/* What shim would do does not matter. */
	if (set->no_shim)
		set->validation_off = set->has_mok_sb = false;
	if (!(conf->registers & MEASURE_PCR14) && !set->measures_7)
		return 0;
	if (files && !set->no_shim) {
		/* Every shim has it, if only with empty parts. */
		vendor = pe_section_find(&set->shim.pe, ".vendor_cert", &len);
		if (!vendor)
			return err_set(err, ERR_INVALID,
				"%s has no .vendor_cert section: it is not shim",
				log_esc(set->shim.path));
		if (shim_vendor_read(vendor, len, &set->vendor, err) < 0)
			return err_wrap(err, "%s", log_esc(set->shim.path));
	}
	if (!measure_mok_given(conf) && !set->no_shim && derive_mok(set, err) < 0)
		return -1;
	return set->measures_7 && set->secure_boot == MEASURE_SB_ON
		       ? measure_authority_find_all(set, err)
		       : 0;
}

void measure_set_fini(struct measure_set *set)
{
	struct strbuf *texts[] = {&set->pk, &set->kek, &set->db, &set->dbx, &set->dbt, &set->dbr,
		&set->mok, &set->mok_x, &set->mok_t, &set->mok_sb};

	drop_kernels(set);
	for (size_t i = 0; i < set->n_updates; i++)
		measure_file_fini(&set->update[i]);
	free(set->update);
	free(set->kernel);
	measure_file_fini(&set->shim);
	measure_file_fini(&set->second);
	measure_file_fini(&set->sd_boot);
	measure_firmware_fini(&set->firmware);
	measure_paths_fini(&set->paths);
	for (size_t k = 0; k < ARRAY_LEN(texts); k++)
		strbuf_fini(texts[k]);
}
