/* SPDX-License-Identifier: MIT */
/*
 * What tests of the image controller share: a registry that answers as it is told, approving,
 * playing a Job, and a Trustee that confirms. One world per test program's file.
 */
#ifndef TEC_TESTS_CTL_IMAGES_H
#define TEC_TESTS_CTL_IMAGES_H

#include <criterion/criterion.h>
#include <string.h>

#include "ctl/world.h"
#include "pcr/pcr_events.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/configmap.h"
#include "tec/model/image.h"
#include "tec/model/pcrmsg.h"
#include "tec/render/pcrjob.h"
#include "tec/render/refvalues.h"

static struct world w;

/* What the registry answers. */
static struct {
	const char *value;
	enum err_kind kind;
	unsigned asked;
} label;

struct question {
	struct op op;
	struct defer later;
	ctl_label_fn done;
	void *arg;
};

static inline void question_abort(struct op *op)
{
	struct question *q = (struct question *)op;

	defer_cancel(&q->later);
	free(q);
}

static inline void question_answer(void *arg)
{
	struct question *q = arg;
	struct err err = ERR_INIT;
	ctl_label_fn done = q->done;
	void *done_arg = q->arg;

	if (label.kind)
		err_set(&err, label.kind, "no luck");
	op_finish(&q->op);
	free(q);
	done(done_arg, &err, label.value, label.value ? strlen(label.value) : 0);
}

static inline struct op *ask(void *arg, struct op_scope *scope, const char *reference,
	const char *name, ctl_label_fn done, void *done_arg)
{
	struct question *q = xcalloc(1, sizeof(*q));

	cr_assert_str_eq(name, "org.coreos.pcrs");
	cr_assert(strstr(reference, "@sha256:"));
	label.asked++;
	q->done = done;
	q->arg = done_arg;
	op_begin(&q->op, scope, question_abort);
	defer_call(&q->later, w.loop, question_answer, q);
	return &q->op;
}

#define REF_A   "quay.io/x/coreos@sha256:" MOK_LIST
#define REF_B   "quay.io/x/coreos@sha256:" MOK_LIST_X
#define BOOT_A  "boot." PCR4_A "." PCR14
#define BOOT_B  "boot." PCR4_B "." PCR14
#define BOOT_AB "boot." PCR4_AB "." PCR14
#define BOOT_BA "boot." PCR4_BA "." PCR14
/* Both forms of PCR 4 of one image, as in ConfigMap trustee-rv-data. */
#define QUIET_A  "boot." UNCALLED_A "." PCR14
#define QUIET_B  "boot." UNCALLED_B "." PCR14
#define QUIET_AB "boot." UNCALLED_AB "." PCR14
#define QUIET_BA "boot." UNCALLED_BA "." PCR14
#define BOOTS_A  "[\"" QUIET_A "\",\"" BOOT_A "\"]"
#define BOOTS_B  "[\"" QUIET_B "\",\"" BOOT_B "\"]"

static inline void approve(const char *name, const char *reference)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"image\":\"%s\"}}", name, reference);

	fake_api_put(w.api, &kobj_image, NS, text);
}

static inline struct json_object *entry_of(const char *reference, bool b)
{
	struct pcr_events e = PCR_EVENTS_INIT;
	struct json_object *o;

	add_pcr4(&e, b ? SHIM_B : SHIM_A, b ? GRUB_B : GRUB_A, b ? KERNEL_B : KERNEL_A);
	add_pcr14(&e);
	o = model_pcrs_entry_json(reference, 1800000000000000, &e);
	pcr_events_fini(&e);
	return o;
}

/* What somebody does who can write ConfigMaps. take_entry NULL: takes it out. */
static inline void stranger_writes(const char *name, struct json_object *take_entry)
{
	const char *old =
		json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "image-pcrs"), "data"),
			"image-pcrs.json");
	struct err err = ERR_INIT;
	cleanup_free char *text = model_pcrs_edit(old, strlen(old), name, take_entry, &err);
	cleanup_json struct json_object *patch =
		json_add(json_obj(), "data", json_add_str(json_obj(), "image-pcrs.json", text));
	cleanup_free char *patch_text = json_text(patch);

	fake_api_merge(w.api, &kobj_configmap, NS, "image-pcrs", patch_text);
}

/* Of the Jobs that are to be: NULL: none. */
static const struct render_pcrjob_platforms *job_platforms;
/* NULL: they mount their image. */
static const struct render_pcrjob_fetch *job_fetch;

static inline const char *job_name(const char *image)
{
	static char name[RENDER_PCRJOB_NAME_LEN + 1];
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o =
		model_image_extract(world_get(&w, &kobj_image, image), &err);

	render_pcrjob_name(model_image(o), job_platforms, job_fetch, name);
	return name;
}

/* The Pod's container has ended, and this is its message. NULL members: what a good Pod has. */
struct said {
	const char *message, *pod, *controller, *container, *nonce, *reference;
	int exit_code, restarts;
};

