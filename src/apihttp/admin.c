/* SPDX-License-Identifier: MIT */
/*
 * Administration of the server itself: back up the store, rotate the sealing key, submit an image's
 * values. A backup is copied to a temporary file, a few pages per turn of the loop so that other
 * clients can write in between. The complete copy is unlinked and then sent from its open
 * descriptor.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/apireq/inproc.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/seal.h"

#include "apihttp_internal.h"

#define BACKUP_PATH "/tec/v1/backup"
#define KEY_PATH    "/tec/v1/sealing-key"
#define BACKUP_TYPE "application/vnd.sqlite3"
#define PIECE       (64u << 10)

/* A backup or a key rotation in progress: at most one for all clients. Owned by its request. */
struct apihttp_job {
	struct apihttp_shared *shared;
	struct store_wait wait; /* until no transaction is open */
	struct store_db_backup *backup;
	char *path; /* of the file, while it has a name; owned */
	int fd;     /* -1: not open yet */
	struct apihttp_pieces stream;
};

/* Release the job when its request ends, for whatever reason; a partial copy is deleted. */
static void on_gone(void *arg)
{
	struct apihttp_job *j = arg;

	store_wait_cancel(&j->wait);
	defer_cancel(&j->stream.next);
	store_db_backup_free(j->backup);
	if (j->fd >= 0)
		(void)close(j->fd);
	if (j->path)
		(void)unlink(j->path);
	free(j->path);
	j->shared->job = NULL;
	free(j);
}

/* Log an error and answer with it. This ends the request and so frees j. */
static void refuse(struct apihttp_job *j, const struct err *err, const char *doing)
{
	log_err(LOG_ERROR, NULL, doing, err);
	apihttp_answer(j->stream.req, err->kind == ERR_CONFLICT
					      ? apireq_status_refusal(409, "%s", err->text)
					      : apireq_status_storage(err)); /* j is gone */
}

/* ---- backup */

/* Send one piece, and ask for the next turn of the loop unless the socket is full. */
static void send_piece(void *arg)
{
	struct apihttp_job *j = arg;
	uint8_t piece[PIECE];
	ssize_t n;

	n = read(j->fd, piece, sizeof(piece));
	if (n > 0) {
		apihttp_pieces_add(&j->stream, piece, (size_t)n);
		apihttp_pieces_more(&j->stream);
	} else if (n == 0) {
		httpd_stream_end(j->stream.req);
	} else {
		log_error(NULL, "reading the backup failed", "errno=%d", errno);
		httpd_stream_abort(j->stream.req); /* the client must not take it for complete */
	}
}

