/* nginx by the limits of a Tidegate policy: each location names a rule and a key.
 *
 *     http {
 *       tidegate_policy /etc/nginx/limits.yaml;    # its store is a folder: all workers share it
 *       server {
 *         location / { tidegate messages $remote_addr; }    # a rule, and the key
 *       }
 *     }
 *
 * A wrong policy, or a rule that it has not, is refused with the rest of the configuration: by
 * `nginx -t`, at the start and at a reload.
 *
 * A denied request is 429 with the header fields of the decision. If a call fails, the request is
 * allowed and the error log says why: a limiter that is broken should not stop the site. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <tidegate.h>

typedef struct {
  ngx_str_t policy;
  tg_limiter *limiter;
  ngx_array_t locations; /* each tidegate_location that states a limit */
} tidegate_main;

typedef struct tidegate_location {
  struct tidegate_location *stated; /* this one or one around it; NULL: no limit */
  ngx_str_t rule_name;
  ngx_http_complex_value_t *key;
  const tg_rule *rule; /* of this worker */
} tidegate_location;

extern ngx_module_t ngx_http_tidegate_module;

/* A line such as "Retry-After: 3" as a header field of the answer. */
static ngx_int_t add_header(ngx_http_request_t *request, u_char *line, size_t length) {
  u_char *colon = ngx_strlchr(line, line + length, ':');
  ngx_table_elt_t *header = colon ? ngx_list_push(&request->headers_out.headers) : NULL;
  if (header == NULL) return NGX_ERROR;
  ngx_memzero(header, sizeof *header);
  header->hash = 1;
  header->key.data = line;
  header->key.len = (size_t)(colon - line);
  header->value.data = colon + 2;
  header->value.len = length - header->key.len - 2;
  return NGX_OK;
}

static ngx_int_t add_headers(ngx_http_request_t *request, const tg_rule *rule,
                             const tg_decision *decision) {
  char text[1024];
  size_t length;
  if (tg_decision_headers(rule, decision, TG_HEADERS_BOTH, text, sizeof text, &length) !=
      TG_STATUS_OK)
    return NGX_OK; /* longer than any that this example needs */
  u_char *at = ngx_pnalloc(request->pool, length), *end = at + length, *line_end;
  if (at == NULL) return NGX_ERROR;
  ngx_memcpy(at, text, length);
  for (; (line_end = ngx_strlchr(at, end, CR)) != NULL; at = line_end + 2) {
    if (add_header(request, at, (size_t)(line_end - at)) != NGX_OK) return NGX_ERROR;
  }
  return NGX_OK;
}

static ngx_int_t judge(ngx_http_request_t *request) {
  tidegate_location *here = ngx_http_get_module_loc_conf(request, ngx_http_tidegate_module);
  ngx_str_t key;
  tg_decision decision;
  tg_error error;
  /* Once for each request: not for subrequests, nor after a redirect such as to the index. */
  if (here->stated == NULL || request->main != request || request->internal) return NGX_DECLINED;
  here = here->stated;
  if (ngx_http_complex_value(request, here->key, &key) != NGX_OK) return NGX_ERROR;
  if (tg_hit_bytes(here->rule, key.data, key.len, 1, &decision, &error) != TG_STATUS_OK) {
    ngx_log_error(NGX_LOG_ERR, request->connection->log, 0, "tidegate: %s", error.text);
    return NGX_DECLINED;
  }
  if (add_headers(request, here->rule, &decision) != NGX_OK) return NGX_ERROR;
  return decision.allowed ? NGX_DECLINED : NGX_HTTP_TOO_MANY_REQUESTS;
}

/* Opens the policy and finds the rule of each location. Of no `store`, that of the policy. */
static tg_status get_rules(tidegate_main *main, const char *store) {
  tg_options options = TG_OPTIONS_INIT;
  options.store = store;
  tg_status status = tg_limiter_from_file((char *)main->policy.data, &options, &main->limiter);
  tidegate_location **all = main->locations.elts;
  for (ngx_uint_t i = 0; status == TG_STATUS_OK && i < main->locations.nelts; i++)
    status = tg_rule_get(main->limiter, (char *)all[i]->rule_name.data, &all[i]->rule);
  return status;
}

/* Tries the policy while the configuration is read, in memory: so a wrong one is refused by
 * `nginx -t` and by a reload, and no worker meets it. */
