/* SPDX-License-Identifier: MIT */
/*
 * bench_api SERVER CA_FILE TOKEN_FILE WARM_UP < REQUESTS
 * What libcurl and OpenSSL cost by themselves: sends what it is given, one request after the other
 * on one kept connection, looks at the status, and does nothing else: no watch, no JSON, no loop.
 * Prints the processor time of one request in us, the first WARM_UP requests left out.
 * A request is a line: METHOD, path, content type and body, separated by tabs.
 */
#include "config.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define TOKEN_MAX 4096
#define FIELDS    4

static void die(const char *what, const char *text)
{
	fprintf(stderr, "bench_api: %s: %s\n", what, text);
	exit(1);
}

static void check(CURLcode rc, const char *what)
{
	if (rc)
		die(what, curl_easy_strerror(rc));
}

static size_t on_write(char *data, size_t size, size_t n, void *arg)
{
	return size * n;
}

static double cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* The request's own headers on top of those every request has. */
static struct curl_slist *headers(const char *token, const char *type)
{
	char line[TOKEN_MAX + 64];
	struct curl_slist *l = curl_slist_append(NULL, "Accept: application/json");

	snprintf(line, sizeof(line), "Authorization: Bearer %s", token);
	l = curl_slist_append(l, line);
	snprintf(line, sizeof(line), "Content-Type: %s", type);
	l = curl_slist_append(l, line);
	l = curl_slist_append(l, "Expect:");
	if (!l)
		die("headers", "out of memory");
	return l;
}

static void send_one(CURL *e, const char *server, const char *token, char *field[FIELDS])
{
	struct curl_slist *l = headers(token, field[2]);
	char url[2048];
	long status = 0;

	snprintf(url, sizeof(url), "%s%s", server, field[1]);
	check(curl_easy_setopt(e, CURLOPT_URL, url), "url");
	check(curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, field[0]), "method");
	check(curl_easy_setopt(e, CURLOPT_POSTFIELDS, field[3]), "body");
	check(curl_easy_setopt(e, CURLOPT_HTTPHEADER, l), "headers");
	check(curl_easy_perform(e), field[1]);
	check(curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status), "status");
	if (status < 200 || status > 299)
		die("refused by the server", field[1]);
	curl_slist_free_all(l);
}

static void read_token(const char *file, char token[TOKEN_MAX])
{
	FILE *f = fopen(file, "r");

	if (!f || !fgets(token, TOKEN_MAX, f))
		die("cannot read", file);
	token[strcspn(token, "\n")] = '\0';
	fclose(f);
}

int main(int argc, char **argv)
{
	char token[TOKEN_MAX], *line = NULL, *rest;
	long warm_up = argc == 5 ? atol(argv[4]) : 0, n = 0;
	double start = cpu_us();
	size_t cap = 0;
	ssize_t len;
	CURL *e = curl_easy_init();

	if (argc != 5 || !e)
		die("usage", "bench_api SERVER CA_FILE TOKEN_FILE WARM_UP < REQUESTS");
	read_token(argv[3], token);
	check(curl_easy_setopt(e, CURLOPT_CAINFO, argv[2]), "CA");
	check(curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write), "write function");
	check(curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1), "HTTP");
	check(curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 16384L), "buffer size");
	while ((len = getline(&line, &cap, stdin)) > 0) {
		char *field[FIELDS];

		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		rest = line;
		for (int i = 0; i < FIELDS; i++)
			field[i] = strsep(&rest, "\t");
		if (!field[FIELDS - 1])
			die("not a request", line);
		if (n++ == warm_up)
			start = cpu_us();
		send_one(e, argv[1], token, field);
	}
	if (n <= warm_up)
		die("no requests", "after warming up");
	printf("%.2f\n", (cpu_us() - start) / (double)(n - warm_up));
	free(line);
	curl_easy_cleanup(e);
	return 0;
}
