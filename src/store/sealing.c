/* SPDX-License-Identifier: MIT */
/*
 * A key is on disk before the database depends on it, and is kept until the database is sealed with
 * another: at any moment, one of the files looked for holds the right key.
 */
#include "config.h"

#include "tec/store/sealing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"
#include "tec/base/str.h"

#include "db_internal.h"

#define OWN_FILE        "sealing.key"
#define KEY_FILE_MAX    4096
#define SEALED_FILE_MAX 65536
/* Files are sealed with a subkey of the sealing key that is used for nothing else. */
#define PURPOSE "key-file"

static const char head[] = "tec-operator: a private key, sealed under the sealing key (1)\n";
#define HEAD_LEN (sizeof(head) - 1)

/* The other files sealed with this key: those of apihttp/authority. */
static const char *const key_files[] = {"ca.key", "server.key", "token.key"};

struct store_sealing {
	char *dir;
	char *path; /* owned: the file of the current key */
	/* Owned: where an earlier key may be, in the order to try them: path with ".old", the next
	 * DIR/sealing.key during a rotation, and DIR/sealing.key. */
	char *earlier, *own_new, *own;
	struct secret *key; /* owned; NULL: only looking, and an open would create it */
	bool is_own;        /* path is own */
	bool by_systemd;    /* path is a credential, which systemd protects from other users */
};

/* Read a key file, which must have the exact length and be private. NULL with ERR_NOT_FOUND: the
 * file does not exist. */
static struct secret *read_key(const struct store_sealing *s, const char *path, struct err *err)
{
	struct secret *key = NULL;
	struct stat st;
	size_t len = 0;
	char *text = file_read(path, KEY_FILE_MAX, &len, &st, err);

	if (!text)
		return NULL;
	if (len != SEAL_KEY_LEN)
		(void)err_set(err, ERR_INVALID,
			"%s must contain exactly %d bytes; next step: put the sealing key there",
			log_esc(path), SEAL_KEY_LEN);
	else if ((st.st_mode & 077) && !s->by_systemd)
		(void)err_set(err, ERR_INVALID,
			"%s can be read by other users; next step: chmod 0600, or create another key",
			log_esc(path));
	else
		key = secret_new_copy(text, len);
	file_wipe(text, len);
	return key;
}

/* Create a key that is on disk, so that what is sealed with it can be read again. */
static struct secret *make_key(const char *path, struct err *err)
{
	struct secret *key = secret_new_random(SEAL_KEY_LEN);

	if (file_replace(path, secret_peek(key), SEAL_KEY_LEN, 0600, err) == 0)
		return key;
	secret_free(key);
	return NULL;
}

/* Choose the source of the key (the named file, the credential, or DIR/sealing.key) and compute all
 * paths; reading a key is left to the caller. */
static struct store_sealing *sealing_new(const char *dir, const struct store_sealing_conf *conf)
{
	struct store_sealing *s = xcalloc(1, sizeof(*s));
	cleanup_free char *credential = NULL;

	s->dir = xstrdup(dir);
	s->own = xasprintf("%s/" OWN_FILE, dir);
	s->own_new = xasprintf("%s.new", s->own);
	if (conf->credentials)
		credential = xasprintf("%s/" STORE_SEALING_CREDENTIAL, conf->credentials);
	s->by_systemd = !conf->file && credential && access(credential, F_OK) == 0;
	s->is_own = !conf->file && !s->by_systemd;
	s->path = s->by_systemd ? steal_ptr(&credential) : xstrdup(s->is_own ? s->own : conf->file);
	s->earlier = xasprintf("%s.old", s->path);
	return s;
}

/* Read the key. A missing file that the caller named is an error; only DIR/sealing.key is ever
 * created, but not beside an existing database, which needs the key it was sealed with. */
struct store_sealing *store_sealing_open(const char *dir, const struct store_sealing_conf *conf,
	enum store_sealing_how how, struct err *err)
{
	struct store_sealing *s = sealing_new(dir, conf);
	cleanup_free char *store = xasprintf("%s/" STORE_DB_FILE, dir);

	s->key = read_key(s, s->path, err);
	if (!s->key && err->kind == ERR_NOT_FOUND && s->is_own && how != STORE_SEALING_READ) {
		err_clear(err);
		if (access(store, F_OK) == 0)
			(void)err_set(err, ERR_INVALID,
				"%s is missing, and %s cannot be read without it; next step: restore it from a backup",
				log_esc(s->own), log_esc(store));
		else if (how == STORE_SEALING_MAKE)
			s->key = make_key(s->own, err);
	}
	if (!err_is_set(err))
		return s;
	store_sealing_free(s);
	return NULL;
}

