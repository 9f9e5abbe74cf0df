/* Structures are laid out here as they are in the library, which writes layout.inc. This is a
 * second unit that includes the header, for C and for C++. */
#include "check.h"

#ifdef __cplusplus
#define ASSERT static_assert
#else
#define ASSERT _Static_assert
#endif
#define SIZE(structure, bytes) ASSERT(sizeof(structure) == (bytes), #structure);
#define FIELD(structure, field, at)                                                                \
  ASSERT(offsetof(structure, field) == (at), #structure "." #field);
#if UINTPTR_MAX == UINT64_MAX
#include "layout.inc"
#endif
ASSERT(sizeof(tg_status) == 4, "tg_status");

const char *layout_version(void);
const char *layout_version(void) { return tg_version(); }
