// jit/share: functions that are the same are compiled once. The layers of a
// network are alike; what one costs is in LLVM, so what their instructions say
// is compared before it goes there, and the others become names of the first.
//
// Constants and types are one object for each meaning, so their addresses stand
// for them; values of the function have numbers. An instruction of a kind that
// is not known here makes its function one of its own.
#include "jit/share.h"

#include <string.h>

#include "base/text.h"

struct cpu_jit_shared {
  cpu_jit_shared *next;
  cx_hash hash;
  LLVMValueRef function;
};

typedef struct listing {
  LLVMValueRef *keys;  // open addressing; blocks as values
  uint64_t *numbers;
  size_t room, n;
  cx_text words;
} listing;

static void put(listing *l, uint64_t word)
{
  cx_text_append_n(&l->words, (const char *)&word, sizeof word);
}

static size_t find(const listing *l, LLVMValueRef v)
{
  size_t i = ((uintptr_t)v >> 4) * 0x9E3779B97F4A7C15u % l->room;
  while (l->keys[i] != NULL && l->keys[i] != v) i = (i + 1) % l->room;
  return i;
}

static void number(listing *l, LLVMValueRef v)
{
  const size_t i = find(l, v);
  l->keys[i] = v;
  l->numbers[i] = ++l->n;
}

static void put_value(listing *l, LLVMValueRef v)
{
  const size_t i = find(l, v);
  put(l, l->keys[i] != NULL ? l->numbers[i] : (uintptr_t)v);
}

static void put_flags(listing *l, LLVMValueRef v)
{
  if (LLVMCanValueUseFastMathFlags(v)) put(l, LLVMGetFastMathFlags(v));
}

// What an instruction says beside its operands; false: not known.
static bool put_rest(listing *l, LLVMValueRef v)
{
  switch (LLVMGetInstructionOpcode(v)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
      put(l, (uint64_t)LLVMGetNSW(v) << 1 | (uint64_t)LLVMGetNUW(v));
      return true;
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr: put(l, (uint64_t)LLVMGetExact(v)); return true;
    case LLVMOr: put(l, (uint64_t)LLVMGetIsDisjoint(v)); return true;
    case LLVMZExt: put(l, (uint64_t)LLVMGetNNeg(v)); return true;
    case LLVMICmp: put(l, (uint64_t)LLVMGetICmpPredicate(v)); return true;
    case LLVMFCmp:
      put(l, (uint64_t)LLVMGetFCmpPredicate(v));
      put_flags(l, v);
      return true;
    case LLVMLoad:
    case LLVMStore:
      put(l, LLVMGetAlignment(v));
      put(l, (uint64_t)LLVMGetVolatile(v));
      return true;
    case LLVMGetElementPtr:
      put(l, (uintptr_t)LLVMGetGEPSourceElementType(v));
      put(l, (uint64_t)LLVMIsInBounds(v));
      return true;
    case LLVMShuffleVector: {
      const unsigned n = LLVMGetNumMaskElements(v);
      for (unsigned i = 0; i < n; i++) {
        put(l, (uint64_t)LLVMGetMaskValue(v, i));
      }
      return true;
    }
    case LLVMPHI: {
      const unsigned n = LLVMCountIncoming(v);
      for (unsigned i = 0; i < n; i++) {
        put_value(l, LLVMBasicBlockAsValue(LLVMGetIncomingBlock(v, i)));
      }
      put_flags(l, v);
      return true;
    }
    case LLVMCall:
      put(l, (uintptr_t)LLVMGetCalledFunctionType(v));
      put_flags(l, v);
      return true;
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFRem:
    case LLVMFNeg:
    case LLVMSelect: put_flags(l, v); return true;
    case LLVMRet:
    case LLVMBr:
    case LLVMURem:
    case LLVMSRem:
    case LLVMAnd:
    case LLVMXor:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMBitCast:
    case LLVMSIToFP:
    case LLVMUIToFP:
    case LLVMFPToSI:
    case LLVMFPToUI:
    case LLVMFPExt:
    case LLVMFPTrunc:
    case LLVMFreeze:
    case LLVMInsertElement:
    case LLVMExtractElement: return true;
    default: return false;
  }
}