void store_sealing_free(struct store_sealing *s)
{
	if (!s)
		return;
	secret_free(s->key);
	free(s->own_new);
	free(s->own);
	free(s->earlier);
	free(s->path);
	free(s->dir);
	free(s);
}

const struct secret *store_sealing_key(const struct store_sealing *s)
{
	return s->key;
}

bool store_sealing_is_own(const struct store_sealing *s)
{
	return s->is_own;
}

/* ---- files of keys */

/* Compute the associated data of a file: its format line and its name. */
static void bind(const struct secret *key, const char *name, uint8_t out[SEAL_TAG_LEN])
{
	const struct seal_part parts[] = {{head, HEAD_LEN}, {name, strlen(name)}};

	seal_tag(key, parts, ARRAY_LEN(parts), out);
}

bool store_sealing_is_file(const char *text, size_t len)
{
	return len >= HEAD_LEN && memcmp(text, head, HEAD_LEN) == 0;
}

/* The format line is outside of the sealed part, so that a person who opens the file learns what it
 * is. */
char *store_sealing_seal_file(
	const struct secret *sealing_key, const char *name, const struct secret *plain, size_t *len)
{
	cleanup_secret struct secret *key = seal_subkey(sealing_key, PURPOSE);
	cleanup_free uint8_t *sealed = NULL;
	uint8_t bound[SEAL_TAG_LEN];
	char *out;

	bind(key, name, bound);
	sealed = seal_bytes(key, bound, secret_peek(plain), secret_len(plain));
	*len = HEAD_LEN + secret_len(plain) + SEAL_OVERHEAD;
	out = xmalloc(*len);
	memcpy(out, head, HEAD_LEN);
	memcpy(out + HEAD_LEN, sealed, *len - HEAD_LEN);
	return out;
}

/* The length is checked first: an empty key file would give an empty key. */
struct secret *store_sealing_open_file(
	const struct secret *sealing_key, const char *name, const char *text, size_t len)
{
	cleanup_secret struct secret *key = NULL, *plain = NULL;
	uint8_t bound[SEAL_TAG_LEN];

	if (!store_sealing_is_file(text, len) || len <= HEAD_LEN + SEAL_OVERHEAD)
		return NULL;
	key = seal_subkey(sealing_key, PURPOSE);
	plain = secret_new(len - HEAD_LEN - SEAL_OVERHEAD);
	bind(key, name, bound);
	if (seal_open(key, bound, text + HEAD_LEN, len - HEAD_LEN, secret_bytes(plain)) < 0)
		return NULL;
	return steal_ptr(&plain);
}

/* Decrypt a key file with the current key or an earlier one; NULL: none fits. */
static struct secret *open_file(
	const struct store_sealing *s, const char *name, const char *text, size_t len)
{
	struct secret *plain = s->key ? store_sealing_open_file(s->key, name, text, len) : NULL;
	const char *const paths[] = {s->earlier, s->own_new, s->own};

	for (size_t i = 0; !plain && i < ARRAY_LEN(paths); i++) {
		struct err unread = ERR_INIT;
		cleanup_secret struct secret *key = read_key(s, paths[i], &unread);

		if (key)
			plain = store_sealing_open_file(key, name, text, len);
	}
	return plain;
}

/* Read a key file, sealed or plain. *is_under: it is already sealed under this key, which may be
 * NULL. */
static struct secret *read_file(const struct store_sealing *s, const char *name,
	const struct secret *under, bool *is_under, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/%s", s->dir, name);
	struct secret *plain = NULL;
	size_t len = 0;
	char *text = file_read(path, SEALED_FILE_MAX, &len, NULL, err);

	*is_under = false;
	if (!text)
		return NULL;
	if (!store_sealing_is_file(text, len)) {
		plain = len > 0 ? secret_new_copy(text, len) : NULL;
	} else {
		plain = under ? store_sealing_open_file(under, name, text, len) : NULL;
		*is_under = plain != NULL;
		if (!plain)
			plain = open_file(s, name, text, len);
	}
	if (!plain)
		(void)err_set(err, ERR_INVALID,
			len == 0
				? "%s is empty; next step: put it back from a copy of the directory, or remove it"
				: "%s is sealed under another sealing key, or damaged; next step: restore that key, or remove the file and ca.crt, and give all clients new credentials",
			log_esc(path));
	file_wipe(text, len);
	return plain;
}

struct secret *store_sealing_read(const struct store_sealing *s, const char *name, struct err *err)
{
	bool is_under;

	return read_file(s, name, s->key, &is_under, err);
}

static int write_file(const struct store_sealing *s, const struct secret *key, const char *name,
	const struct secret *plain, struct err *err)
{
	size_t len;
	cleanup_free char *path = xasprintf("%s/%s", s->dir, name),
			  *text = store_sealing_seal_file(key, name, plain, &len);

	return file_replace(path, text, len, 0600, err);
}

