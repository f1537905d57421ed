/* SPDX-License-Identifier: MIT */
/* One extractor for all ConfigMaps of the namespace. Values are parsed once, here; of texts only
 * hashes are kept, which suffice to see whether they are what the operator wrote. */
#include "config.h"

#include "tec/model/configmap.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/pcr/platform.h"

#define AT(m) offsetof(struct model_configmap, m)

/* Names of the reference values in the file, as the RVPS and the policies know them. */
const char *const model_rv_array_names[MODEL_RV_N_ARRAYS] = {
	[MODEL_RV_PCR14] = "tpm_pcr14",
	[MODEL_RV_PCR4] = "tpm_pcr4",
	[MODEL_RV_PCR7] = "tpm_pcr7",
	[MODEL_RV_SVN] = "tpm_svn",
};

/* The parsed parts are not in the packed block, so they are freed with the object. */
static void configmap_fini(struct kobj *o)
{
	model_pcrs_free(((struct model_configmap *)o)->pcrs);
	model_record_free(((struct model_configmap *)o)->record);
}

/* Hash each array, to tell which of them changed without keeping the text. */
static void read_array(struct model_configmap *m, struct json_object *entry)
{
	struct json_object *value = json_get_arr(entry, "value");
	const char *name = json_get_str(entry, "name");
	cleanup_free char *text = value ? json_text(value) : NULL;

	for (unsigned i = 0; text && i < MODEL_RV_N_ARRAYS; i++) {
		if (!str_eq(name, model_rv_array_names[i]))
			continue;
		bytes_sha256(text, strlen(text), m->array_sha256[i]);
		if (m->arrays & 1u << i) /* listed twice: it is unknown which one counts */
			memset(m->array_sha256[i], 0, SHA256_LEN);
		m->arrays |= 1u << i;
	}
}

/* A file that is not a list keeps its hash, so a controller sees that it is not the one it wrote.
 * The first entry's expiration stands for all: we write them with one time. */
static void read_file(struct kobj_pack *pack, struct model_configmap *m, const char *file)
{
	struct err ignored = ERR_INIT;
	char hex[SHA256_HEX_LEN + 1];
	size_t len = strlen(file);
	cleanup_json struct json_object *a = json_parse(file, len, &json_limits_object, &ignored);
	const char *expires;
	int64_t us;

	bytes_sha256_hex(file, len, hex);
	kobj_pack_str(pack, AT(file_sha256), hex);
	for (size_t i = 0; i < json_len(a); i++)
		read_array(m, json_at(a, i));
	expires = json_get_str(json_at(a, 0), "expiration");
	if (expires && clock_parse(expires, &us) == 0)
		m->expires_s = us / 1000000;
}

/* Look a key up by its exact name, and return it only when its value is a string. */
static struct json_object *text_of(struct json_object *o, const char *member, const char *key)
{
	struct json_object *in = json_get_obj(o, member), *v = NULL;

	/* The key may contain a slash, which json_get_str() would take for a path, and its value a
	 * NUL byte. */
	if (in)
		json_object_object_get_ex(in, key, &v);
	return json_object_is_type(v, json_type_string) ? v : NULL;
}

/* Read a platform's files as the kubelet would mount them. A value that is not base64 is ignored:
 * the API server would not store it. */
static void read_platform(struct model_configmap *m, struct json_object *o)
{
	struct pcr_platform_file files[PCR_PLATFORM_N_FILES] = {{NULL, 0}};
	const struct pcr_platform_file *off = &files[PCR_PLATFORM_ALLOW_VALIDATION_OFF],
				       *apps = &files[PCR_PLATFORM_ALLOW_APPLICATIONS];
	uint8_t *binary[PCR_PLATFORM_N_FILES] = {NULL};

	for (int i = 0; i < PCR_PLATFORM_N_FILES; i++) {
		struct json_object *v = text_of(o, "data", pcr_platform_files[i]);
		size_t len = v ? (size_t)json_object_get_string_len(v) : 0;

		if (v) {
			files[i] = (struct pcr_platform_file){json_object_get_string(v), len};
		} else if ((v = text_of(o, "binaryData", pcr_platform_files[i])) &&
			   bytes_from_b64(json_object_get_string(v),
				   (size_t)json_object_get_string_len(v), &binary[i], &len) == 0) {
			files[i] =
				(struct pcr_platform_file){binary[i] ? binary[i] : (void *)"", len};
		}
		m->is_platform |= v != NULL && pcr_platform_describes(i);
	}
	if (m->is_platform) {
		pcr_platform_digest(files, m->variables);
		m->validation_off_ok = pcr_platform_allows(off->data, off->len);
		m->applications_ok = pcr_platform_allows(apps->data, apps->len);
	}
	for (int i = 0; i < PCR_PLATFORM_N_FILES; i++)
		free(binary[i]);
}

/* The NUL byte between the texts prevents that bytes move from one to the other under the same
 * hash. */
void model_configmap_rv_sha256(const char *names, const char *file, char hex[SHA256_HEX_LEN + 1])
{
	cleanup_sha256 struct bytes_sha256_run run;
	uint8_t digest[SHA256_LEN];

	bytes_sha256_init(&run);
	bytes_sha256_add(&run, names ? names : "", names ? strlen(names) : 0);
	bytes_sha256_add(&run, "", 1); /* ends the first text */
	bytes_sha256_add(&run, file ? file : "", file ? strlen(file) : 0);
	bytes_sha256_end(&run, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
}

/* Names decide what a ConfigMap is read as; any other one may hold a platform's variables. */
struct kobj *model_configmap_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_configmap m = {.pcrs = NULL};
	struct json_object *data = json_get_obj(o, "data");
	char hex[SHA256_HEX_LEN + 1];
	const char *text;

	if (kobj_meta_read(&pack, o, &m.plain.obj, err) < 0)
		return NULL;
	kobj_pack_str(&pack, AT(plain.owner_uid), kobj_owner_controller(o));
	kobj_pack_str(
		&pack, AT(plain.render_hash), kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION));
	if (str_eq(json_get_str(o, "metadata/name"), MODEL_PCRS_CONFIGMAP)) {
		text = json_get_str(data, MODEL_PCRS_FILE);
		m.pcrs = text ? model_pcrs_parse(text, strlen(text)) : NULL;
		m.plain.obj.fini = configmap_fini;
	} else if (str_eq(json_get_str(o, "metadata/name"), MODEL_RV_CONFIGMAP)) {
		text = json_get_str(data, MODEL_RV_FILE);
		if (text)
			read_file(&pack, &m, text);
		kobj_pack_str(&pack, AT(names), json_get_str(data, MODEL_RV_NAMES));
		model_configmap_rv_sha256(json_get_str(data, MODEL_RV_NAMES), text, hex);
		kobj_pack_str(&pack, AT(data_sha256), hex);
	} else if (model_record_is_name(json_get_str(o, "metadata/name"))) {
		text = json_get_str(data, MODEL_RECORD_FILE);
		m.record = text ? model_record_parse(text) : NULL;
		m.plain.obj.fini = configmap_fini;
	} else {
		read_platform(&m, o);
	}
	return kobj_pack_finish(&pack, &m, sizeof(m));
}
