/* SPDX-License-Identifier: MIT */
/* Checks the objects that a KbsConfig names, and reports the first problem as a message for
 * people. */
#include "config.h"

#include "kbsconfig_internal.h"

#include <string.h>

/* ---- shared with the renderer */

/* A key without its certificate (or the reverse) is ignored. */
bool kbsconfig_uses(const struct model_kbsconfig *c, enum model_kbsconfig_input i)
{
	if (i == KBSCONFIG_HTTPS_KEY || i == KBSCONFIG_HTTPS_CERT)
		return c->input[KBSCONFIG_HTTPS_KEY] && c->input[KBSCONFIG_HTTPS_CERT];
	if (i == KBSCONFIG_TOKEN_KEY || i == KBSCONFIG_TOKEN_CERT)
		return c->input[KBSCONFIG_TOKEN_KEY] && c->input[KBSCONFIG_TOKEN_CERT];
	if (i == KBSCONFIG_AS_CONFIG || i == KBSCONFIG_RVPS_CONFIG)
		return c->microservices && c->input[i];
	return c->input[i] != NULL;
}

const struct model_input *kbsconfig_input(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, enum model_kbsconfig_input i)
{
	return kbsconfig_uses(c, i)
		       ? kbsconfig_find(from, model_kbsconfig_is_secret(i), c->input[i])
		       : NULL;
}

bool render_kbsconfig_is_legacy(
	const struct model_kbsconfig *c, const struct render_kbsconfig_source *from)
{
	const struct model_input *in = kbsconfig_input(c, from, KBSCONFIG_CONFIG);

	return c->layout ? str_eq(c->layout, "legacy") : in && in->file.legacy;
}

bool render_kbsconfig_has_older_admin(
	const struct model_kbsconfig *c, const struct render_kbsconfig_source *from)
{
	const struct model_input *in = kbsconfig_input(c, from, KBSCONFIG_CONFIG);

	return in && in->file.older_admin && !render_kbsconfig_is_legacy(c, from);
}

/* Mount points below /etc, to which kbs-config.toml refers. */
const char *kbsconfig_etc_dir(enum model_kbsconfig_input i)
{
	static const char *const dirs[KBSCONFIG_N_INPUTS] = {
		[KBSCONFIG_AUTH] = "auth-secret",
		[KBSCONFIG_HTTPS_KEY] = "https-key",
		[KBSCONFIG_HTTPS_CERT] = "https-cert",
		[KBSCONFIG_TOKEN_KEY] = "attestation-key",
		[KBSCONFIG_TOKEN_CERT] = "attestation-cert",
	};

	return dirs[i];
}

/* The file name of an absolute path. */
static const char *base_of(const char *path)
{
	return path ? strrchr(path, '/') + 1 : NULL;
}

#define KEYS_MAX 3

/* The keys that an input's file may have, preferred first. A legacy configuration may name its
 * own. */
static void keys_of(const struct model_kbsfile *f, bool legacy, enum model_kbsconfig_input i,
	const char *out[KEYS_MAX])
{
	static const char *const keys[KBSCONFIG_AUTH][KEYS_MAX] = {
		[KBSCONFIG_CONFIG] = {MODEL_KBSFILE_KEY},
		[KBSCONFIG_AS_CONFIG] = {"as-config.json"},
		[KBSCONFIG_RVPS_CONFIG] = {"rvps-config.json"},
		[KBSCONFIG_VALUES] = {"reference_value", "reference-values.json"},
		[KBSCONFIG_CPU_POLICY] = {"default_cpu.rego", "default.rego"},
		[KBSCONFIG_GPU_POLICY] = {"default_gpu.rego"},
		[KBSCONFIG_RESOURCE_POLICY] = {"resource-policy.rego", "policy.rego"},
		[KBSCONFIG_QCNL] = {"sgx_default_qcnl.conf"},
	};
	const char *own = !legacy                          ? NULL
			  : i == KBSCONFIG_VALUES          ? base_of(f->values_path)
			  : i == KBSCONFIG_RESOURCE_POLICY ? base_of(f->policy_path)
							   : NULL;

	memcpy(out, keys[i], sizeof(keys[i]));
	if (own) { /* the name in kbs-config.toml comes first */
		memmove(out + 1, out, (KEYS_MAX - 1) * sizeof(*out));
		out[0] = own;
	}
}