int store_sealing_write(const struct store_sealing *s, const char *name, const struct secret *plain,
	struct err *err)
{
	return write_file(s, s->key, name, plain, err);
}

/* Seal each existing key file under this key. The database already is, and the earlier key is still
 * available, so after a crash in between the next start seals the remaining files. */
static int seal_files(const struct store_sealing *s, const struct secret *key, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(key_files); i++) {
		bool done;
		cleanup_secret struct secret *plain = read_file(s, key_files[i], key, &done, err);

		if (!plain && err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		if (!plain || done)
			continue;
		if (write_file(s, key, key_files[i], plain, err) < 0)
			return -1;
		log_info(NULL, "key file sealed under the sealing key", "name=%s", key_files[i]);
	}
	return 0;
}

/* ---- the database */

/* Finish a rotation: rename the new key file over the old one, now that the database is sealed with
 * it. */
static int take_new(struct store_sealing *s, struct err *err)
{
	if (rename(s->own_new, s->own) < 0 || db_sync_folder_of(s->own) < 0)
		return err_set_errno(err, ERR_TRANSIENT, errno,
			"the store is sealed with the key in %s, but the file cannot be renamed",
			log_esc(s->own_new));
	return 0;
}

/* Open the database with an earlier key. If the key is that of an interrupted rotation, complete
 * the rotation; otherwise rekey the database to the current key. NULL with err unchanged: no key
 * fits. */
static struct store_db *open_with_earlier(struct store_sealing *s, struct err *err)
{
	const char *const paths[] = {s->earlier, s->own_new, s->own};
	struct store_db *db = NULL;

	for (size_t i = 0; i < ARRAY_LEN(paths) && !db; i++) {
		struct err unread = ERR_INIT, refused = ERR_INIT;
		struct secret *key = NULL;
		bool rotated = s->is_own && paths[i] == s->own_new;

		if (!str_eq(paths[i], s->path))
			key = read_key(s, paths[i], &unread);

		if (key)
			db = store_db_open(
				&(const struct store_db_conf){.dir = s->dir, .key = key}, &refused);
		if (db) {
			err_clear(err);
			/* The files of keys are sealed before the old sealing.key is replaced,
			 * which could still open them. */
			if (rotated ? seal_files(s, key, err) < 0 || take_new(s, err) < 0
				    : store_db_rekey(db, s->key, err) < 0) {
				store_db_close(db);
				secret_free(key);
				return NULL;
			}
			log_info(NULL,
				rotated ? "interrupted rotation of the sealing key completed"
					: "store changed from an earlier sealing key to the current one",
				NULL);
		}
		if (db && rotated) {
			secret_free(s->key);
			s->key = steal_ptr(&key);
		}
		secret_free(key);
	}
	return db;
}

/* Only a wrong key leads to the search for an earlier one; any other error is final. */
struct store_db *store_sealing_open_db(struct store_sealing *s, struct err *err)
{
	struct store_db *db =
		store_db_open(&(const struct store_db_conf){.dir = s->dir, .key = s->key}, err);

	if (!db && err->kind == ERR_DENIED)
		db = open_with_earlier(s, err);
	if (db && seal_files(s, s->key, err) < 0) {
		store_db_close(db);
		return NULL;
	}
	if (db && s->is_own)
		file_remove(s->own_new); /* from a rotation that did not reach the database */
	if (db && !s->is_own && access(s->own, F_OK) == 0)
		log_warn(NULL,
			"sealing.key in the state directory is not used, because another sealing key is configured; next step: move it to where the backups made with it are kept",
			NULL);
	return db;
}

/* ---- rotation */

/* The key is on disk before the database uses it. Until the rename, the next start finds it as the
 * key of an interrupted rotation. If there is a next DIR/sealing.key, it is from a failed rotation
 * and is used again: the database may already be sealed with it. */
int store_sealing_rotate(struct store_sealing *s, struct store_db *db, struct err *err)
{
	cleanup_secret struct secret *key = read_key(s, s->is_own ? s->own_new : s->path, err);

	if (!key && s->is_own && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		key = make_key(s->own_new, err);
	}
	if (!key)
		return -1;
	if (!s->is_own && secret_equal(key, s->key))
		return err_set(err, ERR_CONFLICT,
			"%s still holds the key in use; next step: keep it as %s.old and put another key there",
			log_esc(s->path), log_esc(s->path));
	if (store_db_rekey(db, key, err) < 0 || seal_files(s, key, err) < 0)
		return -1;
	secret_free(s->key);
	s->key = steal_ptr(&key);
	return s->is_own ? take_new(s, err) : 0;
}
