/* SPDX-License-Identifier: MIT */
/*
 * Delivery by volumes as Trustee up to v0.17 reads it, below one folder:
 *   REPOSITORY/default/ID/root        a resource, for any REPOSITORY
 *   tpm/trusted_ak_keys/NAME.pub      an attestation key
 *   reference-values.json             [{"name":N,"value":V},...]
 *   attestation-policy/ID.rego        an attestation policy
 *   resource-policy.rego              the resource policy
 * A missing file means that nothing is stored; one that cannot be read is an error, as it is for
 * Trustee.
 */
#include "config.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "kbs-tool.h"

static const struct json_limits file_limits = {
	.bytes = TOOL_FILE_MAX, .depth = 64, .tokens = 400000};

typedef int (*each_fn)(void *arg, const char *path, struct err *err);

static int for_each(const char *dir, const char *pattern, each_fn fn, void *arg, struct err *err)
{
	cleanup_free char *full = xasprintf("%s/%s", dir, pattern);
	int rc = 0;
	glob_t g;

	if (glob(full, 0, NULL, &g) != 0)
		return 0;
	for (size_t i = 0; i < g.gl_pathc && rc == 0; i++)
		rc = fn(arg, g.gl_pathv[i], err);
	globfree(&g);
	return rc;
}

/* The part of a path after its n-th last slash. */
static const char *last_parts(const char *path, unsigned n)
{
	const char *p = path + strlen(path);

	while (n > 0 && p > path)
		n -= *--p == '/';
	return p + 1;
}

static int load_file(struct broker_store *store, enum broker_store_ns ns, const char *key,
	const char *path, struct err *err)
{
	size_t len = 0;
	char *data = file_read(path, TOOL_FILE_MAX, &len, NULL, err);
	int rc;

	if (!data)
		return -1;
	rc = broker_store_set(store, ns, key, data, len, err);
	file_wipe(data, len);
	return rc;
}

static int load_resource(void *arg, const char *path, struct err *err)
{
	return load_file(arg, BROKER_STORE_REPOSITORY, last_parts(path, 3), path, err);
}

static int load_attestation_policy(void *arg, const char *path, struct err *err)
{
	return load_file(arg, BROKER_STORE_ATTESTATION_POLICY, last_parts(path, 1), path, err);
}

static int load_resource_policy(void *arg, const char *path, struct err *err)
{
	return load_file(arg, BROKER_STORE_KBS, last_parts(path, 1), path, err);
}

static int load_values(void *arg, const char *path, struct err *err)
{
	size_t len = 0;
	cleanup_free char *text = file_read(path, TOOL_FILE_MAX, &len, NULL, err);
	cleanup_json struct json_object *list =
		text ? json_parse(text, len, &file_limits, err) : NULL;

	if (!list)
		return -1;
	if (!json_object_is_type(list, json_type_array))
		return err_set(err, ERR_INVALID, "%s is not a list", path);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);
		const char *name = json_get_str(entry, "name");
		cleanup_free char *entry_text = json_text(entry);

		if (!name || !json_object_object_get_ex(entry, "value", NULL))
			return err_set(
				err, ERR_INVALID, "%s: entry %zu has no name or value", path, i);
		if (broker_store_set(arg, BROKER_STORE_REFERENCE_VALUE, name, entry_text,
			    strlen(entry_text), err) < 0)
			return err_wrap(err, "%s", path);
	}
	return 0;
}

int tool_load_files(struct broker_store *store, const char *dir, struct err *err)
{
	static const struct {
		const char *pattern;
		each_fn fn;
	} files[] = {
		{"*/default/*/root", load_resource},
		{"reference-values.json", load_values},
		{"attestation-policy/*.rego", load_attestation_policy},
		{"resource-policy.rego", load_resource_policy},
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (for_each(dir, files[i].pattern, files[i].fn, store, err) < 0)
			return -1;
	return 0;
}

static int dump_ak(void *arg, const char *path, struct err *err)
{
	struct strbuf *out = arg;
	const char *name = last_parts(path, 1);
	size_t len = 0;
	cleanup_free char *text = file_read(path, TOOL_FILE_MAX, &len, NULL, err);

	if (!text)
		return -1;
	strbuf_adds(out, out->data[out->len - 1] == '{' ? "" : ",");
	json_quote(out, name, strlen(name));
	strbuf_addc(out, ':');
	json_quote(out, text, len);
	return 0;
}

void tool_dump_aks(struct strbuf *out, const char *dir)
{
	struct err err = ERR_INIT;

	strbuf_addc(out, '{');
	if (dir && for_each(dir, "tpm/trusted_ak_keys/*.pub", dump_ak, out, &err) < 0)
		fprintf(stderr, "tec-test-kbs: %s\n", err.text);
	strbuf_addc(out, '}');
}