static bool list(listing *l, LLVMValueRef function)
{
  for (unsigned i = 0; i < LLVMCountParams(function); i++) {
    number(l, LLVMGetParam(function, i));
  }
  LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function);
  for (; b != NULL; b = LLVMGetNextBasicBlock(b)) {
    number(l, LLVMBasicBlockAsValue(b));
    LLVMValueRef v = LLVMGetFirstInstruction(b);
    for (; v != NULL; v = LLVMGetNextInstruction(v)) number(l, v);
  }
  b = LLVMGetFirstBasicBlock(function);
  for (; b != NULL; b = LLVMGetNextBasicBlock(b)) {
    put(l, UINT64_MAX);
    LLVMValueRef v = LLVMGetFirstInstruction(b);
    for (; v != NULL; v = LLVMGetNextInstruction(v)) {
      const int n = LLVMGetNumOperands(v);
      put(l, (uint64_t)LLVMGetInstructionOpcode(v));
      put(l, (uintptr_t)LLVMTypeOf(v));
      put(l, (uint64_t)n);
      for (int i = 0; i < n; i++) put_value(l, LLVMGetOperand(v, (unsigned)i));
      if (!put_rest(l, v)) return false;
    }
  }
  return true;
}

static size_t count(LLVMValueRef function)
{
  size_t n = LLVMCountParams(function);
  LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function);
  for (; b != NULL; b = LLVMGetNextBasicBlock(b)) {
    n++;
    LLVMValueRef v = LLVMGetFirstInstruction(b);
    for (; v != NULL; v = LLVMGetNextInstruction(v)) n++;
  }
  return n;
}

static void become(LLVMModuleRef module, LLVMTypeRef type,
                   LLVMValueRef function, LLVMValueRef first)
{
  size_t n = 0;
  char name[64];
  const char *own = LLVMGetValueName2(function, &n);
  if (n >= sizeof name) return;
  memcpy(name, own, n);
  name[n] = 0;
  LLVMDeleteFunction(function);
  LLVMAddAlias2(module, type, 0, first, name);
}

static calx_status *keep(cx_arena *arena, cpu_jit_shared **known, cx_hash hash,
                         LLVMValueRef function)
{
  cpu_jit_shared *s = CX_ARENA_NEW(arena, cpu_jit_shared);
  if (s == NULL) return cx_out_of_memory();
  *s = (cpu_jit_shared){ *known, hash, function };
  *known = s;
  return NULL;
}

calx_status *cpu_jit_share(cx_arena *arena, cpu_jit_shared **known,
                           LLVMModuleRef module, LLVMTypeRef type,
                           LLVMValueRef function)
{
  cx_arena own = { 0 };
  listing l = { .room = 2 * count(function) + 1 };
  l.keys = CX_ARENA_ARRAY(&own, LLVMValueRef, l.room);
  l.numbers = CX_ARENA_ARRAY(&own, uint64_t, l.room);
  bool ok = l.keys != NULL && l.numbers != NULL;
  const bool listed = ok && list(&l, function);
  ok &= !cx_text_failed(&l.words);
  cx_hash hash = { 0 };
  if (ok && listed) {
    hash = cx_hash_bytes(cx_text_str(&l.words), l.words.size, 0);
  }
  cx_text_free(&l.words);
  cx_arena_free(&own);
  if (!ok) return cx_out_of_memory();
  if (!listed) return NULL;
  for (cpu_jit_shared *s = *known; s != NULL; s = s->next) {
    if (!cx_hash_equal(s->hash, hash)) continue;
    become(module, type, function, s->function);
    return NULL;
  }
  return keep(arena, known, hash, function);
}