/* The first accepted key that the ConfigMap has. */
const char *kbsconfig_key(const struct model_input *in, const struct model_kbsfile *f, bool legacy,
	enum model_kbsconfig_input i)
{
	const char *keys[KEYS_MAX];

	keys_of(f, legacy, i, keys);
	for (size_t k = 0; k < KEYS_MAX; k++)
		if (keys[k] && model_input_has(in, keys[k]))
			return keys[k];
	return NULL;
}

/* The model keeps lists as text, one item per line. */
char *kbsconfig_line(const char **at, char **rest)
{
	const char *end = *at ? strchrnul(*at, '\n') : NULL;
	char *line, *tab;

	if (!end || end == *at)
		return NULL;
	line = xstrndup(*at, (size_t)(end - *at));
	*at = *end ? end + 1 : end;
	tab = strchr(line, '\t');
	if (tab)
		*tab = '\0';
	if (rest)
		*rest = tab ? tab + 1 : NULL;
	return line;
}

/* ---- what is missing */

/* Everything a check needs; `why` receives the message. */
struct check {
	const struct model_kbsconfig *c;
	const struct render_kbsconfig_source *from;
	const struct model_kbsfile *file;
	bool legacy;
	const struct model_input *in; /* of the key that is looked for */
	const char *dir, *name;
	struct strbuf *why;
};

static const char *kind_of(bool secret)
{
	return secret ? "Secret" : "ConfigMap";
}

/* Whether the object exists and can be read; otherwise explain. */
static bool is_there(const struct check *k, bool secret, const char *name, const char *path)
{
	const struct model_input *in = kbsconfig_find(k->from, secret, name);

	if (in && !in->obj.unreadable)
		return true;
	strbuf_addf(k->why,
		in ? "%s %s, which spec.%s names, is too large to be read."
		   : "%s %s, which spec.%s names, does not exist. Create it.",
		kind_of(secret), name, path);
	/* The model separates field names by slashes; people write dots. */
	for (char *p = strstr(k->why->data, "spec."); *p && *p != ' '; p++)
		*p = *p == '/' ? '.' : *p;
	return false;
}

/* Whether the ConfigMap has one of the keys that its file may have. */
static bool has_file_key(const struct check *k, enum model_kbsconfig_input i)
{
	const struct model_input *in = kbsconfig_input(k->c, k->from, i);
	const char *keys[KEYS_MAX];

	if (kbsconfig_key(in, k->file, k->legacy, i))
		return true;
	keys_of(k->file, k->legacy, i, keys);
	strbuf_addf(k->why, "ConfigMap %s has no key %s. Add it.", in->obj.name, keys[0]);
	return false;
}

/* Called for each key that kbs-config.toml names as a file of this Secret. */
static bool has_named_key(void *arg, const char *key)
{
	const struct check *k = arg;

	if (model_input_has(k->in, key))
		return true;
	strbuf_addf(k->why,
		"Secret %s has no key %s, which kbs-config.toml names as /etc/%s/%s. Add it.",
		k->name, key, k->dir, key);
	return false;
}

/* A Secret needs only the keys that kbs-config.toml names; the legacy CPU policy is mounted
 * whole. */
static bool input_is_there(struct check *k, int i)
{
	bool secret = model_kbsconfig_is_secret(i);

	if (!kbsconfig_uses(k->c, i))
		return true;
	if (!is_there(k, secret, k->c->input[i], model_kbsconfig_input_paths[i]))
		return false;
	if (!secret)
		return (k->legacy && i == KBSCONFIG_CPU_POLICY) || has_file_key(k, i);
	k->in = kbsconfig_find(k->from, true, k->c->input[i]);
	k->dir = kbsconfig_etc_dir(i);
	k->name = k->c->input[i];
	return model_kbsfile_each(k->file, k->dir, has_named_key, k);
}

/* Check the Secrets in spec.kbsSecretResources and spec.kbsLocalCertCacheSpec. */
static bool lists_are_there(const struct check *k)
{
	const char *at[2] = {k->c->resources, k->c->caches};

	for (int i = 0; i < 2; i++) {
		for (;;) {
			cleanup_free char *name = kbsconfig_line(&at[i], NULL);

			if (!name)
				break;
			if (!is_there(k, true, name,
				    i ? "kbsLocalCertCacheSpec" : "kbsSecretResources"))
				return false;
		}
	}
	return true;
}

