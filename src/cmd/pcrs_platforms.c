/* SPDX-License-Identifier: MIT */
/*
 * The image is read once per platform: there are few, and what counts is that each prediction
 * stands for itself. Refuses a platform without Secure Boot: its PCR 7 is the same whoever signed
 * what it boots.
 */
#include "config.h"

#include "pcrs_platforms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/boot/predict.h"

static int open_dir(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		err_set_errno(err, ERR_NOT_FOUND, errno, "cannot open %s", log_esc(path));
	return fd;
}

/* PCR 7 into m, or why there is none; and the digest of the variables as soon as they are read. */
static int predict(int rootfs, int efivars, bool explain, struct model_platform *m, struct err *err)
{
	cleanup_boot_variants struct boot_variants v = BOOT_VARIANTS_INIT;
	const struct boot_conf conf = {.registers = BOOT_PCR7,
		.rootfs_fd = rootfs,
		.efivars_fd = efivars,
		.mokvars_fd = -1,
		.secure_boot = BOOT_SB_FROM_EFIVARS,
		.variables_sha256 = m->variables};

	if (boot_predict(&conf, &v, err) < 0)
		return -1;
	if (explain)
		fprintf(stderr, "platform %s\n%s", m->name, strbuf_str(&v.explain));
	if (!v.v[0].secure_boot)
		return err_set(err, ERR_INVALID,
			"Secure Boot is off on this platform, so that its PCR 7 says nothing about what boots; next step: variables of a node with Secure Boot on");
	pcr_events_copy(&m->events, &v.v[0].events);
	return 0;
}

static bool was_read(const struct model_platform *m)
{
	static const uint8_t none[SHA256_LEN];

	return memcmp(m->variables, none, sizeof(none)) != 0;
}

static void predict_one(const struct pcrs_options *o, int rootfs, const struct pcrs_platform *from,
	struct model_platforms *out)
{
	struct model_platform *m = &out->v[out->n];
	struct err err = ERR_INIT;
	int efivars = open_dir(from->dir, &err);

	*m = (struct model_platform){.name = xstrdup(from->name), .events = PCR_EVENTS_INIT};
	if (efivars >= 0) {
		if (predict(rootfs, efivars, o->explain, m, &err) < 0)
			m->why = xstrdup(err.text);
		close(efivars);
	}
	if (m->why || efivars < 0)
		fprintf(stderr, "tec-compute-pcrs: platform %s: %s\n", m->name, err.text);
	if (was_read(m)) {
		out->n++;
	} else {
		free(m->name);
		free(m->why);
	}
}

int pcrs_platforms_predict(
	const struct pcrs_options *o, struct model_platforms *out, struct err *err)
{
	int rootfs;

	out->n = 0;
	if (!o->n_platforms)
		return 0;
	rootfs = open_dir(o->rootfs, err);
	if (rootfs < 0)
		return -1;
	for (size_t i = 0; i < o->n_platforms; i++)
		predict_one(o, rootfs, &o->platform[i], out);
	close(rootfs);
	return 0;
}
