/* SPDX-License-Identifier: MIT */
/*
 * Shared by image.c (which document, from which host), source.c (the hosts), and fetch.c (one
 * document from one host: authentication, redirects, verification).
 */
#ifndef TEC_OCI_INTERNAL_H
#define TEC_OCI_INTERNAL_H

#include "tec/oci/auth.h"
#include "tec/oci/compute.h"
#include "tec/oci/manifest.h"
#include "tec/oci/redirect.h"
#include "tec/oci/registry.h"

/* Shared by all fetches of one call; outlives them. */
struct oci_net {
	struct httpc *http;
	struct httpc_tls *tls;
	char **insecure; /* host[:port] */
	size_t n_insecure;
};

/* One host that has the repository, and the credentials for it. */
struct oci_source {
	char *host;             /* host[:port], for messages */
	char *base;             /* "https://host/v2/<repository>" */
	char *repository;       /* its name at this host */
	struct oci_place place; /* borrows base and the list of insecure hosts */
	struct oci_cred *cred;
	bool basic;           /* it requested Basic authentication */
	struct secret *token; /* NULL: none yet */
	uint64_t token_until_ms;
};

/*
 * Enumerate the hosts that may have the image of a reference, in the order in which they are tried:
 * mirrors, then the registry. name: the configured name, which selects credentials; connect: the
 * host to connect to. Both are valid during the call. If fn returns -1, the enumeration ends with
 * its error.
 */
typedef int (*oci_source_fn)(
	void *arg, const char *name, const char *connect, const char *repository, struct err *err);
int oci_each_source(const struct oci_conf *conf, const struct oci_ref *ref, oci_source_fn fn,
	void *arg, struct err *err) MUST_CHECK;

/* The hosts of one call, and how to reach them. */
struct oci_asking {
	struct oci_net net;
	struct oci_source *sources; /* mirrors, then the registry */
	size_t n_sources, at;       /* at: the current one */
};
/* Copies everything. Call oci_asking_fini() even after an error. */
int oci_asking_init(struct oci_asking *a, struct httpc *http, const struct oci_conf *conf,
	const struct oci_ref *ref, const struct secret *const *configs, size_t n_configs,
	struct err *err) MUST_CHECK;
void oci_asking_fini(struct oci_asking *a);
/* Log this failure and move to the next host. Return false if there is none. */
bool oci_asking_next(struct oci_asking *a, const struct err *err);
/* Prefix err with the hosts that were tried, if there are several. */
void oci_asking_name_tried(const struct oci_asking *a, struct err *err);

/* Receives a piece of a body that is not verified yet. -1 ends the fetch with err. */
typedef int (*oci_piece_fn)(void *arg, const void *data, size_t len, struct err *err);
struct oci_want {
	bool blob; /* otherwise a manifest */
	struct oci_descriptor what;
	bool any_size;   /* the size is unknown: what.size is an upper limit */
	const char *tag; /* of a manifest whose digest is unknown, and therefore not verified */
	/* If set, receives the body in pieces, with `arg` of the fetch, instead of `done`. An error
	 * after the last piece means that none of it may be used. */
	oci_piece_fn piece;
};

/* body: verified, and borrowed for the call. net and source must outlive the op. */
typedef void (*oci_fetch_fn)(void *arg, const struct err *err, const char *body, size_t len);
struct op *oci_fetch_start(const struct oci_net *net, struct op_scope *scope,
	struct oci_source *source, const struct oci_want *want, oci_fetch_fn done, void *arg);

/* serve.c: files that a process talking to a registry may open. */
#define OCI_READABLE 20
extern const char *const oci_readable[OCI_READABLE];

/* Splits a child's standard error into lines without control characters. Long lines are cut, and
 * the program name at the start is removed. */
struct oci_lines {
	char text[OCI_COMPUTE_LINE_MAX];
	size_t len;
	char last[OCI_COMPUTE_LINE_MAX]; /* the last line: if the child fails, it is the reason */
};
void oci_lines_add(struct oci_lines *l, const char *data, size_t len, oci_said_fn line, void *arg);

#endif
