// jit/share: functions that are the same are compiled once. The layers of a
// network are alike; what one costs is in LLVM, so the IR's text is compared
// before it goes there, and the others become names of the first.
#include <string.h>

#include "jit/share.h"

struct cx_jit_shared {
  cx_jit_shared *next;
  cx_hash hash;
  LLVMValueRef function;
};

calx_status *cx_jit_share(cx_arena *arena, cx_jit_shared **known,
                          LLVMModuleRef module, LLVMTypeRef type,
                          LLVMValueRef function)
{
  char *text = LLVMPrintValueToString(function);
  // Behind the name all is said without it.
  const char *rest = strchr(text, '(');
  if (rest == NULL) rest = text;
  const cx_hash hash = cx_hash_bytes(rest, strlen(rest), 0);
  LLVMDisposeMessage(text);
  for (cx_jit_shared *s = *known; s != NULL; s = s->next) {
    if (!cx_hash_equal(s->hash, hash)) continue;
    size_t n = 0;
    char name[64];
    const char *own = LLVMGetValueName2(function, &n);
    if (n >= sizeof name) return NULL;
    memcpy(name, own, n);
    name[n] = 0;
    LLVMDeleteFunction(function);
    LLVMAddAlias2(module, type, 0, s->function, name);
    return NULL;
  }
  cx_jit_shared *s = CX_ARENA_NEW(arena, cx_jit_shared);
  if (s == NULL) return cx_out_of_memory();
  *s = (cx_jit_shared){ *known, hash, function };
  *known = s;
  return NULL;
}
