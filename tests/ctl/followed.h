/* SPDX-License-Identifier: MIT */
/* A follower and a whole operator as its source: two worlds on one loop, w and src. */
#ifndef TEC_TESTS_CTL_FOLLOWED_H
#define TEC_TESTS_CTL_FOLLOWED_H

#include "ctl/nodes.h"

#define SETTLE 30000
#define CONFIG                                                                                     \
	"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: "      \
	"{cluster: k, user: u, namespace: " NS "}\nclusters:\n- name: k\n  cluster: {server: "     \
	"'https://source.test:6443'}\nusers:\n- name: u\n  user: {%s}\n"

static struct world src;

static inline void up(void)
{
	nodes_up();
	memset(&src, 0, sizeof(src));
	src.loop = w.loop;
	w.source = src.api = fake_api_new(w.loop);
	world_cluster(&src, "tec", "{" ADDRESS "}");
}

static inline void down(void)
{
	world_kill(&src);
	world_kill(&w);
	fake_api_free(src.api);
	nodes_down();
}

static inline void put_config(const char *user)
{
	cleanup_free char *yaml = xasprintf(CONFIG, user);
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free char *text = NULL;

	bytes_to_b64(&b64, yaml, strlen(yaml));
	text = xasprintf("{\"metadata\":{\"name\":\"source\"},\"data\":{\"kubeconfig\":\"%s\"}}",
		strbuf_str(&b64));
	fake_api_put(w.api, &kobj_secret, NS, text);
}

/* The source has Machine "a" with AttestationKey "key" and its disk key, and Machine "b" without. */
static inline void source_with_nodes(void)
{
	world_boot(&src, "cma");
	world_run(&src, SETTLE);
	world_machine(&src, "a", ID_A, "listener");
	world_machine(&src, "b", ID_B, NULL);
	world_run(&src, 2000);
	world_ak(&src, "key", test_pem[0], ID_A, "listener");
	world_run(&src, SETTLE);
	cr_assert_str_eq(world_cond(&src, &kobj_ak, "key", "Approved"), "True");
}

#define FOLLOW                                                                                     \
	"{" ADDRESS ",\"authority\":\"Following\",\"follow\":{\"kubeconfigSecret\":\"source\"}}"

static inline void follow(void)
{
	put_config("token: t");
	world_cluster(&w, "tec", FOLLOW);
	world_boot(&w, NULL);
	world_run(&w, 60000);
}

static inline const struct ctl_follow_state *state(void)
{
	return ctl_follow_state(w.life->follow);
}

static inline void in_step(void)
{
	cr_assert_eq(state()->is, CTL_FOLLOW_IN_STEP, "%d %s", (int)state()->is, state()->why);
	cr_assert_eq(state()->behind, 0);
}

#endif
