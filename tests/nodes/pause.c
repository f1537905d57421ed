/* SPDX-License-Identifier: MIT */
/* What keeps a Pod's namespaces: it waits for the end, and for children that lost their parent. */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int sig)
{
	(void)sig;
	_exit(0);
}

static void reap(int sig)
{
	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(void)
{
	if (signal(SIGINT, end) == SIG_ERR || signal(SIGTERM, end) == SIG_ERR ||
		signal(SIGCHLD, reap) == SIG_ERR)
		return 1;
	for (;;)
		pause();
}
