// tools/portable/glibc: included before every file of a portable build. The
// symbols that glibc 2.35 gave a new version are asked for in their old one, so
// that the result also runs on glibc 2.34.
#if defined(__x86_64__) && !defined(__ASSEMBLER__)
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
#endif
