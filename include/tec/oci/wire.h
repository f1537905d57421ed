/* SPDX-License-Identifier: MIT */
/*
 * The protocol between the operator and the process that talks to registries for it (oci/lookup.h):
 * a request on its standard input, an answer on its standard output. Records consist of a letter,
 * the length in decimal, ':', the bytes, and a newline, in one fixed order; so the side that holds
 * keys parses nothing but lengths. Bytes in, values out.
 *
 * question: r(eference) l(abel) o(s) a(rchitecture) m(irror)* i(nsecure)* c(redentials)* z
 * answer:   w(arning)*, then one of: v(alue) | n(o such label) | k(ind) h(ttp) s(leep ms) t(ext)
 */
#ifndef TEC_OCI_WIRE_H
#define TEC_OCI_WIRE_H

#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/oci/registry.h"

#define OCI_QUESTION_MAX (1024u * 1024)
#define OCI_LABEL_MAX    (256u * 1024)            /* of a label's value */
#define OCI_ANSWER_MAX   (OCI_LABEL_MAX + 16384u) /* of a whole answer */
#define OCI_WARNINGS_MAX 8u
#define OCI_WARNING_LEN  511u

struct oci_question { /* all owned; oci_question_fini */
	char *reference, *label, *os, *arch;
	char **mirrors, **insecure;
	size_t n_mirrors, n_insecure;
	struct secret **configs;
	size_t n_configs;
};

/* Encode a request. The caller wipes and frees the *len bytes, which contain credentials.
 * ERR_INVALID: larger than OCI_QUESTION_MAX. */
char *oci_question_encode(const struct oci_conf *conf, const char *reference, const char *label,
	const struct secret *const *configs, size_t n_configs, size_t *len,
	struct err *err) MUST_CHECK;
int oci_question_decode(
	const char *bytes, size_t len, struct oci_question *out, struct err *err) MUST_CHECK;
void oci_question_fini(struct oci_question *q);

struct oci_answer {
	struct err err; /* TRANSIENT, NOT_FOUND, DENIED or INVALID: as from oci_label_get() */
	char *value;    /* owned; NULL: the label does not exist, or err is set */
	size_t len;
	char warnings[OCI_WARNINGS_MAX][OCI_WARNING_LEN + 1];
	size_t n_warnings;
};

/* Add a line for the log, before oci_answer_end(). Lines after the eighth are dropped. */
void oci_answer_warn(struct strbuf *out, size_t *n_warnings, const char *text);
void oci_answer_end(struct strbuf *out, const struct err *err, const char *value, size_t len);
/* Decode an answer. ERR_INVALID: it is malformed, and *out is empty. Texts must be UTF-8 without
 * control characters. */
int oci_answer_decode(
	const char *bytes, size_t len, struct oci_answer *out, struct err *err) MUST_CHECK;
void oci_answer_fini(struct oci_answer *a);

#endif
