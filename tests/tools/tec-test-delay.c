/* SPDX-License-Identifier: MIT */
/*
 * tec-test-delay --listen A:P --connect A:P --delay-ms N: a TCP proxy that holds every byte for N/2
 * ms in each direction, so a round trip takes N ms more, and limits nothing else. As the delay is
 * the same for all, what is held stands in one queue in the order of its time, with one timer.
 */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "tec/base/clock.h"
#include "tec/base/conf.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/addr.h"

#define DELAY_MAX_MS 60000

static const struct conf_option options[] = {
	{"listen", CONF_STRING, "ADDR:PORT", "127.0.0.1:0", .help = "Where to take connections."},
	{"connect", CONF_STRING, "ADDR:PORT", NULL, .help = "Where they go."},
	{"delay-ms", CONF_STRING, "N", "5", .help = "What a round trip takes more."},
	{"help", CONF_ACTION, .help = "Print this text."},
};
static const struct conf_program program = {.name = "tec-test-delay",
	.usage = "[OPTION]...",
	.options = options,
	.n_options = ARRAY_LEN(options)};

struct chunk;
struct proxy {
	struct event_base *base;
	struct event *timer;
	struct addr to;
	uint64_t half_us;
	struct chunk *head, **tail; /* owned; by time */
	struct conn *conns;
};

/* A client and its way to the server. Kept as long as a held chunk names it. */
struct conn {
	struct conn *next, **prevp;
	struct proxy *p;
	struct side {
		struct conn *conn;
		struct bufferevent *bev; /* owned; NULL once closed */
		bool ended;              /* its end has been passed on */
	} side[2];
	unsigned held;
};

struct chunk {
	struct chunk *next;
	uint64_t due_us;
	struct side *to;
	struct evbuffer *data; /* owned; NULL: the end */
};

static void side_close(struct side *s)
{
	if (s->bev)
		bufferevent_free(s->bev);
	s->bev = NULL;
}

static void conn_end(struct conn *c)
{
	side_close(&c->side[0]);
	side_close(&c->side[1]);
	if (c->held > 0)
		return;
	*c->prevp = c->next;
	if (c->next)
		c->next->prevp = c->prevp;
	free(c);
}

static struct side *other(struct side *s)
{
	return &s->conn->side[s == &s->conn->side[0]];
}

static void arm(struct proxy *p)
{
	uint64_t now = clock_boot_us();
	uint64_t wait = p->head && p->head->due_us > now ? p->head->due_us - now : 0;
	struct timeval tv = {(time_t)(wait / 1000000), (suseconds_t)(wait % 1000000)};

	if (p->head)
		evtimer_add(p->timer, &tv);
}

/* take_data NULL: nothing more comes. */
static void hold(struct side *to, struct evbuffer *take_data)
{
	struct proxy *p = to->conn->p;
	struct chunk *k = xcalloc(1, sizeof(*k));
	bool first = !p->head;

	k->due_us = clock_boot_us() + p->half_us;
	k->to = to;
	k->data = take_data;
	to->conn->held++;
	*p->tail = k;
	p->tail = &k->next;
	if (first)
		arm(p);
}

static bool is_drained(const struct side *s)
{
	return evbuffer_get_length(bufferevent_get_output(s->bev)) == 0;
}

/* Passes an end on once everything before it is out; both ends, or a broken side, end the pair. */
static void settle(struct conn *c)
{
	bool done = true;

	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &c->side[i];

		if (!s->bev)
			break;
		if (s->ended && is_drained(s))
			shutdown(bufferevent_getfd(s->bev), SHUT_WR);
		else
			done = false;
	}
	if (done || !c->side[0].bev)
		conn_end(c);
}

static void on_drained(struct bufferevent *bev, void *arg)
{
	struct side *s = arg;

	if (s->ended)
		settle(s->conn);
}

