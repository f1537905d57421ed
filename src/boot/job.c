/* SPDX-License-Identifier: MIT */
/* The image is read once per platform: there are few, and each prediction stands for itself. */
#include "config.h"

#include "tec/boot/job.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/model/pcrmsg.h"

static int predict(int rootfs_fd, int efivars_fd, struct model_platform *m, struct strbuf *explain,
	struct err *err)
{
	cleanup_boot_variants struct boot_variants v = BOOT_VARIANTS_INIT;
	const struct boot_conf conf = {.registers = BOOT_PCR7,
		.rootfs_fd = rootfs_fd,
		.efivars_fd = efivars_fd,
		.mokvars_fd = -1,
		.secure_boot = BOOT_SB_FROM_EFIVARS,
		.variables_sha256 = m->variables};

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

int boot_job_platform(int rootfs_fd, int efivars_fd, const char *name, struct model_platforms *out,
	struct strbuf *explain, struct err *err)
{
	static const uint8_t none[SHA256_LEN];
	struct model_platform *m = &out->v[out->n];

	*m = (struct model_platform){.name = xstrdup(name), .events = PCR_EVENTS_INIT};
	if (predict(rootfs_fd, efivars_fd, m, explain, err) < 0)
		m->why = xstrdup(err->text);
	if (memcmp(m->variables, none, sizeof(none)) != 0) {
		out->n++;
	} else {
		free(m->name);
		free(m->why);
	}
	return err_is_set(err) ? -1 : 0;
}

int boot_job_message(const struct boot_variants *v, const struct model_platforms *platforms,
	const char *nonce, const char *digest, struct strbuf *out, struct err *err)
{
	struct model_variant other[MODEL_VARIANTS_MAX];
	/* All of it is borrowed: m is not finished. */
	struct model_pcrmsg m = {
		.events = v->v[0].events, .platforms = *platforms, .variants = {.v = other}};

	for (size_t i = 1; i < v->n && m.variants.n < MODEL_VARIANTS_MAX; i++)
		other[m.variants.n++] =
			(struct model_variant){v->v[i].when, v->v[i].secure_boot, v->v[i].events};
	return model_pcrmsg_write(nonce, digest, &m, out, err);
}
