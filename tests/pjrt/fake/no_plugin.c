// fake/no_plugin: a shared object that loads and is no plugin.
int no_plugin(void);

__attribute__((visibility("default"))) int no_plugin(void)
{
  return 0;
}
