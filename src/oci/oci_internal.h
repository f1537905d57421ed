/* SPDX-License-Identifier: MIT */
/*
 * Shared by registry.c and image.c (which document, from which host), source.c (the hosts) and fetch.c
 * (one document from one host: authentication, redirects, verification).
 */
#ifndef TEC_OCI_INTERNAL_H
#define TEC_OCI_INTERNAL_H

#include "tec/oci/auth.h"
#include "tec/oci/compute.h"
#include "tec/oci/manifest.h"
#include "tec/oci/redirect.h"
#include "tec/oci/registry.h"

/* What all fetches of one question share; outlives them. */
struct oci_net {
	struct httpc *http;
	struct httpc_tls *tls;
	char **insecure; /* host[:port] */
	size_t n_insecure;
};
bool oci_net_insecure(const struct oci_net *net, const char *host);

/* One host that has the repository, and the credentials for it. */
struct oci_source {
	char *host;       /* host[:port]: what messages name */
	char *base;       /* "https://host/v2/<repository>" */
	char *repository; /* there */
	bool plain;       /* http */
	bool answered;    /* then `scope` is that of its address */
	enum addr_scope scope;
	struct oci_cred *cred;
	bool basic;           /* it asked for Basic */
	struct secret *token; /* NULL: none yet */
	uint64_t token_until_ms;
};

/*
 * The hosts that have a reference's image, in the order in which they are asked: mirrors, then the
 * registry. name: what it is called and whose credentials; connect: where it is; both live for the
 * call. -1 from fn ends it with fn's error.
 */
typedef int (*oci_source_fn)(
	void *arg, const char *name, const char *connect, const char *repository, struct err *err);
int oci_each_source(const struct oci_conf *conf, const char *reference, oci_source_fn fn, void *arg,
	struct err *err) MUST_CHECK;

int oci_each_source_of(const struct oci_conf *conf, const struct oci_ref *ref, oci_source_fn fn,
	void *arg, struct err *err) MUST_CHECK;

/* The hosts of one question, and how to reach them. */
struct oci_asking {
	struct oci_net net;
	struct oci_source *sources; /* mirrors, then the registry */
	size_t n_sources, at;       /* at: the one that is asked */
};
/* Copies all; oci_asking_fini() also after an error. */
int oci_asking_init(struct oci_asking *a, struct httpc *http, const struct oci_conf *conf,
	const struct oci_ref *ref, const struct secret *const *configs, size_t n_configs,
	struct err *err) MUST_CHECK;
void oci_asking_fini(struct oci_asking *a);
static inline struct oci_source *oci_asking_now(const struct oci_asking *a)
{
	return &a->sources[a->at];
}
/* Goes on to the next host after this failure, which is logged; false: there is none. */
bool oci_asking_next(struct oci_asking *a, const struct err *err);
void oci_asking_name_tried(const struct oci_asking *a, struct err *err);

/* A piece of a body that is not verified yet. -1 ends the fetch with err. */
typedef int (*oci_piece_fn)(void *arg, const void *data, size_t len, struct err *err);
struct oci_want {
	bool blob; /* else a manifest */
	struct oci_descriptor what;
	bool any_size;   /* what.size is only a bound: the size is not known yet */
	const char *tag; /* of a manifest whose digest is not known: it is not compared */
	oci_piece_fn
		piece; /* the body is handed out as it comes, with `arg` of the fetch, and not to
			       done; an error after the last piece says that none of it is to be used */
};

/* body: verified, borrowed for the call. net and source outlive the op. */
typedef void (*oci_fetch_fn)(void *arg, const struct err *err, const char *body, size_t len);
struct op *oci_fetch_start(const struct oci_net *net, struct op_scope *scope,
	struct oci_source *source, const struct oci_want *want, oci_fetch_fn done, void *arg);

/* serve.c: what the child does that answers a question; and the files that a process may open which asks a
 * registry. */
int oci_write_answer(int fd, const char *text, size_t len, struct err *err) MUST_CHECK;
#define OCI_READABLE 20
extern const char *const oci_readable[OCI_READABLE];

/* What a child writes to standard error, as lines without control characters; longer ones are cut, and the
 * name of the program before them is left out. */
struct oci_lines {
	char text[OCI_COMPUTE_LINE_MAX];
	size_t len;
};
void oci_lines_add(struct oci_lines *l, const char *data, size_t len, oci_said_fn line, void *arg);

#endif
