/* SPDX-License-Identifier: MIT */
/* The table of tec-operator's options: what is read from it, and what is refused. */
#include "config.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/cmd/options.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

static struct options o;
static char path[] = "/tmp/test_options.XXXXXX";

static void up(void)
{
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	close(fd);
	unsetenv("KUBERNETES_SERVICE_HOST");
	cr_redirect_stdout();
	cr_redirect_stderr();
}

static void down(void)
{
	options_fini(&o);
	unlink(path);
}

TestSuite(cmd_options, .init = up, .fini = down);

/* words: separated by blanks. */
static enum conf_result read_words(const char *words)
{
	cleanup_free char *copy = xstrdup(words);
	char name[] = "tec-operator", *argv[32] = {name}, *rest = copy, *word;
	int argc = 1;

	options_fini(&o);
	while ((word = strsep(&rest, " "))) {
		cr_assert_lt((size_t)argc, ARRAY_LEN(argv));
		if (*word)
			argv[argc++] = word;
	}
	return options_read(&o, argc, argv);
}

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

Test(cmd_options, without_any_it_does_everything)
{
	cr_assert_eq(read_words(""), CONF_RUN);
	cr_expect_eq(o.role, ROLE_ALL);
	cr_expect(o.leader_elect && o.rate_on && !o.api_http1 && !o.lookup_label);
	cr_expect_str_eq(o.listen_register, "[::]:8000");
	cr_expect_str_eq(o.listen_register_ak, "[::]:8001");
	cr_expect_str_eq(o.listen_health, "[::]:8081");
	cr_expect_eq(o.rate_burst, 200);
	cr_expect_eq(o.rate_per_s, 50);
	cr_expect_eq(o.max_connections, 1500);
	cr_expect_eq(o.log_level, LOG_INFO);
	cr_expect_eq(o.log_format, LOG_TEXT);
	cr_expect_eq(o.shutdown_delay_ms, 0);
	cr_expect_null(o.kubeconfig);
	cr_expect_null(o.namespace_);
	cr_expect_null(o.kbs_url);
	cr_expect_null(o.registry_auth);
	cr_expect_null(o.seed_src);
	cr_expect_eq(o.registry_mirrors.n, 0);
	cr_expect_eq(o.insecure_registries.n, 0);
}

Test(cmd_options, each_value_arrives)
{
	cr_assert_eq(read_words("--role=register-ak --leader-elect=false --api-protocol http1 "
				"--kubeconfig k --namespace n --kbs-url u --registry-auth a "
				"--rate-limit 7,3 --max-connections 9 --log-level debug"),
		CONF_RUN);
	cr_expect_eq(o.role, ROLE_REGISTER_AK);
	cr_expect(!o.leader_elect && o.api_http1);
	cr_expect_str_eq(o.kubeconfig, "k");
	cr_expect_str_eq(o.namespace_, "n");
	cr_expect_str_eq(o.kbs_url, "u");
	cr_expect_str_eq(o.registry_auth, "a");
	cr_expect_eq(o.rate_burst, 7);
	cr_expect_eq(o.rate_per_s, 3);
	cr_expect_eq(o.max_connections, 9);
	cr_expect_eq(o.log_level, LOG_DEBUG);
	cr_assert_eq(read_words("--rate-limit off --listen-health 127.0.0.1:1 --log-format json "
				"--seed s d"),
		CONF_RUN);
	cr_expect(!o.rate_on);
	cr_expect_str_eq(o.listen_health, "127.0.0.1:1");
	cr_expect_eq(o.log_format, LOG_JSON);
	cr_expect_str_eq(o.seed_src, "s");
	cr_expect_str_eq(o.seed_dst, "d");
	cr_expect_null(o.resources_src);
	cr_assert_eq(read_words("--seed-resources s d"), CONF_RUN);
	cr_expect_null(o.seed_src);
	cr_expect_str_eq(o.resources_src, "s");
	cr_expect_str_eq(o.resources_dst, "d");
}