static ngx_int_t check_policy(ngx_conf_t *conf, tidegate_main *main) {
  ngx_int_t result = NGX_OK;
  if (main->policy.len == 0 && main->locations.nelts == 0) return NGX_OK;
  if (main->policy.len == 0) {
    ngx_conf_log_error(NGX_LOG_EMERG, conf, 0, "tidegate: state a \"tidegate_policy\" in http");
    return NGX_ERROR;
  }
  if (get_rules(main, "memory") != TG_STATUS_OK) {
    ngx_conf_log_error(NGX_LOG_EMERG, conf, 0, "tidegate: %s", tg_last_error());
    result = NGX_ERROR;
  }
  tg_limiter_free(main->limiter);
  main->limiter = NULL;
  return result;
}

/* Each worker opens the policy for itself: they meet in the folder of its store. */
static ngx_int_t open_policy(ngx_cycle_t *cycle) {
  tidegate_main *main = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tidegate_module);
  if (main == NULL || main->policy.len == 0) return NGX_OK;
  if (get_rules(main, NULL) == TG_STATUS_OK) return NGX_OK;
  ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "tidegate: %s", tg_last_error());
  return NGX_ERROR;
}

static void close_policy(ngx_cycle_t *cycle) {
  tidegate_main *main = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_tidegate_module);
  if (main) tg_limiter_free(main->limiter);
}

static void *make_main(ngx_conf_t *conf) {
  tidegate_main *main = ngx_pcalloc(conf->pool, sizeof *main);
  size_t size = sizeof(tidegate_location *);
  if (main && ngx_array_init(&main->locations, conf->pool, 4, size) != NGX_OK) return NULL;
  return main;
}

static void *make_location(ngx_conf_t *conf) {
  return ngx_pcalloc(conf->pool, sizeof(tidegate_location));
}

/* A location without a limit of its own has that of the block around it. */
static char *merge_location(ngx_conf_t *conf, void *parent, void *child) {
  tidegate_location *outer = parent, *inner = child;
  (void)conf;
  if (inner->stated == NULL) inner->stated = outer->stated;
  return NGX_CONF_OK;
}

/* tidegate RULE KEY; */
static char *set_limit(ngx_conf_t *conf, ngx_command_t *command, void *of) {
  tidegate_main *main = ngx_http_conf_get_module_main_conf(conf, ngx_http_tidegate_module);
  tidegate_location *here = of, **place;
  ngx_str_t *words = conf->args->elts;
  (void)command;
  if (here->stated) return "is stated twice";
  here->rule_name = words[1];
  here->key = ngx_pcalloc(conf->pool, sizeof *here->key);
  place = ngx_array_push(&main->locations);
  if (here->key == NULL || place == NULL) return NGX_CONF_ERROR;
  ngx_http_compile_complex_value_t compiled = {conf, &words[2], here->key, 0, 0, 0};
  if (ngx_http_compile_complex_value(&compiled) != NGX_OK) return NGX_CONF_ERROR;
  *place = here->stated = here;
  return NGX_CONF_OK;
}

/* tidegate_policy FILE; */
static char *set_policy(ngx_conf_t *conf, ngx_command_t *command, void *of) {
  tidegate_main *main = of;
  ngx_str_t *words = conf->args->elts;
  (void)command;
  if (main->policy.len > 0) return "is stated twice";
  main->policy = words[1];
  return ngx_conf_full_name(conf->cycle, &main->policy, 1) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

/* The configuration was read: checks it, and has every request judged. */
static ngx_int_t judge_requests(ngx_conf_t *conf) {
  tidegate_main *main = ngx_http_conf_get_module_main_conf(conf, ngx_http_tidegate_module);
  ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(conf, ngx_http_core_module);
  if (check_policy(conf, main) != NGX_OK) return NGX_ERROR;
  ngx_http_handler_pt *handler = ngx_array_push(&core->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
  if (handler == NULL) return NGX_ERROR;
  *handler = judge;
  return NGX_OK;
}

#define EVERYWHERE NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF
static ngx_command_t commands[] = {
    {ngx_string("tidegate_policy"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, set_policy,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("tidegate"), EVERYWHERE | NGX_CONF_TAKE2, set_limit, NGX_HTTP_LOC_CONF_OFFSET, 0,
     NULL},
    ngx_null_command};

static ngx_http_module_t parts = {NULL,      judge_requests, make_main,     NULL,
                                  NULL,      NULL,           make_location, merge_location};

ngx_module_t ngx_http_tidegate_module = {
    NGX_MODULE_V1, &parts, commands, NGX_HTTP_MODULE, NULL, NULL, open_policy, NULL, NULL,
    close_policy,  NULL,   NGX_MODULE_V1_PADDING};
