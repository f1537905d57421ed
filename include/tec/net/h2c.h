/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 client: nghttp2 on its own connections. It accepts the requests of httpc and returns the same
 * responses (httpc.h), so a caller fills one struct httpc_request and chooses the client. Requests
 * with the same scheme, host, port, connect_to and tls are streams of one connection. A bearer token
 * belongs to its request, so a new token needs no new connection. Apart from long-lived streams
 * (req->stream: watches), at most 16 requests, and 16 of those that yield (req->yields), are in flight
 * on a connection, or fewer if the server allows fewer. Others are queued while their deadlines run.
 * While requests that do not yield are pending, and 50 ms longer, at most 4 of those that yield are in
 * flight, so that they progress without taking the server's time from the others. A second connection
 * is opened only if long-lived streams occupy all streams of the first.
 *
 * It needs https and a server that selects h2 in the TLS handshake (ALPN). Any other request ends
 * with answer->status H2C_NO_H2: nothing was sent, use httpc. A server without h2 is remembered for
 * 5 minutes; during that time its requests end that way in the next turn of the loop, without a
 * connection.
 *
 * Ownership: the request is copied, EXCEPT its body, which is borrowed until `done` runs or the op
 * is cancelled; the caller keeps the only copy and wipes it. tls is referenced. on_data and done
 * work as in httpc.h, with these differences: on_data is never called from inside a read, so it may
 * do everything that done may do, including cancelling its own op and freeing the h2c; location,
 * set_cookie and www_authenticate are NULL; connect_ms is always 10,000; take_body, reach and
 * max_in_flight must not be set.
 *
 * Order: from the data of one read, responses, including those through on_data, are delivered before
 * the data of streams (req->stream), so that a watch event never overtakes the response to the
 * request that caused it. The data of a call is delivered before its end.
 *
 * Errors: if a connection is lost, also because no byte arrives for 30 s and a PING is not answered
 * within 15 s, the requests sent on it end with ERR_TRANSIENT. Requests that the server refused
 * unprocessed (GOAWAY, REFUSED_STREAM) are sent up to three times, on a new connection if needed. A
 * certificate that fails verification is ERR_DENIED. A response larger than max_body, or with a header
 * of more than 64 KiB, is ERR_INVALID.
 */
#ifndef TEC_NET_H2C_H
#define TEC_NET_H2C_H

#include "tec/net/httpc.h"

#define H2C_NO_H2 (-1) /* answer->status, with ERR_TRANSIENT: nothing was sent, use httpc */

struct h2c;

/* `http` opens the TCP connections, because it resolves names and tries all addresses. Borrowed; call
 * h2c_free() before httpc_free(). */
struct h2c *h2c_new(struct loop *l, struct httpc *http);
void h2c_free(struct h2c *c); /* asserts that nothing is in flight; NULL is fine */
struct op *h2c_start(struct h2c *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg);

#endif
