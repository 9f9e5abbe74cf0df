/* What the C tests have in common. */
#ifndef CHECK_H
#define CHECK_H

#include <tidegate.h>
#include <tidegate.h> /* twice does no harm */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                     \
  do {                                                                                  \
    if (!(what)) {                                                                      \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #what,       \
              tg_last_error());                                                         \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)
#define OK(call) CHECK((call) == TG_STATUS_OK)
#define FAILS(call, status) CHECK((call) == (status) && tg_last_error()[0] != '\0')
#define SAME(a, b) CHECK(strcmp((a), (b)) == 0)
#define HAS(text, part) CHECK(strstr((text), (part)) != NULL)

#endif