Test(cmd_options, a_role_decides_what_is_served)
{
	static const struct {
		const char *words;
		bool controls, registers, registers_ak;
	} cases[] = {
		{"--role=all", true, true, true},
		{"--role=controller", true, false, false},
		{"--role=register", false, true, false},
		{"--role=register-ak", false, false, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cr_assert_eq(read_words(cases[i].words), CONF_RUN);
		cr_expect_eq(options_controls(&o), cases[i].controls, "%s", cases[i].words);
		cr_expect_eq(options_serves_register(&o), cases[i].registers, "%s", cases[i].words);
		cr_expect_eq(options_serves_register_ak(&o), cases[i].registers_ak, "%s",
			cases[i].words);
	}
}

Test(cmd_options, controllers_are_chosen)
{
	static const struct {
		const char *words;
		bool cluster, trustees, registers;
	} cases[] = {
		{"", true, false, true},
		{"--controllers=trustee", false, true, false},
		{"--controllers=trustee,cluster", true, true, true},
		{"--controllers=trustee --role=register", false, false, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cr_assert_eq(read_words(cases[i].words), CONF_RUN);
		cr_expect_eq(options_controls_cluster(&o), cases[i].cluster, "%s", cases[i].words);
		cr_expect_eq(
			options_controls_trustees(&o), cases[i].trustees, "%s", cases[i].words);
		cr_expect_eq(options_serves_register(&o), cases[i].registers, "%s", cases[i].words);
	}
	cr_assert_eq(read_words("--controllers=trustee --trustee-namespaces=a,b"), CONF_RUN);
	cr_assert_eq(o.trustee_namespaces.n, 2);
	cr_expect_str_eq(o.trustee_namespaces.items[1], "b");
	cr_expect_eq(read_words("--controllers=none"), CONF_BAD);
	cr_expect_eq(read_words("--controllers="), CONF_BAD);
	cr_expect_eq(read_words("--trustee-namespaces=A"), CONF_BAD);
	cr_expect_eq(read_words("--trustee-namespaces=a,a"), CONF_BAD);
	cr_expect_eq(read_words("--standalone=/x --controllers=trustee"), CONF_BAD);
}

Test(cmd_options, only_a_restore_accepts_what_is_unverified)
{
	cr_expect_eq(read_words("--standalone=/x --accept-unverified"), CONF_BAD);
	cr_expect_eq(read_words("--restore=/dev/null --accept-unverified"), CONF_BAD);
	cr_assert_eq(read_words("--standalone=/x --restore=/dev/null"), CONF_RUN);
	cr_expect_not(o.accept_unverified);
	cr_assert_eq(
		read_words("--standalone=/x --restore=/dev/null --accept-unverified"), CONF_RUN);
	cr_expect(o.accept_unverified);
}

Test(cmd_options, lists_keep_their_order_without_blanks)
{
	char name[] = "tec-operator", insecure[] = "--insecure-registry=b",
	     mirrors[] = "--registry-mirror=a.io=b, a.io=c:1/d ,x.io=y";
	char *argv[] = {name, mirrors, insecure};

	cr_assert_eq(options_read(&o, 3, argv), CONF_RUN);
	cr_assert_eq(o.registry_mirrors.n, 3);
	cr_expect_str_eq(o.registry_mirrors.items[0], "a.io=b");
	cr_expect_str_eq(o.registry_mirrors.items[1], "a.io=c:1/d");
	cr_expect_str_eq(o.registry_mirrors.items[2], "x.io=y");
	cr_assert_eq(o.insecure_registries.n, 1);
	cr_expect_str_eq(o.insecure_registries.items[0], "b");
}

Test(cmd_options, malformed_values_are_refused)
{
	static const char *const bad[] = {"--rate-limit 7", "--rate-limit 0,1", "--rate-limit 1,0",
		"--rate-limit 1,2,3", "--rate-limit 1000001,1", "--rate-limit on",
		"--max-connections 0", "--max-connections x", "--listen-register 8000",
		"--listen-register-ak [::]", "--listen-health :99999",
		"--registry-mirror a.io=", "--registry-mirror a.io=b,,a.io=c",
		"--insecure-registry a,", "--shutdown-delay 601", "--shutdown-delay -1",
		"--role node", "--no-such", "word", "--config /nonexistent/file"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_expect_eq(read_words(bad[i]), CONF_BAD, "%s", bad[i]);
}

Test(cmd_options, a_pod_serves_on_for_a_moment)
{
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	cr_assert_eq(read_words(""), CONF_RUN);
	cr_expect_eq(o.shutdown_delay_ms, 5000);
	cr_assert_eq(read_words("--shutdown-delay 0"), CONF_RUN);
	cr_expect_eq(o.shutdown_delay_ms, 0);
	setenv("KUBERNETES_SERVICE_HOST", "", 1);
	cr_assert_eq(read_words(""), CONF_RUN);
	cr_expect_eq(o.shutdown_delay_ms, 0);
}

Test(cmd_options, the_file_is_read_again_for_the_log_alone)
{
	cleanup_free char *words = xasprintf("--config %s --max-connections 7", path);
	struct err err = ERR_INIT;

	write_file("log-level = warn\nmax-connections = 8\nlisten-health = [::]:1\n");
	cr_assert_eq(read_words(words), CONF_RUN);
	cr_expect_eq(o.log_level, LOG_WARN);
	cr_expect_eq(o.max_connections, 7, "the command line wins");
	cr_expect_str_eq(o.listen_health, "[::]:1");
	write_file("log-level = debug\nlog-format = json\nlisten-health = [::]:2\n");
	cr_assert_eq(options_reload(&o, &err), 0, "%s", err.text);
	cr_expect_eq(o.log_level, LOG_DEBUG);
	cr_expect_eq(o.log_format, LOG_JSON);
	cr_expect_eq(o.max_connections, 7);
	write_file("log-level = error\nno-such = 1\n");
	cr_expect_lt(options_reload(&o, &err), 0);
	cr_expect_eq(err.kind, ERR_INVALID);
	cr_expect_eq(o.log_level, LOG_DEBUG, "an error changes nothing");
}

Test(cmd_options, without_a_file_nothing_is_read_again)
{
	struct err err = ERR_INIT;

	cr_assert_eq(read_words("--log-level warn"), CONF_RUN);
	cr_expect_eq(options_reload(&o, &err), 0);
	cr_expect_eq(o.log_level, LOG_WARN);
}

Test(cmd_options, a_ca_for_nodes_needs_somewhere_to_use_it)
{
	cr_assert_eq(read_words("--node-ca f"), CONF_BAD);
	cr_assert_eq(read_words("--standalone=d --node-ca f"), CONF_BAD);
	cr_assert_eq(read_words("--standalone=d --public-address h --plain --node-ca f"), CONF_BAD);
	cr_assert_eq(read_words("--standalone=d --public-address h --node-ca f"), CONF_RUN);
	cr_expect_str_eq(o.node_ca, "f");
}

Test(cmd_options, a_public_address_is_one_that_nodes_can_reach)
{
	static const char *const good[] = {"a", "anchor.example.com:8080", "192.0.2.1", "[::1]",
		"[2001:db8::1]:8080", "10.0.0.0"};
	static const char *const bad[] = {"http://a", "https://a:8080", "0.0.0.0", "0.0.0.0:8080",
		"[::]", "[::]:8080", "[0:0:0:0:0:0:0:0]", "::1", "2001:db8::1", ":8080",
		"a:", "a:x", "a:0", "a/b", "a b", "[a", "-a", "a..b", "a:65536", "1.2.3",
		"*.example.com"};
	char words[128];

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		snprintf(words, sizeof(words), "--standalone=d --public-address=%s", good[i]);
		cr_expect_eq(read_words(words), CONF_RUN, "%s", good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(words, sizeof(words), "--standalone=d --public-address=%s", bad[i]);
		cr_expect_eq(read_words(words), CONF_BAD, "%s", bad[i]);
	}
}