static void pass_on(struct chunk *k)
{
	struct side *s = k->to;

	s->conn->held--;
	if (s->bev && k->data)
		bufferevent_write_buffer(s->bev, k->data);
	else if (!k->data)
		s->ended = true;
	if (k->data)
		evbuffer_free(k->data);
	free(k);
	if (s->ended || !s->bev)
		settle(s->conn);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct proxy *p = arg;
	uint64_t now = clock_boot_us();

	while (p->head && p->head->due_us <= now) {
		struct chunk *k = p->head;

		p->head = k->next;
		if (!p->head)
			p->tail = &p->head;
		pass_on(k);
	}
	arm(p);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct side *s = arg;
	struct evbuffer *data = evbuffer_new();

	bufferevent_read_buffer(bev, data);
	hold(other(s), data);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct side *s = arg;

	if (what & BEV_EVENT_EOF) {
		bufferevent_disable(bev, EV_READ);
		hold(other(s), NULL);
	} else if (what & BEV_EVENT_ERROR) {
		conn_end(s->conn);
	}
}

static void side_open(struct side *s, struct conn *c, evutil_socket_t fd)
{
	s->conn = c;
	s->bev = bufferevent_socket_new(c->p->base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(s->bev, on_read, on_drained, on_event, s);
}

static void no_delay(struct bufferevent *bev)
{
	int on = 1;

	setsockopt(bufferevent_getfd(bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void on_accept(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg)
{
	struct proxy *p = arg;
	struct conn *c = xcalloc(1, sizeof(*c));

	c->p = p;
	c->next = p->conns;
	c->prevp = &p->conns;
	if (c->next)
		c->next->prevp = &c->next;
	p->conns = c;
	side_open(&c->side[0], c, fd);
	side_open(&c->side[1], c, -1);
	if (bufferevent_socket_connect(
		    c->side[1].bev, (struct sockaddr *)&p->to.ss, (int)p->to.len) < 0) {
		conn_end(c);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		no_delay(c->side[i].bev);
		bufferevent_enable(c->side[i].bev, EV_READ | EV_WRITE);
	}
}

static void on_signal(evutil_socket_t signo, short what, void *arg)
{
	event_base_loopbreak(arg);
}

static int serve(struct proxy *p, int fd)
{
	struct event_config *cfg = event_config_new();
	struct evconnlistener *listener;
	struct event *term;

	event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER); /* half a millisecond counts */
	p->base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	p->timer = evtimer_new(p->base, on_due, p);
	p->tail = &p->head;
	listener = evconnlistener_new(p->base, on_accept, p, LEV_OPT_CLOSE_ON_FREE, 0, fd);
	term = evsignal_new(p->base, SIGTERM, on_signal, p->base);
	evsignal_add(term, NULL);
	event_base_dispatch(p->base);
	while (p->head) {
		struct chunk *k = p->head;

		p->head = k->next;
		k->to->conn->held--;
		if (k->data)
			evbuffer_free(k->data);
		free(k);
	}
	while (p->conns)
		conn_end(p->conns);
	event_free(term);
	event_free(p->timer);
	evconnlistener_free(listener);
	event_base_free(p->base);
	return 0;
}

static int usage_error(const char *text)
{
	fprintf(stderr, "tec-test-delay: %s\n", text);
	return 2;
}

static int run(const struct conf *conf)
{
	struct proxy p = {.head = NULL};
	struct err err = ERR_INIT;
	struct addr at;
	uint64_t ms;
	int fd;

	if (!conf_str(conf, "connect"))
		return usage_error("--connect is missing");
	if (str_to_u64(conf_str(conf, "delay-ms"), DELAY_MAX_MS, &ms) < 0)
		return usage_error("--delay-ms is not a number of milliseconds");
	if (addr_parse(conf_str(conf, "listen"), &at, &err) < 0 ||
		addr_parse(conf_str(conf, "connect"), &p.to, &err) < 0)
		return usage_error(err.text);
	p.half_us = ms * 1000 / 2;
	fd = addr_listen(&at, &err);
	if (fd < 0)
		return usage_error(err.text);
	signal(SIGPIPE, SIG_IGN);
	printf("listening on port %u\n", addr_port(fd));
	fflush(stdout);
	return serve(&p, fd);
}

int main(int argc, char *argv[])
{
	struct conf *conf = conf_new(&program);
	enum conf_result start = conf_start(conf, argc, argv);
	int status = start == CONF_RUN ? run(conf) : start == CONF_BAD ? 2 : 0;

	conf_free(conf);
	return status;
}
