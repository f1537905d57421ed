/* SPDX-License-Identifier: MIT */
/*
 * The variables that shim mirrors from its own and measures into PCR 14: as a node shows them in
 * /sys/firmware/efi/mok-variables, or as shim creates them while nothing is enrolled. Other files
 * in the node's directory do not matter here.
 */
#include "config.h"

#include "boot_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

/* shim always creates the deny list and the key list, so a directory without them is incomplete. */
static int must_be_there(const struct boot_vars *v, enum pcr_platform_var i, struct err *err)
{
	if (v->found[i])
		return 0;
	return err_set(err, ERR_NOT_FOUND,
		"the MOK variables do not include %s; next step: copy all of /sys/firmware/efi/mok-variables from a running node, or omit --mok-variables",
		pcr_platform_files[i]);
}

static int one_byte(const struct boot_vars *v, enum pcr_platform_var i, struct err *err)
{
	if (!v->found[i] || v->text[i].len == 1)
		return 0;
	return err_set(err, ERR_INVALID,
		"MOK variables: %s has %zu bytes instead of one; next step: copy it unchanged from /sys/firmware/efi/mok-variables",
		pcr_platform_files[i], v->text[i].len);
}

static bool is_one(const struct boot_vars *v, enum pcr_platform_var i)
{
	return v->found[i] && v->text[i].len && v->text[i].data[0] == 1;
}

bool boot_mok_validation_off(const struct boot_vars *v)
{
	return is_one(v, PCR_PLATFORM_MOK_SB_STATE);
}

static void take(const struct boot_vars *v, enum pcr_platform_var i, struct strbuf *to)
{
	strbuf_add(to, strbuf_str(&v->text[i]), v->text[i].len);
}

/* Take the variables that shim measures. A combination whose effect is unknown is refused. */
static int take_all(struct boot_set *set, const struct boot_vars *v, struct err *err)
{
	if (must_be_there(v, PCR_PLATFORM_MOK_LIST, err) < 0 ||
		must_be_there(v, PCR_PLATFORM_MOK_LIST_X, err) < 0 ||
		one_byte(v, PCR_PLATFORM_MOK_TRUSTED, err) < 0 ||
		one_byte(v, PCR_PLATFORM_MOK_SB_STATE, err) < 0)
		return -1;
	if (is_one(v, PCR_PLATFORM_MOK_IGNORE_DB))
		return err_set(err, ERR_INVALID,
			"MOK variables: db is disabled on this node (MokDBState), and its measurements are unknown; next step: run mokutil --use-db on the node");
	set->validation_off = boot_mok_validation_off(v);
	if (set->validation_off && !set->conf->validation_off_ok)
		return err_set(err, ERR_INVALID,
			"MOK variables: shim's validation is off (MokSBState), so PCR 4 does not show which kernel runs; next step: run mokutil --enable-validation on the node, or use --allow-validation-disabled");
	take(v, PCR_PLATFORM_MOK_LIST, &set->mok);
	take(v, PCR_PLATFORM_MOK_LIST_X, &set->mok_x);
	/* After mokutil --untrust-mok, shim neither mirrors nor measures this one. */
	take(v, PCR_PLATFORM_MOK_TRUSTED, &set->mok_t);
	take(v, PCR_PLATFORM_MOK_SB_STATE, &set->mok_sb);
	set->has_mok_t = v->found[PCR_PLATFORM_MOK_TRUSTED];
	set->has_mok_sb = v->found[PCR_PLATFORM_MOK_SB_STATE];
	return 0;
}

int boot_mok_read(struct boot_set *set, struct err *err)
{
	cleanup_boot_vars struct boot_vars v = {.found = {false}};

	if (set->conf->mok)
		return take_all(set, set->conf->mok, err);
	return boot_vars_read_mok(set->conf->mokvars_fd, &v, err) < 0 ? -1 : take_all(set, &v, err);
}

/* Derive what shim creates from its vendor certificate. MokListTrusted is 1 by default. */
int boot_mok_derive(struct boot_set *set, struct err *err)
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
