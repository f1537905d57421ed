/* SPDX-License-Identifier: MIT */
/*
 * bench_pcrs run ROUNDS PROGRAM [ARGUMENT]... [-- PROGRAM [ARGUMENT]...]
 *   processor time of each program, in turns, and its peak memory. A parent of its own, because the
 *   kernel counts what a child had in memory before it became the program: Python is larger than
 *   any of them.
 * bench_pcrs combine IMAGES LOADERS
 *   IMAGES images of a register 4, 7 and 14 each, LOADERS different boot loaders among them, each
 *   with a kernel of its own.
 * One line of KEY=VALUE per program; times in microseconds.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/pcr/combine.h"

#define ROUNDS_MAX 1001
#define PROGRAMS   8

static int by_size(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* ---- run */

static void run_once(char **argv, long *cpu_us, long *rss_kib)
{
	struct rusage used;
	int status, null;
	pid_t pid = fork();

	if (pid == 0) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status != 0) {
		fprintf(stderr, "bench_pcrs: %s failed\n", argv[0]);
		exit(1);
	}
	*cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec +
		  used.ru_stime.tv_usec;
	if (used.ru_maxrss > *rss_kib)
		*rss_kib = used.ru_maxrss;
}

static int run(char **argv, unsigned rounds)
{
	static long us[PROGRAMS][ROUNDS_MAX];
	long rss[PROGRAMS] = {0};
	char **program[PROGRAMS];
	unsigned n = 0;

	while (*argv) {
		if (n == PROGRAMS)
			return 2;
		program[n++] = argv;
		while (*argv && strcmp(*argv, "--") != 0)
			argv++;
		if (*argv)
			*argv++ = NULL;
	}
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < n; i++)
			run_once(program[i], &us[i][r], &rss[i]);
	for (unsigned i = 0; i < n; i++) {
		qsort(us[i], rounds, sizeof(us[i][0]), by_size);
		printf("min_us=%ld median_us=%ld peak_rss_kib=%ld\n", us[i][0], us[i][rounds / 2],
			rss[i]);
	}
	return 0;
}

/* ---- combine */

static void put(
	struct pcr_events *e, enum pcr_event_id id, unsigned pcr, const char *what, unsigned number)
{
	uint8_t digest[SHA256_LEN];
	char text[64];

	snprintf(text, sizeof(text), "%s %u", what, number);
	bytes_sha256(text, strlen(text), digest);
	if (!pcr_events_push(e, id, PCR_EV_IPL, pcr, digest))
		abort();
}

struct image {
	char *name; /* owned */
	struct pcr_events events;
};

static void make_image(struct image *i, unsigned number, unsigned loaders)
{
	static const enum pcr_event_id fixed[] = {PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB,
		PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT, PCR7_SBAT_LEVEL, PCR7_GRUB_MOK_LIST_CERT};
	struct pcr_events *e = &i->events;

	i->name = xasprintf("image-%u", number);
	put(e, PCR4_EFI_CALL, 4, "call", 0);
	put(e, PCR4_SEPARATOR, 4, "separator", 0);
	put(e, PCR4_SHIM, 4, "shim", number % loaders);
	put(e, PCR4_GRUB, 4, "grub", number % loaders);
	put(e, PCR4_VMLINUZ, 4, "kernel", number);
	put(e, PCR4_VMLINUZ, 4, "kernel", number);
	for (size_t k = 0; k < ARRAY_LEN(fixed); k++)
		put(e, fixed[k], 7, "variable", (unsigned)k);
	put(e, PCR14_MOK_LIST, 14, "MOK", 0);
	put(e, PCR14_MOK_LIST_X, 14, "MOK", 1);
	put(e, PCR14_MOK_LIST_TRUSTED, 14, "MOK", 2);
}

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static int combine(unsigned n, unsigned loaders)
{
	struct image *images = xcalloc(n, sizeof(*images));
	long us[51];
	size_t sets = 0;

	for (unsigned i = 0; i < n; i++)
		make_image(&images[i], i, loaders);
	for (size_t r = 0; r < ARRAY_LEN(us); r++) {
		cleanup_pcr_sets struct pcr_sets out = PCR_SETS_INIT;
		long start = now_us();
		struct pcr_mixer *m = pcr_mixer_new();
		bool fits = true;

		for (unsigned i = 0; i < n && fits; i++)
			fits = pcr_mixer_add(
				m, images[i].name, i, &images[i].events, SIZE_MAX, &out);
		pcr_mixer_free(m);
		us[r] = now_us() - start;
		sets = out.n;
	}
	qsort(us, ARRAY_LEN(us), sizeof(us[0]), by_size);
	printf("min_us=%ld median_us=%ld sets=%zu\n", us[0], us[ARRAY_LEN(us) / 2], sets);
	for (unsigned i = 0; i < n; i++) {
		free(images[i].name);
		pcr_events_fini(&images[i].events);
	}
	free(images);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long first = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (first > 0 && first <= ROUNDS_MAX && strcmp(argv[1], "run") == 0)
		return run(argv + 3, (unsigned)first);
	if (first > 0 && first <= ROUNDS_MAX && strcmp(argv[1], "combine") == 0 &&
		atoi(argv[3]) > 0)
		return combine((unsigned)first, (unsigned)atoi(argv[3]));
	fprintf(stderr, "usage: bench_pcrs run ROUNDS PROGRAM... | combine IMAGES LOADERS\n");
	return 2;
}
