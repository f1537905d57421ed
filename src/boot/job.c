/* SPDX-License-Identifier: MIT */
/* The image is read once per platform: there are few, and each prediction stands for itself. */
#include "config.h"

#include "tec/boot/job.h"

#include <string.h>

#include "boot_internal.h"
#include "tec/base/mem.h"
#include "tec/model/pcrmsg.h"

/* PCR 7 follows from the firmware's variables, PCR 14 from shim's; with its validation off PCR 4 is
 * another, too. */
static int predict(int rootfs_fd, const struct boot_vars *vars, struct model_platform *m,
	struct strbuf *explain, struct err *err)
{
	cleanup_boot_variants struct boot_variants v = BOOT_VARIANTS_INIT;
	bool firmware = boot_vars_has_firmware(vars), mok = boot_vars_has_mok(vars),
	     off = boot_mok_validation_off(vars);
	const struct strbuf *allow = &vars->text[PCR_PLATFORM_ALLOW_VALIDATION_OFF];
	const struct boot_conf conf = {.registers = (firmware ? BOOT_PCR7 : 0) |
						    (mok ? BOOT_PCR14 : 0) | (off ? BOOT_PCR4 : 0),
		.rootfs_fd = rootfs_fd,
		.efivars_fd = -1,
		.vars = firmware ? vars : NULL,
		.mokvars_fd = -1,
		.mok = mok ? vars : NULL,
		.secure_boot = BOOT_SB_FROM_EFIVARS,
		.validation_off_ok =
			pcr_platform_allows_validation_off(strbuf_str(allow), allow->len)};

	if (off && !conf.validation_off_ok)
		return err_set(err, ERR_INVALID,
			"shim's validation is off (MokSBStateRT): switch it on, or add %s=" PCR_PLATFORM_ALLOWED
			" to the ConfigMap",
			pcr_platform_files[PCR_PLATFORM_ALLOW_VALIDATION_OFF]);
	if (boot_predict(&conf, &v, err) < 0)
		return -1;
	if (explain)
		strbuf_addf(explain, "platform %s\n%s", m->name, strbuf_str(&v.explain));
	if (!v.v[0].secure_boot)
		return err_set(err, ERR_INVALID,
			"Secure Boot is off on this platform, so that its PCR 7 says nothing about what boots; next step: variables of a node with Secure Boot on");
	pcr_events_copy(&m->events, &v.v[0].events);
	return 0;
}

int boot_job_platform(int rootfs_fd, int dir_fd, const char *name, struct model_platforms *out,
	struct strbuf *explain, struct err *err)
{
	cleanup_boot_vars struct boot_vars vars = {.found = {false}};
	struct model_platform *m = &out->v[out->n];
	bool known = boot_vars_read_platform(dir_fd, &vars, err) == 0;

	/* That there is nothing is known of a platform, too. */
	if (!known && err->kind != ERR_NOT_FOUND)
		return -1;
	*m = (struct model_platform){.name = xstrdup(name), .events = PCR_EVENTS_INIT};
	out->n++;
	boot_vars_digest(&vars, m->variables);
	if (known && predict(rootfs_fd, &vars, m, explain, err) == 0)
		return 0;
	m->why = xstrdup(err->text);
	return -1;
}

int boot_job_message(const struct boot_variants *v, const struct model_platforms *platforms,
	const char *nonce, const char *digest, struct strbuf *out, struct err *err)
{
	struct model_variant other[MODEL_VARIANTS_MAX];
	/* All of it is borrowed: m is not finished. */
	struct model_pcrmsg m = {
		.events = v->v[0].events, .platforms = *platforms, .variants = {.v = other}};

	for (size_t i = 1; i < v->n && m.variants.n < MODEL_VARIANTS_MAX; i++)
		if (v->v[i].path !=
			PCR_BOOT_FAILED_ENTRIES) /* the reader makes them of the others */
			other[m.variants.n++] = (struct model_variant){
				v->v[i].when, v->v[i].secure_boot, v->v[i].events};
	return model_pcrmsg_write(nonce, digest, &m, out, err);
}
