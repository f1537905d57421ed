/* SPDX-License-Identifier: MIT */
/*
 * Every attempt opens the TPM, reads PCR 15, extends it if it is zero, and reads it again: what
 * counts is the value, not the answer to a command. An attempt whose answer was lost is completed
 * by the next one.
 */
#include "config.h"

#include "tec/attest/seal.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tec/attest/esys.h"
#include "tec/base/clock.h"
#include "tec/base/str.h"

#define PAUSE_MS  200
#define TERM_MS   2000 /* for a pin to end, before it is killed */
#define KILL_MS   2000
#define READ_MS   3000
#define PIN       "clevis-decrypt-trustee"
#define WORDS_MAX 4096

static void pause_ms(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}

/* ---- the TPM */

/* Return 1 if PCR 15 is extended, 0 if it is zero, -1 on error. */
static int is_sealed(struct attest_esys *e, struct err *err)
{
	static const uint8_t zero[SHA256_LEN];
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN];

	if (attest_esys_pcrs(e, pcrs, err) < 0)
		return -1;
	return memcmp(pcrs[ATTEST_SEAL_PCR], zero, SHA256_LEN) != 0;
}

static int try_seal(const char *tcti, const char *event, bool *already, struct err *err)
{
	cleanup_esys struct attest_esys *e = attest_esys_open(tcti, err);
	int sealed = e ? is_sealed(e, err) : -1;

	*already = sealed == 1;
	if (sealed != 0)
		return sealed < 0 ? -1 : 0;
	if (attest_esys_event(e, ATTEST_SEAL_PCR, event, err) < 0)
		return -1;
	sealed = is_sealed(e, err);
	if (sealed == 0)
		err_set(err, ERR_INVALID, "PCR 15 is still zero after the TPM extended it");
	return sealed == 1 ? 0 : -1;
}

/* In a shell that the initial RAM disk opens early, nothing has loaded them yet. A module that does
 * not exist is not an error, nor is a missing modprobe. */
static void load_modules(void)
{
	static const char *const argv[] = {"modprobe", "-a", "-q", "-b", "tpm_crb", "tpm_tis",
		"tpm_tis_spi", "tpm_tis_i2c", NULL};
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) == 0)
		waitpid(pid, NULL, 0);
}

int attest_seal(
	const char *tcti, const char *uuid, uint32_t patience_ms, bool *already, struct err *err)
{
	uint64_t end_ms = clock_boot_ms() + patience_ms;
	cleanup_strbuf struct strbuf event = STRBUF_INIT;
	bool loaded = false;

	strbuf_addf(&event, "tec-node:sealed:%s", uuid ? uuid : "-");
	while (try_seal(tcti, event.data, already, err) < 0) {
		if (clock_boot_ms() >= end_ms)
			return err_wrap(err, "this boot is not sealed");
		if (!loaded && err->kind == ERR_NOT_FOUND)
			load_modules();
		loaded = loaded || err->kind == ERR_NOT_FOUND;
		err_clear(err);
		pause_ms(PAUSE_MS);
	}
	return 0;
}

/* ---- the pin's processes */

/* Whether these words, each with a NUL after it, are a command line of the pin. */
static bool decrypts(const char *words, size_t len)
{
	const char *slash = strrchr(words, '/');

	if (str_eq(slash ? slash + 1 : words, PIN))
		return true;
	for (const char *word = words; word < words + len; word += strlen(word) + 1)
		if (str_eq(word, "decrypt"))
			return true;
	return false;
}

/* Whether a process runs this very file, as the pin. Other commands, such as serve, are not ended. */
static bool is_pin(const char *pid, const struct stat *self)
{
	char path[64], words[WORDS_MAX + 1];
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	if (stat(path, &st) < 0 || st.st_dev != self->st_dev || st.st_ino != self->st_ino)
		return false;
	snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, words, WORDS_MAX);
	close(fd);
	if (n <= 0)
		return false;
	words[n] = '\0';
	return decrypts(words, (size_t)n);
}

/* Return how many processes there were. */
static unsigned signal_pins(int signo)
{
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	unsigned found = 0;
	struct stat self;
	uint64_t pid;

	if (proc && stat("/proc/self/exe", &self) == 0)
		while ((d = readdir(proc)))
			if (str_to_u64(d->d_name, INT32_MAX, &pid) == 0 && (pid_t)pid != getpid() &&
				is_pin(d->d_name, &self)) {
				kill((pid_t)pid, signo);
				found++;
			}
	if (proc)
		closedir(proc);
	return found;
}

/* One that hangs in the TPM's driver cannot be ended; what it asks for after the seal is refused. */
void attest_seal_end_pins(void)
{
	unsigned ms = 0;

	while (signal_pins(ms < TERM_MS ? SIGTERM : SIGKILL) > 0 && ms < TERM_MS + KILL_MS) {
		pause_ms(PAUSE_MS / 2);
		ms += PAUSE_MS / 2;
	}
}

/* ---- the end */

void attest_seal_reboot(void)
{
	pause_ms(READ_MS);
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
