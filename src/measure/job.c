/* SPDX-License-Identifier: MIT */
/* The image is read again for each platform: there are few, and this keeps predictions
 * independent. */
#include "config.h"

#include "tec/measure/job.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/mem.h"
#include "tec/model/pcrmsg.h"

/* Take the events of a platform: those that were predicted, and in PCR 4 first its firmware's own. */
static void take_events(const struct measure_firmware *f, const struct pcr_events *predicted,
	struct model_platform *m)
{
	cleanup_pcr_events struct pcr_events own = PCR_EVENTS_INIT;

	for (size_t i = 0; i < f->n && !f->usual4; i++)
		if (f->v[i].pcr == 4 &&
			!pcr_events_push(&own, f->v[i].id, f->v[i].type, 4, f->v[i].digest))
			DIE("more than %d events", PCR_EVENTS_MAX);
	if (!f->usual4 && !pcr_boot_on_platform(&own, predicted, &m->events))
		DIE("more than %d events", PCR_EVENTS_MAX);
	for (size_t i = 0; i < predicted->n; i++) {
		const struct pcr_event *e = &predicted->v[i];

		if ((f->usual4 || e->pcr != 4) &&
			!pcr_events_push(&m->events, e->id, e->type, e->pcr, e->digest))
			DIE("more than %d events", PCR_EVENTS_MAX);
	}
}

/* Predict the PCRs that depend on the platform: PCR 7 on firmware variables, PCR 14 on shim's, and
 * PCR 4 if shim's validation is off; otherwise, of PCR 4 only what unusual firmware measures. */
static int predict(int rootfs_fd, const struct measure_vars *vars, struct model_platform *m,
	struct strbuf *explain, struct err *err)
{
	cleanup_boot_variants struct measure_variants v = MEASURE_VARIANTS_INIT;
	bool firmware = measure_vars_has_firmware(vars), mok = measure_vars_has_mok(vars),
	     off = measure_mok_validation_off(vars);
	const struct strbuf *allow = &vars->text[PCR_PLATFORM_ALLOW_VALIDATION_OFF];
	const struct strbuf *state = &vars->text[PCR_PLATFORM_SECURE_BOOT];
	const struct pcr_events none = PCR_EVENTS_INIT;
	cleanup_firmware struct measure_firmware f = {.n = 0};
	const struct measure_conf conf = {.registers = (firmware ? MEASURE_PCR7 : 0) |
						       (mok ? MEASURE_PCR14 : 0) |
						       (off ? MEASURE_PCR4 : 0),
		.rootfs_fd = rootfs_fd,
		.efivars_fd = -1,
		.vars = firmware ? vars : NULL,
		.mokvars_fd = -1,
		.mok = mok ? vars : NULL,
		.secure_boot = MEASURE_SB_FROM_EFIVARS,
		.validation_off_ok = pcr_platform_allows(strbuf_str(allow), allow->len)};

	if (off && !conf.validation_off_ok)
		return err_set(err, ERR_INVALID,
			"shim's validation is off (MokSBStateRT): enable it, or add %s=" PCR_PLATFORM_ALLOWED
			" to the ConfigMap",
			pcr_platform_files[PCR_PLATFORM_ALLOW_VALIDATION_OFF]);
	if (measure_firmware_read(vars, &f, err) < 0 || measure_firmware_check(&f, vars, err) < 0)
		return -1;
	if (!conf.registers && f.usual4)
		return err_set(err, ERR_INVALID,
			"%s lists only PCR 7, which needs the firmware variables",
			pcr_platform_files[PCR_PLATFORM_EVENTS]);
	if (conf.registers && measure_predict(&conf, &v, err) < 0)
		return -1;
	if (explain)
		strbuf_addf(explain, "platform %s\n%s", m->name, strbuf_str(&v.explain));
	if (v.n && !v.v[0].secure_boot)
		return err_set(err, ERR_INVALID,
			"%s, so its PCR 7 does not depend on what boots; next step: use the variables of a node with Secure Boot on",
			state->len > MEASURE_VARS_ATTRIBUTES
				? "Secure Boot is off on this platform"
				: "SecureBoot is missing or empty: Secure Boot is off");
	take_events(&f, v.n ? &v.v[0].events : &none, m);
	return 0;
}

int measure_job_platform(int rootfs_fd, int dir_fd, const char *name, struct model_platforms *out,
	struct strbuf *explain, struct err *err)
{
	cleanup_boot_vars struct measure_vars vars = {.found = {false}};
	struct model_platform *m = &out->v[out->n];
	bool known = measure_vars_read_platform(dir_fd, &vars, err) == 0;

	/* A directory without variables identifies a platform as well. */
	if (!known && err->kind != ERR_NOT_FOUND)
		return -1;
	*m = (struct model_platform){.name = xstrdup(name), .events = PCR_EVENTS_INIT};
	out->n++;
	measure_vars_digest(&vars, m->variables);
	if (known && predict(rootfs_fd, &vars, m, explain, err) == 0)
		return 0;
	m->why = xstrdup(err->text);
	return -1;
}

/* Drop variants beyond the maximum of the message: the most likely ones come first. */
int measure_job_message(const struct measure_variants *v, const struct model_platforms *platforms,
	const char *nonce, const char *digest, struct strbuf *out, struct err *err)
{
	struct model_variant other[MODEL_VARIANTS_MAX];
	/* m borrows everything, so it needs no fini. */
	struct model_pcrmsg m = {
		.events = v->v[0].events, .platforms = *platforms, .variants = {.v = other}};

	for (size_t i = 1; i < v->n && m.variants.n < MODEL_VARIANTS_MAX; i++)
		if (!v->v[i].derived)
			other[m.variants.n++] = (struct model_variant){
				v->v[i].when, v->v[i].secure_boot, v->v[i].events};
	return model_pcrmsg_write(nonce, digest, &m, out, err);
}