static inline void pod_says(const char *image, const struct said *how)
{
	const char *controller =
		how->controller ? how->controller
				: world_str(&w, &kobj_job, job_name(image), "metadata/uid");
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s-%s\",\"labels\":{\"app\":\"compute-pcrs\","
			  "\"job-name\":\"%s\"},\"ownerReferences\":[{\"apiVersion\":\"batch/v1\","
			  "\"kind\":\"Job\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]},"
			  "\"status\":{\"phase\":\"%s\",\"containerStatuses\":[{\"name\":\"%s\","
			  "\"restartCount\":%d,\"state\":{\"terminated\":{\"exitCode\":%d,"
			  "\"reason\":\"r\",\"message\":\"%s\"}}}]}}",
			job_name(image), how->pod ? how->pod : "p", job_name(image),
			job_name(image), controller, how->exit_code ? "Failed" : "Succeeded",
			how->container ? how->container : "compute-pcrs", how->restarts,
			how->exit_code, how->message);

	fake_api_put(w.api, &kobj_pod, NS, text);
}

/* The message that a Job's program writes for these values, of an entry. */
static inline void job_says_how(
	const char *image, struct json_object *take_entry, const struct said *how)
{
	cleanup_json struct json_object *entry = take_entry;
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct json_object *job = world_get(&w, &kobj_job, job_name(image));
	const char *nonce =
		how->nonce ? how->nonce : kobj_annotation(job, MODEL_JOB_NONCE_ANNOTATION);
	const char *reference =
		how->reference ? how->reference : world_str(&w, &kobj_image, image, "spec/image");
	struct said all = *how;
	struct err err = ERR_INIT;

	cr_assert_eq(pcr_events_from_json(json_get_arr(entry, "pcrs"), &m.events, &err), 0, "%s",
		err.text);
	model_platforms_read(json_get_arr(entry, "platforms"), &m.platforms);
	model_variants_read(json_get_arr(entry, "variants"), &m.variants);
	cr_assert_eq(model_pcrmsg_write(nonce, model_image_digest(reference), &m, &text, &err), 0,
		"%s", err.text);
	all.message = strbuf_str(&text);
	pod_says(image, &all);
}

static inline void job_says(const char *image, struct json_object *take_entry)
{
	job_says_how(image, take_entry, &(struct said){NULL});
}

static inline void job_ends(const char *image, const char *type, const char *reason)
{
	char now[CLOCK_RFC3339_LEN];
	cleanup_free char *patch = NULL;

	clock_format(clock_wall_s(), now);
	patch = xasprintf("{\"status\":{\"conditions\":[{\"type\":\"%s\",\"status\":\"True\","
			  "\"reason\":\"%s\",\"message\":\"m\",\"lastTransitionTime\":\"%s\"}]}}",
		type, reason, now);
	fake_api_merge(w.api, &kobj_job, NS, job_name(image), patch);
}

static inline bool has_job(const char *image)
{
	return world_get(&w, &kobj_job, job_name(image)) != NULL;
}

static inline const char *reason(const char *image)
{
	return world_reason(&w, &kobj_image, image, "Committed");
}

static inline const char *message(const char *image)
{
	const char *s = fake_api_condition(w.api, &kobj_image, NS, image, "Committed", "message");

	return s ? s : "";
}

static inline bool committed(const char *image)
{
	return strcmp(world_cond(&w, &kobj_image, image, "Committed"), "True") == 0;
}

static inline const char *rv_data(const char *file)
{
	const char *s = json_get_str(
		json_get_obj(world_get(&w, &kobj_configmap, "trustee-rv-data"), "data"), file);

	return s ? s : "";
}

static inline bool in_file(const char *pcr)
{
	return strstr(rv_data("reference-values.json"), pcr) != NULL;
}

/* The image controller's holder: what it declares is a text. */
static inline const char *declared(const char *name)
{
	const struct {
		struct kobj obj;
		const char *text;
	} *h = (const void *)kbs_sync_object(w.life->caches.sync, KBS_REFVALUE, name);

	return h ? h->text : NULL;
}

/* Trustee confirms all that is wanted of it. */
static inline void trustee_takes(const char *name)
{
	const char *text = declared(name);
	uint8_t digest[SHA256_LEN];

	if (text)
		bytes_sha256(text, strlen(text), digest);
	kbs_sync_confirm(
		w.life->caches.sync, "kbs-service", KBS_REFVALUE, name, text ? digest : NULL);
}

static inline void trustee_takes_all(void)
{
	static const char *const names[] = {
		BOOT_A, BOOT_B, BOOT_AB, BOOT_BA, QUIET_A, QUIET_B, QUIET_AB, QUIET_BA};

	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++)
		trustee_takes(model_rv_array_names[i]);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		trustee_takes(names[i]);
	world_run(&w, 5000);
}

/* Approved, and computed by a Job. */
static inline void commit(const char *name, const char *reference, bool b)
{
	approve(name, reference);
	world_run(&w, 5000);
	cr_assert(has_job(name));
	job_says(name, entry_of(reference, b));
	job_ends(name, "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert(committed(name), "%s: %s", reason(name), message(name));
}

static inline void images_up(void)
{
	world_start(&w);
	w.image_label = ask;
	world_cluster(&w, "tec", "{\"publicTrusteeAddr\":\"kbs-service\"}");
}

static inline void images_down(void)
{
	world_stop(&w);
}

#endif