/* Start sending the complete copy. Its name is removed first, so a crash leaves no file. */
static void send_backup(struct apihttp_job *j)
{
	struct err err = ERR_INIT;
	struct stat st;

	j->fd = open(j->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (j->fd < 0 || fstat(j->fd, &st) < 0) {
		(void)err_set_errno(&err, ERR_TRANSIENT, errno, "%s", log_esc(j->path));
		refuse(j, &err, "cannot read the backup");
		return;
	}
	(void)unlink(j->path);
	free(steal_ptr(&j->path));
	log_info(NULL, "backup created", "bytes=%lld peer=%s", (long long)st.st_size,
		httpd_req_peer(j->stream.req));
	apihttp_pieces_start(&j->stream, BACKUP_TYPE);
	apihttp_pieces_more(&j->stream);
}

/* Copy the next pages. It runs only while no transaction is open, so the copy holds all that a turn
 * of the loop wrote, or none of it. */
static void next_pages(void *arg, const struct err *unused)
{
	struct apihttp_job *j = arg;
	struct store_objects *s = j->shared->conf.objects;
	struct err err = ERR_INIT;
	int rc;

	if (!j->backup)
		j->backup = store_db_backup_start(store_objects_db(s), j->path, &err);
	rc = j->backup ? store_db_backup_step(j->backup, &err) : -1;
	if (rc > 0) {
		store_objects_when_stored(s, &j->wait, next_pages, j);
		return;
	}
	store_db_backup_free(steal_ptr(&j->backup));
	if (rc == 0)
		send_backup(j);
	else
		refuse(j, &err, "cannot create a backup");
}

/* ---- rotation of the sealing key */

/* Rotate the sealing key between transactions. Rows are sealed again in the background
 * afterwards. */
static void rotate(void *arg, const struct err *unused)
{
	struct apihttp_job *j = arg;
	struct store_objects *s = j->shared->conf.objects;
	struct store_sealing *key = apihttp_authority_sealing(j->shared->conf.authority);
	struct err err = ERR_INIT;
	cleanup_free char *said = NULL;
	char id[SEAL_ID_LEN + 1];

	if (store_objects_is_open(s)) { /* a callback that ran before this one has written again */
		store_objects_when_stored(s, &j->wait, rotate, j);
		return;
	}
	if (store_sealing_rotate(key, store_objects_db(s), &err) < 0) {
		refuse(j, &err, "cannot change the sealing key");
		return;
	}
	store_objects_reseal(s);
	seal_key_id(store_sealing_key(key), id);
	log_info(NULL, "sealing key changed", "peer=%s", httpd_req_peer(j->stream.req));
	said = xasprintf(
		"the store is now sealed with key %s; create a new backup, since existing backups open only with the previous key",
		id);
	apihttp_answer(j->stream.req, apireq_status_success(said));
}

/* ---- an image's values */

/* Pass the text in the body, {"message": TEXT}, to the hand_in callback. The image must exist. */
static int take_values(const struct apihttp_call *c, struct err *err)
{
	const struct apihttp_listener_conf *conf = &c->shared->conf;
	const struct store_key key = {c->t->qualified, c->t->ns, c->t->name};
	cleanup_json struct json_object *image = apireq_inproc_object(conf->objects, &key),
					*body = NULL;
	const char *text;
	size_t len;

	if (!image)
		return err_set(err, ERR_NOT_FOUND, "%s %s not found", c->t->qualified,
			log_esc(c->t->name));
	text = httpd_req_body(c->req, &len);
	body = json_parse(text, len, &json_limits_public, err);
	if (!body)
		return -1;
	text = json_get_str(body, "message");
	if (!text)
		return err_set(err, ERR_INVALID, "the body must be {\"message\": TEXT}");
	return conf->hand_in(conf->hand_in_arg, c->t->ns, c->t->name, text, strlen(text), err);
}

/* Answer a PUT of an image's values. The callback starts the work; its end is visible in the
 * image. */
bool apihttp_admin_values(const struct apihttp_call *c)
{
	struct err err = ERR_INIT;

	if (!c->kind || !str_eq(c->t->sub, "values") || !str_eq(c->t->resource, "approvedimages") ||
		!c->shared->conf.hand_in)
		return false;
	/* A right to update images is not enough: the values decide which nodes get keys. */
	if (!apireq_user_in(&c->user, APIREQ_MASTERS))
		apihttp_answer_refuse(c->req, 403,
			"only members of " APIREQ_MASTERS " may submit an image's values");
	else if (httpd_req_method(c->req) != HTTPD_PUT)
		apihttp_answer_refuse(c->req, 405, "only PUT is allowed here");
	else if (take_values(c, &err) < 0) {
		int code = err.kind == ERR_NOT_FOUND   ? 404
			   : err.kind == ERR_CONFLICT  ? 409
			   : err.kind == ERR_TRANSIENT ? 503
						       : 422;

		apihttp_answer_refuse(
			c->req, code, code == 422 ? "invalid values: %s" : "%s", err.text);
	} else
		apihttp_answer(c->req, apireq_status_success("the values are being written"));
	return true;
}

/* ---- paths */

/* Start a job once no transaction is open, or answer 429 while another job runs. */
static void start(const struct apihttp_call *c, bool is_backup)
{
	const char *dir = apihttp_authority_identity(c->shared->conf.authority).dir;
	struct apihttp_job *j;

	if (c->shared->job) {
		apihttp_answer_refuse(c->req, 429,
			"a backup or a change of the sealing key is in progress; try again later");
		return;
	}
	j = xcalloc(1, sizeof(*j));
	j->shared = c->shared;
	j->stream = (struct apihttp_pieces){
		.req = c->req, .loop = c->shared->loop, .piece = send_piece, .arg = j};
	j->fd = -1;
	c->shared->job = j;
	httpd_req_on_gone(c->req, on_gone, j);
	if (is_backup) {
		j->path = xasprintf("%s/backup.tmp", dir);
		(void)unlink(j->path); /* left by a process that was killed */
	}
	store_objects_when_stored(
		c->shared->conf.objects, &j->wait, is_backup ? next_pages : rotate, j);
}

/* Answer the administration paths. They are not API paths, so only system:masters passes the
 * authorization. */
bool apihttp_admin(const struct apihttp_call *c)
{
	bool is_backup = str_eq(httpd_req_path(c->req), BACKUP_PATH);
	/* DELETE retires the key in use. kubectl delete --raw can send it, but no POST of known
	 * length. */
	enum httpd_method needed = is_backup ? HTTPD_GET : HTTPD_DELETE;

	if (!is_backup && !str_eq(httpd_req_path(c->req), KEY_PATH))
		return false;
	if (httpd_req_method(c->req) != needed)
		apihttp_answer_refuse(
			c->req, 405, "only %s is allowed here", httpd_method_name(needed));
	else
		start(c, is_backup);
	return true;
}
