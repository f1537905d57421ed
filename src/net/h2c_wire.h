/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one connection of h2c: a socket, TLS over our own BIO, and a buffer for what the socket
 * does not accept. It knows of HTTP/2 only the name that ALPN selects. It is embedded in its
 * connection, whose functions it calls; only readable() may close it.
 */
#ifndef TEC_NET_H2C_WIRE_H
#define TEC_NET_H2C_WIRE_H

#include <openssl/ssl.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/loop/loop.h"

#define H2C_RAW_LEN    65536u /* one recv() */
#define H2C_RECORD_LEN 16384u /* one SSL_read(), one SSL_write() */
#define H2C_WIRE_MAX   65536u /* buffered bytes that the socket did not accept */

struct httpc_tls;

/* What the connections of one client share; the buffers are used for one read or write at a time. */
struct h2c_wires {
	struct loop *loop; /* borrowed */
	BIO_METHOD *bio;
	uint8_t *raw, *plain; /* plain is wiped after use */
};

struct h2c_wire_calls {
	/* The handshake is complete (without TLS: at once). is_h2: the server selected HTTP/2. */
	int (*opened)(void *arg, bool is_h2, struct err *err);
	int (*received)(void *arg, const uint8_t *data, size_t len, struct err *err);
	void (*readable)(void *arg); /* h2c_wire_receive() will not block */
	void (*writable)(void *arg); /* the socket has accepted all buffered bytes */
};

struct h2c_wire {
	struct h2c_wires *shared;           /* borrowed */
	const struct h2c_wire_calls *calls; /* static */
	void *arg;
	int fd;                         /* owned; -1: not connected */
	struct loop_fd *reads, *writes; /* writes: only while the socket is full */
	SSL *ssl;                       /* NULL: plain bytes */
	bool open;                      /* the handshake is complete */
	bool unwritable;                /* send() failed; recv() will report the reason */
	const uint8_t *in;              /* into shared->raw: not yet decrypted */
	size_t in_len;
	struct strbuf out; /* encrypted, but not accepted by the socket yet */
};

void h2c_wires_init(struct h2c_wires *ws, struct loop *l);
void h2c_wires_fini(struct h2c_wires *ws);
void h2c_wire_init(
	struct h2c_wire *w, struct h2c_wires *ws, const struct h2c_wire_calls *calls, void *arg);
/* Take a connected socket and begin the handshake. tls NULL: plain bytes. host: the name to verify,
 * unless tls has another one. -1: the server cannot be used; the caller closes the wire. */
int h2c_wire_begin(struct h2c_wire *w, int take_fd, const struct httpc_tls *tls, const char *host,
	struct err *err);
/* Receive once and pass on what was received. 0: nothing has arrived; -1: the connection ended. */
int h2c_wire_receive(struct h2c_wire *w, struct err *err);
bool h2c_wire_accepts(const struct h2c_wire *w); /* false: bytes are buffered, or it is broken */
void h2c_wire_send(struct h2c_wire *w, const void *plain, size_t len); /* up to H2C_RECORD_LEN */
/* A close_notify is sent if it can be, but never waited for. */
void h2c_wire_close(struct h2c_wire *w, bool notify);

#endif
