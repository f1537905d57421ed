/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 client: nghttp2 on a connection of our own. It takes httpc's requests and gives httpc's
 * answers (httpc.h), so a caller fills one struct httpc_request and chooses the sender. Requests
 * with the same scheme, host, port, connect_to and tls share one connection, as its streams. A
 * bearer token belongs to its request: a new token needs no new connection. At most 16 requests,
 * and 16 of those that yield (req->yields), are in flight on it at once, beside long-lived streams
 * (req->stream: watches), and fewer when the server allows fewer; the others are queued and their
 * deadlines run meanwhile. While there are requests that do not yield, and a moment longer, 4 of
 * those that do are in flight: they go on, but do not take the server's time from the others. A
 * second connection is opened only when long-lived streams occupy every place.
 *
 * It needs https and a server that selects h2 in the TLS handshake (ALPN). Any other request ends
 * with answer->status H2C_NO_H2: nothing was sent, use httpc. A server without h2 is remembered for
 * 5 minutes; until then its requests end that way in the next turn of the loop, without a
 * connection.
 *
 * Ownership: the request is copied, EXCEPT its body, which is borrowed until `done` runs or the op
 * is cancelled; the caller keeps the only copy and wipes it. tls is referenced. on_data and done
 * work as in httpc.h, with these differences: on_data is not called from inside a read, so it may
 * do what done may do, including cancelling its own op and freeing the h2c; location and
 * www_authenticate are NULL; connect_ms is always 10,000; take_body, reach and max_in_flight must
 * not be set.
 *
 * Order: of the data of one read, answers, also those that come through on_data, are delivered before
 * the data of streams (req->stream), so that a watch event does not overtake the answer to the
 * request that caused it. The data of a call is delivered before its end.
 *
 * Errors: a lost connection (also one without a byte for 30 s and no answer to a PING within 15 s)
 * ends the requests that were sent on it with ERR_TRANSIENT. Requests that the server refused
 * unprocessed (GOAWAY, REFUSED_STREAM) are sent up to three times, on a new connection if needed. A
 * certificate that is not accepted is ERR_DENIED. An answer larger than max_body, or with more than
 * 64 KiB of header, is ERR_INVALID.
 */
#ifndef TEC_NET_H2C_H
#define TEC_NET_H2C_H

#include "tec/net/httpc.h"

#define H2C_NO_H2 (-1) /* answer->status, with ERR_TRANSIENT: nothing was sent, use httpc */

struct h2c;

/* `http` makes the TCP connections: it resolves names and tries all addresses. Borrowed; call
 * h2c_free() before httpc_free(). */
struct h2c *h2c_new(struct loop *l, struct httpc *http);
void h2c_free(struct h2c *c); /* asserts that nothing is in flight; NULL is fine */
struct op *h2c_start(struct h2c *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg);

#endif
