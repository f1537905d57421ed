/* SPDX-License-Identifier: MIT */
/*
 * The file is read (base/toml) and never written. A path is accepted only if it can be mounted: it
 * is absolute and contains neither ".." nor a colon.
 */
#include "config.h"

#include "tec/model/kbsfile.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/toml.h"
#include "tec/kobj/key.h"

#define PORT       8080
#define PATH_MAX_  1024
#define FILES_MAX  64
#define AT(member) (at + offsetof(struct model_kbsfile, member))

/* Trustee's documentation writes some paths as URLs: file:///etc/https-key/https.key. */
static const char *without_scheme(const char *s)
{
	return s && str_starts(s, "file:///") ? s + strlen("file://") : s;
}

/* Return a path, or NULL; a value that is not a path is reported in why. */
static const char *path_of(struct json_object *root, const char *where, struct strbuf *why)
{
	const char *s = without_scheme(json_get_str(root, where));
	size_t len = s ? strlen(s) : 0;

	/* Paths are compared with mounts as text, so only normalised ones are accepted. */
	if (!json_get(root, where) ||
		(len > 1 && len < PATH_MAX_ && s[0] == '/' && s[len - 1] != '/' &&
			!strchr(s, ':') && !strstr(s, "//") && !strstr(s, "/../") &&
			!strstr(s, "/./") && !str_ends(s, "/..") && !str_ends(s, "/.")))
		return s;
	if (!why->len)
		strbuf_addf(why, "%s is not an absolute path", where);
	for (char *p = why->data; *p; p++)
		*p = *p == '/' ? '.' : *p;
	return NULL;
}

/* Return the path of a file whose directory can be mounted; NULL for a file directly below "/". */
static const char *file_of(struct json_object *root, const char *where, struct strbuf *why)
{
	const char *s = path_of(root, where, why);

	return s && strrchr(s, '/') != s ? s : NULL;
}

/* The first socket counts: probes and the Service need one port. On a loopback address, neither
 * reaches it. */
static uint16_t port_of(struct json_object *root, bool *loopback, struct strbuf *why)
{
	struct json_object *sockets = json_get_arr(root, "http_server/sockets"), *one;
	const char *s, *colon;
	uint64_t port;

	if (!sockets)
		sockets = json_get_arr(root, "sockets");
	one = json_at(sockets, 0);
	if (!one)
		return PORT;
	s = json_object_is_type(one, json_type_string) ? json_object_get_string(one) : "";
	*loopback = str_starts(s, "127.0.0.1:") || str_starts(s, "[::1]:");
	colon = strrchr(s, ':');
	if (colon && str_to_u64(colon + 1, 65535, &port) == 0 && port > 0)
		return (uint16_t)port;
	if (!why->len)
		strbuf_adds(why, "http_server.sockets does not begin with an address and a port");
	return PORT;
}

/* Return the directory of [[plugins]] name = "resource" in the older form. */
static const char *resource_dir(struct json_object *root, struct strbuf *why)
{
	struct json_object *plugins = json_get_arr(root, "plugins");

	for (size_t i = 0; i < json_len(plugins); i++) {
		struct json_object *p = json_at(plugins, i);

		if (str_eq(json_get_str(p, "name"), "resource") &&
			str_eq(json_get_str(p, "type"), "LocalFs"))
			return path_of(p, "dir_path", why);
	}
	return NULL;
}

/* ---- files below /etc */

/* Accept the characters that names of objects and of their keys consist of, without a leading
 * dot. */
static bool is_key(const char *s, size_t len)
{
	if (len == 0 || len > KOBJ_NAME_MAX || s[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!strchr("-._", s[i]) && !(s[i] >= '0' && s[i] <= '9') &&
			!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= 'A' && s[i] <= 'Z'))
			return false;
	return true;
}

/* Visit every string of the document, including those in lists. Only /etc/DIR/KEY is recorded: this
 * is where objects named by a KbsConfig are mounted. */
static void note_files(struct strbuf *out, unsigned *n, struct json_object *o)
{
	const char *s = json_object_is_type(o, json_type_string)
				? without_scheme(json_object_get_string(o))
				: "";
	const char *dir = str_starts(s, "/etc/") ? s + strlen("/etc/") : "",
		   *slash = strchr(dir, '/');

	if (slash && is_key(dir, (size_t)(slash - dir)) && is_key(slash + 1, strlen(slash + 1)) &&
		*n < FILES_MAX) {
		strbuf_addf(out, "%s\n", dir);
		(*n)++;
	}
	if (json_object_is_type(o, json_type_array))
		for (size_t i = 0; i < json_len(o); i++)
			note_files(out, n, json_at(o, i));
	json_each (o, name, v)
		note_files(out, n, v);
}

/* The slash after dir is compared as well, so "auth" does not match lines of "auth-secret". */
bool model_kbsfile_each(const struct model_kbsfile *f, const char *dir,
	bool (*fn)(void *arg, const char *key), void *arg)
{
	size_t len = strlen(dir);

	for (const char *line = f->files ? f->files : ""; *line;) {
		const char *end = strchrnul(line, '\n');

		if (strncmp(line, dir, len) == 0 && line[len] == '/') {
			cleanup_free char *key =
				xstrndup(line + len + 1, (size_t)(end - line) - len - 1);

			if (!fn(arg, key))
				return false;
		}
		line = *end ? end + 1 : end;
	}
	return true;
}

/* ---- the file */

/* An invalid file is no error of the extraction: its problem is kept in why, for the condition. */
void model_kbsfile_read(
	struct kobj_pack *p, size_t at, struct model_kbsfile *out, const char *text, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *root = toml_parse(text, len, &err);
	cleanup_strbuf struct strbuf why = STRBUF_INIT, files = STRBUF_INIT;
	const char *policy, *resources, *values;
	unsigned n = 0;

	out->there = true;
	out->port = PORT;
	if (!root) {
		kobj_pack_str(p, AT(why), err.text);
		return;
	}
	policy = file_of(root, "policy_engine/policy_path", &why);
	resources = resource_dir(root, &why);
	values = file_of(root, "attestation_service/rvps_config/storage/file_path", &why);
	out->legacy = policy || resources || values;
	out->admin_type = json_get(root, "admin/type") != NULL;
	out->older_admin = out->admin_type || json_get(root, "admin/insecure_api");
	out->insecure_http = json_get_bool(root, "http_server/insecure_http", false);
	out->port = port_of(root, &out->loopback, &why);
	kobj_pack_str(p, AT(policy_path), policy);
	kobj_pack_str(p, AT(resource_dir), resources);
	kobj_pack_str(p, AT(values_path), values);
	kobj_pack_str(p, AT(policy_dir),
		path_of(root, "attestation_service/attestation_token_broker/policy_dir", &why));
	kobj_pack_str(p, AT(storage_dir),
		path_of(root, "storage_backend/backends/local_fs/dir_path", &why));
	kobj_pack_str(p, AT(values_dir),
		path_of(root, "storage_backend/backends/local_json/file_dir_path", &why));
	note_files(&files, &n, root);
	kobj_pack_str(p, AT(files), files.len ? files.data : NULL);
	kobj_pack_str(p, AT(why), why.len ? why.data : NULL);
}
