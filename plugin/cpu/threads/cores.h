// threads/cores: the processor time that a cgroup leaves to this process.
#ifndef CPU_THREADS_CORES_H
#define CPU_THREADS_CORES_H

// The smallest quota of the groups that `list` (the text of /proc/self/cgroup)
// names and of their parents, in whole cores, rounded up; 0: there is none.
// `mount` is where the groups are seen: /sys/fs/cgroup.
int cpu_threads_quota(const char *list, const char *mount);

#endif
