/* SPDX-License-Identifier: MIT */
/*
 * Registries for the tests of oci: child processes on 127.0.0.1, plain or TLS, that answer from a
 * table made before they start. A rule is a piece of the request's first line, what its head must
 * hold and must not hold, and the answer; the first that fits counts, 404 when none does. What was
 * asked stands in shared memory.
 */
#ifndef TESTS_OCI_TESTING_H
#define TESTS_OCI_TESTING_H

#include "net/httpc_testing.h"

#include "tec/base/bytes.h"
#include "tec/oci/registry.h"

struct rule {
	const char *line;           /* "GET /v2/a/manifests/" */
	const char *with, *without; /* in the head; NULL: whatever */
	char *answer;
	size_t len;
	bool endless; /* then bytes without end */
	bool silent;  /* then nothing more */
};

struct seen {
	atomic_int reqs;
	char head[32][1024];
};

struct reg {
	int fd, port;
	pid_t pid;
	SSL_CTX *ctx;
	struct rule rules[24];
	size_t n;
	struct seen *seen;
	char host[32];
};

static inline void reg_open(struct reg *r, const struct pair *leaf)
{
	memset(r, 0, sizeof(*r));
	r->fd = listen_any(&r->port, 16);
	r->ctx = leaf ? server_ctx(leaf, NULL) : NULL;
	r->seen = mmap(
		NULL, sizeof(*r->seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(r->seen, MAP_FAILED);
	snprintf(r->host, sizeof(r->host), "127.0.0.1:%d", r->port);
}

/* head: status line and headers without Content-Length; body NULL: the answer is head alone. */
static inline struct rule *reg_rule(
	struct reg *r, const char *line, const char *head, const char *body, size_t len)
{
	struct rule *rule = &r->rules[r->n++];
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	cr_assert(r->n <= ARRAY_LEN(r->rules));
	rule->line = line;
	strbuf_addf(&b, "HTTP/1.1 %s\r\n", head);
	if (body)
		strbuf_addf(&b, "Content-Length: %zu\r\n", len);
	strbuf_adds(&b, "\r\n");
	if (body)
		strbuf_add(&b, body, len);
	rule->len = b.len;
	rule->answer = strbuf_steal(&b);
	return rule;
}

static inline const struct rule *reg_match(const struct reg *r, const char *head)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct rule *u = &r->rules[i];

		if (str_starts(head, u->line) && (!u->with || strstr(head, u->with)) &&
			(!u->without || !strstr(head, u->without)))
			return u;
	}
	return NULL;
}

static inline bool reg_serve_one(struct io *io, const struct reg *r)
{
	char head[16384];
	const struct rule *u;
	char *end = NULL, *length;
	int n = 0, at;
	size_t body;

	while (!end) {
		int got = io_read(io, head + n, (int)sizeof(head) - 1 - n);

		if (got <= 0 || head[0] == 0x16) /* TLS where none is spoken */
			return false;
		n += got;
		head[n] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	length = strstr(head, "Content-Length: ");
	body = length ? strtoul(length + 16, NULL, 10) : 0;
	while ((size_t)(head + n - (end + 4)) < body) {
		int got = io_read(io, head + n, (int)sizeof(head) - 1 - n);

		if (got <= 0)
			return false;
		n += got;
		head[n] = '\0';
	}
	at = r->seen->reqs;
	cr_assert(at < 32);
	snprintf(r->seen->head[at], sizeof(r->seen->head[0]), "%.1000s", head);
	r->seen->reqs = at + 1;
	u = reg_match(r, head);
	if (!u) {
		reply(io, "404 Not Found", "none");
		return true;
	}
	io_write(io, u->answer, u->len);
	while (u->endless)
		fill(io, 65536);
	if (u->silent)
		hang(io);
	return true;
}

static inline void reg_start(struct reg *r)
{
	pid_t tests = getpid();

	r->pid = fork();
	cr_assert(r->pid >= 0);
	if (r->pid)
		return;
	die_with(tests);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		struct io io = {.fd = accept(r->fd, NULL, NULL)};
		pid_t self = getpid();

		if (io.fd >= 0 && fork() == 0) {
			die_with(self);
			if (r->ctx) {
				io.ssl = SSL_new(r->ctx);
				SSL_set_fd(io.ssl, io.fd);
				if (SSL_accept(io.ssl) != 1)
					_exit(0);
			}
			while (reg_serve_one(&io, r))
				;
			_exit(0);
		}
		close(io.fd);
	}
}

static inline void reg_stop(struct reg *r)
{
	if (r->pid)
		kill(r->pid, SIGKILL);
	if (r->fd)
		close(r->fd);
	SSL_CTX_free(r->ctx);
	for (size_t i = 0; i < r->n; i++)
		free(r->rules[i].answer);
	if (r->seen)
		munmap(r->seen, sizeof(*r->seen));
	memset(r, 0, sizeof(*r));
}

/* How many requests' heads hold the text. */
static inline int reg_saw(const struct reg *r, const char *text)
{
	int n = 0;

	for (int i = 0; i < r->seen->reqs; i++)
		n += strstr(r->seen->head[i], text) != NULL;
	return n;
}

/* ---- an image ---- */

struct doc {
	char *text;
	size_t len;
	char digest[OCI_DIGEST_LEN + 1];
	char *manifest_line, *blob_line; /* of the request for it in repository "a/b" */
};

static inline struct doc doc_of(char *take_text)
{
	struct doc d = {.text = take_text, .len = strlen(take_text)};
	uint8_t sum[SHA256_LEN];

	bytes_sha256(d.text, d.len, sum);
	strcpy(d.digest, "sha256:");
	bytes_to_hex(sum, sizeof(sum), d.digest + 7);
	d.manifest_line = xasprintf("GET /v2/a/b/manifests/%s ", d.digest);
	d.blob_line = xasprintf("GET /v2/a/b/blobs/%s ", d.digest);
	return d;
}

static inline void doc_fini(struct doc *d)
{
	free(d->text);
	free(d->manifest_line);
	free(d->blob_line);
	memset(d, 0, sizeof(*d));
}

struct image {
	struct doc index, manifest, config;
};

static inline struct image image_of(const char *config)
{
	struct image i;

	i.config = doc_of(xstrdup(config));
	i.manifest = doc_of(xasprintf(
		"{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/vnd.oci.image.config."
		"v1+json\",\"digest\":\"%s\",\"size\":%zu},\"layers\":[]}",
		i.config.digest, i.config.len));
	i.index = doc_of(xasprintf(
		"{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"application/vnd.oci.image."
		"manifest.v1+json\",\"digest\":\"%s\",\"size\":%zu,\"platform\":{\"os\":\"linux\","
		"\"architecture\":\"amd64\"}}]}",
		i.manifest.digest, i.manifest.len));
	return i;
}

static inline void image_fini(struct image *i)
{
	doc_fini(&i->index);
	doc_fini(&i->manifest);
	doc_fini(&i->config);
}

#endif