/* The kubelet cannot create a file with a longer name, and the Pod would not start. */
#define FILE_NAME_MAX 255

/* Check the file name default\x2FSECRET\x2FKEY of each resource. */
static void check_names(const struct check *k)
{
	const char *at = k->c->resources;

	for (;;) {
		cleanup_free char *secret = kbsconfig_line(&at, NULL);
		const struct model_input *in = kbsconfig_find(k->from, true, secret);

		if (!secret)
			return;
		for (const char *next = NULL; in;) {
			cleanup_free char *key = model_input_next(in, &next);

			if (!key)
				break;
			if (strlen("default\\x2F\\x2F") + strlen(secret) + strlen(key) <=
				FILE_NAME_MAX)
				continue;
			strbuf_addf(k->why,
				"Key %s of Secret %s cannot be a file name in Trustee: both names together exceed 240 characters. Use shorter names.",
				key, secret);
			return;
		}
	}
}

/* Whether all inputs are valid and consistent with each other; otherwise explain. */
static bool fits(const struct check *k)
{
	const struct model_input *values = kbsconfig_input(k->c, k->from, KBSCONFIG_VALUES);

	if (k->c->problem)
		strbuf_addf(k->why, "%s. Correct it.", k->c->problem);
	else if (k->c->layout && !str_eq(k->c->layout, "legacy") &&
		 !str_eq(k->c->layout, "current"))
		strbuf_addf(k->why, "Annotation " MODEL_KBSCONFIG_LAYOUT
				    " is neither legacy nor current. Correct or remove it.");
	else if (k->file->why)
		strbuf_addf(k->why, "%s of ConfigMap %s cannot be used: %s. Correct it.",
			MODEL_KBSFILE_KEY, k->c->input[KBSCONFIG_CONFIG], k->file->why);
	else if (!k->legacy && values && values->values_list && !values->values_empty)
		strbuf_addf(k->why,
			"ConfigMap %s contains a list of reference values, the format of Trustee up to v0.18. Use an object that maps names to values.",
			values->obj.name);
	else if (!k->legacy)
		check_names(k);
	return k->why->len == 0 && kbsconfig_guard_fits(k->c, k->from, k->file, k->legacy, k->why);
}

/* The separate services read configuration files of their own. */
static enum model_kbsconfig_reason microservices(const struct check *k)
{
	for (int i = KBSCONFIG_AS_CONFIG; k->c->microservices && i <= KBSCONFIG_RVPS_CONFIG; i++) {
		if (k->c->input[i])
			continue;
		strbuf_addf(k->why, "MicroservicesDeployment requires spec.%s. Set it.",
			model_kbsconfig_input_paths[i]);
		return KBSCONFIG_INPUT_INVALID;
	}
	return KBSCONFIG_IS_INSTALLED;
}

/* Report what the user must change in the KbsConfig first, then missing objects, then their
 * content. */
enum model_kbsconfig_reason render_kbsconfig_check(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, struct strbuf *why)
{
	static const struct model_kbsfile none;
	const struct model_input *config = kbsconfig_input(c, from, KBSCONFIG_CONFIG);
	/* Without a readable configuration, `none` stands for its settings. */
	struct check k = {.c = c, .from = from, .why = why};

	k.file = config ? &config->file : &none;
	k.legacy = render_kbsconfig_is_legacy(c, from);
	if (!c->input[KBSCONFIG_CONFIG] && !c->problem) {
		strbuf_adds(why,
			"spec.kbsConfigMapName is missing. Set it to the name of a ConfigMap with kbs-config.toml.");
		return KBSCONFIG_INPUT_INVALID;
	}
	/* An invalid spec is reported before anything that is missing. */
	if (c->problem && !fits(&k))
		return KBSCONFIG_INPUT_INVALID;
	if (microservices(&k) != KBSCONFIG_IS_INSTALLED)
		return KBSCONFIG_INPUT_INVALID;
	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++)
		if (!input_is_there(&k, i))
			return KBSCONFIG_INPUT_MISSING;
	if (!lists_are_there(&k))
		return KBSCONFIG_INPUT_MISSING;
	return fits(&k) ? KBSCONFIG_IS_INSTALLED : KBSCONFIG_INPUT_INVALID;
}
