/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 client: nghttp2 on a connection of our own, with the calls of httpc (httpc.h), so that a
 * caller fills one struct httpc_request and picks who sends it. All requests with the same scheme,
 * host, port, connect_to and tls share one connection, as its streams; a bearer token belongs to
 * its request, so a new token needs no new connection. More requests than the server allows streams
 * wait in line, their deadline running. Only if every place is taken by streams that do not end
 * (req->stream: watches) another connection is opened.
 *
 * Only https, and only with servers that choose h2 in the handshake (ALPN). Any other request ends
 * with answer->status H2C_NO_H2: nothing of it was sent, send it with httpc. That a server has no
 * h2 is remembered for 5 minutes, or until h2c_probe(); meanwhile its requests end so in the next
 * turn of the loop, without a connection.
 *
 * Who owns what: the request is copied, EXCEPT its body. The body is borrowed until `done` runs or
 * the op is cancelled: a call keeps its one body in one place and wipes it there. tls is
 * referenced. on_data and done are as in httpc.h, with the same texts and kinds of errors, and
 * these differences: on_data is never called from inside a read, so it may do whatever done may,
 * cancelling its own op and freeing the h2c included; location and www_authenticate are not told;
 * connect_ms is always 10,000; reach and max_in_flight must be 0.
 *
 * In which order: of what one read brought, answers are told before the data of streams, so that an
 * event does not overtake the answer to the request that caused it; a stream's data before its end.
 *
 * How it fails: a lost connection (no byte for 30 s and no answer to a PING within 15 s is one too)
 * ends what was sent on it with ERR_TRANSIENT. What the server refused before it looked at it
 * (GOAWAY, REFUSED_STREAM) is sent again, on a new connection if need be, three times at most. A
 * certificate that is not accepted is ERR_DENIED, an answer larger than max_body or with more than
 * 64 KiB of header ERR_INVALID.
 */
#ifndef TEC_NET_H2C_H
#define TEC_NET_H2C_H

#include "tec/net/httpc.h"

#define H2C_NO_H2 (-1) /* answer->status, err is ERR_TRANSIENT: nothing was sent, use httpc */

struct h2c;

/* `http` connects: it resolves names and tries addresses. Borrowed; h2c_free() comes before
 * httpc_free(). */
struct h2c *h2c_new(struct loop *l, struct httpc *http);
void h2c_free(struct h2c *c); /* asserts that nothing is in flight; NULL is fine */
struct op *h2c_start(struct h2c *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg);
/* Forgets which servers have no h2: the next request asks again. */
void h2c_probe(struct h2c *c);

#endif
